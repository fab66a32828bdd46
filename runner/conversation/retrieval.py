"""Asking the knowledge bases: all at once, each failure done without and noted (E1)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from langbot_plugin.api.entities.builtin.runner.resources import AgentResources, KnowledgeBaseResource, ModelResource

from config.settings import Knowledge
from runner.conversation.cut import head
from runner.conversation.knowledge import QUERY_CHARACTERS, RERANK_LIMIT, fused, passages_of, reference
from runner.conversation.units import Passage, Reference
from runner.host import clock
from runner.host.errors import HostCallFailed
from runner.host.port import Host

RETRIEVAL_SECONDS: Final = 20.0
"""How long one base may take: the person waits for the slowest of them."""

RERANK_SECONDS: Final = 15.0


async def retrieve(
    host: Host,
    settings: Knowledge,
    resources: AgentResources,
    said: str,
    notes: list[str],
    *,
    within: float | None = None,
) -> Reference | None:
    """What the chosen bases hold for what somebody said, as a part of its turn; None without a text, a base or a find.

    Never raises over a base or the rerank model: what failed is skipped and goes into `notes`. `within`: seconds for
    all of it; None: each base and the rerank model have their own limit.
    """
    until = None if within is None else clock.now() + within
    query = head(said, QUERY_CHARACTERS)
    bases = _granted(settings.bases, resources.knowledge_bases, notes)
    if not query or not bases:
        return None
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(_ask(host, base, query, settings.top_k, notes, until)) for base in bases]
    found = fused([task.result() for task in asked])
    if settings.rerank_model and len(found) > 1:
        if not _may_rerank(settings.rerank_model, resources.models):
            notes.append(f"knowledge: rerank model {settings.rerank_model} is not granted to this run")
        elif (best := await _rerank(host, settings, query, found[:RERANK_LIMIT], notes, until)) is not None:
            return reference(best)
    return reference(found[: settings.top_k])


def _granted(
    wanted: Iterable[str], granted: Sequence[KnowledgeBaseResource], notes: list[str]
) -> list[KnowledgeBaseResource]:
    by_id = {base.kb_id: base for base in granted if not base.operations or "retrieve" in base.operations}
    missing = [base_id for base_id in dict.fromkeys(wanted) if base_id not in by_id]
    if missing:
        notes.append(f"knowledge: not granted to this run, or deleted: {', '.join(missing)}")
    return [by_id[base_id] for base_id in dict.fromkeys(wanted) if base_id in by_id]


def _may_rerank(model_id: str, models: Sequence[ModelResource]) -> bool:
    return any(
        model.model_id == model_id and (not model.operations or "rerank" in model.operations) for model in models
    )


async def _ask(
    host: Host, base: KnowledgeBaseResource, query: str, top_k: int, notes: list[str], until: float | None
) -> tuple[Passage, ...]:
    name = base.kb_name or base.kb_id
    try:
        async with asyncio.timeout_at(_limit(RETRIEVAL_SECONDS, until)):
            entries = await host.retrieve(base.kb_id, query, top_k)
    except (HostCallFailed, TimeoutError) as failure:
        notes.append(f"knowledge base {name} was skipped: {str(failure) or 'no answer in time'}")
        return ()
    return passages_of(entries, name, top_k)


async def _rerank(
    host: Host, settings: Knowledge, query: str, found: Sequence[Passage], notes: list[str], until: float | None
) -> tuple[Passage, ...] | None:
    """The best of them by the rerank model; None when it gave no order."""
    documents = [passage.text for passage in found]
    try:
        async with asyncio.timeout_at(_limit(RERANK_SECONDS, until)):
            order = await host.rerank(settings.rerank_model, query, documents, settings.rerank_top_k)
    except (HostCallFailed, TimeoutError) as failure:
        notes.append(f"knowledge was not reranked: {str(failure) or 'no answer in time'}")
        return None
    if not order:
        notes.append("knowledge was not reranked: the rerank model gave no order")
        return None
    return tuple(found[place] for place in order[: settings.rerank_top_k])


def _limit(seconds: float, until: float | None) -> float:
    """When a call has to be over, on the event loop's clock."""
    own = clock.now() + seconds
    return own if until is None else min(own, until)
