"""Knowledge through the real LangBot: a knowledge engine of the tests, served by the Host (E1, E2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo import package
from tests.e2e.bed import Bed
from tests.e2e.scripted_model import ScriptedModel, say

pytestmark = pytest.mark.usefixtures("ours")

ENGINE = Path(__file__).parent / "plugins" / "facts"
FACT = "The Bergen office opens at seven"


@pytest.fixture(scope="module")
def bases(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Two knowledge bases of the engine."""
    who = package.identity(ENGINE)
    bed.langbot.api.install(package.build(ENGINE, tmp_path_factory.mktemp("facts")))
    engine = f"{who.author}/{who.name}"
    yield [bed.langbot.api.add_knowledge_base(name, engine) for name in ("Offices", "Offices again")]
    bed.langbot.api.uninstall(who.author, who.name)


async def test_E1_E2_the_model_reads_what_two_bases_hold_once_and_the_history_never_does(
    bed: Bed, model: ScriptedModel, bases: list[str]
) -> None:
    model.script(say("At seven (hours.txt)."), say("You are welcome."))
    pipeline = bed.pipeline(config={"knowledge-bases": bases})
    async with bed.chat(pipeline) as chat:
        turn = await chat.ask("When does the Bergen office open?")
        rows = bed.records.transcript(chat.conversation_id)
        await chat.ask("outage?")
    assert turn.answer == "At seven (hours.txt)."
    assert [row.text for row in rows] == ["When does the Bergen office open?", "At seven (hours.txt)."]
    first, second = model.requests
    role, said = first.texts[-1]
    assert role == "user" and said.count(FACT) == 1 and said.endswith("When does the Bergen office open?")
    assert "“hours.txt” in knowledge base “Offices”" in said
    assert "<|im_start|>" not in said and "<tool_call>" not in said
    assert second.holds(FACT) == 0


async def test_Q4_an_engine_that_is_away_costs_the_knowledge_and_not_the_answer(
    bed: Bed, model: ScriptedModel, bases: list[str]
) -> None:
    model.script(say("I do not know."))
    async with bed.chat(bed.pipeline(config={"knowledge-bases": bases})) as chat:
        turn = await chat.ask("Is there an outage?")
        runs = bed.records.runs(chat.conversation_id)
    assert turn.answer == "I do not know."
    assert [run.status for run in runs] == ["completed"]
    assert model.requests[0].holds(FACT) == 0
