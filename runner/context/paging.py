"""Which pages of history a run reads (B5, F6): decided here, fetched by the caller.

```
no checkpoint:  newest pages backward ── more than the fetch limit? ──▶ older pages, while there is room to fold them
checkpoint:     forward from covers_until, all of it; too much for the pages allowed? ──▶ the newest page as well
                and, at the same time, one page backward into the newest gap
```
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from runner.context.checkpoint import Checkpoint, Gap, order
from runner.conversation.units import Span
from runner.host.port import PAGE_LIMIT

PAGE: Final = PAGE_LIMIT
"""Rows of one page at most; the Host silently cuts anything above."""

EXTRA_PAGES: Final = 2
"""Pages read beyond those the fetch limit needs, to fold older rows (calls)."""


class Row(Protocol):
    """A transcript row, as far as paging is concerned."""

    @property
    def cursor(self) -> str: ...


R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True)
class PageCall:
    """One `history_page`: forward from `after`, or backward from `before` (None: from the newest); exclusive both."""

    limit: int
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class History(Generic[R]):
    """What was read, oldest first each.

    `recent` is the conversation of this run. `leaving` rows came after the checkpoint but leave the fetch limit: they
    have to be folded now. `older` rows end right before the newest gap's end, and `older_span` is what they take out of
    it. `unread` are rows known to exist (or not known to be none) between these; `empty` are stretches in which the
    Host has no rows any more.
    """

    recent: tuple[R, ...] = ()
    leaving: tuple[R, ...] = ()
    older: tuple[R, ...] = ()
    older_span: Span | None = None
    unread: tuple[Gap, ...] = ()
    empty: tuple[Gap, ...] = ()


class Paging(Generic[R]):
    """Ask `calls`, fetch them together, `take` or `fail` each, until `calls` is empty.

    After failures what was read so far still makes a history. `ignore` says which rows are none: the current event's
    and newer ones. `size` and `room` (any unit) bound what is read only to be folded. `stays` False: a fold cannot be
    stored, so the next run has all of these rows before it again.
    """

    def __init__(
        self,
        checkpoint: Checkpoint | None,
        *,
        limit: int,
        room: int,
        size: Callable[[R], int],
        ignore: Callable[[R], bool] = lambda _: False,
        stays: bool = True,
    ) -> None:
        self._limit = max(1, limit)
        self._room, self._size, self._ignore, self._stays = room, size, ignore, stays
        self._until = checkpoint.covers_until if checkpoint else None
        self._gap = checkpoint.gaps[0] if checkpoint and checkpoint.gaps else None
        self._pages_left = math.ceil((self._limit + 1) / PAGE) + EXTRA_PAGES
        self._forward: list[R] = []
        self._backward: list[R] = []
        self._older: list[R] = []
        self._forward_open = self._until is not None
        self._backward_open = self._until is None
        self._gap_open = self._gap is not None
        self._gap_ended = False
        self._met = self._until is None

    def calls(self) -> tuple[PageCall, ...]:
        """The next pages to fetch, at most two; empty when enough is read."""
        wanted = [call for call in (self._tail_call(), self._gap_call()) if call is not None]
        granted = tuple(wanted[: self._pages_left])
        self._pages_left -= len(granted)
        return granted

    def take(self, call: PageCall, rows: tuple[R, ...], *, has_more: bool) -> None:
        """The answer to one of `calls`, rows in the Host's order."""
        if call.after is not None:
            self._forward.extend(rows)
            self._forward_open = has_more and bool(rows)
            if self._forward_open and self._pages_left <= 1 + (self._limit // PAGE):
                self._forward_open, self._backward_open, self._met = False, True, False
        elif self._gap is not None and call.before == self._gap_before():
            self._take_gap(rows, has_more)
        else:
            self._take_backward(rows, has_more)

    def fail(self, call: PageCall) -> None:
        """One of `calls` could not be fetched; the newest rows are asked for in another way once."""
        if call.after is not None:
            self._forward_open, self._backward_open, self._met = False, True, False
        elif self._gap is not None and call.before == self._gap_before():
            self._gap_open = False
        else:
            self._backward_open = False

    def history(self) -> History[R]:
        """Everything read so far."""
        forward = [row for row in self._forward if not self._ignore(row)]
        known = {row.cursor for row in forward}
        backward = [row for row in reversed(self._backward) if not self._ignore(row) and row.cursor not in known]
        tail = forward + backward
        keep = self._keep(len(tail))
        return History(
            recent=tuple(tail[len(tail) - keep :]),
            leaving=tuple(tail[: len(tail) - keep]),
            older=tuple(reversed(self._older)),
            older_span=self._older_span(),
            unread=self._unread(),
            empty=self._empty(),
        )

    def _tail_call(self) -> PageCall | None:
        if self._forward_open:
            return PageCall(PAGE, after=self._forward[-1].cursor if self._forward else self._until)
        if not self._backward_open:
            return None
        missing = self._limit + 1 - len(self._backward)
        if not self._backward:
            return PageCall(min(PAGE, missing))
        return PageCall(PAGE if missing <= 0 else min(PAGE, missing), before=self._backward[-1].cursor)

    def _gap_call(self) -> PageCall | None:
        if self._gap is None or not self._gap_open or self._spent(self._older):
            return None
        return PageCall(PAGE, before=self._gap_before())

    def _gap_before(self) -> str | None:
        if self._older:
            return self._older[-1].cursor
        return self._gap.before if self._gap else None

    def _take_gap(self, rows: tuple[R, ...], has_more: bool) -> None:
        assert self._gap is not None
        floor = -1 if self._gap.after is None else order(self._gap.after)
        inside = [row for row in rows if _position(row) > floor]
        self._older.extend(inside)
        self._gap_ended = not has_more or len(inside) < len(rows)
        # One page a run is enough for one summary.
        self._gap_open = False

    def _take_backward(self, rows: tuple[R, ...], has_more: bool) -> None:
        floor = -1 if self._until is None else order(self._until)
        newer = [row for row in rows if _position(row) > floor]
        reached = {row.cursor for row in self._forward}
        self._backward.extend(newer)
        met = not has_more or len(newer) < len(rows) or any(row.cursor in reached for row in newer)
        self._met = met if self._until is not None else not has_more
        beyond = [row for row in self._backward[self._limit + 1 :] if not self._ignore(row)]
        enough = len(self._backward) > self._limit and self._until is not None
        self._backward_open = not met and not enough and not self._spent(beyond)

    def _spent(self, rows: list[R]) -> bool:
        return sum(map(self._size, rows)) >= self._room

    def _keep(self, count: int) -> int:
        # A tail that outgrew the limit falls to half of it, or every later turn would have two rows to fold. Where no
        # fold stays, it has them anyway.
        if count <= self._limit:
            return count
        return max(1, self._limit // 2) if self._stays else self._limit

    def _older_span(self) -> Span | None:
        if self._gap is None or not self._older:
            return None
        return Span(self._older[-1].cursor, str(order(self._gap.before) - 1))

    def _unread(self) -> tuple[Gap, ...]:
        if not self._backward or self._met:
            return ()
        after = self._forward[-1].cursor if self._forward else self._until
        return (Gap(after, self._backward[-1].cursor),)

    def _empty(self) -> tuple[Gap, ...]:
        if self._gap is None or not self._gap_ended:
            return ()
        return (Gap(self._gap.after, self._gap_before() or self._gap.before),)


def _position(row: Row) -> int:
    try:
        return order(row.cursor)
    except ValueError:
        # Newer than anything: a row that cannot be placed is shown rather than lost.
        return sys.maxsize
