"""The request as a weak model sees it: few tools, its own form of calls, a short history, one reminder (S1-S3, S8)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from config.choices import CallFormat
from runner.conversation import failures
from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import AssistantTurn, Text, Unit, UserTurn
from runner.host.events import Json
from runner.small import prompt
from runner.small.forms import FORM_IDS, Replay, tools_in_words
from runner.small.guided import response_format
from runner.small.modes import Mode
from runner.small.part import EVERY_PART, Part, Parts
from runner.small.reply_tool import REPLY_SPEC
from runner.small.shown import LOAD_SPEC, Places, choose
from runner.tools.jobs import JOB_OUTPUT
from runner.tools.results import ErrorCode

HISTORY_TURNS: Final = 12
GOING: Final = 5
"""So many of them go at once, and more up to a user turn."""

RESULT_CHARACTERS: Final = 1_500
"""Of any result, what a small model is shown (S3)."""

FEWER: Final = (4, 2, 1)
"""So many tools are tried in turn where a request does not fit."""

RESAMPLED: Final = 1.0
"""The temperature of a reply that has to come out differently."""


@dataclass(frozen=True, slots=True)
class Wants:
    """What one turn adds.

    `most`: tools in full, `fewer` than set; `tail`: a last user turn, in the prompt only; `hint`: a line of it.
    """

    query: str
    most: int
    off: Collection[str]
    loaded: Sequence[str]
    recent: Sequence[str]
    codes: frozenset[ErrorCode]
    tail: str | None
    hint: str | None
    conclude: bool
    resample: bool
    fewer: bool = False


@dataclass(slots=True)
class Dresser:
    """Makes such requests; keeps what it made, since counting goes by identity."""

    site: str
    place: Sequence[str]
    parts: Parts = EVERY_PART
    places: Places = field(default_factory=Places)
    _replays: dict[tuple[str | None, str | None, bool], Replay] = field(default_factory=dict)
    _tails: dict[str, UserTurn] = field(default_factory=dict)

    def dress(self, request: Request, mode: Mode, wants: Wants) -> Request:
        """The request in this mode."""
        turns = request.units
        if mode.small and Part.SHORT_HISTORY in self.parts:
            turns = recent_turns(turns)
        offered = tuple(tool for tool in request.tools if tool.name not in wants.off)
        tools, index = self._tools(offered, mode, wants)
        own = FORM_IDS.get(mode.form) if tools else None
        blocks = [*self._lines(tools, mode, own, wants), *([index] if index else [])]
        if own:
            blocks.append(tools_in_words(tools, own, answer_by=mode.answers_by))
        if mode.small and Part.ERROR_CODES in self.parts:
            blocks += prompt.meaning_of(wants.codes | codes_in(turns))
        return replace(
            request,
            system=replace(request.system, added=(*request.system.added, *blocks)),
            units=self._units(turns, mode, wants, tools=bool(request.tools)),
            tools=() if mode.form is not CallFormat.NATIVE else tools,
            extra={**request.extra, **self._extra(tools, mode, wants)},
        )

    def _tools(
        self, offered: tuple[ToolSpec, ...], mode: Mode, wants: Wants
    ) -> tuple[tuple[ToolSpec, ...], str | None]:
        if not offered:
            return (), None
        if wants.conclude and mode.form is not CallFormat.NATIVE:
            return ((REPLY_SPEC,) if mode.replies else ()), None
        if not mode.small or Part.RANKING not in self.parts:
            return (*offered, *((REPLY_SPEC,) if mode.replies else ())), None
        own = tuple(tool for tool in offered if tool.name in (JOB_OUTPUT, mode.answers_by))
        others = tuple(tool for tool in offered if tool not in own)
        before = self.places.names
        shown = choose(others, wants.query, most=wants.most, loaded=wants.loaded, recent=wants.recent, before=before)
        pseudo = (*own, *((LOAD_SPEC,) if shown.index else ()), *((REPLY_SPEC,) if mode.replies else ()))
        tools = self._in_their_places(shown.tools)
        self.places.keep([tool.name for tool in tools], lasting=shown.index is not None and not wants.fewer)
        return (*tools, *pseudo), shown.index

    def _in_their_places(self, tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
        """Tools that the step before showed keep their order: a local engine reads anew what stands behind a change."""
        places = {name: place for place, name in enumerate(self.places.names)}
        return tuple(sorted(tools, key=lambda tool: places.get(tool.name, len(places))))

    def _lines(self, tools: Sequence[ToolSpec], mode: Mode, own: str | None, wants: Wants) -> tuple[str, ...]:
        if not mode.small:
            return ()
        first = tools[0] if tools and not wants.conclude and Part.WORKED_CALL in self.parts else None
        example = prompt.worked_call(first, own or mode.written) if first else None
        site, place = (self.site, self.place) if Part.PLACE in self.parts else ("", ())
        return prompt.lines(example, first.name if first else None, site, place)

    def _units(self, units: tuple[Unit, ...], mode: Mode, wants: Wants, *, tools: bool) -> tuple[Unit, ...]:
        form = mode.written if tools and Part.REPLAY in self.parts else None
        key = (form, mode.answers_by, mode.small)
        replay = self._replays.get(key)
        if replay is None:
            chars = RESULT_CHARACTERS if mode.small and Part.SHORT_RESULTS in self.parts else None
            replay = self._replays[key] = Replay(form, answer_by=mode.answers_by, result_chars=chars)
        kept = replay.units(units)
        tail = wants.tail
        restates = mode.small and Part.RESTATEMENT in self.parts
        if tail is None and restates and units and isinstance(last := units[-1], AssistantTurn) and last.calls:
            failed = any(failures.split(result.text)[0] for result in last.results)
            tail = prompt.restated(wants.query, answer_by=mode.answers_by, failed=failed)
        tail = "\n".join(filter(None, (tail, wants.hint)))
        if not tail:
            return kept
        turn = self._tails.setdefault(tail, UserTurn((Text(tail),)))
        if kept and isinstance(before := kept[-1], UserTurn):
            return (*kept[:-1], replay.join(before, turn))
        return (*kept, turn)

    def _extra(self, tools: Sequence[ToolSpec], mode: Mode, wants: Wants) -> dict[str, Json]:
        extra: dict[str, Json] = response_format(tools) if mode.schema and tools else {}
        if wants.resample:
            extra["temperature"] = RESAMPLED
        return extra


def codes_in(units: Sequence[Unit]) -> frozenset[ErrorCode]:
    """The error codes that stand in results of these turns: their meaning stays as long as they do (L8)."""
    results = (result.text for unit in units if isinstance(unit, AssistantTurn) for result in unit.results)
    found = {failures.split(text)[0] for text in results}
    return frozenset(code for code in prompt.CODES if code.value in found)


def recent_turns(units: tuple[Unit, ...]) -> tuple[Unit, ...]:
    """At most the newest twelve turns, beginning with a user turn; the newest user turn always stays (S3).

    They go in blocks: where a thirteenth would stand, five or more go at once, and what stays is for some messages the
    beginning of every request, which a cache can serve (L8).
    """
    start, question, first = 0, -1, -1
    for at, unit in enumerate(units):
        question = at if isinstance(unit, UserTurn) else question
        if at - start + 1 + (first >= 0) > HISTORY_TURNS:
            start = _next_start(units, at + 1)
            first = -1 if isinstance(units[start], UserTurn) else question
    return (units[first], *units[start:]) if first >= 0 else units[start:]


def _next_start(units: Sequence[Unit], end: int) -> int:
    """Where what stays of the first `end` turns begins: at a user turn, or among the rounds of a long run."""
    least = end - HISTORY_TURNS + GOING
    return next((at for at in range(least, end) if isinstance(units[at], UserTurn)), least)
