"""Models of a binding as the endpoint sees them: fallback, failure, reasoning level, remove-think."""

from __future__ import annotations

import pytest

from tests.e2e.bed import Bed
from tests.e2e.scripted_model import Reply, ScriptedModel, say

pytestmark = pytest.mark.usefixtures("ours")


async def test_C1_a_primary_nobody_listens_for_is_replaced_by_the_fallback(bed: Bed, model: ScriptedModel) -> None:
    model.script(say("The fallback speaks."))
    pipeline = bed.pipeline(primary=bed.model("down-1", up=False), fallbacks=[bed.model("scripted")])
    async with bed.chat(pipeline) as chat:
        turn = await chat.ask("Is anybody there?")
        runs = bed.records.runs(chat.conversation_id)
    assert turn.answer == "The fallback speaks."
    assert [request.model for request in model.requests] == ["scripted"]
    assert [(run.status, run.finish_reason) for run in runs] == [("completed", "stop")]


async def test_C1_a_primary_that_answers_with_a_server_error_is_replaced_by_the_fallback(
    bed: Bed, model: ScriptedModel
) -> None:
    model.script(Reply(status=503, for_model="primary-503"), say("The fallback speaks.", for_model="scripted"))
    pipeline = bed.pipeline(primary=bed.model("primary-503"), fallbacks=[bed.model("scripted")])
    async with bed.chat(pipeline) as chat:
        turn = await chat.ask("Is anybody there?")
    assert turn.answer == "The fallback speaks."
    assert [request.model for request in model.requests] == ["primary-503", "scripted"]


async def test_C8_when_every_model_is_down_the_run_fails_once_and_tells_its_owner_why(
    bed: Bed, model: ScriptedModel
) -> None:
    down = [bed.model("down-1", up=False), bed.model("down-2", up=False)]
    pipeline = bed.pipeline(primary=down[0], fallbacks=down[1:])
    async with bed.chat(pipeline) as chat:
        turn = await chat.ask("Is anybody there?")
        runs = bed.records.runs(chat.conversation_id)
        kinds = bed.records.event_types(runs[0].run_id)
    assert len(turn.cards) == 1
    assert model.requests == []
    assert [run.status for run in runs] == ["failed"]
    assert [name for name in down if name not in runs[0].reason] == []
    assert (kinds.count("message.completed"), kinds.count("run.completed"), kinds.count("run.failed")) == (0, 0, 1)


async def test_C3_the_reasoning_level_of_the_binding_reaches_the_model_call(bed: Bed, model: ScriptedModel) -> None:
    thinker = bed.model("o3-mini", abilities=("func_call", "reasoning"))
    model.script(say("Thought about it."))
    async with bed.chat(bed.pipeline(primary=thinker, reasoning={thinker: "high"})) as chat:
        turn = await chat.ask("Think hard.")
    assert turn.answer == "Thought about it."
    assert [request.body.get("reasoning_effort") for request in model.requests] == ["high"]


async def test_C3_without_a_level_the_request_names_none(bed: Bed, model: ScriptedModel) -> None:
    thinker = bed.model("o3-mini", abilities=("func_call", "reasoning"))
    model.script(say("Did not think."))
    async with bed.chat(bed.pipeline(primary=thinker)) as chat:
        await chat.ask("Do not think.")
    assert ["reasoning_effort" in request.body for request in model.requests] == [False]


@pytest.mark.parametrize(("remove", "shown"), [(True, False), (False, True)])
async def test_C4_remove_think_decides_whether_the_thought_is_shown(
    bed: Bed, model: ScriptedModel, remove: bool, shown: bool
) -> None:
    model.script(say("Forty-two.", reasoning="six times seven"))
    async with bed.chat(bed.pipeline(config={"remove-think": remove})) as chat:
        turn = await chat.ask("How much is it?")
    assert turn.answer.endswith("Forty-two.")
    assert ("six times seven" in turn.answer) is shown


async def test_C5_the_usage_of_the_call_is_in_the_ledger(bed: Bed, model: ScriptedModel) -> None:
    model.script(say("Counted.", prompt_tokens=321, completion_tokens=12))
    async with bed.chat(bed.pipeline()) as chat:
        await chat.ask("Count.")
        (run,) = bed.records.runs(chat.conversation_id)
    assert (run.usage["prompt_tokens"], run.usage["completion_tokens"]) == (321, 12)
