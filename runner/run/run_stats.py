"""What a run came to, for the bot's owner: one line, and a second one at debug level where there is more to say.

Counts, seconds, model ids and names of tools; never what was said (docs/security.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile

from runner.host.events import Answer, Completed, Event, Failed, Log, Usage

CANCELLED = "cancelled"
"""The code of a run that was stopped on request (G2)."""

ANSWERED = "answered"
WORDLESS = "ended without words"
OUT_OF_TIME = "out of time"
_MOST_NAMES = 12


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of one run. `seconds` in all, and of them waiting for models and for tools.

    `turns`: model turns by model id, `tools`: calls by the tool's name for people. `usage` None: no provider
    said. `summaries` were written by a model, `digests` put together without one. `consents`: what was asked and agreed
    to, in words (M).
    """

    outcome: str
    seconds: float = 0.0
    model_seconds: float = 0.0
    tool_seconds: float = 0.0
    turns: Mapping[str, int] = field(default_factory=dict)
    rounds: int = 0
    tools: Mapping[str, int] = field(default_factory=dict)
    failed_calls: int = 0
    usage: Usage | None = None
    compactions: int = 0
    summaries: int = 0
    digests: int = 0
    fallbacks: int = 0
    follow_ups: int = 0
    consents: tuple[str, ...] = ()

    def adds_to(self, told: Tally | None) -> bool:
        """Whether there is more to tell than when `told` was made: more was done, or it ended in another way."""
        return told is None or replace(self, seconds=0.0) != replace(told, seconds=0.0)

    def logs(self) -> tuple[Log, ...]:
        """The line, and the details where a run was more than one turn of one model."""
        line = Log(self._line())
        plain = sum(self.turns.values()) <= 1 and not (self.tools or self.compactions or self.follow_ups)
        return (line,) if plain else (line, Log(self._details(), "debug"))

    def _line(self) -> str:
        calls = sum(self.tools.values())
        tools = _counted(calls, "tool call")
        if calls:
            tools += f" in {_counted(self.rounds, 'round')} ({self.failed_calls} failed)"
        counts = (
            _counted(sum(self.turns.values()), "model turn"),
            tools,
            _tokens(self.usage),
            _counted(self.compactions, "compaction"),
            _counted(self.fallbacks, "fallback"),
            *self.consents,
        )
        return f"run: {self.outcome} in {self.seconds:.1f} s: {', '.join(counts)}"

    def _details(self) -> str:
        details = [
            f"{self.model_seconds:.1f} s with models ({_names(self.turns)})",
            f"{self.tool_seconds:.1f} s with tools ({_names(self.tools)})",
            f"{_counted(self.summaries, 'summary', 'summaries')} by a model, {self.digests} without",
            _counted(self.follow_ups, "follow-up"),
        ]
        if self.usage is not None and self.usage.extras:
            details.append(", ".join(f"{name} {amount}" for name, amount in sorted(self.usage.extras.items())))
        return f"run: {'; '.join(details)}"


def outcome_of(last: tuple[Event, ...], *, out_of_time: bool = False) -> str:
    """The last events of a run in two or three words; `out_of_time` where a time limit ended it (N4)."""
    end = last[-1]
    if isinstance(end, Failed):
        return "stopped on request" if end.code == CANCELLED else f"failed ({end.code})"
    if out_of_time:
        return OUT_OF_TIME
    if isinstance(end, Completed) and end.finish_reason == "error":
        return "ended with a notice"
    return ANSWERED if any(isinstance(event, Answer) for event in last) else WORDLESS


def accounted(last: tuple[Event, ...], logs: tuple[Log, ...]) -> tuple[Event, ...]:
    """The last events of a run with its lines behind all others.

    The Host closes a stopped run at the first result it hears (G2): there the line is that harmless word, and where an
    answer has to be it, there is no line.
    """
    end = last[-1]
    if not (isinstance(end, Failed) and end.code == CANCELLED):
        others = tuple(takewhile(lambda event: isinstance(event, Log), last))
        return (*others, *logs, *last[len(others) :])
    return last if any(isinstance(event, Answer) for event in last) else (logs[0], end)


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _tokens(usage: Usage | None) -> str:
    if usage is None:
        return "tokens unknown"
    return f"{usage.prompt} tokens in and {usage.completion} out"


def _names(counts: Mapping[str, int]) -> str:
    """`look 3, set 1`, the most frequent first."""
    listed = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    more = len(listed) - _MOST_NAMES
    told = [f"{name} {count}" for name, count in listed[:_MOST_NAMES]]
    return ", ".join([*told, *([f"{more} more"] if more > 0 else [])]) or "none"
