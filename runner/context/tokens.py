"""A local price for text, in tokens. It plans where to cut and decides nothing else (F2).

The vocabulary is a file of the plugin; nothing is downloaded. Without it a rule on characters takes its place.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import lzma
import math
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import tiktoken

from runner.conversation.request import ToolSpec
from runner.conversation.units import Image, Part, System, Text, Unit, UserTurn

_log = logging.getLogger(__name__)

VOCABULARY: Final = Path(__file__).parent / "vocabulary" / "cl100k_base.xz"

IMAGE_TOKENS: Final = 1_000
"""Price of a picture until the Host has counted some: near the upper end of what providers charge for a large one."""

MESSAGE_TOKENS: Final = 4
"""Role and separators of one message."""

CALL_TOKENS: Final = 12
"""Frame of one tool call: id, type, braces."""

_EXACT_CHARACTERS: Final = 200_000
_SAMPLES: Final = 25
_SAMPLE_CHARACTERS: Final = 4_000
_RUN: Final = 128

_PATTERN: Final = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
_LONG_RUN = re.compile(rf"(\S{{{_RUN}}})(?=\S)")
_LONG_SPACE = re.compile(rf"(\s{{{_RUN}}})(?=\s)")
_WIDE = re.compile(r"[^\x00-\x7f]")


class VocabularyBroken(Exception):
    """The vocabulary file is missing or not what its checksum says."""


def read_vocabulary(path: Path = VOCABULARY) -> dict[bytes, int]:
    """Byte sequences and their ranks. Raises VocabularyBroken."""
    try:
        packed = path.read_bytes()
        expected = path.with_name(path.name + ".sha256").read_text("ascii").split()[0]
    except (OSError, UnicodeDecodeError, IndexError) as error:
        raise VocabularyBroken(f"{path.name} cannot be read: {error}") from error
    if hashlib.sha256(packed).hexdigest() != expected:
        raise VocabularyBroken(f"{path.name} does not match its checksum")
    return _unpack(lzma.decompress(packed))


def _unpack(raw: bytes) -> dict[bytes, int]:
    # Lengths come first, so their number is known once lengths and bytes add up to the file.
    ranks: dict[bytes, int] = {}
    count = _token_count(raw)
    at = count
    for rank, length in enumerate(raw[:count]):
        ranks[raw[at : at + length]] = rank
        at += length
    return ranks


def _token_count(raw: bytes) -> int:
    total = 0
    for index, length in enumerate(raw):
        if index + total == len(raw):
            return index
        total += length
    raise VocabularyBroken("the vocabulary's lengths do not add up")


def build_encoding(path: Path = VOCABULARY) -> tiktoken.Encoding:
    """tiktoken's encoding from the plugin's file. About 0.3 s of CPU; raises VocabularyBroken."""
    return tiktoken.Encoding("cl100k_base", pat_str=_PATTERN, mergeable_ranks=read_vocabulary(path), special_tokens={})


def guess_tokens(text: str) -> int:
    """The rule on characters: four Latin characters, or one other character, make a token. Errs on the high side."""
    wide = len(_WIDE.findall(text))
    unbroken = sum(len(run.group(1)) for run in _LONG_RUN.finditer(text)) if wide < len(text) else 0
    return wide + (len(text) - wide) // 4 + unbroken // 2 + bool(text)


class Tokenizer:
    """Tokens of a text at bounded cost: linear in its length, and constant above 200,000 characters.

    tiktoken is quadratic on unbroken runs (base64, hashes, CJK without punctuation), so runs are cut into pieces of 128
    characters first, which adds at most one token each. Longer texts are sampled.
    """

    def __init__(self, encoding: tiktoken.Encoding | None) -> None:
        self._encoding = encoding

    @property
    def exact(self) -> bool:
        """False when the rule on characters stands in for the vocabulary."""
        return self._encoding is not None

    def estimate(self, text: str) -> int:
        if len(text) <= _EXACT_CHARACTERS:
            return self._count(text)
        step = (len(text) - _SAMPLE_CHARACTERS) // (_SAMPLES - 1)
        sampled = sum(self._count(text[at : at + _SAMPLE_CHARACTERS]) for at in range(0, step * _SAMPLES, step))
        return sampled * len(text) // (_SAMPLES * _SAMPLE_CHARACTERS)

    def _count(self, text: str) -> int:
        if not text:
            return 0
        if self._encoding is None:
            return guess_tokens(text)
        broken = _LONG_RUN.sub(r"\1 ", _LONG_SPACE.sub(r"\1.", text))
        return len(self._encoding.encode_ordinary(broken))


_lock = threading.Lock()
_shared: Tokenizer | None = None


def _build_once() -> Tokenizer:
    global _shared
    with _lock:
        if _shared is None:
            try:
                _shared = Tokenizer(build_encoding())
            except (VocabularyBroken, lzma.LZMAError, ValueError) as error:
                _log.warning("planning falls back to a rule on characters: %s", error)
                _shared = Tokenizer(None)
        return _shared


async def load_tokenizer() -> Tokenizer:
    """The process's one tokenizer, built in a thread at first use. Never raises over the file."""
    return _shared if _shared is not None else await asyncio.to_thread(_build_once)


class SharedTokenizer(Tokenizer):
    """The process's one tokenizer, built when the first text is priced (L11): a worker whose chats fit their windows
    never needs its 30 MB. Building takes 0.3 s of the thread that prices, and holds the interpreter for a third of it.
    """

    def __init__(self) -> None:
        super().__init__(None)

    @property
    def exact(self) -> bool:
        return _build_once().exact

    def estimate(self, text: str) -> int:
        return _build_once().estimate(text)


class Ruler:
    """Prices units for one run and remembers each price while the unit is the same object.

    Not for the event loop: a new long unit takes milliseconds (Q2). Callers price in a thread.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        # The unit is held beside its price, so that its id cannot be given to another object.
        self._known: dict[int, tuple[Unit, int]] = {}
        self._pictures: dict[int, tuple[Image, int]] = {}

    def knows(self, picture: Image) -> bool:
        """Whether the Host's counts have told what a picture costs (L7)."""
        return id(picture) in self._pictures

    def price(self, pictures: Iterable[Image], tokens: int) -> None:
        """Each of these costs so many local tokens."""
        self._pictures.update((id(picture), (picture, tokens)) for picture in pictures)
        self._known.clear()

    def text(self, text: str) -> int:
        return self._tokenizer.estimate(text)

    def unit(self, unit: Unit) -> int:
        """Tokens of all messages of the unit."""
        known = self._known.get(id(unit))
        if known is None:
            known = self._known[id(unit)] = (unit, self._price(unit))
        return known[1]

    def system(self, system: System) -> int:
        added = sum(self.text(block) for block in system.added) + self.text(system.summary or "")
        return self.parts(system.parts) + added + MESSAGE_TOKENS

    def tools(self, tools: Iterable[ToolSpec]) -> int:
        return sum(self.text(f"{tool.name} {tool.description} {dict(tool.parameters)}") + CALL_TOKENS for tool in tools)

    def parts(self, parts: Iterable[Part]) -> int:
        return sum(self.part(part) for part in parts)

    def part(self, part: Part) -> int:
        if isinstance(part, Text):
            return self.text(part.text)
        if isinstance(part, Image):
            return self._pictures[id(part)][1] if self.knows(part) else IMAGE_TOKENS
        return self.text(part.element.text) if part.element.text else IMAGE_TOKENS

    def _price(self, unit: Unit) -> int:
        if isinstance(unit, UserTurn):
            return self.parts(unit.parts) + MESSAGE_TOKENS
        calls = sum(self.text(f"{call.name} {call.arguments}") + CALL_TOKENS for call in unit.calls)
        results = sum(self.text(result.text) + MESSAGE_TOKENS for result in unit.results)
        return self.text(unit.text) + MESSAGE_TOKENS + calls + results


@dataclass(frozen=True, slots=True)
class Prices:
    """The ruler's prices in Host tokens: local tokens times `scale` (see `planning_scale`)."""

    ruler: Ruler
    scale: float = 1.0

    def unit(self, unit: Unit) -> int:
        return math.ceil(self.ruler.unit(unit) * self.scale)

    def units(self, units: Iterable[Unit]) -> int:
        return sum(self.unit(unit) for unit in units)

    def text(self, text: str) -> int:
        return math.ceil(self.ruler.text(text) * self.scale)

    def system(self, system: System) -> int:
        return math.ceil(self.ruler.system(system) * self.scale)

    def tools(self, tools: Iterable[ToolSpec]) -> int:
        return math.ceil(self.ruler.tools(tools) * self.scale)

    def part(self, part: Part) -> int:
        return math.ceil(self.ruler.part(part) * self.scale)
