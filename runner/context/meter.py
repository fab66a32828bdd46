"""Counting requests through the Host (F2): whole once, then what was added, whole again where it matters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from runner.context.budget import Budget
from runner.conversation.request import Request
from runner.conversation.units import System
from runner.host.errors import CountingUnavailable, HostCallFailed, HostFailure, ModelFailed, ModelTrouble
from runner.models.trouble import trouble_of

Count = Callable[[str, Request], Awaitable[int]]
"""Model id and request to Host tokens; raises HostCallFailed. An empty `System()` means: no system message."""

_NOT_FOR_THIS_MODEL: Final = "not support token counting"


class CountFailed(ModelFailed):
    """A request could not be counted for one model. `offered` False: the Host will never count for it."""

    def __init__(self, model_id: str, cause: ModelTrouble, text: str, *, offered: bool) -> None:
        super().__init__(model_id, cause, f"token count: {text}")
        self.offered = offered


class Meter:
    """The size of one run's requests in Host tokens, with as few Host calls as F2 allows.

    A request that only got units added since the last count costs one call with those units alone; the same request
    again costs none. Anything else is counted whole: the first request, another model, another system message or other
    tools, changed units (stubs, a compaction), the request that reaches 90 % of the budget, and one whose sum is above
    the budget: sums err on the safe side, so between these two a whole count would only cost bytes.
    """

    def __init__(self, count: Count) -> None:
        self._count = count
        self._model: str | None = None
        self._request: Request | None = None
        self._tokens = 0
        self._certain = 0
        self.calls = 0
        """Host calls made so far, repeated ones included."""

    async def measure(self, request: Request, *, model: str, budget: Budget) -> int:
        """Host tokens of the request. Raises CountFailed, CountingUnavailable."""
        known = self._known_units(request, model)
        if known is None:
            return await self._whole(request, model)
        if known < len(request.units):
            added = await self._ask(Request(System(), request.units[known:]), model)
            self._remember(request, model, self._tokens + added)
            if self._tokens > budget.input or self._tokens >= budget.near > self._certain:
                return await self._whole(request, model)
        return self._tokens

    async def aside(self, request: Request, *, model: str) -> int:
        """Host tokens of something else than what is sent next, asked once. Raises CountFailed, CountingUnavailable."""
        return await self._once(request, model)

    def _known_units(self, request: Request, model: str) -> int | None:
        """How many leading units the last count holds; None when it says nothing about this request."""
        last = self._request
        if last is None or model != self._model or len(last.units) > len(request.units):
            return None
        if last.system != request.system or last.tools != request.tools:
            return None
        same = all(old is new for old, new in zip(last.units, request.units, strict=False))
        return len(last.units) if same else None

    async def _whole(self, request: Request, model: str) -> int:
        self._certain = await self._ask(request, model)
        self._remember(request, model, self._certain)
        return self._tokens

    def _remember(self, request: Request, model: str, tokens: int) -> None:
        self._request, self._model, self._tokens = request, model, tokens

    async def _ask(self, request: Request, model: str) -> int:
        try:
            return await self._once(request, model)
        except CountFailed as failure:
            if not failure.offered:
                raise
        return await self._once(request, model)

    async def _once(self, request: Request, model: str) -> int:
        self.calls += 1
        try:
            tokens = await self._count(model, request)
        except HostCallFailed as failure:
            raise _failed(model, failure) from failure
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens <= 0:
            raise CountFailed(model, ModelTrouble.OTHER, "the Host answered no number above 0", offered=True)
        return tokens


def _failed(model: str, failure: HostCallFailed) -> CountFailed | CountingUnavailable:
    if failure.kind is HostFailure.DENIED:
        return CountingUnavailable(
            "the Host offers this run no token counting. Grant `count_tokens` to the runner, or update LangBot."
        )
    offered = _NOT_FOR_THIS_MODEL not in failure.text
    return CountFailed(model, trouble_of(failure), failure.text, offered=offered)


def counting_unavailable(failures: tuple[ModelFailed, ...]) -> CountingUnavailable | None:
    """The fault to raise when every model failed only because the Host cannot count for it (F2); else None."""
    if failures and all(isinstance(failure, CountFailed) and not failure.offered for failure in failures):
        return CountingUnavailable(
            "the Host counts tokens for none of the configured models. Choose one whose requester can."
        )
    return None
