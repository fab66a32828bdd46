"""Knowledge bases and reranking: langbot/pkg/plugin/handler.py:retrieve_knowledge_base, invoke_rerank."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .script import Json, Model

RERANK_LIMIT = 64
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Chunk:
    """A piece of knowledge. `distance`: smaller is nearer. `score` may be missing."""

    text: str
    distance: float = 0.5
    score: float | None = None
    id: str = ""
    metadata: Json = field(default_factory=dict)

    def entry(self, index: int) -> Json:
        part = dict.fromkeys(("image_url", "image_base64", "file_url", "file_base64", "file_name"))
        return {
            "id": self.id or f"chunk-{index}",
            "content": [{"type": "text", "text": self.text, **part}],
            "metadata": self.metadata,
            "distance": self.distance,
            "score": self.score,
        }


@dataclass(eq=False)
class KnowledgeBase:
    """A knowledge base answering with its `chunks` in their order, `top_k` at most unless `ignores_top_k`.

    `error`: the engine fails with this text.
    """

    id: str
    chunks: Sequence[Chunk | str] = ()
    name: str = ""
    error: str | None = None
    ignores_top_k: bool = False
    delay: float = 0.0
    queries: list[tuple[str, int]] = field(default_factory=list, init=False)

    async def retrieve(self, query: str, top_k: int) -> list[Json]:
        self.queries.append((query, top_k))
        await asyncio.sleep(self.delay)
        if self.error is not None:
            raise RuntimeError(self.error)
        chosen = self.chunks if self.ignores_top_k else self.chunks[:top_k]
        return [(Chunk(one) if isinstance(one, str) else one).entry(index) for index, one in enumerate(chosen)]


def overlap(query: str, document: str) -> float:
    """A simple likeness: shared words per word of the query."""
    wanted = set(_WORD.findall(query.lower()))
    return len(wanted & set(_WORD.findall(document.lower()))) / max(1, len(wanted))


def rerank(model: Model, query: str, documents: Sequence[str], top_k: int | None) -> list[Json]:
    """The first 64 documents scored, min-max normalised, best first (litellmchat.py:invoke_rerank)."""
    score = model.score or overlap
    raw = [score(query, document) for document in documents[:RERANK_LIMIT]]
    low, high = min(raw, default=0.0), max(raw, default=0.0)
    scale = high - low
    scored: list[Json] = [
        {"index": index, "relevance_score": (value - low) / scale if scale else value}
        for index, value in enumerate(raw)
    ]
    scored.sort(key=lambda one: float(one["relevance_score"]), reverse=True)
    return scored if top_k is None else scored[: int(top_k)]
