"""What the model sees in this run: it grows turn by turn, and every request of it fits (F2, F3, C7)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Protocol

from runner.context.budget import Budget
from runner.context.compaction import Fitted, View
from runner.context.overflow import Overflow, recognise
from runner.conversation.reduced import Reduced
from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import Unit, UserTurn, join_users
from runner.host.errors import RETRYABLE_TROUBLES, ModelFailed
from runner.models.refusals import Step, steps_in
from runner.tools.plain_schema import plainest


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

    It is kept whole: what a model refused is left out of the requests of that model alone (K7).
    """

    def __init__(self, view: View, context: Fitting, budget_of: Callable[[str], Budget]) -> None:
        self._view = view
        self._context = context
        self._budget_of = budget_of
        self._budgets: dict[str, Budget] = {}
        self._tokens = 0
        self._asked = ""
        self._suspected: tuple[str, int] | None = None
        self._disbelieved: str | None = None
        self._reduced: dict[tuple[bool, bool], Reduced] = {}
        self._plain: dict[int, tuple[ToolSpec, ToolSpec | None]] = {}
        self._no_tools_left = False
        self._images_left_out = False
        self._gone: set[str] = set()

    @property
    def images_left_out(self) -> bool:
        """Whether the last request went without the person's pictures."""
        return self._images_left_out

    @property
    def whole(self) -> Request:
        """All there is, before anything is cut or left out."""
        view = self._view
        return Request(view.system, (*view.opening, *view.units), view.tools)

    @property
    def standing(self) -> View:
        """The conversation as it stands now."""
        return self._view

    @property
    def tokens(self) -> int:
        """Host tokens of the last request."""
        return self._tokens

    def go_on_from(self, view: View) -> None:
        """The same conversation without what was folded."""
        self._view = view

    def add(self, unit: Unit) -> None:
        """Append a unit. Neighbouring user turns of this run become one; those of earlier runs stay by themselves."""
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

    def took(self) -> None:
        """A model took the request. One that took half of what it had refused without a word about its size has shown
        what its window is (C7)."""
        if self._suspected is not None:
            self._context.learn(*self._suspected)
        if self._disbelieved is not None:
            self._context.forget(self._disbelieved)
        self.gave_up()

    def gave_up(self) -> None:
        """A model failed for good: nothing was learned of its window."""
        self._suspected = self._disbelieved = None

    def offer(self, tool: ToolSpec) -> None:
        """Offer one tool more, from the next request on (S4)."""
        self._view = replace(self._view, tools=(*self._view.tools, tool))

    def withdraw(self, names: Collection[str]) -> None:
        """Offer some tools no longer (a lost sandbox, H1), from the next request on: a job may lose it at any time.

        Where none is left, earlier calls become words.
        """
        self._gone |= set(names)

    async def request(
        self, model_id: str, *, visible: bool, conclude: bool = False, without: Collection[Step] = ()
    ) -> Request:
        """The next request for a model, within its budget by the Host's count.

        `visible`: the person has seen text of this run. `conclude`: tools stay listed, but none may be called (D6).
        `without`: what this model does not take (K7). Raises InputTooLarge, CountFailed (for this model),
        CountingUnavailable (for any).
        """
        self._take_out_gone()
        reduced = self._for(without)
        view = self._sent(reduced, without)
        fitted = await self._context.fit(view, model=model_id, budget=self.budget(model_id), visible=visible)
        self._go_on_from(fitted.view, view, reduced)
        self._tokens, self._asked = fitted.tokens, model_id
        self._images_left_out = Step.PICTURES in without and Step.PICTURES in steps_in(self.whole)
        if conclude and fitted.request.tools:
            return replace(fitted.request, extra={**fitted.request.extra, "tool_choice": "none"})
        return fitted.request

    def _take_out_gone(self) -> None:
        if not self._gone:
            return
        tools = tuple(tool for tool in self._view.tools if tool.name not in self._gone)
        self._no_tools_left = self._no_tools_left or not tools
        self._view, self._gone = replace(self._view, tools=tools), set()

    def _for(self, without: Collection[Step]) -> Reduced | None:
        """How units are reduced for such a request. Calls are words where no tools are listed any more: some providers
        refuse a history with calls then."""
        blind = Step.PICTURES in without
        in_words = self._no_tools_left or Step.TOOL_TURNS in without or Step.TOOLS in without
        if not blind and not in_words:
            return None
        return self._reduced.setdefault((blind, in_words), Reduced(blind=blind, in_words=in_words))

    def _sent(self, reduced: Reduced | None, without: Collection[Step]) -> View:
        view = self._view
        if (tools := self._tools(without)) != view.tools:
            view = replace(view, tools=tools) if tools else _without_tools(view)
        if reduced is None:
            return view
        question = None if view.question is None else len(reduced.units(view.units[: view.question]))
        return replace(
            view,
            system=replace(view.system, parts=reduced.parts(view.system.parts)),
            opening=reduced.units(view.opening),
            units=reduced.units(view.units),
            before=reduced.units(view.before),
            question=question,
            leaving=len(reduced.units(view.units[: view.leaving])),
        )

    def _go_on_from(self, fitted: View, sent: View, reduced: Reduced | None) -> None:
        """What was cut to make it fit stays cut; what was left out for this model comes back."""
        whole = self._view
        if fitted is sent and sent is not whole:
            return
        if sent is whole:
            self._view = fitted
            return
        units, before, question = fitted.units, fitted.before, fitted.question
        if reduced is not None:
            units, before = reduced.back(fitted.units), reduced.back(fitted.before)
            question = None if question is None else len(reduced.back(fitted.units[: question + 1])) - 1
        kept = replace(fitted, system=whole.system, opening=whole.opening, tools=whole.tools)
        self._view = replace(kept, units=units, before=before, question=question)

    def _tools(self, without: Collection[Step]) -> tuple[ToolSpec, ...]:
        if Step.TOOLS in without:
            return ()
        if Step.SCHEMAS not in without:
            return self._view.tools
        return tuple(plain for tool in self._view.tools if (plain := self._plainest(tool)) is not None)

    def _plainest(self, tool: ToolSpec) -> ToolSpec | None:
        if not tool.altered:
            return tool
        return self._plain.setdefault(id(tool), (tool, plainest(tool)))[1]

    def overflow(self, failure: ModelFailed) -> Overflow:
        """Whether a model's failure means that the request was too long for it; what it says outright is learned."""
        kind = self._kind_of(failure)
        if kind is not Overflow.NONE:
            self._disbelieved = None
        if kind is Overflow.SAID:
            self._context.learn(failure.model_id, self._tokens)
        return kind

    def may_tighten(self, model_id: str) -> bool:
        """Whether this model's budget was not halved yet: that happens once a run."""
        return self.budget(model_id).cap is None

    def tighten(self, failure: ModelFailed) -> None:
        """After a refusal that reads like overflow: the model's budget is half of what was counted (C7)."""
        if self._kind_of(failure) is Overflow.CLOSE and failure.cause not in RETRYABLE_TROUBLES:
            self._suspected = failure.model_id, self._tokens
        self._budgets[failure.model_id] = self.budget(failure.model_id).tighter(self._tokens)

    def _kind_of(self, failure: ModelFailed) -> Overflow:
        budget = self.budget(failure.model_id)
        return recognise(failure.text, counted=self._tokens, window=budget.window, reserve=budget.reserve)

    def widen(self, model_id: str) -> bool:
        """Disbelieve a window learned in an earlier run, once: not even what cannot be cut fits into it, so either the
        refusal meant something else, or this one comes to the same. False: none was learned."""
        budget = self.budget(model_id)
        if budget.wider is None or budget.cap is not None:
            return False
        self._budgets[model_id] = budget.wider
        self._disbelieved = model_id
        return True

    def is_narrowed(self, model_id: str) -> bool:
        """Whether a model's budget is smaller than set, since it refused a request in this run or an earlier one."""
        return self.budget(model_id).narrowed

    def share(self, part: float) -> int:
        """So many tokens are a part of the input budget of the model that was asked last."""
        return int(self.budget(self._asked).input * part)

    def budget(self, model_id: str) -> Budget:
        """What a request for this model may hold."""
        return self._budgets.get(model_id) or self._budget_of(model_id)


def _without_tools(view: View) -> View:
    """The view without its tools and what was said for them, such as the index of skills (B3)."""
    added = tuple(line for line in view.system.added if line not in view.about_tools)
    return replace(view, system=replace(view.system, added=added), tools=())
