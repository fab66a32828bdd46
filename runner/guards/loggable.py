"""What a line for the bot's owner may hold: no keys, and nothing that makes it look like another line.

Failures are told in the Host's own words, and an exception of a provider, a proxy or a tool may quote the header or
the address it was called with. Linear time.
"""

from __future__ import annotations

import re
import unicodedata

from runner.guards.posing import BREAKS
from runner.guards.secrets import without_keys

_BREAKS = re.compile(rf"\r\n|[{BREAKS}]")
_INDENT = "\n    "
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co"})
"""Control and format characters, among them those that turn the direction of writing round."""


def loggable(text: str) -> str:
    """The text with keys hidden, control characters as `�`, and later lines indented so that none can pass for a line
    of its own."""
    lines = _BREAKS.split(without_keys(text))
    return _INDENT.join(line if line.isprintable() else "".join(map(_seen, line)) for line in lines)


def _seen(character: str) -> str:
    # A joiner holds emoji and letters of some scripts together; without it they would come apart.
    if character in "\t\u200c\u200d" or unicodedata.category(character) not in _UNSEEN:
        return character
    return "�"
