"""S2, S8: which tools a model is shown and how, and answers as calls, replayed and guided."""

from __future__ import annotations

import re
from typing import Any

import pytest

from config.choices import CallFormat
from runner.small import guiding, reading, shown
from runner.small.guiding import Guiding
from runner.small.modes import Mode, Modes
from runner.small.part import Part, Parts
from runner.small.reply_tool import ReplyDecoder
from runner.small.request_shaping import Dresser
from runner.tools import ranking
from tests.host import Reason, Reply, Tool
from tests.written import LOOK, bare, says

from .table import Change, act, in_full, look, play, shows, stage

# S2: which tools a model is shown, and how.

TOPICS = ("mail", "music", "lights", "door", "timer")
NAMES = [f"{topic}_tool" for topic in TOPICS]


def tools() -> list[Tool]:
    return [act(name, description=f"Works with {name[:-5]}.") for name in NAMES]


async def test_S2_the_tools_most_like_the_request_are_shown_and_no_more() -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, says("ok"), text="turn the lights on", tools=tools(), max_tools_shown=1)
        return in_full(run.requests[0].system, NAMES)

    await shows(Part.RANKING, scenario, wanted=["lights_tool"], without=NAMES)


async def test_S2_a_word_of_the_name_outweighs_words_of_descriptions_and_ties_keep_their_order() -> None:
    offered = [
        act("beta", description="Plays radio and music."),
        act("play_radio", description="Nothing else."),
        act("alpha", description="Plays radio and music."),
    ]

    async def scenario(parts: Parts) -> object:
        run = await play(parts, says("ok"), text="play the radio music", tools=offered, max_tools_shown=2)
        return in_full(run.requests[0].system, [tool.name for tool in offered])

    flat = Change(ranking, "_score", lambda *_: 0)
    await shows(flat, scenario, wanted=["play_radio", "beta"], without=["beta", "play_radio"])


async def test_Sg_an_id_that_stands_nowhere_is_asked_about_once_and_then_taken() -> None:
    ran: list[Any] = []
    schema = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}
    tool = act("find_order", ran.append, parameters=schema)

    async def scenario(parts: Parts) -> object:
        ran.clear()
        wanted = bare("find_order", order_id="A17")
        run = await play(parts, wanted, wanted, says("ok"), says("ok"), text="Where is my order?", tools=[tool])
        asked = sum("order_id A17, which stands in no message" in request.last_user for request in run.requests)
        return asked, len(ran), run.final_text

    await shows(Part.ID_CHECK, scenario, wanted=(1, 1, "ok"), without=(0, 2, "ok"))


async def test_S2_a_tool_used_recently_gets_a_bonus() -> None:
    async def scenario(parts: Parts) -> object:
        replies = [bare("door_tool", city="x"), says("ok")]
        run = await play(parts, *replies, text="hello there", tools=tools(), max_tools_shown=1)
        return [in_full(request.system, NAMES) for request in run.requests]

    unpaid = Change(ranking, "_RECENT_SCORE", 0)
    wanted, without = [["mail_tool"], ["door_tool"]], [["mail_tool"], ["mail_tool"]]
    await shows(unpaid, scenario, wanted=wanted, without=without)


async def test_S2_descriptions_are_cut_at_400_and_160_characters() -> None:
    field = {"type": "string", "description": "ø" * 300, "title": "Title", "format": "date-time"}
    tool = act(description="þ" * 700, parameters={"type": "object", "properties": {"day": field}})

    async def scenario(parts: Parts) -> object:
        system = (await play(parts, says("ok"), tools=[tool])).requests[0].system
        return system.count("þ"), system.count("ø"), '"title"' in system, '"format"' in system

    await shows(Part.RANKING, scenario, wanted=(400, 160, False, False), without=(700, 300, True, True))


async def test_S2_the_first_problem_of_the_arguments_is_told_in_one_sentence() -> None:
    schema = {
        "type": "object",
        "properties": {
            "slug": {"type": "string"},
            "size": {"enum": ["S", "M"]},
            "qty": {"type": "integer", "minimum": 1},
        },
        "required": ["slug"],
    }
    bad = [bare("order"), bare("order", slug="a", size="XL"), bare("order", slug="a", size="S", qty=0)]
    words = ['Missing required argument "slug".', '"size" must be one of "S", "M".', '"qty" must be at least 1.']

    async def scenario(parts: Parts) -> object:
        runs = [await play(parts, each, says("ok"), tools=[act("order", parameters=schema)]) for each in bad]
        return [text in run.requests[1].last_user for text, run in zip(words, runs, strict=True)]

    silent = Change(guiding, "validate_args", lambda *_: None)
    await shows(silent, scenario, wanted=[True] * 3, without=[False] * 3)


async def test_S2_ranking_is_done_afresh_each_step() -> None:
    async def scenario(parts: Parts) -> object:
        first = bare("lights_tool", city="x")
        host = stage(parts, first, says("ok"), tools=tools(), max_tools_shown=1)
        host.when("call_tool", lambda: host.steer("now play music, loud music"))
        run = await host.say("turn the lights on")
        return [in_full(request.system, NAMES) for request in run.requests]

    kept: dict[int, Any] = {}

    def frozen(tools: Any, query: str, *, max: int = 8, recent: Any = ()) -> Any:
        return kept.setdefault(max, ranking.rank_tools(tools, query, max=max, recent=recent))

    wanted, without = [["lights_tool"], ["music_tool"]], [["lights_tool"], ["lights_tool"]]
    await shows(Change(shown, "rank_tools", frozen), scenario, wanted=wanted, without=without)


async def test_S2_tools_that_stay_keep_their_places_so_that_an_engine_need_not_read_the_prompt_anew() -> None:
    async def scenario(parts: Parts) -> object:
        replies = [bare("timer_tool", city="x"), says("ok")]
        run = await play(parts, *replies, text="door and timer please", tools=tools(), max_tools_shown=2)
        shown_first = [re.findall(r"^.*?(\w+_tool)", request.system, re.MULTILINE)[0] for request in run.requests]
        return run.requests[1].system.startswith(run.requests[0].system), shown_first

    loose = Change(Dresser, "_in_their_places", lambda _self, tools: tools)
    first = ["door_tool", "door_tool"]
    await shows(loose, scenario, wanted=(True, first), without=(False, ["door_tool", "timer_tool"]))


async def test_S2_chinese_and_japanese_requests_rank_too() -> None:
    offered = [
        act("alpha", description="播放音乐"),
        act("beta", description="打开客厅的灯"),
        act("gamma", description="音楽を再生"),
    ]

    async def scenario(parts: Parts) -> object:
        seen = []
        for text in ("请把灯打开", "音楽をかけて"):
            run = await play(parts, says("ok"), text=text, tools=offered, max_tools_shown=1)
            seen += in_full(run.requests[0].system, ["alpha", "beta", "gamma"])
        return seen

    whole = Change(ranking, "words", lambda text: text.lower().split())
    await shows(whole, scenario, wanted=["beta", "gamma"], without=["alpha", "alpha"])


async def test_S2_the_other_tools_are_an_index_and_load_tool_brings_a_schema_in() -> None:
    async def scenario(parts: Parts) -> object:
        replies = [bare("load_tool", name="timer_tool"), bare("timer_tool", city="x"), says("ok")]
        run = await play(parts, *replies, text="turn the lights on", tools=tools(), max_tools_shown=2)
        line = "- timer_tool: Works with timer."
        shown = [(line in each.system, "timer_tool" in in_full(each.system, NAMES)) for each in run.requests[:2]]
        return shown, run.calls.count("call_tool")

    wanted, without = ([(True, False), (False, True)], 1), ([(False, True), (False, True)], 1)
    await shows(Part.RANKING, scenario, wanted=wanted, without=without)


# S8: answers as calls, replayed and guided.


def names_in_schema(request: Any) -> list[str] | None:
    asked = request.extra_args.get("response_format")
    return asked and [each["properties"]["name"]["const"] for each in asked["json_schema"]["schema"]["anyOf"]]


async def test_S8_the_text_of_the_reply_tool_is_the_answer_and_never_a_tool_call() -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, says("Sunny."), "It is sunny.", form="guided")
        started = [data["tool_name"] for data in run.of("tool.call.started")]
        return "reply_to_user" in run.requests[0].system, run.final_text, started

    await shows(Part.REPLY_TOOL, scenario, wanted=(True, "Sunny.", []), without=(False, "It is sunny.", []))


async def test_S8_the_answer_is_streamed_as_it_is_written_decoded_out_of_the_json() -> None:
    text = 'Hello "you" – grüße 🙂 \n' * 3

    async def scenario(parts: Parts) -> object:
        run = await play(parts, Reply(says(text), chunks=20, chunk_delay=0.04), form="guided")
        return len(run.deltas) > 1, all(text.startswith(shown) for shown in run.deltas), run.final_text

    class Silent(ReplyDecoder):
        def feed(self, chunk: str) -> str:
            return ""

    deaf = Change(reading, "ReplyDecoder", Silent)
    await shows(deaf, scenario, wanted=(True, True, text), without=(False, True, text))


async def test_S8_an_answer_by_the_reply_tool_stands_in_the_history_as_an_answer() -> None:
    async def scenario(parts: Parts) -> object:
        host = stage(parts, says("Sunny."), tools=[look()], form="guided", profile="standard")
        await host.say("hi")
        return [row.text for row in host.transcript()]

    await shows(Part.LENIENT_READING, scenario, wanted=["hi", "Sunny."], without=["hi", says("Sunny.")])


@pytest.mark.parametrize("form", ["json", "guided"])
async def test_S8_earlier_turns_are_replayed_in_the_form_the_model_is_asked_to_write(form: str) -> None:
    async def scenario(parts: Parts) -> object:
        host = stage(parts, LOOK, says("Sunny."), says("Bye."), tools=[look()], form=form)
        await host.say("weather?")
        run = await host.say("thanks")
        return [one.get("content") or "" for one in run.requests[0].messages if one["role"] == "assistant"]

    await shows(Part.REPLAY, scenario, wanted=[LOOK, says("Sunny.")], without=["", "Sunny."])


@pytest.mark.parametrize("profile", ["standard", "small"])
async def test_S8_guided_adds_a_schema_with_one_branch_for_each_tool_shown(profile: str) -> None:
    async def scenario(parts: Parts) -> object:
        tools = [look(), act()]
        run = await play(parts, says("ok"), tools=tools, form="guided", profile=profile, max_tools_shown=8)
        return names_in_schema(run.requests[0])

    await shows(Part.SCHEMA, scenario, wanted=["get_weather", "save_note", "reply_to_user"], without=None)


@pytest.mark.parametrize("form", ["native", "auto"])
async def test_S8_no_provider_parameter_is_sent_before_a_model_needs_it(form: str) -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, "ok", form=form, profile="standard" if form == "auto" else "small")
        return sorted(run.requests[0].extra_args)

    needy = Change(Modes, "of", lambda *_: Mode(False, CallFormat.GUIDED, schema=True))
    await shows(needy, scenario, wanted=[], without=["response_format"])


async def test_S8_auto_goes_to_the_schema_once_a_model_has_shown_that_it_needs_it() -> None:
    async def scenario(parts: Parts) -> object:
        fenced = f"```json\n{LOOK}\n```"
        run = await play(parts, fenced, says("Sunny."), form="auto", profile="standard")
        return [names_in_schema(request) for request in run.requests]

    names = ["get_weather", "reply_to_user"]
    await shows(Part.SCHEMA, scenario, wanted=[None, names], without=[None, None])


async def test_S8_a_schema_that_is_refused_is_left_out_for_the_run_and_the_next_best_form_used() -> None:
    async def scenario(parts: Parts) -> object:
        replies = [Reply(error=Reason.BAD_REQUEST), LOOK, says("Sunny.")]
        run = await play(parts, *replies, form="guided")
        return [names_in_schema(request) is not None for request in run.requests], run.final_text

    begin = Guiding.begin
    stubborn = Change(Guiding, "begin", lambda policy, model, conclude, **_: begin(policy, model, conclude=conclude))
    wanted, without = ([True, False, False], "Sunny."), ([True, True, True], "Sunny.")
    await shows(stubborn, scenario, wanted=wanted, without=without)


async def test_S8_a_schema_that_is_ignored_is_noticed_by_the_first_reply() -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, f"I look.\n<tool_call>\n{LOOK}\n</tool_call>", says("Sunny."), form="guided")
        return [names_in_schema(request) is not None for request in run.requests], run.final_text

    believing = Change(Modes, "without_schema", lambda *_: None)
    text = "I look.\n\nSunny."
    await shows(believing, scenario, wanted=([True, False], text), without=([True, True], text))


async def test_S8_the_tools_shown_as_an_index_have_no_branch() -> None:
    async def scenario(parts: Parts) -> object:
        tools = [look(), act("save_note"), act("mail_tool")]
        run = await play(parts, says("ok"), text="weather", tools=tools, form="guided", max_tools_shown=1)
        return names_in_schema(run.requests[0])

    everything = ["get_weather", "save_note", "mail_tool", "reply_to_user"]
    await shows(Part.RANKING, scenario, wanted=["get_weather", "load_tool", "reply_to_user"], without=everything)
