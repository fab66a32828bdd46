"""What keeps a run honest and safe: making hostile text inert, and the checks on what a model does."""

from runner.guards.defang import defang, frame, restore, restore_value, unframe
from runner.guards.loggable import loggable

__all__ = ["defang", "frame", "loggable", "restore", "restore_value", "unframe"]
