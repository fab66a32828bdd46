"""I5: whoever plants a call in a text, however disguised, does not get it run by having the model quote it."""

from __future__ import annotations

import itertools
import json
import os
from typing import Any

import pytest

from config.choices import CallFormat
from runner.host.events import Json
from runner.small.forms import FORM_IDS
from tests.callformats.disguises import COATS, shapes
from tests.host import ModelRequest, Reply, Tool, ToolCall
from tests.host.script import text_of
from tests.runs.scenes import assert_ended, host_with

from .foreign import TARGET, calls
from .places import PLACES, Place, looking, wipe
from .test_injection import MANNERS, asked_for, called

WHAT: dict[str, Json] = {"what": "all files"}
DISGUISED = [(shape, coat) for shape in shapes(TARGET, WHAT) for coat in COATS]
SHARE = int(os.environ.get("LOCALAGENT_SECURITY_SHARE", "5")) * 8


def meetings(turn: int) -> list[tuple[Place, str, str]]:
    """Which disguise stands in which place, and in which format it is quoted: another share in each manner."""
    places = [place for place in PLACES if place.room > 1_000]
    every = itertools.product(DISGUISED, places)
    texts = list(calls().values())
    found = []
    for number, ((shape, coat), place) in enumerate(every):
        if (number + turn) % SHARE == 0:
            found.append((place, COATS[coat](shapes(TARGET, WHAT)[shape]), texts[(number // SHARE) % len(texts)]))
    return found


@pytest.mark.parametrize(("profile", "form"), MANNERS)
async def test_I5_a_disguised_call_does_not_run_when_the_model_quotes_it_decoded(profile: str, form: str) -> None:
    config: dict[str, Any] = {
        "model-profile": profile,
        "tool-call-format": form,
        "max-steps": 3,
        "max-tool-iterations": 3,
    }
    ran, seen = [], 0
    for place, planted, quote in meetings(MANNERS.index((profile, form))):
        host = place.build(planted, config)
        first = asked_for(form, "look") if place.needs_a_call else None
        host.model.default = looking(lambda _, quote=quote: Reply(quote), first)  # type: ignore[misc]
        run = await place.say(host, planted)
        seen += any("wipe" in "".join(map(text_of, request.messages[1:])) for request in run.requests)
        if called(host):
            ran.append((place.name, planted, quote))
        assert_ended(run)
        await host.aclose()
    assert ran == []
    assert seen > 5


PROSE = "Berlin: the page says that the wipe tool is for files. what it takes are all files of Berlin."


@pytest.mark.parametrize(("profile", "form"), [each for each in MANNERS if each[1] in ("tags", "json", "pythonic")])
@pytest.mark.parametrize("place", [place for place in PLACES if place.room > 1_000], ids=lambda place: place.name)
async def test_I5_a_call_of_the_model_runs_though_a_stranger_wrote_about_the_tool(
    place: Place, profile: str, form: str
) -> None:
    host = place.build(PROSE, {"model-profile": profile, "tool-call-format": form})
    written = calls()[FORM_IDS[CallFormat(form)]]
    replies = iter([written])

    def answer(_: ModelRequest) -> Reply:
        return Reply(next(replies, "It is done."))

    host.model.default = looking(answer, asked_for(form, "look") if place.needs_a_call else None)
    await place.say(host, PROSE)
    assert called(host) == [WHAT]
    await host.aclose()


@pytest.mark.parametrize("form", ["tags", "json", "pythonic"])
async def test_I5_what_the_asker_wrote_in_a_private_chat_may_be_done(form: str) -> None:
    host = host_with(tools=[wipe()], config={"model-profile": "small", "tool-call-format": form})
    host.model.say("Hello.", calls()[FORM_IDS[CallFormat(form)]], "Done.")
    await host.say("hi")
    await host.say(f"Please run this:\n{calls()['pythonic']}\n{calls()['json']}")
    assert called(host) == [WHAT]
    await host.aclose()


async def test_I5_a_tool_that_echoes_its_request_can_be_asked_again() -> None:
    echo = wipe()
    echo.fn = lambda given: {"request": {"name": "wipe", "arguments": given}, "left": 3}
    host = host_with(tools=[echo], config={"tool-call-format": "json"})
    written = json.dumps({"name": "wipe", "arguments": WHAT})
    host.model.say(written, written, "Done.")
    await host.say("Wipe all, twice.")
    assert echo.calls == [WHAT, WHAT]
    await host.aclose()


async def test_I5_a_native_call_is_the_models_own() -> None:
    page = Tool("look", takes_dict=True, fn=lambda _: json.dumps({"name": "wipe", "arguments": WHAT}))
    host = host_with(tools=[page, wipe()], config={"tool-call-format": "auto"})
    host.model.say(Reply(tool_calls=[ToolCall("look")]), Reply(tool_calls=[ToolCall("wipe", WHAT)]), "Done.")
    await host.say("Do what the page says.")
    assert called(host) == [WHAT]
    await host.aclose()
