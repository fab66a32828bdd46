"""Requests that fit a provider's window: fewer tools first, then the oldest turns (S3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from local.models import Line
from runner.context.budget import Budget
from runner.context.compaction import Fitted, View
from runner.conversation.request import Request
from runner.conversation.units import Unit, UserTurn
from runner.host.errors import InputTooLarge
from runner.loop.policy import Policy
from runner.small.request_shaping import recent_turns
from runner.tools.catalogue import Catalogue

WINDOW = Budget(window=1_000_000, reserve=0)
"""No limit of its own: the provider alone knows what fits, and says no more than yes or no."""


class ProviderFitting:
    """Fits requests by asking the provider; reads the tools afresh each time.

    `tools` gives the tools as they are now; `on_step` is told of every request.
    """

    def __init__(
        self, line: Line, policy: Policy, tools: Callable[[], Catalogue], on_step: Callable[[Catalogue], None]
    ) -> None:
        self._line = line
        self._policy = policy
        self._tools = tools
        self._on_step = on_step

    async def fit(self, view: View, *, model: str, budget: Budget, visible: bool) -> Fitted:
        """The next request. Raises InputTooLarge where not even the newest turn with one tool fits; ModelFailed."""
        catalogue = self._tools()
        self._on_step(catalogue)
        view = replace(view, tools=catalogue.specs)
        provider = self._line.current
        await provider.make_ready()
        # What a provider refused although it had said that it fits has to be as small as can be.
        strict = budget.cap is not None
        last: Request | None = None
        for request in self._smaller_and_smaller(view, model):
            last = request
            if not strict and await provider.fits(request):
                return Fitted(request, view, 1)
        if strict and last is not None:
            return Fitted(last, view, 1)
        raise InputTooLarge("newest message", "the engine's context", 0, 0)

    def learn(self, model: str, refused: int) -> None:
        """Nothing outlives the run."""

    def forget(self, model: str) -> None:
        """Nothing was learned."""

    def _smaller_and_smaller(self, view: View, model: str) -> Iterator[Request]:
        units = recent_turns(view.units)
        yield self._shaped(view, units, model)
        while self._policy.smaller():
            yield self._shaped(view, units, model)
        while (fewer := without_oldest(units)) is not None:
            units = fewer
            yield self._shaped(view, units, model)

    def _shaped(self, view: View, units: tuple[Unit, ...], model: str) -> Request:
        return self._policy.shape(Request(view.system, units, view.tools), model)


def without_oldest(units: tuple[Unit, ...]) -> tuple[Unit, ...] | None:
    """The same without the oldest turns, beginning with a user turn; None when no more can go.

    The newest user turn always stays, and so does what came last.
    """
    users = [place for place, unit in enumerate(units) if isinstance(unit, UserTurn)]
    if len(users) > 1:
        return units[users[1] :]
    if len(units) > 2:
        return (units[0], *units[2:])
    return None
