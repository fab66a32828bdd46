"""Texts as they compare when a call is looked for in them, however it was disguised (I5).

Two texts that a model may take for the same are the same here: JSON escapes, HTML entities and percent signs are
decoded, again and again; invisible characters, accents and backslashes are gone; full-width letters are plain ones,
capitals small, quotes of any kind `"`, and white space is one blank. What is in base64 stands, decoded, behind it.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

from callformats.inert import INERT

_LIVE = str.maketrans({inert: live for live, inert in INERT.items()})
_ROUNDS = 4
_PIECE = 16_000
"""Characters that are changed in one go, so that others come to their turn in between (Sm)."""

_LOOK_BACK = 400

_FRAME = re.compile(r"^--- data block [^\n]{0,300}---\n|\n--- end of data block [^\n]{0,100}---$", re.MULTILINE)
_FRAME_BEGINS = re.compile(r"^--- data block ", re.MULTILINE)
_FRAME_ENDS = re.compile(r"^--- end of data block [^\n]{0,100}---$", re.MULTILINE)
_QUOTED_LINE = re.compile(r"\n[ \t]{0,8}[>|#]{1,4}[ \t]?")
_DIGIT = r"\s{0,2}[0-9A-Fa-f]"  # a line may have been wrapped anywhere
_CODES = rf"u((?:{_DIGIT}){{4}})|u\{{((?:{_DIGIT}){{1,6}})\}}|U((?:{_DIGIT}){{8}})|x((?:{_DIGIT}){{2}})"
_ESCAPE = re.compile(rf"\\\s{{0,2}}(?:{_CODES}|(.))", re.DOTALL)
_WHITE = frozenset("ntrbfv0")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}")
_UNSEEN = re.compile(
    "[\u0000-\u0008\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]+"
)
_QUOTES = re.compile("['`\u00b4\u2018-\u201f\u2032-\u2037\u00ab\u00bb\u300c-\u300f\u301d-\u301f]+")
_SPACE = re.compile(r"\s+")


def plain(text: str) -> str:
    """The text as it compares: one line of small letters. Linear in the text."""
    words = map(_plain, _pieces(text))
    return _SPACE.sub(" ", "".join(words)).strip()


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces, cut at white space where there is some."""
    at = 0
    while at < len(text):
        end = at + _PIECE
        cut = max(text.rfind(blank, end - _LOOK_BACK, end) for blank in " \n") if end < len(text) else -1
        end = cut if cut > at else end
        yield text[at:end]
        at = end


def _plain(piece: str) -> str:
    piece = _QUOTED_LINE.sub("\n", piece.translate(_LIVE))
    decoded = _QUOTED_LINE.sub("\n", _decoded(_narrow(piece)))
    return _flat(" ".join([decoded, *_from_base64(piece)]))


def framed(text: str) -> list[str]:
    """What stands in a text between lines that mark it as data, those lines included."""
    found: list[str] = []
    at = 0
    while (begins := _FRAME_BEGINS.search(text, at)) and (ends := _FRAME_ENDS.search(text, begins.end())):
        found.append(text[begins.start() : ends.end()])
        at = ends.end()
    return found


def without_frame(text: str) -> str:
    """The text without the lines that mark it as data."""
    return _FRAME.sub("", text)


def squeezed(text: str) -> str:
    """`plain` without blanks and quotes: lines may have been wrapped anywhere, and quotes are of many kinds or none."""
    return closed_up(plain(text))


def closed_up(words: str) -> str:
    """Plain words without blanks and quotes."""
    return words.replace(" ", "").replace('"', "")


def _decoded(text: str) -> str:
    for _ in range(_ROUNDS):
        before = text
        if "%" in text:
            text = unquote(text, errors="ignore")
        if "&" in text:
            text = html.unescape(text)
        if "\\" in text:
            text = _ESCAPE.sub(_unescaped, text)
        if text == before:
            break
    return text


def _unescaped(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3] or match[4]
    if digits is None:
        return "\n" if match[5] in _WHITE else match[5]
    code = int("".join(digits.split()), 16)
    return chr(code) if code <= 0x10FFFF else ""


def _from_base64(text: str) -> list[str]:
    """What stands in the text in base64, as far as it is words."""
    return [said for found in _BASE64.finditer(text) if (said := _base64_words(found[0])) is not None]


def _base64_words(written: str) -> str | None:
    written = written.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        said = base64.b64decode(written + "=" * (-len(written) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return _decoded(said) if said.isprintable() else None


def _narrow(piece: str) -> str:
    """Letters as they are without accents, width and invisible characters between them."""
    if piece.isascii():
        return _UNSEEN.sub("", piece)
    whole = piece.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    apart = unicodedata.normalize("NFKD", _UNSEEN.sub("", whole))
    return "".join(char for char in apart if not unicodedata.combining(char))


def _flat(piece: str) -> str:
    return _SPACE.sub(" ", _QUOTES.sub('"', _narrow(piece).casefold().replace("\\", "")))
