"""What an OpenAI-compatible server sends, read piece by piece (Sk).

Thoughts, comments and unknown fields are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel, ValidationError

from weights.errors import one_line

MAX_LINE: Final = 1 << 20
"""Bytes that one line of a stream, or a whole answer that is no stream, may have."""

MAX_REPLY: Final = 8 << 20
"""Bytes that a stream may have."""

_WORDS: Final = 300  # characters of a server's own words


class ServerFailed(RuntimeError):
    """A server that did not answer as it should; the text says what to do next."""


class _Said(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    delta: _Said | None = None
    message: _Said | None = None
    finish_reason: str | None = None


class _Chunk(BaseModel):
    choices: list[_Choice] | None = None


@dataclass(slots=True)
class Lines:
    """Bytes as lines. Only CR and LF end one, since JSON may hold every other separator. Raises ServerFailed."""

    _rest: bytes = b""
    _taken: int = 0

    def take(self, data: bytes) -> Iterator[str]:
        self._taken += len(data)
        *whole, self._rest = (self._rest + data).replace(b"\r", b"\n").split(b"\n")
        if self._taken > MAX_REPLY or len(self._rest) > MAX_LINE:
            raise ServerFailed("the server sends more than a reply can be: is this the address of a model's server?")
        yield from (line.decode("utf-8", "replace") for line in whole)

    def end(self) -> str:
        """The last line, where nothing ended it."""
        return self._rest.decode("utf-8", "replace")


@dataclass(slots=True)
class Reply:
    """One reply as it grows. `ended`: the server said so; `cut`: a length limit ended it."""

    ended: bool = False
    cut: bool = False
    _pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def take(self, line: str) -> str:
        """One line of the stream; gives its new text. Raises ServerFailed for an error that the server tells."""
        name, _, data = line.partition(":")
        data = data.strip()
        if name != "data" or not data:
            return ""
        if data == "[DONE]":
            self.ended = True
            return ""
        return self.take_json(data)

    def take_json(self, data: str) -> str:
        """One chunk, or the whole answer of a server that does not stream. Raises ServerFailed."""
        value = parsed(data)
        if isinstance(value, Mapping) and value.get("error"):
            raise ServerFailed(f"the server stopped with an error: {words(value)}")
        try:
            chunk = _Chunk.model_validate(value)
        except ValidationError:
            raise ServerFailed(f"the server sent what is no reply: {words(data)}") from None
        return "".join(map(self._choice, (chunk.choices or [])[:1]))

    def _choice(self, choice: _Choice) -> str:
        said = choice.delta or choice.message
        self.ended = self.ended or choice.finish_reason is not None
        self.cut = self.cut or choice.finish_reason == "length"
        text = (said.content if said else None) or ""
        self._pieces.append(text)
        return text


def words(value: object) -> str:
    """The words of an error, whatever shape it has, as one harmless line."""
    for key in ("error", "message", "detail"):
        if isinstance(value, Mapping) and value.get(key):
            value = value[key]
    return _harmless(value if isinstance(value, str) else json.dumps(value))


def parsed(data: str) -> object:
    """The JSON value, or the text itself where it is none."""
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        return data
    return value


def model_names(value: object) -> list[str]:
    """The ids in a server's list of models, at most twenty."""
    listed = value.get("data") if isinstance(value, Mapping) else None
    ids = [one.get("id") for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    return [_harmless(name) for name in ids if isinstance(name, str)][:20]


def _harmless(text: str) -> str:
    """One line without characters that could drive a terminal."""
    return "".join(each for each in one_line(text, _WORDS) if each.isprintable())
