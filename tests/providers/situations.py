"""What every provider is put through, by a bot whose models stand behind LangBot and scripted providers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.host import RunRecord, TestHost, Tool
from tests.providers.border import Border
from tests.providers.catalogue import Case
from tests.providers.dialects.kimi import Kimi
from tests.providers.dialects.mistral import Mistral
from tests.providers.dialects.openai import OpenAI
from tests.providers.said import Called, Fails, Said, calls
from tests.providers.server import Provider
from tests.runs.scenes import assert_ended, host_with

# A bot of the test host whose models stand behind LangBot's requesters and scripted providers.

ASKED = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


def finder() -> Tool:
    """A tool that needs a word and finds it."""
    return Tool("find", fn=lambda q: f"{q} stands on page 7", description="Looks a word up", parameters=ASKED)


@dataclass(frozen=True, slots=True)
class Scene:
    """`providers` in the order of the bot's models, the first is its primary."""

    host: TestHost
    providers: Sequence[Provider]

    @property
    def provider(self) -> Provider:
        return self.providers[0]

    async def say(self, text: str, **message: Any) -> RunRecord:
        """A message and its run, with what holds at the end of each."""
        run = await self.host.say(text, **message)
        assert_ended(run)
        return run

    def refused(self) -> list[str]:
        """Every refusal so far, as `provider: rule`, in the order of the providers."""
        return [f"{one.dialect.name}: {refusal.rule}" for one in self.providers for refusal in one.refusals]


@asynccontextmanager
async def scene(
    *cases: Case,
    tools: Sequence[Tool] = (),
    streamed: bool = True,
    abilities: frozenset[str] = frozenset({"func_call", "vision", "reasoning"}),
    extra_args: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncIterator[Scene]:
    """A bot whose models are `cases`, each its own provider; thoughts are not shown.

    `extra_args`: the parameters that the owner wrote at each model. `options`: the test host's.
    """
    options.setdefault("pipeline_remove_think", True)
    async with AsyncExitStack() as stack:
        providers = [stack.enter_context(Provider(case.dialect())) for case in cases]
        border = await stack.enter_async_context(Border())
        models = [
            await border.model(
                f"m{at}",
                case.requester,
                case.model,
                provider.base_url,
                streamed=streamed,
                abilities=abilities,
                extra_args=extra_args,
            )
            for at, (case, provider) in enumerate(zip(cases, providers, strict=True), 1)
        ]
        host = await stack.enter_async_context(host_with(models=models, tools=list(tools), **options))
        yield Scene(host, providers)


# What every provider is put through: each situation is one short chat, and says what has to come of it.

FIND = calls("find", {"q": "tea"})

MISTRAL = Case("mistral-chat-completions", "mistral-large-latest", Mistral)
KIMI = Case("moonshot-chat-completions", "kimi-k2.6", Kimi)
OPENAI = Case("openai-chat-completions", "gpt-4o", OpenAI)


async def one_message(case: Case) -> None:
    async with scene(case, tools=[finder()]) as chat:
        chat.provider.say(Said("Good day."))
        run = await chat.say("hello")
    assert (run.status, run.final_text, chat.refused()) == ("completed", "Good day.", [])
    assert len(chat.provider.heard) == 1
    assert chat.provider.heard[0].tools == ("find",)


async def a_round_of_tools(case: Case) -> None:
    tool = finder()
    async with scene(case, tools=[tool]) as chat:
        chat.provider.say(FIND, Said("On page 7."))
        run = await chat.say("where is tea?")
    assert (run.status, run.final_text, chat.refused()) == ("completed", "On page 7.", [])
    assert tool.calls == [{"q": "tea"}]
    heard = chat.provider.heard[-1]
    assert [(call.name, call.read) for call in heard.calls] == [("find", {"q": "tea"})]
    assert "page 7" in heard.turns[-1].text
    assert heard.answered_ids in (heard.call_ids, [""])


async def several_calls_at_once(case: Case) -> None:
    tool = finder()
    both = (Called("find", {"q": "tea"}), Called("find", {"q": "rum"}))
    async with scene(case, tools=[tool]) as chat:
        chat.provider.say(Said("I look.", both), Said("Both."))
        run = await chat.say("where are tea and rum?")
    assert (run.status, chat.refused()) == ("completed", [])
    assert (run.final_text or "").endswith("Both.")
    assert sorted(call["q"] for call in tool.calls) == ["rum", "tea"]
    heard = chat.provider.heard[-1]
    assert [call.read for call in heard.calls] == [{"q": "tea"}, {"q": "rum"}]
    assert heard.answered_ids in (heard.call_ids, ["", ""])


async def the_round_replayed(case: Case) -> None:
    async with scene(case, tools=[finder()]) as chat:
        chat.provider.say(FIND, Said("On page 7."), Said("You are welcome."), FIND, Said("Again page 7."))
        runs = [await chat.say(text) for text in ("where is tea?", "thanks", "once more")]
    assert [run.status for run in runs] == ["completed"] * 3
    assert runs[-1].final_text == "Again page 7."
    assert chat.refused() == []
    heard = chat.provider.heard[-1]
    assert [call.read for call in heard.calls] == [{"q": "tea"}, {"q": "tea"}]
    assert heard.answered_ids in (heard.call_ids, ["", ""])


async def thoughts_beside_a_call(case: Case) -> None:
    tool = finder()
    async with scene(case, tools=[tool]) as chat:
        thinks = calls("find", {"q": "tea"}, thoughts="They want tea.")
        chat.provider.say(thinks, Said("On page 7.", thoughts="There it is."), Said("You are welcome."))
        runs = [await chat.say("where is tea?"), await chat.say("thanks")]
    assert [run.status for run in runs] == ["completed"] * 2
    assert (runs[0].final_text or "").endswith("On page 7.")
    assert tool.calls == [{"q": "tea"}]
    assert chat.refused() == []


async def not_streamed(case: Case) -> None:
    tool = finder()
    async with scene(case, tools=[tool], streamed=False) as chat:
        chat.provider.say(FIND, Said("On page 7."))
        run = await chat.say("where is tea?")
    assert (run.status, run.final_text, chat.refused()) == ("completed", "On page 7.", [])
    assert tool.calls == [{"q": "tea"}]
    assert not any(heard.streamed for heard in chat.provider.heard)


async def taking_over(case: Case) -> None:
    """Another provider's model has called a tool and fails then. One that was not seen to think before may refuse calls
    without thoughts once; it is asked again with words in their place (K7)."""
    tool = finder()
    first = OPENAI if case.dialect is Kimi else KIMI
    async with scene(first, case, tools=[tool]) as chat:
        chat.providers[0].say(FIND)
        chat.providers[0].otherwise = Fails()
        chat.providers[1].say(Said("On page 7."))
        run = await chat.say("where is tea?")
    assert (run.status, run.final_text) == ("completed", "On page 7.")
    assert tool.calls == [{"q": "tea"}]
    assert "page 7" in chat.providers[1].heard[-1].text
    assert chat.refused() in ([], [f"{case.provider}: thoughts_come_back_with_calls"])


async def giving_way(case: Case) -> None:
    """This provider's model has called a tool and fails then; another's goes on, the strictest about ids and roles."""
    tool = finder()
    other = OPENAI if case.dialect is Mistral else MISTRAL
    async with scene(case, other, tools=[tool]) as chat:
        chat.providers[0].say(FIND)
        chat.providers[0].otherwise = Fails()
        chat.providers[1].say(Said("On page 7."))
        run = await chat.say("where is tea?")
        chat.providers[0].say(Said("You are welcome."))
        more = await chat.say("thanks")
    assert (run.status, run.final_text) == ("completed", "On page 7.")
    assert (more.status, more.final_text) == ("completed", "You are welcome.")
    assert tool.calls == [{"q": "tea"}]
    assert chat.refused() == []


@dataclass(frozen=True, slots=True)
class Situation:
    """`name`: the heading of its column in the documents."""

    name: str
    play: Callable[[Case], Awaitable[None]]


SITUATIONS: tuple[Situation, ...] = (
    Situation("one message", one_message),
    Situation("a round of tools", a_round_of_tools),
    Situation("two calls at once", several_calls_at_once),
    Situation("the round replayed", the_round_replayed),
    Situation("thoughts", thoughts_beside_a_call),
    Situation("not streamed", not_streamed),
    Situation("taking over", taking_over),
    Situation("giving way", giving_way),
)
