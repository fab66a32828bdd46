"""What the model sees in this run: the system message, history, what was said and done since (F2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from runner.context.budget import Budget
from runner.context.meter import Meter
from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import Image, System, Text, Unit, UserTurn
from runner.events import Json
from runner.models.provider import HostModel


class View:
    """The growing conversation of one run, and the request it makes for a model."""

    def __init__(
        self,
        system: System,
        units: tuple[Unit, ...],
        tools: tuple[ToolSpec, ...],
        budget_of: Callable[[str], Budget],
    ) -> None:
        self._system = system
        self._units = list(units)
        self._tools = tools
        self._budget_of = budget_of

    @property
    def has_tools(self) -> bool:
        return bool(self._tools)

    @property
    def has_images(self) -> bool:
        return any(isinstance(part, Image) for unit in self._units if isinstance(unit, UserTurn) for part in unit.parts)

    def add(self, unit: Unit) -> None:
        """Append a unit. Neighbouring user turns become one, so that roles alternate (B5)."""
        last = self._units[-1] if self._units else None
        if isinstance(unit, UserTurn) and isinstance(last, UserTurn):
            self._units[-1] = UserTurn((*last.parts, *unit.parts), last.span)
        else:
            self._units.append(unit)

    def leave_out_images(self, instead: str) -> None:
        """Replace every picture by words, for the rest of the run (B4)."""
        self._units = [_without_images(unit, instead) for unit in self._units]

    def leave_out_tools(self) -> None:
        """Offer no tools any more, for the rest of the run (D6)."""
        self._tools = ()

    async def request(self, model: HostModel, meter: Meter, *, conclude: bool = False) -> Request:
        """The request for this model, within its budget. `conclude`: tools stay listed, but none may be called (D6).

        Raises CountFailed when it cannot be counted for this model, CountingUnavailable when for none.
        """
        extra: dict[str, Json] = {"tool_choice": "none"} if conclude and self._tools else {}
        request = Request(self._system, tuple(self._units), self._tools, extra)
        await meter.measure(request, model=model.id, budget=self._budget_of(model.id))
        return request


def _without_images(unit: Unit, instead: str) -> Unit:
    if not isinstance(unit, UserTurn) or not any(isinstance(part, Image) for part in unit.parts):
        return unit
    parts = tuple(Text(instead) if isinstance(part, Image) else part for part in unit.parts)
    return replace(unit, parts=parts)
