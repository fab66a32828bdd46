"""K7, C3, C7, C8: why a model call failed, what is tried after it, and what is remembered of each model."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import AssistantTurn, Image, System, Text, ToolCall, ToolResult, UserTurn
from runner.host.errors import HostCallFailed, HostFailure, ModelTrouble
from runner.host.events import Json
from runner.models.habits import Habit, Habits
from runner.models.refusals import CHANGED, MOST_REQUESTS, REMEMBERED, Refusals, Step, steps_against, steps_in
from runner.models.trouble import trouble_of

# K7: which change is tried after a refused request, and what is remembered of it.

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


# C3, C7, C8: why a model call failed, from words in the Host's eight languages.


def of(text: str, kind: HostFailure = HostFailure.REFUSED) -> ModelTrouble:
    return trouble_of(HostCallFailed("stream", kind, f"ActionCallError: RequesterError: {text}"))


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("Rate limit exceeded or insufficient balance", ModelTrouble.RATE_LIMIT),
        ("Request timed out", ModelTrouble.TIMEOUT),
        ("Connection failed", ModelTrouble.NETWORK),
        ("Invalid API key", ModelTrouble.AUTH),
        ("Invalid request parameters", ModelTrouble.BAD_REQUEST),
        ("too many tokens per minute, context is fine", ModelTrouble.RATE_LIMIT),
        ('ValueError: Reasoning level "max" is not supported by model m', ModelTrouble.REASONING_REFUSED),
        ("ValueError: reasoning_config conflicts with advanced parameters: thinking", ModelTrouble.REASONING_REFUSED),
        ("This LangBot Host does not support reasoning_level", ModelTrouble.REASONING_REFUSED),
        ("Invalid model or endpoint", ModelTrouble.OTHER),
        ("", ModelTrouble.OTHER),
    ],
)
def test_C8_words_tell_the_trouble(text: str, trouble: ModelTrouble) -> None:
    assert of(text) is trouble
    assert of(text.upper()) is trouble, "case does not matter"


@pytest.mark.parametrize(
    ("kind", "trouble"),
    [
        (HostFailure.TIMEOUT, ModelTrouble.TIMEOUT),
        (HostFailure.CONNECTION, ModelTrouble.NETWORK),
        (HostFailure.DENIED, ModelTrouble.OTHER),
        (HostFailure.MALFORMED, ModelTrouble.OTHER),
        (HostFailure.REFUSED, ModelTrouble.OTHER),
    ],
)
def test_C8_where_words_are_missing_the_kind_of_failure_tells(kind: HostFailure, trouble: ModelTrouble) -> None:
    assert of("whatever", kind) is trouble


def test_C1_a_time_out_between_runtime_and_host_is_a_time_out_of_the_model() -> None:
    assert of("ActionCallTimeoutError: Action invoke_llm_stream call timed out") is ModelTrouble.TIMEOUT


@given(st.text(), st.sampled_from(HostFailure))
def test_Q4_any_text_has_some_trouble(text: str, kind: HostFailure) -> None:
    assert isinstance(of(text, kind), ModelTrouble)


# What is remembered of each model between the runs of a conversation.

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)


def test_K7_what_one_run_learns_the_next_one_reads() -> None:
    noted: list[Json] = []
    seen = Habit(numbered_ids=True, slow_start=True, helped={"all tools": 7.0}, thinks=True)
    Habits(None, noted.append).learn("m1", seen)
    stored = json.loads(json.dumps(noted[-1]))
    assert Habits(stored, noted.append).of("m1") == seen
    assert Habits(stored, noted.append).of("m2") == Habit()


def test_K7_nothing_is_noted_that_is_no_news() -> None:
    noted: list[Json] = []
    habits = Habits(None, noted.append)
    habits.learn("m1", Habit())
    habits.learn("m1", Habit(slow_start=True))
    habits.learn("m1", Habit(slow_start=True))
    assert len(noted) == 1


def test_K7_of_many_models_the_newest_are_remembered() -> None:
    noted: list[Json] = []
    habits = Habits(None, noted.append)
    for number in range(40):
        habits.learn(f"m{number}", Habit(slow_start=True))
    again = Habits(noted[-1], noted.append)
    assert [again.of(f"m{number}").slow_start for number in (0, 23, 24, 39)] == [False, False, True, True]


@given(ANY_JSON, st.dictionaries(st.sampled_from(["numbered_ids", "slow_start", "helped", "thinks"]), ANY_JSON))
def test_K7_a_stored_value_of_any_shape_is_read_without_harm(stored: Json, habit: dict[str, Json]) -> None:
    values: tuple[Json, ...] = (stored, {"m1": stored}, {"m1": habit})
    for value in values:
        known = Habits(value, lambda _: None).of("m1")
        assert isinstance(known.numbered_ids, bool)
        assert isinstance(known.thinks, bool)
        assert all(isinstance(time, float) for time in known.helped.values())
