"""C1, C2, D5-D9, G1-G3, B6, K9: the order of turns, tools and follow-ups, and when a run goes in circles."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langbot_plugin.entities.io.errors import ActionCallError

from config.notices import Notice
from runner.conversation.record import KEY, read
from runner.host.events import Answer, Completed, Event, Failed, ToolFinished, ToolStarted
from runner.loop.loop_detection import CONCLUDED_AT, IDLE_ROUNDS, READS_ALLOWED, LoopDetection, Seen, Verdict
from runner.run import interrupt
from runner.tools.memory import UNSAID_KEY
from tests.unit.border import (
    ASKED,
    GONE,
    REFUSED,
    STOP,
    Handler,
    call_frame,
    check_protocol,
    context,
    english,
    events_of,
    finish_frame,
    follow_up,
    said,
    snapshots,
    text_frame,
)

# C1, C2, D5-D9, G1-G3, B6: the order of turns, tools and follow-ups, over the real port.


def pulls(*batches: list[dict[str, object]]) -> Any:
    """A `steering_pull` that hands these over, one batch a pull, and is silent afterwards."""
    waiting: Iterator[list[dict[str, object]]] = iter(batches)
    return lambda _sent: {"items": next(waiting, [])}


async def checked(handler: Handler, **about: Any) -> list[Event]:
    about.setdefault("tools", ["look", "write"])
    events = await events_of(handler, context(**about))
    check_protocol(events)
    assert handler.streams_open == 0
    check_every_call_is_answered(handler)
    return events


def check_every_call_is_answered(handler: Handler) -> None:
    """D9: no request is ever sent with an unanswered call, and no id stands twice in one."""
    for sent in handler.requests(ASKED):
        waiting: list[str] = []
        seen: list[str] = []
        for message in sent["messages"]:
            if message["role"] == "tool":
                assert message["tool_call_id"] == waiting.pop(0)
                continue
            assert waiting == []
            waiting = [call["id"] for call in message["tool_calls"] or ()]
            seen += waiting
        assert waiting == [] and len(seen) == len(set(seen))


def last_messages(handler: Handler) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = handler.requests(ASKED)[-1]["messages"]
    return messages


async def test_D9_a_call_its_result_and_the_answer() -> None:
    handler = Handler([[text_frame("Looking."), call_frame("look", '{"x": 1}')], [text_frame("Found.")]])
    events = await checked(handler)
    assert said(events) == "Looking.\n\nFound."
    assert handler.requests("call_tool")[0]["parameters"] == {"x": 1}
    assert [message["role"] for message in last_messages(handler)] == ["system", "user", "assistant", "tool"]
    assert "tool says hi" in last_messages(handler)[-1]["content"]


async def test_D7_each_call_is_told_as_it_starts_and_ends_with_one_reference() -> None:
    handler = Handler([[call_frame("look"), call_frame("write", call_id="call_1")], [text_frame("ok")]])
    events = await checked(handler)
    started = [event for event in events if isinstance(event, ToolStarted)]
    finished = [event for event in events if isinstance(event, ToolFinished)]
    ids = [message["tool_call_id"] for message in last_messages(handler) if message["role"] == "tool"]
    assert sorted(event.call_id for event in started) == sorted(event.call_id for event in finished) == sorted(ids)
    assert all(
        events.index(one) < events.index(two) for one in started for two in finished if one.call_id == two.call_id
    )


async def test_C2_ids_that_repeat_over_rounds_are_made_unique() -> None:
    handler = Handler([[call_frame("look")], [call_frame("look")], [call_frame("look")], [text_frame("ok")]])
    assert said(await checked(handler)) == "ok"
    assert len([message for message in last_messages(handler) if message["role"] == "tool"]) == 3


@pytest.mark.parametrize(
    "answer", [GONE, ActionCallError("no"), ValueError("odd"), {}, [], "x", {"result": None}], ids=str
)
async def test_Q4_a_tool_that_fails_is_a_result_and_the_run_goes_on(answer: object) -> None:
    handler = Handler([[call_frame("look")], [text_frame("ok")]], {"call_tool": answer})
    assert said(await checked(handler)) == "ok"
    assert len(handler.requests("call_tool")) == 1, "a call is never repeated by itself"


@pytest.mark.parametrize("arguments", ['{"x": "many"}', '{"x"', "[1]", '"x"'])
async def test_D3_a_broken_call_never_runs_and_goes_into_the_history_only_as_valid_json(arguments: str) -> None:
    handler = Handler([[call_frame("look", arguments), call_frame("write", "", "b")], [text_frame("ok")]])
    await checked(handler)
    assert [sent["tool_name"] for sent in handler.requests("call_tool")] == ["write"], "its neighbour is not hurt"
    for message in last_messages(handler):
        for call in message["tool_calls"] or ():
            assert isinstance(json.loads(call["function"]["arguments"]), dict)


async def test_D1_a_tool_that_is_not_granted_is_not_run() -> None:
    handler = Handler([[call_frame("format_disk")], [text_frame("ok")]])
    assert said(await checked(handler)) == "ok"
    assert handler.requests("call_tool") == []


async def test_C2_a_call_in_a_reply_cut_by_its_length_is_never_run_and_the_model_may_go_on() -> None:
    handler = Handler([[call_frame("look"), finish_frame("length")], [text_frame("ok")]])
    assert said(await checked(handler)) == "ok"
    assert handler.requests("call_tool") == []


async def test_D6_after_the_last_round_the_model_concludes_and_nothing_more_is_run() -> None:
    more = [text_frame("Once more."), call_frame("look")]
    handler = Handler([more, more, more, [text_frame("Done."), call_frame("look")]])
    events = await checked(handler, config={"max-tool-iterations": 2})
    assert said(events).endswith("Done.")
    assert len(handler.requests("call_tool")) == 2
    asked = [sent["extra_args"].get("tool_choice") for sent in handler.requests(ASKED)]
    assert asked == [None, None, None, "none"]
    assert handler.requests(ASKED)[-1]["funcs"], "tools stay listed: some providers refuse tool turns without them"


async def test_D6_a_conclusion_refused_with_tools_is_asked_for_once_without() -> None:
    handler = Handler([[call_frame("look")], [call_frame("look")], [REFUSED], [text_frame("Done.")]])
    assert said(await checked(handler, config={"max-tool-iterations": 1})) == "Done."
    last = handler.requests(ASKED)[-1]
    assert last["funcs"] == [] and "tool_choice" not in last["extra_args"]


async def test_D6_a_conclusion_of_nothing_is_still_a_sentence() -> None:
    handler = Handler([[call_frame("look")]])
    events = await checked(handler, config={"max-tool-iterations": 1})
    assert said(events) == english(Notice.TOOL_ROUNDS_NOTE, rounds=1)


async def test_D5_a_batch_that_all_terminates_ends_the_run_without_another_model_call_and_says_nothing() -> None:
    handler = Handler(
        [[call_frame("look"), call_frame("write", "", "b")]], {"call_tool": {"result": {"terminate": True}}}
    )
    events = await checked(handler)
    assert len(handler.requests(ASKED)) == 1
    assert isinstance(events[-1], Completed) and snapshots(events) == []
    assert not any(isinstance(event, Answer) for event in events)
    (kept,) = handler.requests("state_set")
    assert kept["key"] == UNSAID_KEY and read(kept["value"]) is not None


async def test_D5_with_visible_text_a_terminated_run_completes_it() -> None:
    handler = Handler([[text_frame("Sent."), call_frame("write")]], {"call_tool": {"result": {"terminate": True}}})
    assert said(await checked(handler)) == "Sent."


async def test_D5_a_mixed_batch_goes_on_and_the_model_does_not_see_the_hint() -> None:
    def answer(sent: dict[str, Any]) -> object:
        return {"result": {"terminate": True, "done": 1} if sent["tool_name"] == "look" else "plain"}

    handler = Handler([[call_frame("look"), call_frame("write", "", "b")], [text_frame("ok")]], {"call_tool": answer})
    assert said(await checked(handler)) == "ok"
    assert "terminate" not in str(last_messages(handler))


async def test_D5_what_a_silent_run_did_stands_before_the_next_message_and_in_its_record() -> None:
    silent = Handler([[call_frame("look")]], {"call_tool": {"result": {"terminate": True, "done": "paid 5 coins"}}})
    await checked(silent)
    (kept,) = silent.requests("state_set")
    old = {"transcript_id": "t", "event_id": "e", "role": "user", "content": "pay", "cursor": "1"}
    handler = Handler(answers={"history_page": {"items": [old]}})
    events = await checked(handler, state={UNSAID_KEY: kept["value"]})
    assert "paid 5 coins" in str(last_messages(handler))
    (answer,) = [event for event in events if isinstance(event, Answer)]
    assert "paid 5 coins" in str(answer.record)
    assert handler.requests("state_set")[-1]["value"] is None


async def test_G1_a_record_is_put_aside_before_the_last_look_for_follow_ups() -> None:
    handler = Handler([[call_frame("look")]], {"call_tool": {"result": {"terminate": True}}})
    await checked(handler)
    assert [name for name, _ in handler.calls][-2:] == ["state_set", "steering_pull"]


@pytest.mark.parametrize("stored", [5, "x", [], {}, {KEY: 1}, {KEY: {"v": 1, "turns": 5}}, {KEY: {"v": 99}}], ids=str)
async def test_D5_a_broken_record_in_state_is_ignored(stored: object) -> None:
    assert said(await checked(Handler(), state={UNSAID_KEY: stored})) == "fine"


async def test_B6_the_answer_carries_what_tools_said_and_the_next_run_reads_it_back() -> None:
    handler = Handler([[call_frame("look", '{"x": 7}')], [text_frame("ok")]])
    (answer,) = [event for event in await checked(handler) if isinstance(event, Answer)]
    rows = [
        {"transcript_id": "2", "event_id": "e2", "role": "assistant", "cursor": "2", "content": "ok",
         "content_json": {"role": "assistant", "content": "ok", "provider_specific_fields": {KEY: answer.record}}},
        {"transcript_id": "1", "event_id": "e1", "role": "user", "cursor": "1", "content": "q"},
    ]  # fmt: skip
    later = Handler(answers={"history_page": {"items": rows}})
    await checked(later)
    assert [message["role"] for message in last_messages(later)] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert "tool says hi" in str(last_messages(later)) and KEY not in str(last_messages(later))


async def test_B6_without_tool_memory_there_is_no_record() -> None:
    handler = Handler([[call_frame("look")], [text_frame("ok")]])
    (answer,) = [event for event in await checked(handler, config={"tool-memory": False}) if isinstance(event, Answer)]
    assert answer.record is None


@pytest.mark.parametrize("error", [GONE, ActionCallError("no"), ValueError("odd")], ids=str)
async def test_Q4_a_record_that_cannot_be_kept_costs_memory_never_the_end(error: Exception) -> None:
    handler = Handler([[call_frame("look")]], {"call_tool": {"result": {"terminate": True}}, "state_set": error})
    assert isinstance((await checked(handler))[-1], Completed)


async def test_G1_steering_is_pulled_after_each_batch_and_before_the_end() -> None:
    handler = Handler(
        [[call_frame("look")], [call_frame("look")], [text_frame("ok")]],
        {"steering_pull": pulls([], [follow_up("hurry")])},
    )
    await checked(handler)
    names = [name for name, _ in handler.calls if name in {"call_tool", "steering_pull", ASKED}]
    assert names == [ASKED, "call_tool", "steering_pull", ASKED, "call_tool", "steering_pull", ASKED, "steering_pull"]
    assert [message["content"] for message in last_messages(handler) if message["role"] == "user"] == ["hello", "hurry"]


async def test_G1_a_follow_up_before_the_end_of_a_terminated_run_is_answered() -> None:
    handler = Handler(
        [[call_frame("look")], [text_frame("ok")]],
        {"call_tool": {"result": {"terminate": True}}, "steering_pull": pulls([follow_up("and?")])},
    )
    assert said(await checked(handler)) == "ok"


async def test_G2_a_stop_while_a_tool_hangs_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt, "INTERVAL", 0.02)
    handler = Handler([[text_frame("Looking."), call_frame("look")]], {"call_tool": None, "run_get": STOP})
    events = await checked(handler)
    assert said(events).startswith("Looking.")
    assert isinstance(events[-1], Failed) and events[-1].code == "cancelled"


async def test_G3_a_tool_that_hangs_past_the_wrap_up_is_answered_for_and_the_model_concludes() -> None:
    handler = Handler([[call_frame("look")], [text_frame("What I know.")]], {"call_tool": None})
    events = await checked(handler, deadline_at=time.time() + 3.0)
    assert said(events) == "What I know."
    assert handler.requests(ASKED)[-1]["extra_args"].get("tool_choice") == "none"


async def test_F2_every_model_turn_is_counted_first() -> None:
    handler = Handler([[call_frame("look")], [text_frame("ok")]])
    await checked(handler)
    names = [name for name, _ in handler.calls if name in {"count_tokens", ASKED}]
    assert names == ["count_tokens", ASKED, "count_tokens", ASKED]


@pytest.mark.parametrize("error", [GONE, ActionCallError("x"), {}, {"tokens": 0}], ids=str)
async def test_F2_a_count_that_fails_in_passing_is_tried_once_more(error: object) -> None:
    answers = iter([error])
    handler = Handler(answers={"count_tokens": lambda _sent: next(answers, {"tokens": 5})})
    assert said(await checked(handler)) == "fine"


async def test_F2_a_model_that_cannot_be_counted_for_gives_way_to_the_next() -> None:
    def count(sent: dict[str, Any]) -> object:
        return GONE if sent["llm_model_uuid"] == "a" else {"tokens": 5}

    handler = Handler(answers={"count_tokens": count})
    config = {"model": {"primary": "a", "fallbacks": ["b"], "reasoning": {}}}
    assert said(await checked(handler, models=[{"model_id": "a"}, {"model_id": "b"}], config=config)) == "fine"
    assert [sent["llm_model_uuid"] for sent in handler.requests(ASKED)] == ["b"]


async def test_F2_without_counting_the_run_fails_closed() -> None:
    handler = Handler()
    events = await checked(handler, models=[{"model_id": "a", "operations": ["stream", "invoke"]}])
    assert isinstance(events[-1], Failed) and events[-1].code == "runner.token_count_unavailable"
    assert handler.requests(ASKED) == []


# K9: when a run goes in circles, judged by what its calls bring.

GO_ON, TELL, REPEATED, IDLE = Verdict


def act(call: str, result: str = "done", *, arguments: str = "{}", failed: bool = False) -> Seen:
    return Seen.of(call, arguments, result, failed=failed, reads=False)


def looked(call: str, result: str = "the same") -> Seen:
    return Seen.of(call, "{}", result, failed=False, reads=True)


def verdicts(*rounds: Seen | list[Seen]) -> list[Verdict]:
    detection = LoopDetection()
    return [detection.after(each if isinstance(each, list) else [each], ran=True) for each in rounds]


def test_K9_a_call_that_acts_is_told_at_the_third_same_result_and_ends_at_the_fifth() -> None:
    assert verdicts(*[act("send")] * 5) == [GO_ON, GO_ON, TELL, GO_ON, REPEATED]


@pytest.mark.parametrize("length", range(1, 6))
def test_K9_a_cycle_of_up_to_five_calls_counts_as_one(length: int) -> None:
    found = verdicts(*[act(f"step {n % length}") for n in range(length * CONCLUDED_AT)])
    assert found[-1] is REPEATED and found.count(TELL) == 1
    assert found.index(TELL) == 3 * length - 1
    assert REPEATED not in found[:-1]


def test_K9_many_calls_of_one_reply_are_one_step_of_a_cycle() -> None:
    found = verdicts(*[[act(f"call {n}") for n in range(8)]] * 5)
    assert found == [GO_ON, GO_ON, TELL, GO_ON, REPEATED]


def test_K9_reads_between_do_not_hide_a_circle_and_are_none_themselves() -> None:
    rounds = [[act("send"), looked("get_time", f"{n} o'clock")] for n in range(5)]
    assert verdicts(*rounds) == [GO_ON, GO_ON, TELL, GO_ON, REPEATED]
    assert verdicts(*[looked("job_output", f"{n} s") for n in range(90)]) == [GO_ON] * 90


def test_K9_polling_is_free_to_twenty_identical_results() -> None:
    assert verdicts(*[looked("get")] * READS_ALLOWED) == [GO_ON] * (READS_ALLOWED - 1) + [REPEATED]
    two = [looked(f"get {n % 2}") for n in range(2 * READS_ALLOWED)]
    assert verdicts(*two).index(REPEATED) == 2 * READS_ALLOWED - 2


def test_K9_the_order_of_keys_makes_no_other_call_and_the_words_of_a_failure_no_other_result() -> None:
    keys = ['{"a": 1, "b": 2}', '{"b":2,"a":1}']
    assert verdicts(*[act("send", arguments=keys[n % 2]) for n in range(5)])[-1] is REPEATED
    assert verdicts(*[act("send", f"failed at {n} ms", failed=True) for n in range(5)])[-1] is REPEATED


@given(st.lists(st.sampled_from("abc"), max_size=60))
def test_K9_an_action_whose_result_changes_may_always_repeat(calls: list[str]) -> None:
    assert set(verdicts(*[act(call, f"result {n}") for n, call in enumerate(calls)])) <= {GO_ON}


def test_K9_the_same_test_after_each_new_edit_is_work() -> None:
    rounds = [
        each for n in range(20) for each in (act("edit", arguments=f'{{"n": {n}}}'), act("run_tests", "1 failed"))
    ]
    assert set(verdicts(*rounds)) == {GO_ON}


@given(st.lists(st.booleans(), max_size=40))
def test_K9_five_rounds_in_a_row_in_which_nothing_could_be_run_are_the_last(ran: list[bool]) -> None:
    detection = LoopDetection()
    idle = 0
    for number, each in enumerate(ran):
        idle = 0 if each else idle + 1
        found = detection.after([act("any", f"{number}")], ran=each)
        assert (found is IDLE) == (idle >= IDLE_ROUNDS)


def test_K9_what_somebody_said_since_begins_the_count_anew() -> None:
    detection = LoopDetection()
    for _ in range(3):
        assert [detection.after([act("send")], ran=False) for _ in range(3)] == [GO_ON, GO_ON, TELL]
        detection.renew()


def test_K9_another_circle_is_told_of_too() -> None:
    assert verdicts(*[act("send")] * 3, act("other"), *[act("write")] * 3).count(TELL) == 2
