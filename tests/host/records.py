"""What a test reads afterwards: the calls of a run, their bytes and the depth of their waiting."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .faults import Fault
from .wire import Meter


@dataclass(eq=False)
class Call:
    """One call of the plugin to the Host.

    `started` and `ended` are ticks of a logical clock, taken in the plugin when it asks and when it has the answer.
    `depth` is 1 + the greatest depth of the calls that had ended before this one started. `bytes_out` and `bytes_in`
    are JSON bytes on the wire, request and all answers. `error` is the text of what the SDK raised.
    """

    action: str
    data: dict[str, Any]
    started: int
    depth: int
    run_id: str | None = None
    fault: Fault | None = None
    ended: int | None = None
    bytes_out: int = 0
    bytes_in: int = 0
    items: int = 0
    error: str | None = None

    @property
    def open(self) -> bool:
        """Whether it has neither been answered nor failed nor been given up."""
        return self.ended is None


def depth_of(calls: Iterable[Call]) -> int:
    """The longest chain among `calls` in which each started after the one before it had ended."""
    depths: list[tuple[int, int]] = []
    for call in sorted(calls, key=lambda one: one.started):
        depth = 1 + max((d for end, d in depths if end < call.started), default=0)
        depths.append((call.ended if call.ended is not None else 1 << 62, depth))
    return max((depth for _, depth in depths), default=0)


@dataclass
class Calls:
    """The calls of one run in the order they were made."""

    all: list[Call] = field(default_factory=list)

    def __iter__(self) -> Iterator[Call]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def __getitem__(self, index: int) -> Call:
        return self.all[index]

    def of(self, *actions: str) -> list[Call]:
        return [call for call in self.all if call.action in actions]

    def but(self, *actions: str) -> Calls:
        """Without some actions, e.g. `run_get`, whose number depends on time."""
        return Calls([call for call in self.all if call.action not in actions])

    def count(self, action: str) -> int:
        return len(self.of(action))

    @property
    def names(self) -> list[str]:
        return [call.action for call in self.all]

    @property
    def depth(self) -> int:
        return depth_of(self.all)

    @property
    def before_first_model_call(self) -> Calls:
        """Those made before the first `invoke_llm` or `invoke_llm_stream`."""
        for index, call in enumerate(self.all):
            if call.action in MODEL_ACTIONS:
                return Calls(self.all[:index])
        return Calls(list(self.all))

    @property
    def bytes_out(self) -> int:
        return sum(call.bytes_out for call in self.all)

    @property
    def bytes_in(self) -> int:
        return sum(call.bytes_in for call in self.all)

    @property
    def still_open(self) -> list[Call]:
        return [call for call in self.all if call.open]


MODEL_ACTIONS: Collection[str] = ("invoke_llm", "invoke_llm_stream")


class CallLog:
    """Every call over one connection, with the logical clock."""

    def __init__(self, meter: Meter) -> None:
        self.calls: list[Call] = []
        self.by_seq: dict[int, Call] = {}
        self.acknowledgements = 0
        self.peer_cancellations = 0
        self._meter = meter
        self._clock = itertools.count(1)
        self._ended_depth: dict[str | None, int] = {}

    def start(self, action: str, data: dict[str, Any], seq: int, run_id: str | None, fault: Fault | None) -> Call:
        depth = 1 + self._ended_depth.get(run_id, 0)
        call = Call(action, data, next(self._clock), depth, run_id, fault)
        self.calls.append(call)
        self.by_seq[seq] = call
        return call

    def end(self, call: Call, seq: int, error: BaseException | None = None) -> None:
        if call.ended is not None:
            return
        call.ended = next(self._clock)
        self._ended_depth[call.run_id] = max(call.depth, self._ended_depth.get(call.run_id, 0))
        call.bytes_out = self._meter.asked.pop(seq, 0)
        call.bytes_in = self._meter.answered.pop(seq, 0)
        self.by_seq.pop(seq, None)
        if error is not None:
            call.error = f"{type(error).__name__}: {error}"
