"""What keeps a run honest and safe: making hostile text inert, and the checks on what a model does."""

from runner.guards.defang import defang, frame, restore, restore_value, unframe
from runner.guards.loggable import HIDDEN, loggable, without_keys

__all__ = ["HIDDEN", "defang", "frame", "loggable", "restore", "restore_value", "unframe", "without_keys"]
