"""Sending an answer where the Host sends nothing by itself (J2, J4), over the SDK's own proxy."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.errors import AgentAPIError, AgentAPIException

from runner.channel.replying import Replier, bounded
from runner.host.events import Event, Log, ToolFinished, ToolStarted
from runner.host.port import STREAM_CHARACTERS
from tests.unit.border import ALL_APIS, GONE, Handler, context, host_over

REPLY_TOOL = {"tool_name": "event_reply", "tool_type": "platform", "operations": ["detail", "call"]}


def refused(text: str = "no") -> AgentAPIException:
    return AgentAPIException(AgentAPIError(code="host.action_error", message=text))


def agent_context() -> RunnerContext:
    fields = context(apis={**ALL_APIS, "reply_stream": True}).model_dump()
    fields["resources"]["tools"] = [REPLY_TOOL]
    return RunnerContext.model_validate(fields)


class Scene:
    """A replier, the Host it talks to, and what it tells the run log. `deliveries` answer the operations in turn."""

    def __init__(self, *deliveries: object, streams: bool = True) -> None:
        self.handler = Handler(answers={"call_tool": {"result": {"ok": True}}, "call_platform_api": {"result": None}})
        self._deliveries = list(deliveries)
        self.handler.answers["reply_stream"] = self._deliver
        self.events: list[Event] = []
        host = host_over(self.handler, agent_context())
        self.replier = Replier(host, self.events.append, streams=streams, granted=True)

    def _deliver(self, _data: dict[str, Any]) -> object:
        answer = self._deliveries.pop(0) if len(self._deliveries) > 1 else self._deliveries[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer if answer is None else {"result": {"delivery": answer, "status": "open"}}

    @property
    def operations(self) -> list[tuple[str, str]]:
        return [(data["operation"], data["text"]) for data in self.handler.requests("reply_stream")]

    @property
    def tool_replies(self) -> list[str]:
        return [data["parameters"]["text"] for data in self.handler.requests("call_tool")]

    def errors(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Log) and event.level == "error"]


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_J2_only_the_newest_text_is_sent_while_an_update_is_on_its_way() -> None:
    scene = Scene("streaming")
    for text in ("a", "ab", "abc"):
        scene.replier.show(text)
    await settle()
    await scene.replier.close("abcd", seconds=1)
    assert scene.operations == [("update", "abc"), ("update", "abcd"), ("finish", "abcd")]


async def test_J2_a_text_that_was_shown_already_is_not_sent_again_before_the_end() -> None:
    scene = Scene("streaming")
    scene.replier.show("all of it")
    await settle()
    await scene.replier.close("all of it", seconds=1)
    assert scene.operations == [("update", "all of it"), ("finish", "all of it")]


@pytest.mark.parametrize("delivery", ["buffered", "simulated"])
async def test_J2_after_a_delivery_nobody_sees_nothing_is_sent_before_the_end(delivery: str) -> None:
    scene = Scene(delivery)
    for text in ("a", "ab", "abc"):
        scene.replier.show(text)
        await settle()
    await scene.replier.close("abcd", seconds=1)
    assert scene.operations == [("update", "a"), ("update", "abcd"), ("finish", "abcd")]


async def test_J2_white_space_opens_no_stream() -> None:
    scene = Scene("streaming")
    scene.replier.show(" \n")
    await settle()
    assert scene.operations == []


async def test_J2_a_host_that_hangs_costs_no_more_than_its_time_and_the_tool_replies() -> None:
    scene = Scene(None)
    scene.replier.show("half")
    await settle()
    async with asyncio.timeout(5):
        await scene.replier.close("half and half", seconds=0.4)
    assert scene.tool_replies == ["half and half"]


async def test_J2_a_whole_text_whose_fate_is_unknown_is_not_sent_twice() -> None:
    scene = Scene(None)
    async with asyncio.timeout(5):
        await scene.replier.close("all of it", seconds=0.4)
    assert scene.tool_replies == []
    assert any("may not have arrived" in line for line in scene.errors())


async def test_J2_a_visible_card_that_refuses_the_whole_text_gets_it_at_the_end_and_it_is_not_sent_twice() -> None:
    scene = Scene("streaming", refused("too many changes"))
    scene.replier.show("half")
    await settle()
    await scene.replier.close("half and half", seconds=1)
    assert scene.operations[:2] == [("update", "half"), ("update", "half and half")]
    assert scene.tool_replies == []
    assert any("may not have arrived" in line for line in scene.errors())


@pytest.mark.parametrize("delivery", ["streaming", "buffered"])
@pytest.mark.parametrize("shown", [True, False])
@pytest.mark.parametrize("failure", [refused("busy"), refused("ActionCallTimeoutError: timed out"), GONE])
async def test_J2_the_whole_text_is_told_to_the_stream_once_more_before_anything_is_given_up(
    failure: Exception, shown: bool, delivery: str
) -> None:
    scene = Scene(failure, delivery)
    if shown:
        scene.replier.show("all of it")
        await settle()
    await scene.replier.close("all of it", seconds=1)
    assert scene.operations == [("update", "all of it"), ("update", "all of it"), ("finish", "all of it")]
    assert (scene.tool_replies, scene.errors()) == ([], [])


async def test_J2_a_visible_card_that_refuses_a_part_of_the_text_leaves_the_whole_to_the_tool() -> None:
    scene = Scene("streaming", refused("too many changes"))
    for text in ("half", "half and"):
        scene.replier.show(text)
        await settle()
    await scene.replier.close("half and half", seconds=1)
    assert scene.tool_replies == ["half and half"]


@pytest.mark.parametrize("files", [(), ("file-1",)])
async def test_J2_a_host_that_answers_nothing_at_all_costs_no_more_than_the_time_there_is(
    files: tuple[str, ...],
) -> None:
    scene = Scene(None)
    scene.handler.answers["call_tool"] = scene.handler.answers["call_platform_api"] = None
    scene.replier.show("half")
    await settle()
    async with asyncio.timeout(3.0):
        await scene.replier.close("half and half", files, seconds=2.0)
    assert len(scene.errors()) == (2 if files else 1)


async def test_J2_giving_up_drops_the_stream() -> None:
    scene = Scene("streaming")
    scene.replier.show("half")
    await settle()
    await scene.replier.give_up()
    assert scene.operations == [("update", "half"), ("abort", "half")]


async def test_J2_a_refusal_in_the_answer_of_the_reply_tool_is_a_failure() -> None:
    scene = Scene("streaming", streams=False)
    scene.handler.answers["call_tool"] = {"result": {"ok": False, "mock": True, "error": "let it fail"}}
    await scene.replier.close("hello", seconds=1)
    (ended,) = [event for event in scene.events if isinstance(event, ToolFinished)]
    assert "let it fail" in (ended.error or "")
    assert any("could not be sent" in line for line in scene.errors())


async def test_J4_files_follow_the_text_by_reply_files() -> None:
    scene = Scene("streaming")
    await scene.replier.close("Here it is.", ["file-1", "file-2"], seconds=1)
    (asked,) = scene.handler.requests("call_platform_api")
    assert (asked["file_ids"], asked["context_tool"]) == (["file-1", "file-2"], "event_reply")
    assert [name for name, _ in scene.handler.calls][-1] == "call_platform_api"
    started = [event for event in scene.events if isinstance(event, ToolStarted)]
    assert [event.arguments for event in started] == [{"stream": True}, {"files": ["file-1", "file-2"]}]


async def test_J4_files_that_cannot_be_sent_cost_neither_text_nor_run() -> None:
    scene = Scene("streaming")
    scene.handler.answers["call_platform_api"] = refused("too large")
    await scene.replier.close("Here it is.", ["file-1"], seconds=1)
    assert scene.operations[-1] == ("finish", "Here it is.")
    assert any("1 files could not be sent" in line for line in scene.errors())


async def test_J4_a_refusal_in_the_answer_to_files_is_a_failure_and_what_was_only_simulated_says_so() -> None:
    for answer, error in (
        ({"ok": False, "mock": True, "error": "let it fail"}, True),
        ({"ok": True, "mock": True}, False),
    ):
        scene = Scene("streaming")
        scene.handler.answers["call_platform_api"] = {"result": answer}
        await scene.replier.close("Here it is.", ["file-1"], seconds=1)
        ended = [event for event in scene.events if isinstance(event, ToolFinished)][-1]
        assert bool(ended.error) is error
        assert error or ended.result == {"sent": True, "mock": True}
        assert any("1 files could not be sent" in line for line in scene.errors()) is error


def test_J2_a_reply_holds_two_hundred_thousand_characters_and_says_when_it_was_cut() -> None:
    assert bounded("x" * STREAM_CHARACTERS, "[cut]") == "x" * STREAM_CHARACTERS
    cut = bounded("x" * (STREAM_CHARACTERS + 1), "[cut]")
    assert len(cut) <= STREAM_CHARACTERS
    assert cut.endswith("\n\n[cut]")
