"""C1, C6, J2, J4: the one text that only grows, and how it is sent where the Host sends nothing by itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.errors import AgentAPIError, AgentAPIException

from runner.channel.replying import Replier, bounded
from runner.channel.visible import LeadIns, Visible
from runner.conversation.readable import is_readable, without_invisible
from runner.host.events import Event, Log, ToolFinished, ToolStarted
from runner.host.port import STREAM_CHARACTERS
from tests.unit.border import ALL_APIS, GONE, Handler, context, host_over

# C6: one text that only grows; C1: after the first visible character nobody may start over.

UNSEEN = {
    "nul": "\x00",
    "control": "\x07\x1b\x85",
    "white space": " \t\n\u00a0\u3000\u2028",
    "lone surrogates": "\udc00\ud83d",
    "zero width": "\u200b\u200c\u200d\u2060",
    "byte order mark": "\ufeff",
    "directions": "\u200e\u200f\u202a\u202e\u2066\u2069\u061c",
    "variation selectors": "\ufe0f\ufe00\U000e0100",
    "hangul fillers": "\u115f\u1160\u3164\uffa0",
    "tags": "\U000e0001\U000e0041\U000e007f",
    "soft hyphen and joiner": "\u00ad\u034f",
    "braille blank": "\u2800",
    "noncharacters": "\uffff\ufdd0",
}
"""Characters of which a person sees nothing."""

SEEN = ["a", "中", "😀", "❤\ufe0f", "👨\u200d👩", "\u200ea", ".", "\ufffd", "\u0301", "\u0600", "ส", "\ue000", "﷽"]

TURNS = st.lists(st.lists(st.text(alphabet=" \nab中", max_size=6), max_size=5), max_size=5)


def after(*turns: list[str]) -> Visible:
    visible = Visible()
    for turn in turns:
        visible.begin_turn()
        for piece in turn:
            visible.add(piece)
    return visible


@given(TURNS)
def test_C6_the_text_only_grows_and_keeps_every_fragment_as_it_came(turns: list[list[str]]) -> None:
    visible, before = Visible(), ""
    for turn in turns:
        visible.begin_turn()
        for piece in turn:
            visible.add(piece)
            assert visible.text.startswith(before) and visible.text.endswith(piece)
            before = visible.text
    glued = "".join("".join(turn) for turn in turns)
    assert "".join(visible.text.split()) == "".join(glued.split())
    assert visible.shown == bool(glued.strip())


@given(TURNS, st.lists(st.sampled_from([" ", "\n", "\t", ""]), max_size=4))
def test_C1_white_space_of_a_model_that_failed_leaves_no_readable_trace(
    turns: list[list[str]], blanks: list[str]
) -> None:
    visible, untouched = after(*turns, blanks), after(*turns)
    visible.drop_turn()
    for each in (visible, untouched):
        each.begin_turn()
        each.add("next")
    assert visible.text == untouched.text


def test_C6_two_turns_are_set_off_by_a_blank_line() -> None:
    assert after(["Looking it up."], ["Found", " it."]).text == "Looking it up.\n\nFound it."


def test_C6_a_gap_that_is_there_already_is_not_doubled() -> None:
    assert after(["a\n\n"], ["b"]).text == "a\n\nb"
    assert after(["a\n"], ["b"]).text == "a\n\nb"
    assert after(["a\n\n\n\n"], ["b"]).text == "a\n\n\n\nb"


def test_C6_leading_white_space_of_a_chunk_is_kept() -> None:
    assert after(["a", " b", "\n  c"]).text == "a b\n  c"


def test_C1_white_space_is_not_visible_content_and_the_first_letter_is() -> None:
    visible = after(["\n "])
    before = (visible.turn_shown, visible.shown)
    visible.add("a")
    assert (before, visible.turn_shown, visible.shown) == ((False, False), True, True)


def test_C1_each_turn_starts_unshown() -> None:
    visible = after(["a"], [])
    assert visible.shown and not visible.turn_shown


def test_C1_what_was_readable_is_never_dropped() -> None:
    visible = after(["a"])
    visible.drop_turn()
    assert visible.text == "a"


def test_C6_a_note_of_the_runner_is_set_off_from_the_models_words() -> None:
    visible = after(["half an ans"])
    visible.note("[stopped]")
    assert visible.text == "half an ans\n\n[stopped]"


def test_C6_a_sentence_that_stands_alone_has_no_white_space_before_it() -> None:
    visible = after(["\n\n"])
    visible.note("Sorry.")
    assert visible.text == "Sorry."


def test_C6_two_notes_stand_apart() -> None:
    visible = Visible()
    visible.note("one")
    visible.note("two")
    assert visible.text == "one\n\ntwo"


@pytest.mark.parametrize("text", UNSEEN.values(), ids=UNSEEN.keys())
def test_I8_what_nobody_can_see_is_nothing_alone_and_kept_beside_words(text: str) -> None:
    assert not is_readable(text)
    visible = after([text])
    assert not visible.shown and not visible.turn_shown and not visible.text.strip()
    assert is_readable(f"{text}a") and is_readable(f"a{text}")
    assert "".join(without_invisible(f"a {text}b").split()) == "ab"


@pytest.mark.parametrize("text", SEEN)
def test_I8_what_is_seen_is_kept_as_it_came(text: str) -> None:
    assert is_readable(text)
    assert after(["\u200b", text, "\ufeff"]).text == f"\u200b{text}\ufeff"


def test_I8_a_turn_of_nothing_leaves_no_trace_between_two_others() -> None:
    visible = after(["Looking."], ["\u200b", " "])
    assert visible.text == "Looking.\n\n" and not visible.turn_shown
    assert after(["Looking."], ["\u200b", " "], ["Done."]).text == "Looking.\n\nDone."
    visible.note("[stopped]")
    assert visible.text == "Looking.\n\n[stopped]"


def test_I8_halves_of_a_character_are_seen_once_they_are_whole() -> None:
    visible = after(["\ud83d"])
    assert not visible.shown
    visible.add("\ude00")
    assert (visible.text, visible.shown) == ("😀", True)


def told(*turns: str, answer: str = "", pieces: int = 3) -> list[str]:
    """What is shown of each lead-in and of the answer behind them, fed in pieces of so many characters."""
    lead_ins, shown = LeadIns(), []
    for turn in (*turns, answer):
        lead_ins.begin()
        parts = [lead_ins.feed(turn[at : at + pieces]) for at in range(0, len(turn), pieces)]
        shown.append("".join((*parts, lead_ins.end(calls=turn is not answer))))
    return shown


LOOK = "I look up the member first."


@given(st.integers(1, 40))
def test_K9_a_lead_in_that_is_said_again_word_for_word_is_shown_once(pieces: int) -> None:
    assert told(LOOK, LOOK, LOOK, answer="Ann.", pieces=pieces) == [LOOK, "", "", "Ann."]
    chinese = "我先查一下成员。"
    assert told(chinese, f"{chinese}再查群。", answer=f"{chinese}好了。", pieces=pieces) == [
        chinese,
        "再查群。",
        "好了。",
    ]


@given(st.integers(1, 40))
def test_K9_what_goes_on_in_another_way_is_shown_whole(pieces: int) -> None:
    turns = ["I look up the member first, then the group.", "I look", "I look up the", f"{LOOK}x"]
    assert told(LOOK, *turns, answer="I", pieces=pieces) == [LOOK, *turns, "I"]


@given(st.integers(1, 40))
def test_K9_behind_a_lead_in_that_is_known_only_what_is_new_is_shown(pieces: int) -> None:
    more = f"{LOOK}\n\nThen I look up the group."
    found = told(LOOK, more, more, f"{LOOK} Then I look up the group.", answer=f"{LOOK} It is Ann.", pieces=pieces)
    assert found == [LOOK, "Then I look up the group.", "", "", "It is Ann."]


def test_K9_the_first_lead_in_waits_for_nothing_and_an_answer_to_new_words_may_say_the_same() -> None:
    lead_ins = LeadIns()
    lead_ins.begin()
    assert lead_ins.feed("I l") == "I l"
    assert lead_ins.end(calls=True) == ""
    lead_ins.forget()
    lead_ins.begin()
    assert lead_ins.feed("I l") == "I l"


def test_K9_lists_and_code_are_left_out_only_as_a_whole() -> None:
    steps = "Steps to take:\n- read it\n```python\nprint(1)\n```"
    assert told(steps, steps, answer="```python\nprint(2)\n```") == [steps, "", "```python\nprint(2)\n```"]


@given(st.lists(st.text(alphabet="ab .\n。", max_size=30), max_size=6), st.integers(1, 9))
def test_K9_what_is_left_out_was_shown_before(turns: list[str], pieces: int) -> None:
    shown = "".join(told(*turns, answer="The end", pieces=pieces))
    assert all("".join(word.split()) in "".join(shown.split()) for turn in turns for word in turn.split("."))
    assert "The end" in shown


# Sending an answer where the Host sends nothing by itself (J2, J4), over the SDK's own proxy.

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
