"""Follow-ups that people send while the run works (G1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.host import Fault, Model, ModelRequest, Reason, Reply, RunRecord, TestHost, Tool, ToolCall

from .scenes import LOOK, assert_sound, host_with, lost_steering, rows


def heard(run: RunRecord) -> list[str]:
    """Texts of the user turns of the last request."""
    texts = []
    for message in run.requests[-1].messages:
        if message["role"] == "user":
            content = message["content"]
            texts.append(content if isinstance(content, str) else "\n".join(p.get("text", "") for p in content))
    return texts


def steering_tool(host: TestHost, *texts: str) -> Tool:
    """A tool during which people say something."""

    def look() -> str:
        for text in texts:
            assert host.steer(text)
        return "found"

    return Tool("look", fn=look)


def host_that_waits(gate: asyncio.Event) -> TestHost:
    """Each run uses a tool, which waits for `gate`, and then answers what was said last."""

    def reply(request: ModelRequest) -> Reply:
        return Reply(f"to {request.last_user}") if any(m.get("tool_calls") for m in request.messages) else LOOK

    async def look() -> str:
        await gate.wait()
        return "found"

    return host_with(models=[Model("m1", default=reply)], tools=[Tool("look", fn=look)])


def answer_after(host: TestHost, text: str, say: str = "First.") -> Callable[[ModelRequest], Reply]:
    """A model reply during which the person says something."""

    def reply(_request: ModelRequest) -> Reply:
        assert host.steer(text)
        return Reply(say)

    return reply


async def test_G1_what_is_said_during_a_tool_reaches_the_next_turn_in_the_order_sent() -> None:
    host = host_with(replies=[LOOK, "Done."])
    host.world.tools.append(steering_tool(host, "one", "two", "three"))
    run = await host.say("go")
    assert heard(run) == ["go", "one\n\ntwo\n\nthree"]
    assert len(run.requests) == 2
    assert run.final_text == "Done."
    await assert_sound(host, run)


async def test_G1_what_is_said_during_the_final_turn_makes_the_run_go_on() -> None:
    host = host_with()
    host.model.say(answer_after(host, "and now?"), "Second.")
    run = await host.say("go")
    assert run.final_text == "First.\n\nSecond."
    assert run.requests[-1].roles == ["system", "user", "assistant", "user"]
    assert run.requests[-1].last_user == "and now?"
    assert rows(host) == [("user", "go"), ("user", "and now?"), ("assistant", "First.\n\nSecond.")]
    await assert_sound(host, run)


async def test_G1_many_follow_ups_one_after_another_are_all_answered_in_one_run() -> None:
    host = host_with()
    host.model.say(*(answer_after(host, f"more {n}", f"Answer {n}.") for n in range(6)), "Last.")
    run = await host.say("go")
    assert len(run.requests) == 7
    assert run.final_text == "\n\n".join([*(f"Answer {n}." for n in range(6)), "Last."])
    await assert_sound(host, run)


@pytest.mark.parametrize("rounds", [1, 3])
async def test_G1_at_every_boundary_of_a_tool_run_nothing_is_lost_and_nothing_comes_twice(rounds: int) -> None:
    host = host_with(replies=[*[LOOK] * rounds])
    host.model.say(answer_after(host, "said last"), "Done.")
    said = iter(f"said {n}" for n in range(rounds))
    host.world.tools.append(Tool("look", fn=lambda: host.steer(next(said)) and "found"))
    run = await host.say("go")
    text = run.requests[-1].text
    assert [text.count(f"said {n}") for n in range(rounds)] == [1] * rounds
    assert text.count("said last") == 1
    assert run.final_text == "First.\n\nDone."
    await assert_sound(host, run)


async def test_G1_a_follow_up_during_assembly_stands_behind_the_message_and_once() -> None:
    host = host_with(replies=["First.", "Second."])
    host.fail("history_page", Fault.slow(0.05))
    run = host.start("the first")
    await run.until("history_page")
    assert host.steer("the second")
    await run.wait()
    assert run.requests[0].last_user == "the first"
    assert [request.text.count("the second") for request in run.requests] == [0, 1]
    assert run.final_text == "First.\n\nSecond."
    await assert_sound(host, run)


async def test_G1_a_follow_up_during_counting_is_answered_in_the_same_run() -> None:
    host = host_with(replies=["First.", "Second."])
    host.fail("count_tokens", Fault.slow(0.05))
    run = host.start("the first")
    await run.until("count_tokens")
    assert host.steer("the second")
    await run.wait()
    assert run.requests[-1].last_user == "the second"
    await assert_sound(host, run)


async def test_D5_a_terminating_batch_goes_on_when_somebody_has_said_something() -> None:
    host = host_with(replies=[Reply(tool_calls=[ToolCall("done")]), "Still there."])

    def done() -> dict[str, object]:
        assert host.steer("wait!")
        return {"terminate": True, "ok": 1}

    host.world.tools.append(Tool("done", fn=done))
    run = await host.say("go")
    assert run.requests[-1].last_user == "wait!"
    assert run.final_text == "Still there."
    await assert_sound(host, run)


async def test_G1_what_is_said_during_a_conclusion_is_answered_too() -> None:
    host = host_with(replies=[LOOK, LOOK], config={"max-tool-iterations": 1})
    host.world.tools.append(Tool("look"))
    host.model.say(answer_after(host, "one more thing", "What I know."), "And that.")
    run = await host.say("go")
    assert run.requests[-1].last_user == "one more thing"
    assert run.final_text is not None
    assert run.final_text.startswith("What I know.\n\nAnd that.")
    await assert_sound(host, run)


async def test_G1_several_people_of_a_group_are_told_apart_in_the_order_they_spoke() -> None:
    host = host_with(replies=[LOOK, "Done."])

    def look() -> str:
        assert host.steer("me too", sender="u2", sender_name="Bo", conversation="group_7")
        assert host.steer("and a map", sender="u1", sender_name="An", conversation="group_7")
        assert host.steer("no name", sender="u3", conversation="group_7")
        return "found"

    host.world.tools.append(Tool("look", fn=look))
    run = await host.say("a plan please", sender="u1", sender_name="An", conversation="group_7")
    turns = heard(run)
    assert "a plan please" in turns[0]
    assert "[An]" in turns[0]
    assert turns[-1].index("[Bo] me too") < turns[-1].index("[An] and a map") < turns[-1].index("no name")
    assert "[u3] no name" in turns[-1]
    await assert_sound(host, run)


async def test_G1_pictures_of_a_follow_up_reach_the_model() -> None:
    host = host_with(replies=[LOOK, "Done."])
    host.world.tools.append(Tool("look", fn=lambda: host.steer("see", images=["aGk="]) and "found"))
    run = await host.say("go")
    newest = [message for message in run.requests[-1].messages if message["role"] == "user"][-1]
    assert [part["type"] for part in newest["content"]] == ["text", "image_url"]
    await assert_sound(host, run)


async def test_G1_a_run_without_the_grant_pulls_nothing() -> None:
    host = host_with(replies=[LOOK, "Done."], tools=[Tool("look")], withheld_apis=["steering_pull"])
    run = await host.say("go")
    assert run.calls.count("steering_pull") == 0
    assert run.final_text == "Done."


async def test_G1_a_pull_follows_each_batch_and_one_stands_right_before_the_end() -> None:
    host = host_with(replies=[LOOK, LOOK, "Done."], tools=[Tool("look")])
    run = await host.say("go")
    names = [name for name in run.calls.names if name != "run_get"]
    assert names[-1] == "steering_pull"
    assert [names[place + 1] for place, name in enumerate(names) if name == "call_tool"] == ["steering_pull"] * 2


async def test_G1_the_last_pull_waits_until_the_host_has_shown_the_whole_text() -> None:
    host = host_with(replies=["Done."])
    taken: list[str] = []
    host.when("steering_pull", lambda: taken.extend(str(result["type"]) for result in host.runs[0].results))
    run = await host.say("go")
    assert taken == ["message.delta", "processor.log"]
    assert run.calls.names[-2:] == ["run_events_page", "steering_pull"]
    assert run.final_text == "Done."


async def test_G1_after_the_last_pull_nothing_is_asked_of_the_host_any_more() -> None:
    host = host_with(replies=[LOOK, "Done."], tools=[Tool("look")])
    run = await host.say("go")
    last = run.calls.of("steering_pull")[-1]
    assert [call.action for call in run.calls if call.started > last.started] == []


async def test_G1_a_failed_pull_in_the_middle_loses_nothing_that_was_said() -> None:
    host = host_with(replies=[LOOK, LOOK, "Done."])
    host.world.tools.append(Tool("look", fn=lambda: (len(host.runs[0].steering) or host.steer("hello?")) and "found"))
    host.fail("steering_pull", Fault.error())
    run = await host.say("go")
    assert "hello?" in run.requests[-1].text
    await assert_sound(host, run)


async def test_G1_a_hundred_follow_ups_at_once_are_all_read() -> None:
    host = host_with(replies=[LOOK, "Done."])
    host.world.tools.append(steering_tool(host, *(f"number {n:03}" for n in range(100))))
    run = await host.say("go")
    text = run.requests[-1].last_user
    assert [text.index(f"number {n:03}") for n in range(100)] == sorted(
        text.index(f"number {n:03}") for n in range(100)
    )
    assert lost_steering(run) == []


async def test_G1_a_follow_up_with_nothing_in_it_breaks_no_request() -> None:
    host = host_with(replies=[LOOK, "Done."])
    host.world.tools.append(steering_tool(host, "   "))
    run = await host.say("go")
    assert run.final_text == "Done."
    await assert_sound(host, run)


async def test_G1_runs_of_two_chats_keep_their_follow_ups_apart() -> None:
    gate = asyncio.Event()
    host = host_that_waits(gate)
    first, second = host.start("a", conversation="person_1"), host.start("b", conversation="person_2")
    await first.until("call_tool")
    await second.until("call_tool")
    assert host.steer("more a", conversation="person_1")
    assert host.steer("more b", conversation="person_2")
    gate.set()
    await asyncio.gather(first.wait(), second.wait())
    assert (first.final_text, second.final_text) == ("to more a", "to more b")


async def test_G1_what_was_pulled_and_could_not_be_handled_is_named_in_the_log() -> None:
    fails = Reply(error=Reason.AUTHENTICATION)
    host = host_with(models=[Model("m1", replies=[LOOK], default=fails)])
    host.world.tools.append(Tool("look", fn=lambda: host.steer("and now?") and "found"))
    run = await host.say("go")
    assert run.steering[-1][1] == "injected"
    assert any("follow-up" in log or "steering" in log for log in run.logs), run.logs


async def test_G1_a_lost_pull_brings_no_message_of_another_run_of_the_same_chat() -> None:
    """A bot that answers several messages of a chat at once: each by its own run."""
    gate = asyncio.Event()
    host = host_that_waits(gate)
    first = host.start("one")
    await first.until("call_tool")
    second = host.start("two")
    await second.until("call_tool")
    host.fail("steering_pull", Fault.error(), times=2)
    gate.set()
    await asyncio.gather(first.wait(), second.wait())
    assert "two" not in first.requests[-1].text
    assert first.final_text == "to one"
    assert first.calls.count("run_list") + second.calls.count("run_list") >= 1
