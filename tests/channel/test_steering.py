"""G1: follow-ups become user turns in order, once the Host has shown what it was sent before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from langbot_plugin.api.entities.builtin.runner.transcript import TranscriptItem
from langbot_plugin.entities.io.errors import ActionCallError

from runner.channel import host_progress as backlog
from runner.channel.host_progress import caught_up
from runner.channel.steering import Steering
from runner.conversation.speakers import Speakers
from runner.conversation.units import Image, Text
from runner.host.port import ProxyHost
from tests.host.steered import run_steered
from tests.unit.border import RUN_ID, Handler, context, follow_up, host_over, row, until

# G1: follow-ups become user turns, in order, with their speaker.


def steering(answer: object, *, group: bool = False, apis: dict[str, bool] | None = None) -> tuple[Steering, Handler]:
    handler = Handler(answers={"steering_pull": answer})
    ctx = context(apis={"steering_pull": True} if apis is None else apis)
    return Steering(host_over(handler, ctx), Speakers(group, {"u1": "Ann"})), handler


async def test_G1_items_become_one_user_turn_in_the_order_sent() -> None:
    pulled, _ = steering({"items": [follow_up("one"), follow_up("two")]})
    turn = await pulled.pull()
    assert turn is not None and turn.parts == (Text("one"), Text("two"))
    assert pulled.pulled == 2


async def test_G1_in_a_group_each_item_names_its_speaker_new_names_included() -> None:
    items = [follow_up("one", "u1", None), follow_up("two", "u2", "Bob"), follow_up("three", "u3", None)]
    pulled, _ = steering({"items": items}, group=True)
    turn = await pulled.pull()
    assert turn is not None and turn.text() == "[Ann] one\n\n[Bob] two\n\n[u3] three"


async def test_G1_pictures_of_a_follow_up_come_along() -> None:
    item = follow_up("look")
    item["input"] = {"text": "look", "contents": [{"type": "image_base64", "image_base64": "aGk="}]}
    pulled, _ = steering({"items": [item]})
    turn = await pulled.pull()
    assert turn is not None and turn.parts == (Text("look"), Image(base64="aGk="))


async def test_G1_nobody_spoke_is_no_turn() -> None:
    pulled, _ = steering({"items": []})
    assert await pulled.pull() is None


@pytest.mark.parametrize("odd", [RuntimeError("x"), {"items": 5}, {"items": [{}]}, [], {"items": [None]}])
async def test_Q4_a_pull_that_fails_is_counted_and_silence(odd: object) -> None:
    pulled, _ = steering(odd)
    assert await pulled.pull() is None
    assert pulled.failed_pulls == 1 and pulled.pulled == 0


def recovering(replies: list[object], rows: list[object], event_id: str | None = "e1") -> tuple[Steering, Handler]:
    """A run of event `e1` whose pulls come to `replies`, one after another; `rows` are the transcript's newest."""
    answers = iter(replies)

    def pull(_request: dict[str, object]) -> object:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    handler = Handler(answers={"steering_pull": pull, "history_page": {"items": rows, "has_more": False}})
    ctx = context(apis={"steering_pull": True, "history_page": True, "run_list": True})
    return Steering(host_over(handler, ctx), Speakers(True, {"u1": "Ann"}), event_id), handler


def a_run(number: int, event_id: str, **more: object) -> dict[str, object]:
    """A run of the chat as the Host's ledger tells it."""
    return {"id": number, "run_id": f"run-{number}", "event_id": event_id, "status": "running", **more}


def newest_first(*items: TranscriptItem) -> list[object]:
    return [item.model_dump(mode="json") for item in reversed(items)]


LOST = RuntimeError("the reply is too large")
PICTURE = {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_base64"}]}
ROWS = newest_first(row("user", "old", 0), row("user", "mine", 1), row("user", "", 2, content_json=PICTURE))


async def test_G1_a_follow_up_lost_on_its_way_is_read_from_the_transcript_once() -> None:
    pulled, _ = recovering([LOST, {"items": [follow_up("and?")]}, LOST, {"items": []}, {"items": []}], ROWS)
    turn = await pulled.pull()
    assert turn is not None and turn.text() == "[Ann] look\n> [image]\n\n[Bob] and?"
    assert pulled.pulled == 2
    assert await pulled.pull() is None
    assert await pulled.pull() is None


async def test_G1_what_was_read_from_the_transcript_is_not_heard_again_when_it_comes_after_all() -> None:
    late = follow_up("look")
    late["event"] = {**late["event"], "event_id": "e2"}  # type: ignore[dict-item]
    pulled, _ = recovering([LOST, LOST, {"items": [late, follow_up("and?")]}], ROWS)
    first, second = await pulled.pull(), await pulled.pull()
    assert first is not None and first.text() == "[Ann] look\n> [image]"
    assert second is not None and second.text() == "[Bob] and?"


async def test_G1_a_follow_up_that_came_is_not_read_again_from_the_transcript() -> None:
    rows = newest_first(row("user", "mine", 1), row("user", "and?", 2, event_id="later"))
    pulled, _ = recovering([LOST, {"items": [follow_up("and?")]}], rows)
    turn = await pulled.pull()
    assert turn is not None and turn.text() == "[Bob] and?"


@pytest.mark.parametrize("event_id", [None, "not in the page"])
async def test_J5_messages_of_other_runs_are_never_taken_for_follow_ups(event_id: str | None) -> None:
    pulled, handler = recovering([LOST, {"items": []}], ROWS, event_id)
    assert await pulled.pull() is None
    assert len(handler.requests("history_page")) == (event_id is not None)


OWN = a_run(7, "e1", started_at=100)


@pytest.mark.parametrize(
    ("other", "ours"),
    [
        (a_run(8, "e2"), False),  # begun for that very message
        (a_run(6, "e0"), False),  # older and still at work: it claims what is said
        (a_run(6, "e0", finished_at=130), False),  # ended only after the message came
        (a_run(6, "e0", finished_at=110), True),
        (a_run(6, "e0", finished_at=100), True),  # ended before this one began
        (a_run(6, "e0", deadline_at=90), True),  # lost in a restart of LangBot
        (a_run(8, "e3"), True),  # younger: the oldest claims
    ],
)
async def test_G1_what_another_run_of_the_chat_is_for_is_not_read_from_the_transcript(
    other: dict[str, object], ours: bool
) -> None:
    said = row("user", "look", 2, event_id="e2").model_copy(update={"created_at": 120})
    pulled, handler = recovering([LOST, {"items": []}], newest_first(row("user", "mine", 1), said))
    pulled.run_id = "run-7"
    handler.answers["run_list"] = {"items": [other, OWN]}
    turn = await pulled.pull()
    assert (turn is not None) == ours
    assert len(handler.requests("run_list")) == 1


async def test_Q4_a_host_that_cannot_list_its_runs_keeps_no_follow_up_back() -> None:
    pulled, handler = recovering([LOST, {"items": []}], ROWS)
    handler.answers["run_list"] = RuntimeError("away")
    turn = await pulled.pull()
    assert turn is not None and turn.text() == "[Ann] look\n> [image]"


@pytest.mark.parametrize("away", [RuntimeError("away"), {}, {"items": [], "has_more": False}], ids=str)
async def test_Q4_a_transcript_that_is_away_leaves_what_came(away: object) -> None:
    """A page without the very message of the run is none: that one stands in the transcript before the run begins."""
    pulled, handler = recovering([LOST, {"items": [follow_up("and?")]}], [])
    handler.answers["history_page"] = away
    turn = await pulled.pull()
    assert turn is not None and turn.text() == "[Bob] and?"
    assert pulled.failed_pulls == 1, "that somebody may have got no reply stands in the log"


async def test_G1_a_transcript_that_was_away_is_looked_at_when_it_is_back() -> None:
    pulled, handler = recovering([LOST, {"items": []}, {"items": []}, {"items": []}], ROWS)
    there, handler.answers["history_page"] = handler.answers["history_page"], RuntimeError("away")
    assert await pulled.pull() is None
    handler.answers["history_page"] = there
    turn = await pulled.pull()
    assert turn is not None and turn.text() == "[Ann] look\n> [image]"
    assert await pulled.pull() is None
    assert len(handler.requests("history_page")) == 2


async def test_G1_what_was_handed_over_is_counted_although_the_run_ends_while_the_transcript_is_looked_at() -> None:
    pulled, handler = recovering([LOST, {"items": [follow_up("and?")]}], [])
    handler.answers["history_page"] = None  # never answers
    pulling = asyncio.create_task(pulled.pull())
    await until(lambda: bool(handler.requests("history_page")))
    pulling.cancel()
    await asyncio.wait({pulling})
    assert pulled.unanswered == 1


def test_G1_a_transcript_that_hangs_keeps_the_answer_waiting_for_seconds_only() -> None:
    async def pull() -> tuple[float, int]:
        pulled, handler = recovering([LOST, {"items": []}], ROWS)
        handler.answers["history_page"] = None
        assert await pulled.pull() is None
        return asyncio.get_running_loop().time(), pulled.failed_pulls

    assert run_steered(pull()) == (5.0, 1)


async def test_G1_where_the_host_offers_no_steering_it_is_not_asked() -> None:
    pulled, handler = steering({"items": [follow_up("x")]}, apis={})
    assert await pulled.pull() is None
    assert handler.calls == [] and pulled.failed_pulls == 0


# G1: waiting until the Host has shown what it was sent.

Answer = Callable[[dict[str, object]], object]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "FIRST_PAUSE", 0.001)


def asked(answer: object) -> tuple[ProxyHost, Handler]:
    handler = Handler(answers={"run_events_page": answer})
    ctx = context()
    ctx.context.available_apis.run_events_page = True
    return host_over(handler, ctx), handler


def taken(sequence: int) -> dict[str, object]:
    return {"items": [{"run_id": RUN_ID, "sequence": sequence, "type": "processor.log"}]}


def soon() -> float:
    return asyncio.get_running_loop().time() + 5.0


@pytest.mark.usefixtures("quick")
async def test_G1_asks_for_the_one_result_until_the_host_has_come_to_it() -> None:
    left = [{"items": []}, {"items": []}, taken(7)]
    host, handler = asked(lambda _data: left.pop(0))
    await caught_up(host, 7, until=soon())
    assert left == []
    assert [(data["after_cursor"], data["limit"]) for data in handler.requests("run_events_page")] == [("6", 1)] * 3


@pytest.mark.usefixtures("quick")
async def test_L13_a_host_that_has_shown_all_by_the_first_look_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backlog, "FIRST_PAUSE", 60.0)
    host, handler = asked(lambda _data: taken(7))
    await caught_up(host, 7, until=soon())
    assert len(handler.requests("run_events_page")) == 1


@pytest.mark.usefixtures("quick")
async def test_Q4_a_host_that_refuses_is_asked_once() -> None:
    host, handler = asked(ActionCallError("ActionCallError: no"))
    await caught_up(host, 7, until=soon())
    assert len(handler.requests("run_events_page")) == 1


@pytest.mark.usefixtures("quick")
async def test_Q4_a_host_that_never_answers_is_given_up() -> None:
    host, handler = asked(None)
    await caught_up(host, 7, until=asyncio.get_running_loop().time() + 0.05)
    assert len(handler.requests("run_events_page")) == 1


@pytest.mark.usefixtures("quick")
async def test_G3_with_no_time_left_it_is_not_asked_at_all() -> None:
    host, handler = asked({"items": []})
    await caught_up(host, 7, until=asyncio.get_running_loop().time() - 1.0)
    assert handler.requests("run_events_page") == []
