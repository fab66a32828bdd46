"""What keeps a run honest and safe: making hostile text inert, and the checks on what a model does."""

from runner.guards.defang import defang, frame, restore, restore_value, unframe

__all__ = ["defang", "frame", "restore", "restore_value", "unframe"]
