"""What can be taken for a line of a frame: `--- end of data block 7 ---`, however it is spelled (I6).

Any dash counts as one, any character that reads like a letter as that letter, and what is not seen, or is a blank or a
mark, may stand between. The number does not matter: a model may overlook that it is another.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

DASHES: Final = (
    "-\u00ad\u058a\u05be\u1806\u2010-\u2015\u2043\u2212\u2500\u2501\u2e3a\u2e3b\u30fc\u3161\ufe58\ufe63\uff0d\uff70"
)
"""As the inside of a character class."""

INERT_DASH: Final = "·"
"""What the first dash of such a line becomes: a character that no normalisation turns back."""

_READS_LIKE: Final = {
    "a": "аαɑ4@",
    "b": "ьвʙβ8",
    "c": "сϲ",
    "d": "ԁɗđ",
    "e": "еεєҽ3",
    "f": "ƒϝ",
    "k": "кκ",
    "l": "1|ıіιł",
    "n": "ոηп",
    "o": "оοσօø0",
    "t": "тτ7",
}
"""Letters of other scripts in small, and digits, that pass for one of ours. Wide letters, those of mathematics and
those with accents come apart by themselves."""

_LATIN = str.maketrans({other: letter for letter, others in _READS_LIKE.items() for other in others})
_FIRST_LETTERS = "EeDd" + "".join(each + each.upper() for each in _READS_LIKE["e"] + _READS_LIKE["d"])
# Letters that only normalisation finds are tried too: wide, in circles, of mathematics, with accents.
_COMPATIBLE = (
    "\u00c8-\u00cb\u00e8-\u00eb\u0100-\u024f\u1d00-\u1dbf\u1e00-\u1eff\u2100-\u214f\u2460-\u24ff\uff21-\uff5a"
    "\U0001d400-\U0001d7ff"
)
_UNSEEN = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"
"""Letters by their category that nobody sees."""

_BEFORE_WORDS = rf"[\W_{_UNSEEN}]{{0,24}}[{_FIRST_LETTERS}{_COMPATIBLE}]"
_MAY_BEGIN = re.compile(rf"[{DASHES}](?<![{DASHES}{INERT_DASH}].)(?={_BEFORE_WORDS})", re.DOTALL)
_MAY_BE_INERT = re.compile(rf"{INERT_DASH}(?<![{DASHES}{INERT_DASH}].)(?={_BEFORE_WORDS})", re.DOTALL)
_GLANCE: Final = 12
_SPAN: Final = 120
"""Characters behind a dash in which the words have to stand, and in which most texts show that they do not."""


def without_frame_lines(text: str) -> str:
    """The text with the first dash of each such line changed; as long as before, and idempotent. Linear time."""
    return _MAY_BEGIN.sub(lambda dash: INERT_DASH if _reads(text, dash.end()) else dash[0], text)


def with_frame_lines(text: str) -> str:
    """The same turned back. Whatever dash it was, a plain one comes back."""
    return _MAY_BE_INERT.sub(lambda dash: "-" if _reads(text, dash.end()) else dash[0], text)


def _reads(text: str, at: int) -> bool:
    """Whether the words of a frame's line stand at a place: of any end, or of a beginning with its number."""
    begun = _letters(text[at : at + _GLANCE])[:3]
    if not begun.translate(_LATIN).startswith(("end"[: len(begun)], "dat"[: len(begun)])):
        return False
    seen = _letters(text[at : at + _SPAN])
    words = seen.translate(_LATIN)
    return words.startswith("endofdatablock") or (words.startswith("datablock") and seen[9:10].isdigit())


def _letters(text: str) -> str:
    """What of a text is read: letters, digits and what passes for one, in small and each as plain as it can be."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(each for each in plain if (each.isalnum() or each in "|@") and each not in _UNSEEN)
