"""K7: which change is tried after a refused request, and what is remembered of it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import AssistantTurn, Image, System, Text, ToolCall, ToolResult, UserTurn
from runner.host.errors import ModelTrouble
from runner.host.events import Json
from runner.models.habits import Habits
from runner.models.refusals import CHANGED, MOST_REQUESTS, REMEMBERED, Refusals, Step, steps_against, steps_in

BAD, OTHER = ModelTrouble.BAD_REQUEST, ModelTrouble.OTHER
SETS = st.frozensets(st.sampled_from(Step))


class Days:
    """Runs of one conversation: what one remembers, the next one reads. `now` in seconds."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self._stored: Json = None

    def run(self) -> Refusals:
        habits = Habits(self._stored, self._keep)
        return Refusals(lambda: habits, lambda: self.now)

    def _keep(self, value: Json) -> None:
        self._stored = value


def climbed(refusals: Refusals, possible: frozenset[Step], model: str = "m1") -> list[Step]:
    """The steps of a model that takes nothing."""
    steps = iter(lambda: refusals.next(model, BAD, possible), None)
    return [step for step in steps if step is not None]


@given(SETS)
def test_K7_steps_come_in_the_order_of_the_rule_each_once_and_five_requests_are_the_end(
    possible: frozenset[Step],
) -> None:
    expected = [step for step in Step if step in possible][: MOST_REQUESTS - 1]
    assert climbed(Refusals(), possible) == expected


def test_K7_the_order_is_that_of_the_rule() -> None:
    assert list(Step) == [
        Step.LEVEL,
        Step.FORCING,
        Step.PICTURES,
        Step.SCHEMAS,
        Step.TOOLS,
        Step.TOOL_TURNS,
        Step.SIZE,
    ]
    assert CHANGED.keys() == set(Step)


@given(st.lists(SETS, max_size=12), st.lists(st.booleans(), min_size=12, max_size=12))
def test_K7_no_step_is_taken_twice_and_no_model_is_refused_six_times(
    asked: list[frozenset[Step]], taken: list[bool]
) -> None:
    refusals, steps = Refusals(), []
    for possible, took in zip(asked, taken, strict=False):
        step = refusals.next("m1", BAD, possible)
        if step is not None:
            steps.append(step)
        if took:
            refusals.took("m1")
    assert len(steps) == len(set(steps)) < MOST_REQUESTS


@given(SETS, SETS)
def test_K7_each_model_has_steps_of_its_own(one: frozenset[Step], other: frozenset[Step]) -> None:
    both, alone = Refusals(), Refusals()
    climbed(both, one, "m1")
    assert both.without("m2") == frozenset()
    assert climbed(both, other, "m2") == climbed(alone, other, "m2")
    assert both.without("m2") == alone.without("m2")


def test_K7_what_was_changed_before_stays_changed_until_only_the_size_is_left() -> None:
    refusals, grown = Refusals(), []
    for _ in range(3):
        refusals.next("m1", BAD, {Step.PICTURES, Step.TOOLS, Step.SIZE})
        grown.append(refusals.without("m1"))
    assert grown == [{Step.PICTURES}, {Step.PICTURES, Step.TOOLS}, frozenset()]


def test_K7_what_helped_is_where_the_next_run_begins_and_is_tried_anew_after_a_day() -> None:
    days = Days()
    first = days.run()
    first.next("m1", BAD, {Step.PICTURES, Step.TOOLS})
    first.next("m1", BAD, {Step.PICTURES, Step.TOOLS})
    first.took("m1")
    assert days.run().without("m1") == {Step.TOOLS}, "the pictures did not help, so the next run has them"
    assert days.run().without("m2") == frozenset()
    days.now += REMEMBERED - 1
    days.run().took("m1")
    assert days.run().without("m1") == {Step.TOOLS}
    days.now += 1
    assert days.run().without("m1") == frozenset()
    days.now -= 2 * REMEMBERED
    assert days.run().without("m1") == frozenset(), "a clock that was set back remembers nothing"


def test_K7_a_run_that_begins_with_what_helped_goes_on_from_there() -> None:
    days = Days()
    for step in (Step.TOOLS, Step.PICTURES):
        run = days.run()
        assert run.next("m1", BAD, {step}) is step
        run.took("m1")
    assert days.run().without("m1") == {Step.TOOLS, Step.PICTURES}
    assert days.run().next("m1", BAD, {Step.TOOLS, Step.PICTURES}) is None


def test_K7_where_calls_became_words_with_the_tools_the_next_run_tries_the_words_alone() -> None:
    days, both = Days(), {Step.TOOLS, Step.TOOL_TURNS}
    first = days.run()
    assert first.next("m1", BAD, both) is Step.TOOLS
    first.took("m1")
    assert first.without("m1") == {Step.TOOLS}
    second = days.run()
    assert second.without("m1") == {Step.TOOL_TURNS}
    assert second.next("m1", BAD, {Step.TOOLS}) is Step.TOOLS, "if the words alone are not enough"
    second.took("m1")
    assert days.run().without("m1") == both


def test_K7_a_failure_that_may_have_passed_by_itself_teaches_nothing_the_first_time() -> None:
    days = Days()
    for known in (frozenset(), frozenset({Step.TOOLS})):
        run = days.run()
        run.next("m1", OTHER, {Step.TOOLS})
        run.took("m1")
        assert run.without("m1") == {Step.TOOLS}, "for this run it stays"
        assert days.run().without("m1") == known


@pytest.mark.parametrize("is_last", [True, False])
@pytest.mark.parametrize("trouble", ModelTrouble)
def test_K7_only_a_request_that_was_or_may_have_been_refused_is_changed(trouble: ModelTrouble, is_last: bool) -> None:
    steps = steps_against(trouble, is_last=is_last)
    if trouble is BAD or (trouble is OTHER and is_last):
        assert steps == set(Step)
    else:
        assert steps == ({Step.LEVEL} if trouble is ModelTrouble.REASONING_REFUSED else set())


PICTURE = UserTurn((Text("look"), Image(base64="aGk=")))
CALLED = AssistantTurn("", (ToolCall("c1", "look", "{}"),), (ToolResult("c1", "look", "found"),))
TOOL, ALTERED = ToolSpec("look", "", {}), ToolSpec("find", "", {}, altered=True)


@pytest.mark.parametrize(
    ("request_", "steps"),
    [
        (Request(System(), (UserTurn((Text("hi"),)),)), set()),
        (Request(System(), (PICTURE,)), {Step.PICTURES}),
        (Request(System((Image(base64="aGk="),)), ()), {Step.PICTURES}),
        (Request(System(), (), (TOOL,)), {Step.TOOLS}),
        (Request(System(), (), (TOOL, ALTERED)), {Step.SCHEMAS, Step.TOOLS}),
        (Request(System(), (CALLED,)), {Step.TOOL_TURNS}),
        (Request(System(), (CALLED,), (TOOL,), {"tool_choice": "none"}), {Step.FORCING, Step.TOOLS, Step.TOOL_TURNS}),
        (Request(System(), (), (), {"response_format": {}}), {Step.FORCING}),
        (Request(System(), (), (), {"request_policy": {}}), set()),
    ],
)
def test_K7_a_step_is_open_only_where_it_changes_the_request(request_: Request, steps: set[Step]) -> None:
    assert steps_in(request_) == steps


def test_K7_five_requests_are_counted_over_a_whole_run() -> None:
    refusals = Refusals()
    steps = itertools.islice(Step, 4)
    assert [refusals.next("m1", BAD, {step}) for step in steps] == list(Step)[:4]
    refusals.took("m1")
    assert refusals.next("m1", BAD, {Step.SIZE}) is None
