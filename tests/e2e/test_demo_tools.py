"""The tools of the demo in the real LangBot: a scripted model calls each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo.agent import STRONG_OR_WEAK, TOOLS
from everyday.components.tools.declared import declared
from tests.e2e.bed import Bed
from tests.e2e.scripted_model import Request, ScriptedModel, say
from tests.e2e.toolbox import call, calls, offered, plugin_installed, tool_texts

pytestmark = pytest.mark.usefixtures("ours", "everyday")


@pytest.fixture(scope="module")
def everyday(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with plugin_installed(bed, tmp_path_factory.mktemp("everyday"), TOOLS, "calculate"):
        yield


async def test_each_tool_of_the_demo_answers_and_the_notebook_is_kept_for_the_chat(
    bed: Bed, model: ScriptedModel
) -> None:
    model.script(
        calls(call("current_time", "a"), call("calendar", "b", date="2026-03-04")),
        calls(call("calculate", "c", expression="12.5 % of 84"), call("calculate", "d", expression="9 ** 9 ** 9")),
        calls(call("convert_units", "e", **{"value": 5, "from": "mile", "to": "km"})),
        calls(call("add_note", "f", text="the milk is empty"), call("add_note", "g", text="明天下午三点开会")),
        say("Done."),
        calls(call("list_notes", "h"), call("search_notes", "i", words="开会")),
        say("Two notes."),
        calls(call("list_notes", "j")),
        say("None."),
    )
    pipeline = bed.pipeline(config=STRONG_OR_WEAK)
    async with bed.chat(pipeline) as chat:
        await chat.ask("Try everything.")
        first = model.requests[-1]
        await chat.ask("What is in my notes?")
    async with bed.chat(pipeline) as another:
        await another.ask("And in mine?")
    assert {tool.name for tool in declared()} <= offered(first)
    time, date, *rest = _last(first, 7)
    assert "It is " in time and "Wednesday 星期三" in date
    expected = ("= 10.5", "the power is too large", "8.04672 km", "Noted: the milk is empty", "Noted: 明天下午三点开会")
    assert all(words in text for words, text in zip(expected, rest, strict=True))
    listed, found = _last(model.requests[-3], 2)
    assert "There are 2 notes" in listed and "1 of 2 notes" in found
    assert "empty" in _last(model.requests[-1], 1)[0], "another chat has a notebook of its own"


def _last(request: Request, count: int) -> list[str]:
    return tool_texts(request)[-count:]
