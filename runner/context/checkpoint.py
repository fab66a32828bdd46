"""What is remembered of a conversation between runs (F6, C7): its form, reading it back, merging.

Every transcript row is in exactly one place: in the summary, in a gap, or newer than `covers_until`, where history is
read from. A checkpoint is therefore right by itself, and of two that were written at the same time either may stay: a
lost race costs a later summary, no row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from runner.context.clipping import clip
from runner.conversation.cut import sendable
from runner.host.events import Json

KEY: Final = "runner.compaction.checkpoint"
"""State key, scope `conversation`."""

VERSION: Final = 1
MAX_BYTES: Final = 256 * 1024
"""The Host's limit for one state value, UTF-8 JSON."""

MAX_SUMMARY: Final = 100_000
"""Characters of a summary that are believed and written."""

MAX_SAID: Final = 500
"""Messages of people kept word for word (L4)."""

_SPARE_BYTES: Final = 8 * 1024
MAX_GAPS: Final = 16
MAX_WINDOWS: Final = 32
MAX_NOTES: Final = 64 * 1024
"""Bytes of all notes together."""

_NONE: Final[Mapping[str, Json]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Gap:
    """Rows not yet folded: cursors after `after` (None: from the beginning) and before `before`, both exclusive."""

    after: str | None
    before: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`summary` stands for the rows from `covers_from` to `covers_until` (cursors, inclusive) that no gap holds.

    Without a summary both are None. `gaps` stand newest first. `turns` counts what was folded, `summaries` how often,
    `time` is epoch seconds of the last fold, `windows` are the learned windows in tokens by model id (C7), `notes` are
    anything else that is remembered per conversation. `said` are the newest messages of people among what was folded,
    word for word, oldest first (L4).
    """

    summary: str = ""
    covers_from: str | None = None
    covers_until: str | None = None
    gaps: tuple[Gap, ...] = ()
    turns: int = 0
    summaries: int = 0
    time: float = 0.0
    windows: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, Json] = field(default_factory=dict)
    said: tuple[str, ...] = ()

    def learn(self, model_id: str, refused: int) -> Checkpoint:
        """The size a model refused (tokens) becomes its window (C7); the smaller one stays."""
        known = self.windows.get(model_id, refused)
        return replace(self, windows={**self.windows, model_id: min(known, refused)})

    def forget(self, model_id: str) -> Checkpoint:
        """Without the learned window of a model."""
        return replace(self, windows={model: size for model, size in self.windows.items() if model != model_id})


def order(cursor: str) -> int:
    """The Host's cursors are decimal numbers that grow with time. Raises ValueError otherwise."""
    if not (cursor.isascii() and cursor.isdigit()) or len(cursor) > 30:
        raise ValueError(f"not a cursor: {cursor[:40]!r}")
    return int(cursor)


_Cursor = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,30}$")]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class _GapForm(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    after: _Cursor | None
    before: _Cursor


class _Form(BaseModel):
    """The stored value. Strict: a value that is not exactly ours is not believed."""

    model_config = ConfigDict(strict=True, extra="forbid")
    version: int = Field(ge=VERSION, le=VERSION)
    summary: str = Field(max_length=MAX_SUMMARY)
    covers_from: _Cursor | None
    covers_until: _Cursor | None
    gaps: list[_GapForm] = Field(max_length=MAX_GAPS)
    turns: int = Field(ge=0, le=10**12)
    summaries: int = Field(ge=0, le=10**9)
    time: float = Field(ge=0, le=10**12, allow_inf_nan=False)
    said: list[str] = Field(default=[], max_length=MAX_SAID)
    windows: dict[_Name, Annotated[int, Field(gt=0, le=10**9)]] = Field(max_length=MAX_WINDOWS)
    notes: dict[_Name, object]

    @model_validator(mode="after")
    def _hangs_together(self) -> _Form:
        if (self.covers_from is None) != (self.covers_until is None) or (self.covers_until is None and self.gaps):
            raise ValueError("a summary needs both its cursors, a gap needs a summary")
        if bool(self.summary.strip()) != (self.covers_until is not None):
            raise ValueError("cursors without a summary")
        if self.covers_until is not None and self.covers_from is not None:
            self._check_order(order(self.covers_from), order(self.covers_until))
        return self

    def _check_order(self, first: int, last: int) -> None:
        newest = last + 1
        for gap in self.gaps:
            after = -1 if gap.after is None else order(gap.after)
            if order(gap.before) > newest or after >= order(gap.before):
                raise ValueError("gaps stand newest first, apart from each other, older than the newest row folded")
            newest = after
        if first > last:
            raise ValueError("covers_from is newer than covers_until")


def read(value: Json) -> Checkpoint | None:
    """The checkpoint in a state value; None for anything missing, broken, foreign or of another version."""
    try:
        form = _Form.model_validate_json(json.dumps(value))
    except (ValidationError, ValueError, TypeError, RecursionError):
        return None
    return Checkpoint(
        summary=form.summary,
        covers_from=form.covers_from,
        covers_until=form.covers_until,
        gaps=tuple(Gap(gap.after, gap.before) for gap in form.gaps),
        turns=form.turns,
        summaries=form.summaries,
        time=form.time,
        said=tuple(form.said),
        windows=form.windows,
        notes=_notes(value),
    )


def _notes(value: Json) -> Mapping[str, Json]:
    notes = value.get("notes") if isinstance(value, dict) else None
    return notes if isinstance(notes, dict) else _NONE


def write(checkpoint: Checkpoint) -> Json:
    """The state value, below the Host's 256 KiB: notes give way first, then the oldest windows, and of what people said
    the oldest."""
    notes: dict[str, Json] = dict(checkpoint.notes)
    while notes and _bytes(notes) > MAX_NOTES:
        del notes[next(iter(notes))]
    value: dict[str, Json] = {
        "version": VERSION,
        "summary": _storable(checkpoint.summary),
        "covers_from": checkpoint.covers_from,
        "covers_until": checkpoint.covers_until,
        "gaps": [{"after": gap.after, "before": gap.before} for gap in merged_gaps(checkpoint.gaps)],
        "turns": checkpoint.turns,
        "summaries": checkpoint.summaries,
        "time": checkpoint.time,
        "windows": dict(list(checkpoint.windows.items())[-MAX_WINDOWS:]),
        "notes": notes,
    }
    left = MAX_BYTES - _SPARE_BYTES - _bytes(value)
    said: list[Json] = []
    for text in map(sendable, reversed(checkpoint.said[-MAX_SAID:])):
        left -= _bytes(text) + 2
        if left < 0:
            break
        said.insert(0, text)
    return {**value, "said": said} if said else value


def _bytes(value: Json) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _storable(summary: str) -> str:
    text = clip(sendable(summary), MAX_SUMMARY)
    while len(text.encode("utf-8")) > MAX_BYTES // 2:
        text = clip(text, len(text) * 9 // 10)
    return text


def merged_gaps(gaps: tuple[Gap, ...]) -> tuple[Gap, ...]:
    """Newest first, touching ones joined; beyond the bound the oldest become one, whose rows are folded once more."""
    ordered = sorted(gaps, key=lambda gap: -order(gap.before))
    result: list[Gap] = []
    for gap in ordered:
        last = result[-1] if result else None
        if last is not None and (
            last.after is None or order(last.after) < order(gap.before) or len(result) >= MAX_GAPS
        ):
            result[-1] = Gap(_older(last.after, gap.after), last.before)
        else:
            result.append(gap)
    return tuple(result)


def _older(first: str | None, second: str | None) -> str | None:
    if first is None or second is None:
        return None
    return min(first, second, key=order)


def merge(base: Checkpoint | None, current: Checkpoint | None, ours: Checkpoint) -> Checkpoint | None:
    """What to write, given what this run read first, what is stored now and what it wants to store; None: nothing.

    Nothing stored any more where something was: the conversation was reset during the run, and what it covers is gone.
    Another run's newer summary stays, ours is dropped. Learned windows and notes of both are kept, but for a window
    that this run forgot and no other has learned anew.
    """
    if current is None:
        return ours if base is None else None
    if current == base:
        return ours
    winner = ours if _reach(ours) > _reach(current) else current
    known = base.windows if base is not None else {}
    forgotten = {(model, size) for model, size in known.items() if model not in ours.windows}
    windows = {model: size for model, size in current.windows.items() if (model, size) not in forgotten}
    for model, window in ours.windows.items():
        windows[model] = min(window, windows.get(model, window))
    merged = replace(winner, windows=windows, notes={**current.notes, **ours.notes})
    return None if merged == current else merged


def _reach(checkpoint: Checkpoint) -> tuple[int, int]:
    until = -1 if checkpoint.covers_until is None else order(checkpoint.covers_until)
    return until, checkpoint.turns
