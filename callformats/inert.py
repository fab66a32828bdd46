"""What a character of a marker becomes where the marker stands in a text of others: data, no behaviour."""

from __future__ import annotations

INERT: dict[str, str] = {
    "<": "‹",
    "[": "⁅",
    "]": "⁆",
    "`": "‵",
    "|": "∣",
    ">": "›",
    "◁": "◃",
    "#": "♯",
    "@": "◎",
    ":": "∶",
    # for markers of call formats that hold none of these
    "{": "❴",
    "}": "❵",
    "(": "❨",
    ")": "❩",
    "=": "⹀",
    "*": "∗",
    "~": "∼",
    "$": "₴",
    "%": "٪",
    "&": "⅋",
    "!": "¡",
    "^": "˄",
    "/": "∕",
    "\\": "∖",
    "+": "∔",
    "?": "⸮",
    ";": "⁏",
    "｜": "¦",
    "_": "‿",
    "-": "·",
}
"""What a changed character becomes: one character that looks alike, is no letter, and that no Unicode normalisation
(as tokenizers do) turns back. Characters first that ordinary text can spare best."""
