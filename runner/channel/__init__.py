"""How words reach people, and theirs the run."""
