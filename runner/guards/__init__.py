"""What foreign text may look like: markers made inert, data framed, keys kept out of the log (S7, I3, I6, I7)."""

from runner.guards.defang import defang, restore, restore_value
from runner.guards.frames import frame, unframe
from runner.guards.loggable import loggable
from runner.guards.posing import lines_beginning, quoted
from runner.guards.secrets import HIDDEN, without_keys
from runner.guards.strings import in_strings

__all__ = [
    "HIDDEN",
    "defang",
    "frame",
    "in_strings",
    "lines_beginning",
    "loggable",
    "quoted",
    "restore",
    "restore_value",
    "unframe",
    "without_keys",
]
