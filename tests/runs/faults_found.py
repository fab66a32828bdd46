"""Real faults these tests found, heaviest first. Not collected: `pytest tests/runs/faults_found.py` shows them fail.

Each test names its input, what happens, the line of the specification, and a suggested mend. Once mended, a test moves
to the file of its subject.
"""

from __future__ import annotations

import asyncio

import pytest

from config.locales import Locale
from config.notices import Notice, say
from runner import interrupt
from tests.host import Fault, Model, ModelRequest, Reason, Reply, Tool, ToolCall

from .scenes import broken_rules, host_with, looks, lost_steering, rows

STOPPED = say(Notice.STOPPED_NOTE, Locale.EN_US)
LOOK = Reply("Looking.", tool_calls=[ToolCall("look")])


@pytest.fixture
def quick_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt, "INTERVAL", 0.005)
    monkeypatch.setattr(interrupt.PollBudget, "take", lambda _self: True)


# 1. A cancellation that arrives together with the Host's answer is lost (Python 3.11, where `asyncio.wait_for`, with
#    which the SDK waits, returns the answer instead). Then `watching.cancel()` does nothing, the task group waits
#    for a
#    poll loop that never ends, and the finished answer is held back until the run's deadline, which calls it late;
#    with
#    no deadline for ever. The same loss hits the run's own time-out, a tool's time limit and a stop (G2, G3, Q4).
#    Mend, at the port: whenever an answer has come (or failed), look whether the task was cancelled meanwhile:
#    `asyncio.current_task().cancelling()` above 0 raises CancelledError, in `_failures` (after an answer and after an
#    error) and before each item of `stream`. With that the fault table is green.


@pytest.mark.usefixtures("quick_polls")
async def test_Q4_the_end_of_a_run_is_never_lost_to_a_poll_that_is_answered_in_that_moment() -> None:
    stuck = 0
    for _ in range(150):
        host = host_with(models=[Model("m1", default=looks("m1"))], tools=[Tool("look", delay=0.003)])
        run = host.start("go")
        try:
            async with asyncio.timeout(3):
                await run.wait()
        except TimeoutError:
            stuck += 1
        await host.aclose()
        if stuck:
            break
    assert stuck == 0


# 2. A stop loses what was shown: `Outbox.finish` sends a snapshot before the completed message, and the results of
#    the
#    cancelled tools stand in the queue before both. The Host closes the run at the first result after its flag, so
#    the
#    completed message never arrives and the history has no answer row (G2: "first the visible text as the completed
#    message"; issue 3 "what was already shown stays").
#    Mend: when the terminal event is `Failed`, `finish` sends no snapshot, and drops what is queued before its
#    events.


@pytest.mark.usefixtures("quick_polls")
async def test_G2_what_a_stream_has_shown_is_the_completed_message_marked_as_stopped() -> None:
    host = host_with(replies=[Reply(chunks=["Once ", "upon ", "a time"], chunk_delay=60)])
    run = host.start("go")
    await run.until_result("message.delta")
    host.cancel(run)
    await run.wait()
    assert run.status == "cancelled"
    assert run.final_text == f"Once \n\n{STOPPED}"
    assert rows(host)[-1] == ("assistant", run.final_text)


@pytest.mark.usefixtures("quick_polls")
async def test_G2_what_was_said_before_a_waiting_tool_is_the_completed_message_marked_as_stopped() -> None:
    gate = asyncio.Event()
    host = host_with(replies=[LOOK, "Hello."], tools=[Tool("look", fn=gate.wait)])
    run = host.start("go")
    await run.until_result("tool.call.started")
    host.cancel(run)
    await run.wait()
    gate.set()
    assert run.final_text == f"Looking.\n\n{STOPPED}"
    nxt = await host.say("again")
    assert nxt.requests[-1].roles == ["system", "user", "assistant", "user"]


# 3. Counting that fails twice in a later turn breaks the run off instead of asking the next model: `Turns._ask`
#    counts
#    before `Visible.begin_turn`, so `turn_shown` still speaks of the turn before (C1 "at any turn", F2, Q4).
#    Mend: `begin_turn()` before `view.request(...)`.


@pytest.mark.parametrize("fault", [Fault.error(), Fault.timeout(), Fault.drop(), Fault.lost(), Fault.malformed()])
async def test_F2_counting_that_fails_in_a_later_turn_makes_the_next_model_answer(fault: Fault) -> None:
    models = [Model(name, default=looks(name, 1)) for name in ("m1", "m2")]
    host = host_with(models=models, tools=[Tool("look")])
    host.fail("count_tokens", fault, nth=2, times=2)
    run = await host.say("go")
    assert run.final_text == "m1 looks. \n\nm2 knows"
    assert run.finish_reason == "stop"


# 4. Follow-ups are lost when a run ends otherwise than by itself: a reply that breaks off, the time limit, an
#    overflow
#    that cannot be helped, or a last pull that fails (G1 "never lost", Q4 "no lost steering").
#    Mend: a failed last pull is tried once more; after `BrokenOff` the half reply becomes an assistant turn and
#    the loop
#    goes on when a pull brings something; at the time limit a last pull, and what came is named in the log.


async def test_G1_a_last_pull_that_fails_once_loses_nothing() -> None:
    host = host_with()

    def first(_request: ModelRequest) -> Reply:
        assert host.steer("and now?")
        return Reply("First.")

    host.model.say(first, "Second.")
    host.fail("steering_pull", Fault.error())
    run = await host.say("go")
    assert lost_steering(run) == []
    assert run.final_text == "First.\n\nSecond."


async def test_G1_what_is_said_during_a_reply_that_breaks_off_is_answered() -> None:
    host = host_with()

    def first(_request: ModelRequest) -> Reply:
        assert host.steer("and now?")
        return Reply(chunks=["Well, ", "x"], error=Reason.CONNECTION, error_after=1)

    host.model.say(first, "Second.")
    run = await host.say("go")
    assert lost_steering(run) == []


async def test_G1_what_was_pulled_and_could_not_be_handled_is_named_in_the_log() -> None:
    fails = Reply(error=Reason.AUTHENTICATION)
    host = host_with(models=[Model("m1", replies=[LOOK], default=fails)])
    host.world.tools.append(Tool("look", fn=lambda: host.steer("and now?") and "found"))
    run = await host.say("go")
    assert run.steering[-1][1] == "injected"
    assert any("follow-up" in log or "steering" in log for log in run.logs), run.logs


# 5. Names no provider takes get into requests: a tool whose own name begins with a digit or a hyphen is offered as
#    it is
#    (Gemini wants a letter or an underscore first), and a name the model made up goes into the history as it came
#    (D1,
#    D3 "goes into the history only as valid"; issue 3: legal for Gemini). The next request is then refused, by every
#    provider for `bad name!`.
#    Mend: `_LEGAL_NAME` = `[a-zA-Z_][a-zA-Z0-9_-]{0,63}`, and in `prepare._unknown` a sanitised name for the history.


@pytest.mark.parametrize("name", ["7zip", "-", "2_plus_2"])
async def test_D1_a_tool_name_that_begins_with_no_letter_has_an_alias(name: str) -> None:
    run = await host_with(tools=[Tool(name)]).say("go")
    assert broken_rules(run) == []


@pytest.mark.parametrize("name", ["bad name!", "", "天气", "x" * 80, "functions.look", "1st"])
async def test_D3_a_made_up_name_goes_into_the_history_as_one_that_providers_take(name: str) -> None:
    host = host_with(replies=[Reply(tool_calls=[ToolCall(name, {"a": 1}, id="c1")]), "Done."], tools=[Tool("look")])
    run = await host.say("go")
    assert run.final_text == "Done."
    assert broken_rules(run) == []


# 6. Half a character (a lone surrogate) of a model's text stands in the answer, in the history and in every later
#    request, which providers and databases refuse (pitfalls "the session unusable … lone surrogates are dropped",
#    B5).
#    Mend: `sendable` at the reader of replies (halves of neighbouring chunks joined first) and for rows and input.


@pytest.mark.parametrize("chunks", [["half \ud83d of it"], ["smile \ud83d", "\ude42 of it"]])
async def test_B5_half_a_character_of_an_answer_reaches_neither_history_nor_model(chunks: list[str]) -> None:
    host = host_with(replies=[Reply(chunks=chunks), "Next."])
    run = await host.say("go")
    assert run.final_text is not None
    run.final_text.encode("utf-8")
    nxt = await host.say("again")
    assert broken_rules(nxt) == []


@pytest.mark.parametrize("text", ["half \ud83d of it", "zero\x00byte"])
async def test_B4_half_a_character_of_a_message_reaches_no_model(text: str) -> None:
    run = await host_with(replies=["Next."]).say(text)
    assert broken_rules(run) == []
    assert run.final_text == "Next."


# 7. White space beside calls is sent as the text of the assistant turn: " " is empty to GLM and MiniMax, which
#    refuse it
#    (C2, pitfalls "Empty assistant message"; pi#3365). Found by hypothesis.
#    Mend: `content=unit.text if unit.text.strip() else None` in `wire._messages_of`.


@pytest.mark.parametrize("text", [" ", "\n\n", "\t"])
async def test_C2_white_space_beside_a_call_is_no_text(text: str) -> None:
    host = host_with(replies=[Reply(text, tool_calls=[ToolCall("look")]), "Done."], tools=[Tool("look")])
    run = await host.say("go")
    assert broken_rules(run) == []


# 8. A run that ends with a note after an error does not bring the card up to its answer: `Outbox.finish` looks for
#    the
#    answer in `last[0]`, where the log line stands (C6 "equal to the last snapshot").
#    Mend: look for the `Answer` among all of `last`.


async def test_C6_the_last_snapshot_equals_the_message_after_an_error_too() -> None:
    broken = Reply(chunks=["Well, ", "x"], error=Reason.CONNECTION, error_after=1, chunk_delay=0.1)
    run = await host_with(replies=[broken]).say("go")
    assert run.deltas
    assert run.deltas[-1] == run.final_text


# 9. A run that the Host has ended without the plugin noticing goes on, with its tools and model streams. It
#    happens: the
#    SDK's stream sender loses the Host's CANCEL when it comes together with a result (`wait_for` again, in
#    `anext_with_deadline`) and then waits for acknowledgements for ever. With 8 parallel calls just begun, 30 of
#    30 stops
#    ended so here, and `Runner.run` was never closed. Every poll then answers "Run session
#    … not found or expired", which counts as a failed poll, so the run holds its tool slots up to its deadline (G2
#    "On
#    cancel everything in flight is cancelled"; issue 3 "within 1.5 s").
#    Mend: in `interrupt._asked_to_stop`, a refusal that says that the session is gone is a request to stop.


@pytest.mark.usefixtures("quick_polls")
async def test_G2_a_run_whose_session_is_gone_stops_by_itself() -> None:
    host = host_with(replies=[Reply("late", delay=60)])
    host.fail("run_get", Fault.error("Run session 1 not found or expired"), nth=3, times=None)
    run = host.start("go")
    try:
        async with asyncio.timeout(3):
            await run.wait()
    finally:
        await host.aclose()
    assert host.model.aborted == 1


# 10. A level for a model on a Host that cannot be asked for its version makes the only model fail:
#    `get_langbot_version`
#     errors never read as "reasoning level", so the level is not left out (C3 "if refused, once without it"; Q4 names
#     what may end in failure, and this is none of it).
#     Mend: a failure of counting or of a model call with a level, whose text names no other reason, is tried once
#     without the level before the model counts as failed.


async def test_C3_without_an_answer_about_the_hosts_version_the_level_is_left_out() -> None:
    host = host_with(
        models=[Model("m1", replies=["Here."])], config={"model": {"primary": "m1", "reasoning": {"m1": "high"}}}
    )
    host.fail("get_langbot_version", Fault.error(), times=None)
    run = await host.say("go")
    assert run.final_text == "Here."


# 11. A connection that breaks between runtime and Host is not retryable: `ConnectionClosedError: Connection
#    closed` reads
#     as `other` (C8 "retryable only for network, time-outs and rate limits"; host-contract 2.3).
#     Mend: "connectionclosederror" and "connection closed" among the words of `ModelTrouble.NETWORK`.


async def test_C8_a_dropped_connection_is_a_network_failure_and_retryable() -> None:
    host = host_with(models=[Model("m1")])
    host.fail("invoke_llm_stream", Fault.drop(), times=None)
    run = await host.say("go")
    assert run.terminal["data"]["retryable"] is True
