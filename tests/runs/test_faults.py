"""The fault table of Q4: every call to the Host × every way it can fail × first or later.

Each row states its outcome. A run may end in failure only when every model failed, when counting is not offered, when
a row of the prompt is malformed, or when the connection is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from runner.run import interrupt
from tests.host import Fault, Model, Reason, Reply, RunRecord, TestHost, Tool, ToolCall

from .scenes import assert_ended, assert_sound, host_with, looks, rows

ANSWER = "m1 looks 1. \n\nm1 looks 2. \n\nNow m1 knows"
ALWAYS = None
STUCK = 20.0
"""Seconds after which a run is given up, so that a run that never ends fails its row and not the whole table."""

NO_COUNTING = "Token counting failed: this requester does not support token counting"


@dataclass(frozen=True)
class Row:
    """One row: `times` calls of `action` fail from the `nth` on, and what the run comes to.

    `answer`: the whole visible text, None where the chat gets the Host's own hint. `status` as the Host writes it.
    `code`: of the failure. `more`: further settings of the binding. `note`: what the answer ends with instead of
    being exactly `answer`.
    """

    action: str
    fault: Fault
    nth: int = 1
    times: int | None = 1
    answer: str | None = ANSWER
    status: str = "completed"
    finish: str | None = "stop"
    code: str | None = None
    models: int = 2
    more: dict[str, object] = field(default_factory=dict)
    operations: frozenset[str] = frozenset({"invoke", "stream", "count_tokens"})
    broken_off: bool = False

    def __str__(self) -> str:
        times = "always" if self.times is None else f"x{self.times}"
        text = self.fault.text.replace(" ", "-")[:24]
        after = f"-after{self.fault.after}" if self.fault.after else ""
        return f"{self.action}-{self.nth}-{times}-{self.fault.kind}{after}{'-' + text if text else ''}"


def failed(row: Row, code: str | None) -> Row:
    return replace(row, answer=None, status="failed", finish=None, code=code)


def cancelled(row: Row) -> Row:
    """The Host closes a run whose flag is set at its next result, so what was shown is all that is sure."""
    return replace(row, fault=Fault.cancel(after=row.fault.after), answer=None, status="cancelled", finish=None)


PASSING = (
    Fault.error(),
    Fault.model(Reason.CONNECTION),
    Fault.timeout(),
    Fault.hang(0.03),
    Fault.drop(),
    Fault.lost(),
    Fault.malformed(),
)
"""A call that gets no answer it could use, in each way it can happen."""


UNNAMED = (Reason.NOT_FOUND, Reason.API_ERROR, Reason.UNKNOWN)
"""Reasons that may mean that a provider does not take the request, or that it is in trouble."""


def without_loss(action: str, occurrences: Sequence[int], **more: object) -> Iterator[Row]:
    """Calls that a run can do without, or that are asked again: the answer is the same, whatever happens."""
    for fault in (*PASSING, Fault.slow(0.02)):
        for nth in occurrences:
            yield Row(action, fault, nth, **more)  # type: ignore[arg-type]
        yield Row(action, fault, times=ALWAYS, **more)  # type: ignore[arg-type]
    yield cancelled(Row(action, Fault.cancel(), occurrences[-1], **more))  # type: ignore[arg-type]
    yield failed(Row(action, Fault.disconnect(), occurrences[-1], **more), None)  # type: ignore[arg-type]


def counting() -> Iterator[Row]:
    """One failure in passing is asked again; two make the next model answer; none at all is a failure (F2)."""
    second = "m2 looks 1. \n\nm2 looks 2. \n\nNow m2 knows"
    for fault in PASSING:
        for nth in (1, 2, 3):
            yield Row("count_tokens", fault, nth)
        yield Row("count_tokens", fault, 1, 2, answer=second)
        yield Row("count_tokens", fault, 2, 2, answer="m1 looks 1. \n\nm2 looks 2. \n\nNow m2 knows")
        yield failed(Row("count_tokens", fault, times=ALWAYS), "runner.models_failed")
    for reply in ({"tokens": 0}, {"tokens": -4}, {"tokens": "many"}, {"tokens": True}, {"tokens": None}):
        yield Row("count_tokens", Fault.malformed(reply))
    yield Row("count_tokens", Fault.error(NO_COUNTING), answer=second)
    yield failed(Row("count_tokens", Fault.error(NO_COUNTING), times=ALWAYS), "runner.token_count_unavailable")
    yield Row("count_tokens", Fault.slow(0.02), times=ALWAYS)
    yield cancelled(Row("count_tokens", Fault.cancel(), 2))
    yield failed(Row("count_tokens", Fault.disconnect(), 2), None)


def answering(action: str, operations: frozenset[str]) -> Iterator[Row]:
    """A model that fails is replaced by the next one, at any turn, while the turn has shown nothing (C1).

    One that refused the request is asked once more first, without tools; the last one after an unnamed error, too (K7).
    """
    second = "m2 looks 1. \n\nm2 looks 2. \n\nNow m2 knows"
    middle = "m1 looks 1. \n\nm2 looks 2. \n\nNow m2 knows"
    last = "m1 looks 1. \n\nm1 looks 2. \n\nNow m2 knows"
    own = (Reason.CONNECTION, Reason.CONTEXT_LENGTH, Reason.BAD_REQUEST)
    reasons = tuple(Fault.model(reason) for reason in Reason if reason not in own)
    for reason in reasons:
        yield Row(action, reason, answer=second, operations=operations)
    refusal = Fault.model(Reason.BAD_REQUEST)
    for nth in (1, 2, 3):
        yield Row(action, refusal, nth, operations=operations)
    yield Row(action, refusal, 1, 2, answer=second, operations=operations)
    for fault in (refusal, Fault.error(), *map(Fault.model, UNNAMED)):
        yield Row(action, fault, models=1, operations=operations)
        yield failed(Row(action, fault, times=ALWAYS, operations=operations), "runner.models_failed")
    for nth, answer in enumerate((second, middle, last), 1):
        yield Row(action, Fault.error(), nth, answer=answer, operations=operations)
    for fault in PASSING[1:]:
        for nth, answer in enumerate((second, middle, last), 1):
            yield Row(action, fault, nth, answer=answer, operations=operations)
        yield failed(Row(action, fault, times=ALWAYS, operations=operations), "runner.models_failed")
        yield failed(Row(action, fault, models=1, operations=operations), "runner.models_failed")
    overflow = Fault.model(Reason.CONTEXT_LENGTH)
    for nth in (1, 2, 3):
        yield Row(action, overflow, nth, operations=operations)  # the same model, once more, with less (C7)
    yield Row(action, overflow, 1, 2, answer=second, operations=operations)
    yield failed(Row(action, overflow, times=ALWAYS, operations=operations), "runner.models_failed")
    yield Row(action, Fault.slow(0.02), times=ALWAYS, operations=operations)
    for nth in (1, 3):
        yield cancelled(Row(action, Fault.cancel(), nth, operations=operations))
        yield failed(Row(action, Fault.disconnect(), nth, operations=operations), None)


def broken_off() -> Iterator[Row]:
    """Once its turn has shown something, no other model may start over: the beginning stays, with a note (C1, C8)."""
    for fault in (
        Fault.error(after=1),
        Fault.model(Reason.TIMEOUT, after=1),
        Fault.timeout(after=1),
        Fault.drop(after=1),
        Fault.malformed(after=1),
    ):
        shown = Row("invoke_llm_stream", fault, 3, answer="m1 looks 1. \n\nm1 looks 2. \n\nNow ", finish="error")
        yield replace(shown, broken_off=True)
    yield cancelled(Row("invoke_llm_stream", Fault.cancel(after=1), 3))
    yield failed(Row("invoke_llm_stream", Fault.disconnect(after=1), 3), None)


def version() -> Iterator[Row]:
    """Whether the Host knows reasoning levels is asked once; without an answer the level is left out (C3)."""
    more: dict[str, object] = {"model": {"primary": "m1", "fallbacks": [], "reasoning": {"m1": "high"}}}
    for fault in (*PASSING, Fault.slow(0.02)):
        yield Row("get_langbot_version", fault, more=more)
    yield failed(Row("get_langbot_version", Fault.disconnect(), more=more), None)


def prompts() -> Iterator[Row]:
    """Without the effective prompt the form's is used (B1); a row nobody can read ends the run (C8)."""
    yield from without_loss("get_prompt", [1])
    yield Row("get_prompt", Fault.malformed({"prompt": []}))
    yield Row("get_prompt", Fault.malformed({"prompt": "x"}))
    for bad in ({"content": "no role"}, {"role": "wizard", "content": "x"}, "text", 7, None):
        yield failed(Row("get_prompt", Fault.malformed({"prompt": [bad]})), "runner.prompt_malformed")


TABLE: list[Row] = [
    *prompts(),
    *without_loss("history_page", [1]),
    Row("history_page", Fault.malformed({"items": [{"role": 3}], "has_more": True})),
    *counting(),
    *answering("invoke_llm_stream", frozenset({"stream", "count_tokens"})),
    *answering("invoke_llm", frozenset({"invoke", "count_tokens"})),
    *broken_off(),
    *without_loss("call_tool", [1, 2]),
    *without_loss("steering_pull", [1, 3]),
    Row("steering_pull", Fault.malformed({"items": [{"event": 1}]})),
    *without_loss("run_events_page", [1]),
    *without_loss("run_get", [1, 2]),
    Row("run_get", Fault.malformed({"cancel_requested_at": "yesterday"})),
    *version(),
]


@dataclass
class Polls:
    """How many looks at the Host's flag are still allowed: as many as a row needs, so that none is under way when a run
    ends."""

    left: int = 0

    def turn(self) -> float:
        self.left -= 1
        return 0.0 if self.left >= 0 else 3_600.0


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> Polls:
    """The flag is looked at so often that a run of milliseconds has polls to fail."""
    made = Polls()
    monkeypatch.setattr(interrupt, "INTERVAL", 0.005)
    monkeypatch.setattr(interrupt.PollBudget, "turn", lambda _self: made.turn())
    return made


def scene(row: Row) -> TestHost:
    """Two models that look twice and then answer, with a chat before."""
    models = [Model(name, default=looks(name), operations=row.operations) for name in ("m1", "m2")[: row.models]]
    slow = 0.03 if row.action == "run_get" or row.fault.kind == "cancel" else 0.0
    host = host_with(models=models, tools=[Tool("look", result="found", delay=slow)], config=dict(row.more))
    host.remember(("user", "Good morning"), ("assistant", "Good morning!"))
    host.fail(row.action, row.fault, row.nth, row.times)
    return host


@pytest.mark.parametrize("row", TABLE, ids=str)
async def test_Q4_a_failing_call_comes_to_the_outcome_of_its_row(row: Row, polls: Polls) -> None:
    host = scene(row)
    polls.left = 3 if row.action == "run_get" else 1_000 if row.fault.kind == "cancel" else 0
    async with asyncio.timeout(STUCK):
        run = await host.say("What is there?")
    assert any(call.fault for call in run.calls.of(row.action)), "the fault never struck"
    assert (run.status, run.finish_reason) == (row.status, row.finish), (run.error, run.logs)
    if row.code is not None:
        assert (run.code, run.completed) == (row.code, [])
    assert_ended(run, ended=_terminal_heard(run))
    _assert_answered(row, host, run)
    polls.left = 0
    await _assert_next_run_is_unaffected(host)


def _terminal_heard(run: RunRecord) -> bool:
    """The Host stops listening at the first result after its own flag."""
    return run.status != "cancelled"


def _assert_answered(row: Row, host: TestHost, run: RunRecord) -> None:
    shown = [text for role, text in rows(host) if role == "assistant"][1:]
    if row.status == "completed":
        assert run.final_text is not None and row.answer is not None
        if row.broken_off:
            assert run.final_text.startswith(row.answer)
            assert "\n\n" in run.final_text[len(row.answer) :]
        else:
            assert run.final_text == row.answer
        assert run.answer == run.final_text
        assert len(run.cards) == 1
        assert shown == [run.final_text]
    if row.status == "failed":
        assert run.notice is not None
        assert shown == []
    if row.status == "cancelled":
        assert run.notice is None


async def _assert_next_run_is_unaffected(host: TestHost) -> None:
    host.faults.clear()
    for model in host.world.models:
        model.default = "Still here."
    before = host.runs[-1]
    run = await host.say("And now?")
    assert (run.status, run.final_text) == ("completed", "Still here."), run.error
    assert run.requests[-1].last_user.endswith("And now?")
    await assert_sound(host, run)
    assert before.calls.still_open == []


async def test_B6_what_a_failed_run_had_done_is_known_to_the_next_one() -> None:
    note = Tool("save_note", result="saved as note 7")
    host = host_with(
        models=[Model("m1", [Reply(tool_calls=[ToolCall("save_note")]), Reply(error=Reason.CONNECTION), "Saved."])],
        tools=[note],
    )
    failed = await host.say("save it")
    assert (failed.status, failed.final_text) == ("failed", None)
    run = await host.say("go on")
    assert run.requests[0].roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert "saved as note 7" in run.requests[0].text
    assert run.final_text == "Saved."
    await assert_sound(host, run)
    again = await host.say("thanks")
    assert again.requests[0].text.count("saved as note 7") == 1
