"""Reading the transcript: which pages a run fetches, and the units they become (B5, F6)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from langbot_plugin.api.entities.builtin.runner.page_results import HistoryPage
from langbot_plugin.api.entities.builtin.runner.transcript import TranscriptItem

from runner.context.checkpoint import Checkpoint, Gap, order
from runner.context.paging import History, PageCall, Paging
from runner.conversation.history import Row, read_row
from runner.conversation.units import Span
from runner.host.errors import HostCallFailed
from runner.host.port import Host


@dataclass(frozen=True, slots=True)
class Past:
    """The transcript before this run, oldest first each; the parts are those of `paging.History`.

    `outdated`: the checkpoint stands behind the current message, so it is of another transcript and was not used.
    """

    recent: tuple[Row, ...] = ()
    leaving: tuple[Row, ...] = ()
    older: tuple[Row, ...] = ()
    older_span: Span | None = None
    unread: tuple[Gap, ...] = ()
    empty: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = ()
    outdated: bool = False


@dataclass(slots=True)
class _Listed:
    """One transcript row on its way."""

    item: TranscriptItem
    cursor: str


@dataclass(slots=True)
class _Current:
    """Where the current message stands in the transcript; it and everything newer is not the past (B5)."""

    event_id: str
    place: int | None = field(default=None)

    def notice(self, rows: Sequence[_Listed]) -> None:
        for row in rows:
            if row.item.event_id == self.event_id:
                self.place = _order(row.cursor)

    def is_covered_by(self, checkpoint: Checkpoint | None) -> bool:
        until = checkpoint.covers_until if checkpoint else None
        return until is not None and self.place is not None and self.place <= order(until)

    def is_not_past(self, row: _Listed) -> bool:
        return self.place is not None and _order(row.cursor) >= self.place


async def read_past(
    host: Host,
    event_id: str,
    checkpoint: Checkpoint | None,
    *,
    limit: int,
    fold_characters: int,
    stored: bool = False,
    stays: bool = True,
) -> Past:
    """Fetch what this run needs. `limit`: rows of recent history; `fold_characters`: older text worth folding now.
    `stored`: the current event has a row, so there is at least that one behind any checkpoint. `stays`: what is
    folded can be stored as a checkpoint.

    A page that fails is done without and noted: the answer matters more (Q4).
    """
    current = _Current(event_id)
    notes: list[str] = []
    paging: Paging[_Listed] = Paging(
        checkpoint, limit=limit, room=fold_characters, size=_characters, ignore=current.is_not_past, stays=stays
    )
    while calls := paging.calls():
        for call, page in zip(calls, await asyncio.gather(*(_fetch(host, call, notes) for call in calls)), strict=True):
            if page is None:
                paging.fail(call)
                continue
            rows = tuple(_Listed(item, item.cursor or "") for item in page.items)
            current.notice(rows)
            if stored and not rows and call.after is not None and current.place is None:
                paging.fail(call)
                continue
            paging.take(call, rows, has_more=page.has_more)
    if current.is_covered_by(checkpoint):
        past = await read_past(host, event_id, None, limit=limit, fold_characters=fold_characters, stays=stays)
        return replace(past, outdated=True)
    return _as_past(paging.history(), notes)


async def holds_row(host: Host, cursor: str) -> bool:
    """Whether the conversation still has the row of a cursor: a reset hides it. Raises HostCallFailed."""
    page = await host.history_page(before=str(order(cursor) + 1), limit=1)
    return any(item.cursor == cursor for item in page.items)


def _as_past(history: History[_Listed], notes: list[str]) -> Past:
    return Past(
        recent=_rows(history.recent),
        leaving=_rows(history.leaving),
        older=_rows(history.older),
        older_span=history.older_span,
        unread=history.unread,
        empty=history.empty,
        notes=tuple(notes),
    )


async def _fetch(host: Host, call: PageCall, notes: list[str]) -> HistoryPage | None:
    try:
        return await host.history_page(before=call.before, after=call.after, limit=call.limit)
    except HostCallFailed as failure:
        notes.append(f"a page of history could not be read: {failure}")
        return None


def _rows(listed: Sequence[_Listed]) -> tuple[Row, ...]:
    return tuple(row for each in listed if (row := read_row(each.item)) is not None)


def _characters(row: _Listed) -> int:
    return len(row.item.content or "")


def _order(cursor: str) -> int:
    """A place in the transcript; a cursor of another form stands nowhere, so it is never taken for a newer row."""
    try:
        return order(cursor)
    except ValueError:
        return -1
