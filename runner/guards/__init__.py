"""What foreign text may look like: control markers made inert, data framed, keys kept out of the log (S7, I3)."""

from runner.guards.defang import defang, frame, restore, restore_value, unframe
from runner.guards.loggable import HIDDEN, loggable, without_keys
from runner.guards.strings import in_strings

__all__ = ["HIDDEN", "defang", "frame", "in_strings", "loggable", "restore", "restore_value", "unframe", "without_keys"]
