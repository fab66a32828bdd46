"""K9: when a run goes in circles, judged by what its calls bring."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.loop.loop_detection import CONCLUDED_AT, IDLE_ROUNDS, READS_ALLOWED, LoopDetection, Seen, Verdict

GO_ON, TELL, REPEATED, IDLE = Verdict


def act(call: str, result: str = "done", *, arguments: str = "{}", failed: bool = False) -> Seen:
    return Seen.of(call, arguments, result, failed=failed, reads=False)


def read(call: str, result: str = "the same") -> Seen:
    return Seen.of(call, "{}", result, failed=False, reads=True)


def verdicts(*rounds: Seen | list[Seen]) -> list[Verdict]:
    detection = LoopDetection()
    return [detection.after(each if isinstance(each, list) else [each], ran=True) for each in rounds]


def test_K9_a_call_that_acts_is_told_at_the_third_same_result_and_ends_at_the_fifth() -> None:
    assert verdicts(*[act("send")] * 5) == [GO_ON, GO_ON, TELL, GO_ON, REPEATED]


@pytest.mark.parametrize("length", range(1, 6))
def test_K9_a_cycle_of_up_to_five_calls_counts_as_one(length: int) -> None:
    found = verdicts(*[act(f"step {n % length}") for n in range(length * CONCLUDED_AT)])
    assert found[-1] is REPEATED and found.count(TELL) == 1
    assert found.index(TELL) == 3 * length - 1
    assert REPEATED not in found[:-1]


def test_K9_many_calls_of_one_reply_are_one_step_of_a_cycle() -> None:
    found = verdicts(*[[act(f"call {n}") for n in range(8)]] * 5)
    assert found == [GO_ON, GO_ON, TELL, GO_ON, REPEATED]


def test_K9_reads_between_do_not_hide_a_circle_and_are_none_themselves() -> None:
    rounds = [[act("send"), read("get_time", f"{n} o'clock")] for n in range(5)]
    assert verdicts(*rounds) == [GO_ON, GO_ON, TELL, GO_ON, REPEATED]
    assert verdicts(*[read("job_output", f"{n} s") for n in range(90)]) == [GO_ON] * 90


def test_K9_polling_is_free_to_twenty_identical_results() -> None:
    assert verdicts(*[read("get")] * READS_ALLOWED) == [GO_ON] * (READS_ALLOWED - 1) + [REPEATED]
    two = [read(f"get {n % 2}") for n in range(2 * READS_ALLOWED)]
    assert verdicts(*two).index(REPEATED) == 2 * READS_ALLOWED - 2


def test_K9_the_order_of_keys_makes_no_other_call_and_the_words_of_a_failure_no_other_result() -> None:
    keys = ['{"a": 1, "b": 2}', '{"b":2,"a":1}']
    assert verdicts(*[act("send", arguments=keys[n % 2]) for n in range(5)])[-1] is REPEATED
    assert verdicts(*[act("send", f"failed at {n} ms", failed=True) for n in range(5)])[-1] is REPEATED


@given(st.lists(st.sampled_from("abc"), max_size=60))
def test_K9_an_action_whose_result_changes_may_always_repeat(calls: list[str]) -> None:
    assert set(verdicts(*[act(call, f"result {n}") for n, call in enumerate(calls)])) <= {GO_ON}


def test_K9_the_same_test_after_each_new_edit_is_work() -> None:
    rounds = [
        each for n in range(20) for each in (act("edit", arguments=f'{{"n": {n}}}'), act("run_tests", "1 failed"))
    ]
    assert set(verdicts(*rounds)) == {GO_ON}


@given(st.lists(st.booleans(), max_size=40))
def test_K9_five_rounds_in_a_row_in_which_nothing_could_be_run_are_the_last(ran: list[bool]) -> None:
    detection = LoopDetection()
    idle = 0
    for number, each in enumerate(ran):
        idle = 0 if each else idle + 1
        found = detection.after([act("any", f"{number}")], ran=each)
        assert (found is IDLE) == (idle >= IDLE_ROUNDS)


def test_K9_what_somebody_said_since_begins_the_count_anew() -> None:
    detection = LoopDetection()
    for _ in range(3):
        assert [detection.after([act("send")], ran=False) for _ in range(3)] == [GO_ON, GO_ON, TELL]
        detection.renew()


def test_K9_another_circle_is_told_of_too() -> None:
    assert verdicts(*[act("send")] * 3, act("other"), *[act("write")] * 3).count(TELL) == 2
