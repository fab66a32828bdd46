"""Pictures in a tool's result, in whatever shape it holds them, and base64 of other kinds (D4).

```
{"caption": "sales", "chart": "data:image/png;base64,iVB…"} ─▸ {"caption": "sales", "chart": "[image 1, …]"}, a picture
{"mimeType": "application/pdf", "blob": "JVBERi0xLjQK…"}    ─▸ {"mimeType": "application/pdf", "blob": "[base64, …]"}
```
A picture is known by what stands around it (a content element, MCP's `data` with `mimeType`, a data URL, a field called
`image_base64`), else by how its bytes begin and end. Base64 is never text for the model: it costs a token for every two
characters, and no model can read it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import is_not
from typing import Any

from runner.conversation.units import Image
from runner.tools.base64_text import Run, begins_as_picture, is_encoded, is_whole_picture, only_base64, runs

MAX_IMAGES = 8
MAX_ADDRESS = 2_048
"""Characters of an address that is passed on."""

_IMAGE_CHARACTERS = 6_000_000
_TOTAL_IMAGE_CHARACTERS = 8_000_000
_MAX_DEPTH = 64
_MAX_NODES = 1_200_000
_LOOKED_AT = (str, Mapping, list, tuple)
_LEAST_NAMED = 128
"""Characters of base64 in a field whose name says that it is."""

_TYPES = frozenset({"image", "image_url", "image_base64", "input_image"})
_MIME_FIELDS = ("mimeType", "mime_type", "media_type", "mime", "content_type")
_WRAPPERS = frozenset({"image_url", "source", "inlineData", "inline_data", "resource"})
"""Fields under which a content element keeps its picture as an object."""
_PAYLOADS = frozenset({"data", "base64", "blob", "bytes", "image_base64", "b64_json"})
_PICTURE_FIELDS = frozenset({"image_base64", "b64_json"})
_ADDRESSES = frozenset({"url", "image_url"})
_ONLY_A_PICTURE = frozenset({"type", "detail", *_MIME_FIELDS})

_PICTURE_NAME = re.compile(r"(?:image|img|picture|photo|screenshot|thumbnail|chart|plot|qr_?code)s?\Z", re.IGNORECASE)
_BASE64_NAME = re.compile(r"(?:base_?64|b64|b64_json|blob|bytes|data|file|pdf|audio|video|voice)s?\Z", re.IGNORECASE)
_WORTH_PARSING = re.compile(r"image|base64|data|mime|\\/", re.IGNORECASE)
_MOST_PARSED = 400_000
"""Parsing holds every other chat, in a thread too: a longer JSON text is looked through as any text is (Sm)."""


class Pictures:
    """Takes pictures out of one result. `images` are those found, in their order: at most 8, of 6,000,000 characters
    each and 8,000,000 in all; words stand for the others."""

    def __init__(self) -> None:
        self.images: list[Image] = []
        self._room = _TOTAL_IMAGE_CHARACTERS
        self._nodes = _MAX_NODES

    def taken_from(self, value: object) -> object:
        """The value with words where pictures and base64 stood; the same object where there were none.

        An object that is nothing but a picture becomes those words. Linear time; beyond 1,200,000 items, or 64 levels,
        nothing is looked at.
        """
        return self._part(value, 0, _Field())

    def _part(self, value: object, depth: int, field: _Field) -> object:
        self._nodes -= 1
        if isinstance(value, str):
            return self._text(value, field)
        if depth > _MAX_DEPTH or self._nodes < 0:
            return value
        if isinstance(value, Mapping):
            return self._object(value, depth, field)
        if isinstance(value, list | tuple):
            return self._list(value, depth, _Field(field.name))
        return value

    def _list(self, parts: Sequence[object], depth: int, field: _Field) -> object:
        taken = [self._part(part, depth + 1, field) if isinstance(part, _LOOKED_AT) else part for part in parts]
        return taken if any(map(is_not, taken, parts)) else parts

    def _object(self, fields: Mapping[Any, Any], depth: int, outer: _Field) -> object:
        around = _Around.of(fields, outer.around if outer.name in _WRAPPERS else _Around())
        taken = {name: self._part(part, depth + 1, _Field(str(name), around)) for name, part in fields.items()}
        changed = [name for name, part in fields.items() if taken[name] is not part]
        told = [name for name, part in fields.items() if part is not None and name not in _ONLY_A_PICTURE]
        if around.picture and changed == told and len(told) == 1 and isinstance(taken[told[0]], str):
            return taken[told[0]]
        return taken if changed else fields

    def _text(self, text: str, field: _Field) -> str:
        if field.shows_address and text.startswith(("http://", "https://")):
            return self._add(Image(url=text), len(text)) if len(text) <= MAX_ADDRESS else text
        if field.holds_picture(text) and (payload := only_base64(text)) is not None:
            return self._add(Image(base64=payload), len(payload))
        return self._parsed(text) or self._searched(text, field)

    def _parsed(self, text: str) -> str | None:
        """A JSON text written anew without its pictures; None where it is none, or holds none."""
        if text.lstrip()[:1] not in ("{", "[") or len(text) > _MOST_PARSED or not _WORTH_PARSING.search(text):
            return None
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        taken = self.taken_from(value)
        if taken is value:
            return None
        return taken if isinstance(taken, str) else json.dumps(taken, ensure_ascii=False)

    def _searched(self, text: str, field: _Field) -> str:
        pieces: list[str] = []
        end, size = 0, len(text.strip())
        for run in runs(text):
            words = self._words(run, field, whole=run.end - run.start == size)
            if words is not None:
                pieces += [text[end : run.start], words]
                end = run.end
        return "".join([*pieces, text[end:]]) if pieces else text

    def _words(self, run: Run, field: _Field, *, whole: bool) -> str | None:
        """The words for a run; None where it stays as it is. `whole`: the field holds nothing else."""
        if run.mime is not None:
            mime = run.mime or ("image/png" if begins_as_picture(run.payload) else "")
            return self._data_url(mime, run.payload)
        if is_whole_picture(run.payload) or (whole and field.may_be_picture and begins_as_picture(run.payload)):
            return self._add(Image(base64=run.payload), len(run.payload))
        named = whole and field.is_base64 and len(run.payload) >= _LEAST_NAMED
        return _not_shown(run.payload, field.around.mime) if named or is_encoded(run.payload) else None

    def _data_url(self, mime: str, payload: str) -> str:
        if not _is_picture_type(mime):
            return _not_shown(payload, mime)
        return self._add(Image(base64=f"data:{mime};base64,{payload}"), len(payload))

    def _add(self, image: Image, size: int) -> str:
        if len(self.images) >= MAX_IMAGES or size > min(_IMAGE_CHARACTERS, self._room):
            return "[an image was left out: too many or too large]"
        self._room -= size
        self.images.append(image)
        return f"[image {len(self.images)}, shown after the results]"


@dataclass(frozen=True, slots=True)
class _Around:
    """What the fields of an object say of its payload: its `mime` type, that it is a `picture`, that it is `encoded`.
    `inline`: it stands there, so that an address beside it says no more."""

    mime: str = ""
    picture: bool = False
    encoded: bool = False
    inline: bool = False

    @classmethod
    def of(cls, fields: Mapping[Any, Any], outer: _Around) -> _Around:
        mimes = (said for name in _MIME_FIELDS if isinstance(said := fields.get(name), str) and "/" in said)
        mime = next(mimes, outer.mime)
        encoded = bool(mime) or fields.get("encoding") == "base64"
        inline = any(fields.get(name) for name in _PAYLOADS)
        return cls(mime, _is_picture_type(mime) if mime else outer.picture or _is_typed(fields), encoded, inline)


@dataclass(frozen=True, slots=True)
class _Field:
    """Where a value stands: the name of its field, or of the field of the list that it is in."""

    name: str = ""
    around: _Around = _Around()

    def holds_picture(self, text: str) -> bool:
        """Whether base64 is a picture there; a short text may as well be a word, save where no word is ever put."""
        certain = self.name in _PICTURE_FIELDS or (self.around.picture and self.name in _PAYLOADS)
        return len(text) >= (1 if certain else _LEAST_NAMED) and (certain or self.around.picture)

    @property
    def may_be_picture(self) -> bool:
        return _PICTURE_NAME.search(self.name) is not None

    @property
    def shows_address(self) -> bool:
        return self.around.picture and not self.around.inline and self.name in _ADDRESSES

    @property
    def is_base64(self) -> bool:
        return bool(_BASE64_NAME.search(self.name)) or (self.around.encoded and self.name in ("content", "body"))


def _is_typed(fields: Mapping[Any, Any]) -> bool:
    """Whether an object is a content element with a picture."""
    kind = fields.get("type")
    return (isinstance(kind, str) and kind.lower() in _TYPES) or isinstance(fields.get("image_url"), Mapping)


def _is_picture_type(mime: str) -> bool:
    """Whether models take it: a drawing in SVG is text."""
    return mime.lower().startswith("image/") and "svg" not in mime.lower()


def _not_shown(payload: str, mime: str) -> str:
    size = f"about {len(payload) * 3 // 4:,} bytes, not shown"
    return f"[{mime} in base64, {size}]" if mime else f"[base64, {size}]"
