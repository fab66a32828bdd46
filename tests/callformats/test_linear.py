"""S1: long replies are read in linear time. Steps are counted (characters examined, function calls), never seconds."""

from __future__ import annotations

import sys

import pytest

from callformats import StreamReader
from tests.callformats.test_stream import TOOLS

LENGTH = 24_000
STEPS_PER_CHARACTER = 110
CALLS_GROWTH = 3  # twice the text; the retries of a held block come in steps

HEADS = {
    "nothing": "",
    "hermes": '<tool_call>{"name": "get_weather", "arguments": {"city": "',
    "qwen3": "<tool_call>\n<function=get_weather>\n<parameter=city>\n",
    "glm": "<tool_call>get_weather\n<arg_key>city</arg_key><arg_value>",
    "gemma4": '<|tool_call>call:get_weather{city:<|"|>',
    "json": '{"name": "get_weather", "arguments": {"city": "',
    "pythonic": "get_weather(city='",
    "thought": "<think>",
}
UNITS = [
    "plain words and more. ",
    "line\n",
    "<tool_call>",
    '<tool_call>\n{"name": ',
    '{"name": "get_weather", ',
    "{\n",
    "[\n",
    '{"arguments": "\n',
    "</think>",
    "`</think>`",
    "</parameter>",
    "<parameter=city>x</parameter>",
    "<arg_key>a</arg_key>",
    '```json\n{"name": "ping"}\n',
    "get_weather(city='a')\n",
    "get_weather(city='",
    "Action: ping\nAction Input: {",
    "[TOOL_CALLS]ping[ARGS]{",
    "<tool_call|>",
    "<｜tool▁call▁begin｜>ping",
    "<|channel|>",
    "</tool_call>",
    '"</tool_call>',
    '<invoke name="ping">',
    "ping\n{",
    "functools[",
    "<tool_call>ping\n```json\n",
    "<tool_call>function<tool_sep>ping\n{",
    '<tool_call>{"name": "ping", "arguments": {</tool_call>',
    "<|recipient|>ping\n<|content|>{",
    "<|from|>assistant\n",
    ">>>all\nx>>>",
    "Action: ```json\n",
    "\n",
    " \t\r\n",
    "</s>",
    "<|start|>assistant",
    "[TOOL_CALLS][",
    "<function=ping><parameter=city>",
    "<function=ping><parameter=city>x<parameter=</function>",
    "<tool_call>{x</tool_call>",
    "ping\n",
    "call:ping\n",
    "ping\n{}\n",
    "`<tool_call>",
    "```\n<tool_call>ping</tool_call>\n",
    "<code>\n",
    "<||DSML||invoke ",
    " to=functions.ping<|channel|>commentary",
    "<think>",
    "<think>a</think>",
    "\u0301",
    "\\",
    '"',
]


def steps(text: str, size: int) -> int:
    reader = StreamReader(TOOLS)
    for start in range(0, len(text), size):
        reader.feed(text[start : start + size])
    reader.close()
    return reader.steps


COMBINATIONS = [("nothing", unit) for unit in UNITS] + [
    (name, unit) for index, name in enumerate(HEADS) for unit in UNITS[index % 2 :: 2] if name != "nothing"
]


@pytest.mark.parametrize(("name", "unit"), COMBINATIONS)
def test_S1_a_24_kB_reply_takes_a_bounded_number_of_steps_for_each_character(name: str, unit: str) -> None:
    head = HEADS[name]
    text = (head + unit * (LENGTH // len(unit) + 1))[:LENGTH]
    assert steps(text, 24) <= STEPS_PER_CHARACTER * LENGTH


def function_calls(text: str) -> int:
    count = 0

    def note(*_: object) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        steps(text, 40)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("unit", UNITS)
def test_S1_twice_the_text_takes_twice_the_work(unit: str) -> None:
    short, long = ((unit * (length // len(unit) + 1))[:length] for length in (2_000, 4_000))
    assert function_calls(long) <= CALLS_GROWTH * function_calls(short) + 500
