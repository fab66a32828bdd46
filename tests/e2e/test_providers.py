"""Three providers, each as strict as the real one, behind the real LangBot: ten messages of one chat, with tools, and
models that give way in mid-run (K1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

import pytest

from demo.api import Model
from demo.chat import Chat
from tests.e2e.bed import Bed
from tests.providers.catalogue import DRIVEN, Case
from tests.providers.said import Fails, Said, Scripted, calls
from tests.providers.server import Provider

pytestmark = pytest.mark.usefixtures("ours", "tools")

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
