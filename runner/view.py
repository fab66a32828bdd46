"""What the model sees in this run: it grows turn by turn, and every request of it fits (F2, F3, C7)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Protocol

from runner.context.budget import Budget
from runner.context.compaction import Fitted, View
from runner.context.overflow import Overflow, recognise
from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import AssistantTurn, Image, Part, Text, Unit, UserTurn, join_users
from runner.errors import RETRYABLE_TROUBLES, ModelFailed

IMAGE_LEFT_OUT = "[A picture was sent here; this model cannot see pictures.]"
"""What the model reads in place of a picture that it refused."""

_Certain = tuple[View, bool, bool]
"""A view before something was left out on suspicion, and whether pictures and calls were words already."""


class Fitting(Protocol):
    """Makes requests that fit a model: `Context` by the Host's count, or another door's own way."""

    async def fit(self, view: View, *, model: str, budget: Budget, visible: bool) -> Fitted:
        """See `Context.fit`."""

    def learn(self, model: str, refused: int) -> None:
        """See `Context.learn`."""

    def forget(self, model: str) -> None:
        """See `Context.forget`."""


class RunView:
    """The conversation of one run as it will be sent next. `budget_of` gives a model's budget before any refusal.

    Pictures and tools can be left out on suspicion: `keep` says the suspicion was right, `give_back` that it was not.
    """

    def __init__(self, view: View, context: Fitting, budget_of: Callable[[str], Budget]) -> None:
        self._view = view
        self._context = context
        self._budget_of = budget_of
        self._budgets: dict[str, Budget] = {}
        self._tokens = 0
        self._before_doubt: _Certain | None = None
        self._suspected: tuple[str, int] | None = None
        self._disbelieved: str | None = None
        self._without_images = False
        self._calls_in_words = False
        self._gone: set[str] = set()

    @property
    def images_left_out(self) -> bool:
        """Whether the person's pictures stayed unseen."""
        return self._without_images

    def add(self, unit: Unit) -> None:
        """Append a unit. Neighbouring user turns of this run become one; those of earlier runs stay by themselves."""
        if self._without_images:
            unit = _blind(unit)
        if self._calls_in_words and isinstance(unit, AssistantTurn) and unit.calls:
            for words in _in_words(unit):
                self.add(words)
            return
        units = self._view.units
        last = units[-1] if units else None
        if isinstance(unit, UserTurn) and isinstance(last, UserTurn) and last.span is unit.span is None:
            units = (*units[:-1], join_users(last, unit))
        else:
            units = (*units, unit)
        self._view = replace(self._view, units=units)

    def ask(self, question: UserTurn) -> None:
        """Append the message that this run answers: whatever else is cut, it stays (F3)."""
        self.add(question)
        self._view = replace(self._view, question=len(self._view.units) - 1)

    def leave_out_images(self) -> bool:
        """Replace every picture by words (B4, D4). False: there is none."""
        view = self._view
        blind = replace(
            view,
            system=replace(view.system, parts=tuple(map(_blind_part, view.system.parts))),
            opening=tuple(map(_blind, view.opening)),
            units=tuple(map(_blind, view.units)),
        )
        if blind == view:
            return False
        self._doubt()
        self._view, self._without_images = blind, True
        return True

    def leave_out_tools(self) -> bool:
        """Offer no tools any more (D6). False: there are none."""
        if not self._view.tools:
            return False
        self._doubt()
        self._take_out({tool.name for tool in self._view.tools})
        return True

    def keep(self) -> None:
        """A model took the request without what was left out: it stays out for the rest of the run.

        One that took half of what it had refused without a word about its size has shown what its window is (C7).
        """
        self._before_doubt = None
        if self._suspected is not None:
            self._context.learn(*self._suspected)
            self._suspected = None
        if self._disbelieved is not None:
            self._context.forget(self._disbelieved)
            self._disbelieved = None

    def give_back(self) -> None:
        """The model failed all the same: the next one gets what was left out for nothing."""
        self._suspected = self._disbelieved = None
        if (before := self._before_doubt) is not None:
            self._view, self._without_images, self._calls_in_words = before
            self._before_doubt = None

    def offer(self, tool: ToolSpec) -> None:
        """Offer one tool more, from the next request on (S4)."""
        self._view = replace(self._view, tools=(*self._view.tools, tool))

    def withdraw(self, names: Collection[str]) -> None:
        """Offer some tools no longer (a lost sandbox, H1), from the next request on: a job may lose it at any time.

        Where none is left, earlier calls become words: some providers refuse a history with calls and no tools.
        """
        self._gone |= set(names)

    def _take_out(self, names: Collection[str]) -> None:
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
        if self._gone:
            self._take_out(self._gone)
            self._gone = set()
        fitted = await self._context.fit(self._view, model=model_id, budget=self._budget(model_id), visible=visible)
        self._view, self._tokens = fitted.view, fitted.tokens
        if conclude and fitted.request.tools:
            return replace(fitted.request, extra={**fitted.request.extra, "tool_choice": "none"})
        return fitted.request

    def tighten(self, failure: ModelFailed) -> bool:
        """After a refusal that reads like overflow: halve this model's budget, once a run (C7). False: it is none."""
        budget = self._budget(failure.model_id)
        kind = recognise(failure.text, counted=self._tokens, window=budget.window, reserve=budget.reserve)
        if kind is not Overflow.NONE:
            self._disbelieved = None
        if kind is Overflow.SAID:
            self._context.learn(failure.model_id, self._tokens)
        if kind is Overflow.NONE or budget.cap is not None:
            return False
        if kind is Overflow.CLOSE and failure.cause not in RETRYABLE_TROUBLES:
            self._suspected = failure.model_id, self._tokens
        self._budgets[failure.model_id] = budget.tighter(self._tokens)
        return True

    def widen(self, model_id: str) -> bool:
        """Disbelieve a window learned in an earlier run, once: not even what cannot be cut fits into it, so either the
        refusal meant something else, or this one comes to the same. False: none was learned."""
        budget = self._budget(model_id)
        if budget.wider is None or budget.cap is not None:
            return False
        self._budgets[model_id] = budget.wider
        self._disbelieved = model_id
        return True

    def is_narrowed(self, model_id: str) -> bool:
        """Whether a model's budget is smaller than set, since it refused a request in this run or an earlier one."""
        return self._budget(model_id).narrowed

    def _doubt(self) -> None:
        self._before_doubt = self._before_doubt or (self._view, self._without_images, self._calls_in_words)

    def _budget(self, model_id: str) -> Budget:
        return self._budgets.get(model_id) or self._budget_of(model_id)


def _in_words(turn: AssistantTurn) -> tuple[Unit, ...]:
    """A reply with calls as a reply without, and what its tools said as words of the user's side."""
    told = (
        Text(f"[{call.name} was called with {call.arguments} and returned:]\n{result.text}")
        for call, result in zip(turn.calls, turn.results, strict=True)
    )
    said = (AssistantTurn(turn.text, author=turn.author, span=turn.span),) if turn.text.strip() else ()
    return (*said, UserTurn(tuple(told), turn.span))


def _blind(unit: Unit) -> Unit:
    """The same unit object where it holds no picture: counting goes by identity."""
    if not isinstance(unit, UserTurn) or not any(isinstance(part, Image) for part in unit.parts):
        return unit
    return replace(unit, parts=tuple(map(_blind_part, unit.parts)))


def _blind_part(part: Part) -> Part:
    return Text(IMAGE_LEFT_OUT) if isinstance(part, Image) else part
