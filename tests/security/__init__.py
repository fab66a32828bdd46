"""Hostile tools, results, skills, names, knowledge and history, through whole runs (docs/security.md)."""
