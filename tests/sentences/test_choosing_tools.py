"""S2: which tools a model is shown, and how."""

from __future__ import annotations

import re
from typing import Any

from runner.small import guiding, shown
from runner.small.part import Part, Parts
from runner.small.request_shaping import Dresser
from runner.tools import ranking
from tests.host import Tool
from tests.written import bare, says

from .stage import Change, act, in_full, play, shows, stage

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
