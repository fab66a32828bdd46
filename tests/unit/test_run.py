"""Q4, C6, C8, G1-G3: whole runs over the real port, with the Host failing at every call in turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import aclosing
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langbot_plugin.entities.io.errors import ActionCallError, ActionCallTimeoutError

from config.notices import Notice
from config.settings import Settings
from runner.host.events import Answer, Completed, Event, Failed, Log, Snapshot, Usage
from runner.run import interrupt
from runner.run.run import Worker, run
from tests.unit.border import (
    ASKED,
    EVENT_ID,
    GONE,
    NO_KEY,
    STOP,
    TWO_MODELS,
    WITH_FALLBACK,
    Handler,
    check_protocol,
    context,
    english,
    events_of,
    finish_frame,
    follow_up,
    host_over,
    row,
    said,
    text_frame,
    until,
    usage_frame,
)


def history(*rows: Any) -> dict[str, object]:
    return {"items": [each.model_dump() for each in rows], "has_more": False}


def sent_messages(handler: Handler, call: int = 0) -> list[tuple[str, object]]:
    return [(each["role"], each["content"]) for each in handler.requests(ASKED)[call]["messages"]]


async def checked(handler: Handler, **about: Any) -> list[Event]:
    """A run that kept the protocol and left no task and no stream behind."""
    before = asyncio.all_tasks()
    events = await events_of(handler, context(**about))
    check_protocol(events)
    assert handler.streams_open == 0
    assert asyncio.all_tasks() - before == set()
    return events


async def test_Q1_one_answer_without_tools_costs_prompt_history_count_model_and_steering() -> None:
    handler = Handler([[text_frame("hi")]])
    assert said(await checked(handler)) == "hi"
    assert sorted(name for name, _ in handler.calls) == [
        "count_tokens",
        "get_prompt",
        "history_page",
        "invoke_llm_stream",
        "steering_pull",
    ]
    assert {name for name, _ in handler.calls[:2]} == {"get_prompt", "history_page"}, "asked for at once"


async def test_B1_the_hosts_prompt_wins_over_the_forms_and_the_form_fills_in_for_none() -> None:
    for rows, expected in (([{"role": "system", "content": "Host."}], "Host."), ([], "Be kind.")):
        handler = Handler(answers={"get_prompt": {"prompt": rows}})
        await checked(handler)
        assert sent_messages(handler)[0] == ("system", expected)


async def test_B1_a_malformed_row_ends_the_run_for_the_owner_to_read() -> None:
    events = await checked(Handler(answers={"get_prompt": {"prompt": [{"role": "wizard", "content": "x"}]}}))
    last = events[-1]
    assert isinstance(last, Failed) and last.code == "runner.prompt_malformed" and not last.retryable
    assert "row 1" in last.message


async def test_B2_the_date_goes_to_the_end_of_the_system_message() -> None:
    handler = Handler()
    await checked(handler, config={"date-grounding": True})
    role, content = sent_messages(handler)[0]
    assert role == "system" and str(content).startswith("Be kind.\n\nToday is") and "UTC" in str(content)


async def test_B4_in_a_group_the_system_message_says_so_and_the_question_names_its_speaker() -> None:
    handler = Handler()
    await checked(handler, group=True, variables={"sender_name": "Anna"})
    (_, system), (_, question) = sent_messages(handler)
    assert "group chat" in str(system) and question == "[Anna] hello"


async def test_B5_history_comes_without_the_current_message_and_oldest_first() -> None:
    rows = [row("user", "hello", 3, event_id=EVENT_ID), row("assistant", "b", 2), row("user", "a", 1)]
    handler = Handler(answers={"history_page": history(*rows)})
    await checked(handler)
    assert sent_messages(handler)[1:] == [("user", "a"), ("assistant", "b"), ("user", "hello")]


async def test_B5_a_question_without_an_answer_joins_the_current_one() -> None:
    handler = Handler(answers={"history_page": history(row("user", "before", 1))})
    await checked(handler)
    assert sent_messages(handler)[1:] == [("user", "before\n\nhello")]


async def test_B5_pages_are_pulled_up_to_the_limit_and_a_page_that_fails_costs_only_older_rows() -> None:
    def page(sent: dict[str, Any]) -> object:
        if sent["before_cursor"] is not None:
            return GONE
        items = [
            row("user" if place % 2 else "assistant", f"t{place}", place).model_dump() for place in range(150, 50, -1)
        ]
        return {"items": items[: sent["limit"]], "has_more": True, "next_cursor": "51"}

    handler = Handler(answers={"history_page": page})
    events = await checked(handler, config={"context-history-fetch-limit": 150})
    assert said(events) == "fine"
    assert len(sent_messages(handler)) == 102, "system, 100 rows, question"
    assert any(isinstance(event, Log) and "history" in event.text for event in events)


async def test_B5_a_host_whose_pages_never_end_is_asked_no_more_than_the_limit_needs() -> None:
    same = {"items": [row("user", "x", 1).model_dump()] * 10, "has_more": True, "next_cursor": "1"}
    handler = Handler(answers={"history_page": same})
    await checked(handler, config={"context-history-fetch-limit": 95})
    assert 1 <= len(handler.requests("history_page")) <= 10


@pytest.mark.parametrize("action", ["get_prompt", "history_page", "steering_pull", "run_get"])
@pytest.mark.parametrize(
    "error",
    [
        ActionCallError("no"),
        ActionCallTimeoutError("slow"),
        GONE,
        RuntimeError("ended"),
        ValueError("odd"),
        {},
        [],
        "x",
        5,
    ],
    ids=str,
)
async def test_Q4_what_fails_beside_the_model_still_yields_the_answer(action: str, error: object) -> None:
    assert said(await checked(Handler([[text_frame("answer")]], {action: error}))) == "answer"


@pytest.mark.parametrize(
    "error", [NO_KEY, ActionCallTimeoutError("slow"), GONE, RuntimeError("ended"), ValueError("odd")], ids=str
)
async def test_Q4_a_failed_model_leaves_the_answer_to_the_fallback(error: Exception) -> None:
    handler = Handler([[error], [text_frame("from b")]])
    assert said(await checked(handler, models=TWO_MODELS, config=WITH_FALLBACK)) == "from b"


@pytest.mark.parametrize(
    ("error", "retryable"), [(NO_KEY, False), (GONE, True), (ActionCallTimeoutError("slow"), True)], ids=str
)
async def test_Q4_when_every_model_failed_the_run_fails_for_the_owner(error: Exception, retryable: bool) -> None:
    events = await checked(Handler([[error]]), models=TWO_MODELS, config=WITH_FALLBACK)
    last = events[-1]
    assert isinstance(last, Failed) and (last.code, last.retryable) == ("runner.models_failed", retryable)
    assert not any(isinstance(event, Answer) for event in events)


@pytest.mark.parametrize(
    "models", [[], [{"model_id": "other"}], [{"model_id": "a", "operations": ["rerank"]}]], ids=str
)
async def test_C8_without_a_usable_model_the_person_reads_it_and_the_owner_the_next_step(
    models: list[dict[str, object]],
) -> None:
    handler = Handler()
    events = await checked(handler, models=models)
    assert said(events) == english(Notice.NO_MODEL)
    assert events[-1] == Completed("error", None)
    assert any(
        isinstance(event, Log) and "runner.no_model" in event.text and "AI tab" in event.text for event in events
    )
    assert handler.calls == [], "nothing is asked for a run that cannot answer"


async def test_C6_an_empty_reply_of_the_only_model_is_not_an_empty_answer() -> None:
    events = await checked(Handler([[text_frame("\n"), finish_frame("stop")]]))
    assert isinstance(events[-1], Failed) or said(events).strip()


async def test_C2_a_reply_cut_by_its_length_is_said_to_be_cut() -> None:
    events = await checked(Handler([[text_frame("half"), finish_frame("length")]]))
    assert said(events) == f"half\n\n{english(Notice.LENGTH_LIMIT_NOTE)}"


async def test_C5_usage_of_all_turns_goes_out_at_the_end() -> None:
    pulls = iter([{"items": [follow_up("and?")]}])
    handler = Handler(
        [[text_frame("one"), usage_frame(1, 2)], [text_frame("two"), usage_frame(3, 4)]],
        {"steering_pull": lambda _sent: next(pulls, {"items": []})},
    )
    assert (await checked(handler))[-1] == Completed("stop", Usage(4, 6, 10, {}))


async def test_C5_partial_usage_goes_out_on_failure() -> None:
    last = (await checked(Handler([[usage_frame(1, 2), GONE]])))[-1]
    assert isinstance(last, Failed) and last.usage == Usage(1, 2, 3, {})


async def test_G1_a_follow_up_before_the_end_makes_the_run_go_on() -> None:
    pulls = iter([{"items": [follow_up("and?"), follow_up("please")]}])
    handler = Handler(
        [[text_frame("one")], [text_frame("two")]], {"steering_pull": lambda _sent: next(pulls, {"items": []})}
    )
    assert said(await checked(handler)) == "one\n\ntwo"
    assert sent_messages(handler, 1)[1:] == [("user", "hello"), ("assistant", "one"), ("user", "and?\n\nplease")]


async def test_G1_the_last_thing_a_run_asks_is_whether_somebody_spoke() -> None:
    handler = Handler()
    await checked(handler)
    assert handler.calls[-1][0] == "steering_pull"


async def test_G2_a_stop_while_a_model_streams_closes_it_and_keeps_what_was_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interrupt, "INTERVAL", 0.02)
    handler = Handler([[text_frame("half"), usage_frame(1, 1), None]], {"run_get": STOP})
    events = await checked(handler)
    assert said(events) == f"half\n\n{english(Notice.STOPPED_NOTE)}"
    last = events[-1]
    assert isinstance(last, Failed) and (last.code, last.usage) == ("cancelled", Usage(1, 1, 2, {}))


@pytest.mark.parametrize("hanging", ["get_prompt", "history_page", "steering_pull"])
async def test_G2_a_stop_while_any_other_call_hangs_ends_the_run_at_once(
    hanging: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupt, "INTERVAL", 0.02)
    events = await checked(Handler(answers={hanging: None, "run_get": STOP}))
    last = events[-1]
    assert isinstance(last, Failed) and last.code == "cancelled"
    assert isinstance(events[-2], Log | Answer), "a harmless result lets the Host see its own flag first"


async def test_G3_a_model_that_hangs_is_left_at_the_runs_own_deadline() -> None:
    handler = Handler([[None]])
    events = await checked(handler, deadline_at=time.time() + 2.3)
    assert said(events) == english(Notice.TIME_LIMIT)
    assert events[-1] == Completed("error", None)


@pytest.mark.parametrize("hanging", ["get_prompt", "history_page", "run_get"])
async def test_G3_a_hung_call_never_outlives_the_deadline(hanging: str) -> None:
    replies = [[None]] if hanging == "run_get" else [[text_frame("x")]]
    events = await checked(Handler(replies, {hanging: None}), deadline_at=time.time() + 2.3)
    assert events[-1] == Completed("error", None) and said(events) == english(Notice.TIME_LIMIT)


async def test_G3_a_deadline_in_the_past_still_ends_with_one_terminal_event() -> None:
    events = await checked(Handler(), deadline_at=time.time() - 100)
    assert isinstance(events[-1], Completed | Failed)


async def test_G4_a_second_run_is_unaffected_by_a_first_that_failed() -> None:
    worker = Worker()
    for reply, ends in (([NO_KEY], Failed), ([text_frame("ok")], Completed)):
        ctx = context()
        own, notes = Settings.read(ctx.config)
        events = [event async for event in run(ctx, host_over(Handler([reply]), ctx), own, notes, worker)]
        assert isinstance(events[-1], ends)


@pytest.mark.parametrize(
    "handler",
    [
        Handler([[text_frame("half"), None]]),
        Handler([[None]]),
        Handler(answers={"get_prompt": None, "history_page": None}),
        Handler(answers={"steering_pull": None}),
    ],
    ids=["while streaming", "before the first text", "while assembling", "while steering"],
)
async def test_Q4_closing_the_run_leaves_no_task_and_no_open_stream(handler: Handler) -> None:
    before = asyncio.all_tasks()
    ctx = context()
    own, _ = Settings.read(ctx.config)
    async with aclosing(run(ctx, host_over(handler, ctx), own, ("a note",), Worker())) as events:
        async for event in events:
            if isinstance(event, Snapshot | Log):
                await asyncio.sleep(0.02)
                break
    assert handler.streams_open == 0
    assert asyncio.all_tasks() - before == set()


async def test_Q4_cancelling_the_reader_cancels_the_run_and_is_not_swallowed() -> None:
    handler = Handler([[text_frame("half"), None]])
    before = asyncio.all_tasks()
    reading = asyncio.create_task(events_of(handler, context()))
    await until(lambda: handler.streams_open > 0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert handler.streams_open == 0 and asyncio.all_tasks() - before == set()


FRAMES = st.one_of(
    st.text(max_size=5).map(text_frame),
    st.sampled_from(["stop", "length"]).map(finish_frame),
    st.just(usage_frame(1, 1)),
    st.just({"chunk": {"role": "assistant", "content": None}}),
    st.sampled_from([0.0, GONE, NO_KEY, RuntimeError("x"), {}]),
)
WORDS = st.none() | st.text(max_size=8)


@settings(max_examples=120)
@given(
    replies=st.lists(st.lists(FRAMES, max_size=6), min_size=1, max_size=4),
    text=WORDS,
    group=st.booleans(),
    rows=st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.text(max_size=6)), max_size=4),
    broken=st.sets(st.sampled_from(["get_prompt", "history_page", "steering_pull"])),
)
def test_C6_whatever_happens_a_run_keeps_the_protocol(
    replies: Sequence[Sequence[object]],
    text: str | None,
    group: bool,
    rows: list[tuple[str, str]],
    broken: set[str],
) -> None:
    answers: dict[str, object] = {"history_page": history(*(row(*each, place) for place, each in enumerate(rows)))}
    answers.update(dict.fromkeys(broken, GONE))
    handler = Handler(replies, answers)
    events = asyncio.run(events_of(handler, context(text, group=group, models=TWO_MODELS, config=WITH_FALLBACK)))
    terminal = [event for event in events if isinstance(event, Completed | Failed)]
    assert terminal == [events[-1]]
    assert sum(isinstance(event, Answer) for event in events) == isinstance(events[-1], Completed)
    assert all(event.text.strip() for event in events if isinstance(event, Answer))
    assert handler.streams_open == 0
    for sent in handler.requests(ASKED):
        roles = [message["role"] for message in sent["messages"]]
        assert roles[0] == "system" and roles[-1] == "user"
        assert all(one != two for one, two in pairwise(roles))
        assert all(message["content"] for message in sent["messages"])
