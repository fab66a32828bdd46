"""What of a text a person would see, and which characters can be sent (I8). Pure."""

from __future__ import annotations

from typing import Final

import regex

_UNSEEN: Final = (
    r"\p{Cc}\p{Cf}\p{Cs}\p{Z}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2800\U00016FE4\U0001D159"
)
"""Characters of which nothing is seen: white space, control and format characters (zero-width ones, directions, tags,
byte order marks), lone surrogates, what fonts have to leave out (variation selectors, fillers of Hangul), and three
fillers more: of Braille, Khitan and music."""

_SIGN: Final = r"\p{Prepended_Concatenation_Mark}"
"""A few format characters of Arabic and Kaithi are signs that stand before numbers."""

_READABLE: Final = regex.compile(rf"[^{_UNSEEN}]|{_SIGN}")
_INVISIBLE: Final = regex.compile(rf"(?!\s|{_SIGN})[{_UNSEEN}]")


_GLANCE: Final = 1_000
"""Characters in which most texts show something."""


def is_readable(text: str) -> bool:
    """Whether a person would see anything of it (I8)."""
    if _READABLE.search(text, 0, _GLANCE) is not None:
        return True
    if text.isspace():
        return False
    # Which characters there are is known at once, also of a text of a million of them (Sm).
    return len(text) > _GLANCE and _READABLE.search("".join(set(text))) is not None


def without_invisible(text: str) -> str:
    """The text without characters of which nothing is seen; white space stays. For looking at it, never for sending:
    emoji and some scripts are written with such characters.
    """
    return _INVISIBLE.sub("", text)


def whole_characters(text: str) -> str:
    """Surrogate pairs joined; lone ones and NUL, which no database takes, left out."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore").replace("\0", "")
