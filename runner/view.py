"""What the model sees in this run: it grows turn by turn, and every request of it fits (F2, F3, C7)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from runner.context.budget import Budget
from runner.context.compaction import Context, View
from runner.context.overflow import Overflow, recognise
from runner.conversation.request import Request
from runner.conversation.units import AssistantTurn, Image, Text, Unit, UserTurn
from runner.errors import ModelFailed


class RunView:
    """The conversation of one run as it will be sent next. `budget_of` gives a model's budget before any refusal."""

    def __init__(self, view: View, context: Context, budget_of: Callable[[str], Budget]) -> None:
        self._view = view
        self._context = context
        self._budget_of = budget_of
        self._tightened: dict[str, Budget] = {}
        self._tokens = 0
        self._instead_of_images: str | None = None
        self._calls_in_words = False

    @property
    def has_tools(self) -> bool:
        return bool(self._view.tools)

    @property
    def has_images(self) -> bool:
        return any(isinstance(part, Image) for unit in self._view.units for part in _parts(unit))

    def add(self, unit: Unit) -> None:
        """Append a unit. Neighbouring user turns become one, so that roles alternate (B5)."""
        if self._instead_of_images is not None:
            unit = _without_images(unit, self._instead_of_images)
        if self._calls_in_words and isinstance(unit, AssistantTurn) and unit.calls:
            for words in _in_words(unit):
                self.add(words)
            return
        units = self._view.units
        last = units[-1] if units else None
        if isinstance(unit, UserTurn) and isinstance(last, UserTurn):
            units = (*units[:-1], replace(last, parts=(*last.parts, *unit.parts)))
        else:
            units = (*units, unit)
        self._view = replace(self._view, units=units)

    def ask(self, question: UserTurn) -> None:
        """Append the message that this run answers: whatever else is cut, it stays (F3)."""
        self.add(question)
        self._view = replace(self._view, question=len(self._view.units) - 1)

    def leave_out_images(self, instead: str) -> None:
        """Replace every picture by words, for the rest of the run: those that follow too (B4)."""
        self._instead_of_images = instead
        units = tuple(_without_images(unit, instead) for unit in self._view.units)
        opening = tuple(_without_images(unit, instead) for unit in self._view.opening)
        self._view = replace(self._view, units=units, opening=opening)

    def leave_out_tools(self) -> None:
        """Offer no tools any more, for the rest of the run (D6)."""
        self._view = replace(self._view, tools=())

    def withdraw(self, names: Collection[str]) -> None:
        """Offer some tools no longer (a lost sandbox, H1).

        Where none is left, earlier calls become words: some providers refuse a history with calls and no tools.
        """
        tools = tuple(tool for tool in self._view.tools if tool.name not in names)
        units, question = self._view.units, self._view.question
        self._view = replace(self._view, tools=tools)
        if tools or self._calls_in_words:
            return
        self._calls_in_words = True
        self._view = replace(self._view, units=())
        for place, unit in enumerate(units):
            self.add(unit)
            if place == question:
                self._view = replace(self._view, question=len(self._view.units) - 1)

    async def request(self, model_id: str, *, visible: bool, conclude: bool = False) -> Request:
        """The next request for a model, within its budget by the Host's count.

        `visible`: the person has seen text of this run. `conclude`: tools stay listed, but none may be called (D6).
        Raises InputTooLarge, CountFailed (for this model), CountingUnavailable (for any).
        """
        fitted = await self._context.fit(self._view, model=model_id, budget=self._budget(model_id), visible=visible)
        self._view, self._tokens = fitted.view, fitted.tokens
        return replace(fitted.request, extra={"tool_choice": "none"}) if conclude and self.has_tools else fitted.request

    def tighten(self, failure: ModelFailed) -> bool:
        """After a refusal that reads like overflow: halve this model's budget, once a run (C7). False: it is none."""
        budget = self._budget(failure.model_id)
        kind = recognise(failure.text, counted=self._tokens, window=budget.window, reserve=budget.reserve)
        if kind is Overflow.NONE or failure.model_id in self._tightened:
            return False
        if kind is Overflow.SAID:
            self._context.learn(failure.model_id, self._tokens)
        self._tightened[failure.model_id] = budget.tighter(self._tokens)
        return True

    def _budget(self, model_id: str) -> Budget:
        return self._tightened.get(model_id) or self._budget_of(model_id)


def _in_words(turn: AssistantTurn) -> tuple[Unit, ...]:
    """A reply with calls as a reply without, and what its tools said as words of the user's side."""
    told = (
        Text(f"[{call.name} was called with {call.arguments} and returned:]\n{result.text}")
        for call, result in zip(turn.calls, turn.results, strict=True)
    )
    said = (AssistantTurn(turn.text, author=turn.author, span=turn.span),) if turn.text.strip() else ()
    return (*said, UserTurn(tuple(told), turn.span))


def _parts(unit: Unit) -> tuple[object, ...]:
    return unit.parts if isinstance(unit, UserTurn) else ()


def _without_images(unit: Unit, instead: str) -> Unit:
    if not isinstance(unit, UserTurn) or not any(isinstance(part, Image) for part in unit.parts):
        return unit
    return replace(unit, parts=tuple(Text(instead) if isinstance(part, Image) else part for part in unit.parts))
