"""Weak models through the real LangBot: what the endpoint is asked, and what the chat shows (S1, S8).

The model is scripted and writes as weak ones do. `python -m bench --only tasks` plays ten tasks with a real one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.bed import Bed
from tests.e2e.scripted_model import Request, ScriptedModel, say
from tests.e2e.toolbox import DESK, plugin_installed, shows_markup
from tests.written import bare

pytestmark = pytest.mark.usefixtures("ours", "desk")

QUESTION = "Where is my parcel PX-204?"
DEPOT = "depot D"


@pytest.fixture(scope="module")
def desk(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with plugin_installed(bed, tmp_path_factory.mktemp("desk"), DESK, "track_parcel"):
        yield


def branches(request: Request) -> set[str]:
    """The tools that the schema of a request leaves to the model."""
    schema = json.dumps(request.body["response_format"])
    return {name for name in ("track_parcel", "get_weather", "reply_to_user") if f'"{name}"' in schema}


@pytest.mark.parametrize(
    ("wrong", "obeys"),
    [
        pytest.param("{reply}", True, id="as asked"),
        pytest.param("```json\n{reply}\n```", False, id="in a fence"),
        pytest.param("<tool_call>\n{reply}\n</tool_call>", False, id="in tags"),
    ],
)
async def test_S8_a_guided_model_calls_and_answers_and_the_chat_shows_words_only(
    bed: Bed, model: ScriptedModel, wrong: str, obeys: bool
) -> None:
    tracked = wrong.replace("{reply}", bare("track_parcel", number="PX-204"))
    model.script(say(tracked), say(bare("reply_to_user", text='It is at the depot, it says "Friday".')))
    pipeline = bed.pipeline(config={"model-profile": "small", "tool-call-format": "guided"})
    async with bed.chat(pipeline) as chat:
        turn = await chat.ask(QUESTION)
    first, second = model.requests
    assert branches(first) == {"track_parcel", "get_weather", "reply_to_user"}
    # A backend that ignores the schema shows it by its first reply; then calls are asked for as text.
    assert ("response_format" in second.body) is obeys
    assert "tools" not in first.body
    assert second.holds(DEPOT)
    assert turn.answer == 'It is at the depot, it says "Friday".'
    assert not any(shows_markup(frame.text) for frame in turn.frames)


async def test_S1_a_model_that_writes_its_calls_is_understood_from_then_on_where_the_profile_is_auto(
    bed: Bed, model: ScriptedModel
) -> None:
    fenced = f"```json\n{bare('track_parcel', number='PX-204')}\n```"
    model.script(say(fenced), say("At the depot."), say("You are welcome."))
    pipeline = bed.pipeline(config={"model-profile": "auto", "tool-call-format": "auto"})
    async with bed.chat(pipeline) as chat:
        first = await chat.ask(QUESTION)
        second = await chat.ask("Thank you!")
    asked = model.requests
    assert "response_format" not in asked[0].body and asked[0].body["tools"]
    assert asked[1].holds(DEPOT)
    assert "response_format" in asked[2].body
    assert (first.answer, second.answer) == ("At the depot.", "You are welcome.")


async def test_S6_a_model_that_needs_nothing_is_asked_as_ever(bed: Bed, model: ScriptedModel) -> None:
    model.script(say("Plain words."))
    async with bed.chat(bed.pipeline()) as chat:
        turn = await chat.ask(QUESTION)
    (request,) = model.requests
    assert turn.answer == "Plain words."
    assert "response_format" not in request.body and not request.holds("reply_to_user")
