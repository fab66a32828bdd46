"""A bot of the test host whose models stand behind LangBot's requesters and scripted providers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.host import RunRecord, TestHost, Tool
from tests.providers.border import Border
from tests.providers.catalogue import Case
from tests.providers.server import Provider
from tests.runs.scenes import assert_ended, host_with

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
