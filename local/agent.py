"""`create`: several providers as one agent, the first that can run here (S0)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from local.parts import Part
from local.provider import Availability, Completed, Engine, ModelChoice, OnProgress, Unavailable, complete
from local.request import RunRequest
from local.run import MAX_STEPS, MAX_TOOLS, STEP_TIMEOUT, Options, run_agent


class LocalAgent:
    """Providers in the order in which they are tried; one that is broken or unavailable is passed over."""

    def __init__(self, providers: Sequence[Completed], options: Options) -> None:
        self._providers = list(providers)
        self._options = options

    async def availability(self) -> Availability:
        """Of the first provider that may run here; with none, why the last one cannot."""
        state: Availability = Unavailable("there is no provider")
        for provider in self._providers:
            state = await self._state(provider)
            if not isinstance(state, Unavailable):
                return state
        return state

    async def prepare(self, on_progress: OnProgress) -> None:
        """Download and load what is needed; `on_progress` gets 0 to 1. Cancelling the task stops it.

        A provider that turns out to be broken gives way to the next; any other failure is raised as it came. Raises
        RuntimeError when none can run here.
        """
        reason = "there is no provider"
        for provider in self._providers:
            state = await self._state(provider)
            if isinstance(state, Unavailable):
                reason = state.reason
                continue
            try:
                await provider.prepare(on_progress)
            except Exception:  # whatever an engine raises: `broken` alone decides whether it goes on
                if provider.broken is None:
                    raise
                reason = provider.broken
                continue
            return
        raise RuntimeError(f"no model can run here: {reason}")

    def models(self) -> Sequence[ModelChoice]:
        """Every model of every provider."""
        return [choice for provider in self._providers for choice in provider.models()]

    async def select_model(self, model_id: str) -> None:
        """Switch to one of `models()`; its provider is then the first to be tried. Raises ValueError."""
        for provider in self._providers:
            if any(choice.id == model_id for choice in provider.models()):
                await provider.select_model(model_id)
                self._providers.remove(provider)
                self._providers.insert(0, provider)
                return
        raise ValueError(f"no provider has a model {model_id!r}")

    async def run(self, request: RunRequest) -> AsyncGenerator[Part, None]:
        """One run, see `run_local_agent`; a provider that breaks on the way gives way to the next."""
        usable = [one for one in self._providers if not isinstance(await self._state(one), Unavailable)]
        async with aclosing(run_agent(usable or self._providers[:1], request, self._options)) as parts:
            async for part in parts:
                yield part

    def dispose(self) -> None:
        """Free every model."""
        for provider in self._providers:
            provider.dispose()

    async def _state(self, provider: Completed) -> Availability:
        if provider.broken is not None:
            return Unavailable(provider.broken)
        return await provider.availability()


def create(
    providers: Sequence[Engine],
    *,
    max_steps: int = MAX_STEPS,
    step_timeout: float = STEP_TIMEOUT,
    max_tools: int = MAX_TOOLS,
    instructions: str | None = None,
) -> LocalAgent:
    """An agent over these providers, first come first served. Raises ValueError without one, or for two of one id."""
    completed = [complete(provider) for provider in providers]
    ids = [provider.id for provider in completed]
    if not ids or len(set(ids)) < len(ids):
        raise ValueError(f"providers need ids of their own, and at least one is needed: {ids}")
    return LocalAgent(completed, Options(max_steps, step_timeout, max_tools, instructions=instructions))
