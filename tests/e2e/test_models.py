"""C1, C3-C5, C8, K1: models of a binding as their endpoints see them, also three as strict as the real providers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

import pytest

from demo.api import Model
from demo.chat import Chat
from tests.e2e.bed import Bed
from tests.e2e.scripted_model import Reply, ScriptedModel, say
from tests.providers.catalogue import DRIVEN, Case
from tests.providers.said import Fails, Said, Scripted, calls
from tests.providers.server import Provider

# Models of a binding as the endpoint sees them: fallback, failure, reasoning level, remove-think.


@pytest.mark.usefixtures("ours")
async def test_C1_a_primary_nobody_listens_for_is_replaced_by_the_fallback(bed: Bed, model: ScriptedModel) -> None:
    model.script(say("The fallback speaks."))
    pipeline = bed.pipeline(primary=bed.model("down-1", up=False), fallbacks=[bed.model("scripted")])
    async with bed.chat(pipeline) as chat:
        turn = await chat.ask("Is anybody there?")
        runs = bed.records.runs(chat.conversation_id)
    assert turn.answer == "The fallback speaks."
    assert [request.model for request in model.requests] == ["scripted"]
    assert [(run.status, run.finish_reason) for run in runs] == [("completed", "stop")]


@pytest.mark.usefixtures("ours")
async def test_C1_a_primary_that_answers_with_a_server_error_is_replaced_by_the_fallback(
    bed: Bed, model: ScriptedModel
) -> None:
    model.script(Reply(status=503, for_model="primary-503"), say("The fallback speaks.", for_model="scripted"))
    pipeline = bed.pipeline(primary=bed.model("primary-503"), fallbacks=[bed.model("scripted")])
    async with bed.chat(pipeline) as chat:
        turn = await chat.ask("Is anybody there?")
    assert turn.answer == "The fallback speaks."
    assert [request.model for request in model.requests] == ["primary-503", "scripted"]


@pytest.mark.usefixtures("ours")
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


@pytest.mark.usefixtures("ours")
async def test_C3_the_reasoning_level_of_the_binding_reaches_the_model_call(bed: Bed, model: ScriptedModel) -> None:
    thinker = bed.model("o3-mini", abilities=("func_call", "reasoning"))
    model.script(say("Thought about it."))
    async with bed.chat(bed.pipeline(primary=thinker, reasoning={thinker: "high"})) as chat:
        turn = await chat.ask("Think hard.")
    assert turn.answer == "Thought about it."
    assert [request.body.get("reasoning_effort") for request in model.requests] == ["high"]


@pytest.mark.usefixtures("ours")
async def test_C3_without_a_level_the_request_names_none(bed: Bed, model: ScriptedModel) -> None:
    thinker = bed.model("o3-mini", abilities=("func_call", "reasoning"))
    model.script(say("Did not think."))
    async with bed.chat(bed.pipeline(primary=thinker)) as chat:
        await chat.ask("Do not think.")
    assert ["reasoning_effort" in request.body for request in model.requests] == [False]


@pytest.mark.usefixtures("ours")
@pytest.mark.parametrize(("remove", "shown"), [(True, False), (False, True)])
async def test_C4_remove_think_decides_whether_the_thought_is_shown(
    bed: Bed, model: ScriptedModel, remove: bool, shown: bool
) -> None:
    model.script(say("Forty-two.", reasoning="six times seven"))
    async with bed.chat(bed.pipeline(config={"remove-think": remove})) as chat:
        turn = await chat.ask("How much is it?")
    assert turn.answer.endswith("Forty-two.")
    assert ("six times seven" in turn.answer) is shown


@pytest.mark.usefixtures("ours")
async def test_C5_the_usage_of_the_call_is_in_the_ledger(bed: Bed, model: ScriptedModel) -> None:
    model.script(say("Counted.", prompt_tokens=321, completion_tokens=12))
    async with bed.chat(bed.pipeline()) as chat:
        await chat.ask("Count.")
        (run,) = bed.records.runs(chat.conversation_id)
    assert (run.usage["prompt_tokens"], run.usage["completion_tokens"]) == (321, 12)


# Three providers, each as strict as the real one, behind the real LangBot: ten messages of one chat, with tools, and
# models that give way in mid-run (K1).

MISTRAL, GEMINI, CLAUDE = "mistral-chat-completions", "gemini-chat-completions", "anthropic-messages"
ORDER = (MISTRAL, GEMINI, CLAUDE)
DOWN = Fails()
HERON, WREN = (calls("weigh", {"bird": bird}) for bird in ("heron", "wren"))

CHAT: Sequence[tuple[Mapping[str, Sequence[Scripted]], str]] = (
    ({MISTRAL: [HERON, Said("The heron: 1731 g.")]}, "The heron: 1731 g."),
    ({MISTRAL: [WREN], GEMINI: [Said("The wren: 9 g.")]}, "The wren: 9 g."),
    ({GEMINI: [HERON, WREN, Said("1731 g and 9 g.")]}, "1731 g and 9 g."),
    ({GEMINI: [WREN], CLAUDE: [Said("Still 9 g.")]}, "Still 9 g."),
    ({CLAUDE: [HERON, Said("Still 1731 g.")]}, "Still 1731 g."),
    ({MISTRAL: [Said("You are welcome.")]}, "You are welcome."),
    ({MISTRAL: [HERON], GEMINI: [WREN], CLAUDE: [Said("1740 g in all.")]}, "1740 g in all."),
    ({GEMINI: [Said("As I said.")]}, "As I said."),
    ({CLAUDE: [WREN, HERON, Said("Nothing has changed.")]}, "Nothing has changed."),
    ({MISTRAL: [HERON, Said("Goodbye.")]}, "Goodbye."),
)
"""What each provider says to each message; whoever has nothing more to say is down. With the answer."""

WEIGHED = 11
"""How often somebody in this chat puts a bird on the scale."""


@pytest.fixture
def providers() -> Iterator[dict[str, Provider]]:
    made: dict[str, Case] = {case.requester: case for case in DRIVEN}
    with ExitStack() as stack:
        yield {name: stack.enter_context(Provider(made[name].dialect(), otherwise=DOWN)) for name in ORDER}


def pipeline_of(bed: Bed, providers: Mapping[str, Provider]) -> str:
    """A pipeline whose model is the first provider's, with the others behind it."""
    named: dict[str, Case] = {case.requester: case for case in DRIVEN}
    api = bed.langbot.api
    models = [
        api.add_model(
            api.add_provider(name, provider.base_url, "scripted-key", name),
            Model(named[name].model, context_length=128_000),
        )
        for name, provider in providers.items()
    ]
    return bed.pipeline(models[0], models[1:])


@pytest.mark.usefixtures("ours", "tools")
async def test_K1_ten_messages_with_tools_are_answered_by_three_strict_providers_that_give_way_in_mid_run(
    bed: Bed, providers: dict[str, Provider]
) -> None:
    async with bed.chat(pipeline_of(bed, providers)) as chat:
        answers = [await _asked(chat, providers, number, said) for number, (said, _) in enumerate(CHAT)]
        runs = bed.records.runs(chat.conversation_id)
        started = [kind for run in runs for kind in bed.records.event_types(run.run_id) if kind == "tool.call.started"]
    assert [answer.endswith(wanted) for answer, (_, wanted) in zip(answers, CHAT, strict=True)] == [True] * len(CHAT)
    assert [run.status for run in runs] == ["completed"] * len(CHAT)
    assert [refusal.words for one in providers.values() for refusal in one.refusals] == []
    assert len(started) == WEIGHED
    last = providers[MISTRAL].heard[-1]
    assert len(last.calls) == WEIGHED, "every round is told again, whoever had asked for it"
    assert last.answered_ids == last.call_ids


async def _asked(
    chat: Chat, providers: Mapping[str, Provider], number: int, said: Mapping[str, Sequence[Scripted]]
) -> str:
    for name, provider in providers.items():
        provider.say(*said.get(name, ()))
    return (await chat.ask(f"Question {number}: how heavy is it?")).answer
