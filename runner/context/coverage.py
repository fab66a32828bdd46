"""What a new summary does to the checkpoint (F6): which rows it covers now, which stay in gaps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from runner.context.checkpoint import Checkpoint, Gap, merged_gaps, order
from runner.conversation.units import Span, Unit

_BEGINNING = -1


@dataclass(frozen=True, slots=True)
class Fold:
    """One summary's coverage. `told` rows stand in it; `left` rows left the conversation without; oldest first each."""

    summary: str
    told: tuple[Span, ...]
    left: tuple[Span, ...] = ()
    unread: tuple[Gap, ...] = ()
    empty: tuple[Gap, ...] = ()


def stretch(units: Iterable[Unit]) -> tuple[Span, ...]:
    """From the first to the last transcript row of neighbouring units: one span, or none for units of this run.

    Cursors between them belong to other conversations, or to rows that had nothing to say.
    """
    held = [unit.span for unit in units if unit.span is not None]
    return (Span(held[0].first, held[-1].last),) if held else ()


def leading(units: tuple[Unit, ...], until: str) -> int:
    """How many of the oldest units hold only rows up to the cursor `until`: `View.leaving` for `History.leaving`."""
    count = 0
    for unit in units:
        if unit.span is None or order(unit.span.last) > order(until):
            break
        count += 1
    return count


def folded(checkpoint: Checkpoint | None, fold: Fold, *, time: float) -> Checkpoint:
    """The checkpoint after a fold; without a covered row the one before. Raises ValueError over a cursor."""
    before = checkpoint or Checkpoint()
    gone = (*fold.told, *fold.left)
    if not fold.summary.strip() or (not gone and before.covers_until is None):
        return before
    firsts = [order(span.first) for span in fold.told]
    lasts = [order(span.last) for span in gone]
    if before.covers_from is not None and before.covers_until is not None:
        firsts.append(order(before.covers_from))
        lasts.append(order(before.covers_until))
    until = max(lasts)
    gaps = (*before.gaps, *map(gap_of, fold.left))
    for span in fold.told:
        gaps = subtract(gaps, order(span.first), _end(span, before.gaps))
    # Nobody has read these rows: a stretch that was told from before to behind them tells none of them.
    gaps = (*gaps, *(_up_to(gap, gone) for gap in fold.unread if _low(gap) < until))
    for hole in fold.empty:
        gaps = subtract(gaps, _low(hole) + 1, order(hole.before) - 1)
    return replace(
        before,
        summary=fold.summary,
        covers_from=str(min(firsts, default=until)),
        covers_until=str(until),
        gaps=merged_gaps(tuple(gap for gap in gaps if order(gap.before) - _low(gap) > 1)),
        turns=before.turns + len(fold.told),
        summaries=before.summaries + 1,
        time=time,
    )


def closed(checkpoint: Checkpoint, empty: tuple[Gap, ...]) -> Checkpoint:
    """The checkpoint without the stretches that turned out to hold no rows any more (reset, retention)."""
    gaps = checkpoint.gaps
    for hole in empty:
        gaps = subtract(gaps, _low(hole) + 1, order(hole.before) - 1)
    return replace(checkpoint, gaps=gaps)


def subtract(gaps: tuple[Gap, ...], first: int, last: int) -> tuple[Gap, ...]:
    """Gaps without the rows from `first` to `last`, inclusive."""
    result: list[Gap] = []
    for gap in gaps:
        low, high = _low(gap), order(gap.before)
        if last <= low or first >= high:
            result.append(gap)
            continue
        if last < high - 1:
            result.append(Gap(str(last), gap.before))
        if first > low + 1:
            result.append(Gap(gap.after, str(first)))
    return tuple(result)


def _end(told: Span, gaps: tuple[Gap, ...]) -> int:
    """The last row a told stretch takes: a gap is read from its newer end, so nothing is left between."""
    first, last = order(told.first), order(told.last)
    if gaps and _low(gaps[0]) < first and last < order(gaps[0].before):
        return order(gaps[0].before) - 1
    return last


def _up_to(unread: Gap, gone: tuple[Span, ...]) -> Gap:
    """The gap up to the first row that went: rows between made no unit (a reply whose question is not read yet)."""
    newer = [order(span.first) for span in gone if order(span.first) >= order(unread.before)]
    return replace(unread, before=str(min(newer, default=order(unread.before))))


def gap_of(span: Span) -> Gap:
    """The gap that holds exactly these rows."""
    return Gap(str(max(order(span.first) - 1, 0)) if order(span.first) else None, str(order(span.last) + 1))


def _low(gap: Gap) -> int:
    return _BEGINNING if gap.after is None else order(gap.after)
