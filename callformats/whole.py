"""Reads a whole reply at once: a stream of one chunk (S1)."""

from __future__ import annotations

from collections.abc import Sequence

from callformats.quotation import ForeignText, Quotations
from callformats.reading import Reading
from callformats.stream import StreamReader, Tools


def read(
    text: str,
    tools: Tools,
    *,
    format: str | None = None,
    thinking: bool | None = None,
    untrusted: Sequence[ForeignText | str] | Quotations = (),
    keep_thoughts: bool = False,
) -> Reading:
    """Reads a whole reply; parameters as of `StreamReader`."""
    reader = StreamReader(tools, format=format, thinking=thinking, untrusted=untrusted, keep_thoughts=keep_thoughts)
    reader.feed(text)
    return reader.close()
