"""Lines of a text that could pass for somebody else's are shown as quoted (B4, I6)."""

from __future__ import annotations

import re
from typing import Final

BREAKS: Final = "\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
"""Whatever a reader takes for the end of a line, as the inside of a character class."""

OPENING_BRACKETS: Final = "[［⁅【〔〖〘〚⟦⦋❲「『｢﹁﹃﹇﹝"
"""What a name may stand behind, for somebody who reads quickly."""

CLOSING_BRACKETS: Final = "]］⁆】〕〗〙〛⟧⦌❳」』｣﹂﹄﹈﹞"

_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0"
)
_MARKUP = r"[*_~`#\\]{0,8}"
_QUOTED = "> "


def lines_beginning(with_what: str) -> re.Pattern[str]:
    """Finds the blanks, seen or not, before each later line of a text that begins with such a pattern, set off or not
    (`**[Ann]**`)."""
    return re.compile(rf"(?<=[{BREAKS}])(?:(?![{BREAKS}])[\s{_UNSEEN}])*(?={_MARKUP}(?:{with_what}))", re.IGNORECASE)


def quoted(text: str, lines: re.Pattern[str]) -> str:
    """The text with `> ` before such lines, in the place of their blanks. Linear time."""
    return lines.sub(_QUOTED, text)
