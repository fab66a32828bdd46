"""Retrieved knowledge: which passages are kept, and the part of the user turn they become (E1, E2). Pure.

Within one base the engine's own scores order its passages. Over bases only ranks are comparable, never distances of
different engines; so ranks are fused (reciprocal rank fusion), or a rerank model's order is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from langbot_plugin.api.entities.builtin.rag.context import RetrievalResultEntry

from runner.conversation.cut import clip, sendable
from runner.conversation.units import Passage, Reference
from runner.guards import frame

QUERY_CHARACTERS: Final = 2_000
"""Of the message, what is asked of a base: embedding models read no more than a few hundred tokens anyway."""

PASSAGE_CHARACTERS: Final = 12_000
"""Of one passage, what is read; an engine that returns whole documents must not crowd out the rest."""

RERANK_LIMIT: Final = 64
"""Documents the Host reranks; it leaves out further ones without a word."""

INTRODUCTION: Final = (
    "Found in the knowledge bases for the message that follows. Use what answers it, and name the source of what you "
    "use; leave the rest aside."
)

_DAMPING: Final = 60
"""The constant of reciprocal rank fusion: how fast lower ranks lose weight."""

_TITLES: Final = ("document_name", "file_name", "filename", "title", "source", "url")
_PLACES: Final = ("page", "page_number", "section")
_NAME_CHARACTERS: Final = 40
"""Of a document's and of a base's name: what `frame` shows of a source is 120 characters."""


def passages_of(entries: Iterable[RetrievalResultEntry], base: str, limit: int) -> tuple[Passage, ...]:
    """The best `limit` passages of one base, best first. Entries without text are left out."""
    found = ((entry, _text(entry)) for entry in _best_first(entries))
    return tuple(Passage(text, _source(entry.metadata, base)) for entry, text in found if text)[:limit]


def fused(rankings: Sequence[Sequence[Passage]]) -> tuple[Passage, ...]:
    """All passages in one order, each text once. A passage that several bases hold gains from each; ties keep order."""
    scores: dict[str, float] = {}
    first: dict[str, Passage] = {}
    for ranking in rankings:
        ranked = dict.fromkeys(_sameness(passage) for passage in ranking)
        for rank, key in enumerate(ranked, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (_DAMPING + rank)
        for passage in ranking:
            first.setdefault(_sameness(passage), passage)
    order = sorted(first, key=lambda key: -scores[key])
    return tuple(first[key] for key in order)


def reference(passages: Sequence[Passage]) -> Reference | None:
    """The passages as a part before the user's text; None without any."""
    if not passages:
        return None
    framed = (frame(each.text, f"source {number}, {each.source}") for number, each in enumerate(passages, 1))
    return Reference("\n\n".join((INTRODUCTION, *framed)), tuple(passages))


def _best_first(entries: Iterable[RetrievalResultEntry]) -> list[RetrievalResultEntry]:
    """By the engine's scores where every entry has one, else by distance; the engine's order decides between equals."""
    listed = list(entries)
    if all(entry.score is not None and math.isfinite(entry.score) for entry in listed):
        return sorted(listed, key=lambda entry: -(entry.score or 0.0))
    if all(math.isfinite(entry.distance) for entry in listed):
        return sorted(listed, key=lambda entry: entry.distance)
    return listed


def _text(entry: RetrievalResultEntry) -> str:
    parts = (part.text for part in entry.content if part.type == "text" and part.text)
    return clip(sendable("\n".join(parts)).strip(), PASSAGE_CHARACTERS).text


def _sameness(passage: Passage) -> str:
    return " ".join(passage.text.split()).casefold()


def _source(metadata: Mapping[str, object], base: str) -> str:
    title = _first(metadata, _TITLES)
    place = _first(metadata, _PLACES)
    document = ", ".join(filter(None, (f"“{title}”" if title else "", f"page {place}" if place.isdecimal() else place)))
    return f"{document} in knowledge base “{_short(base)}”" if document else f"knowledge base “{_short(base)}”"


def _first(metadata: Mapping[str, object], names: Sequence[str]) -> str:
    values = (metadata.get(name) for name in names)
    texts = (_short(str(value)) for value in values if isinstance(value, str | int) and not isinstance(value, bool))
    return next(filter(None, texts), "")


def _short(text: str) -> str:
    return " ".join(sendable(text).split())[:_NAME_CHARACTERS]
