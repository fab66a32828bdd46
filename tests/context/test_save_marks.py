"""L9: chats whose checkpoint cannot be saved are not summarised anew in each run."""

from __future__ import annotations

from runner.context.save_marks import FIRST_REST, LONGEST_REST, MOST, SaveMarks


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_L9_one_failure_may_be_chance_and_further_ones_rest_longer_and_longer() -> None:
    clock = Clock()
    marks = SaveMarks(clock)
    assert marks.may_ask("a")
    marks.heard("a", saved=False)
    assert marks.may_ask("a")
    rest = FIRST_REST
    for _ in range(12):
        marks.heard("a", saved=False)
        assert not marks.may_ask("a")
        assert marks.may_ask("b")
        clock.now += rest - 1
        assert not marks.may_ask("a")
        clock.now += 1
        assert marks.may_ask("a")
        rest = min(2 * rest, LONGEST_REST)


def test_L9_a_checkpoint_that_was_saved_ends_the_rest() -> None:
    marks = SaveMarks(Clock())
    for _ in range(5):
        marks.heard("a", saved=False)
    marks.heard("a", saved=True)
    assert marks.may_ask("a")
    marks.heard("a", saved=False)
    assert marks.may_ask("a"), "counted anew"


def test_I1_the_marks_are_few_and_hold_nothing_of_a_chat() -> None:
    marks = SaveMarks(Clock())
    for number in range(3 * MOST):
        for _ in range(2):
            marks.heard(f"chat of Ann {number}", saved=False)
    assert len(marks._marks) == MOST
    assert "Ann" not in str(marks._marks)
    assert not marks.may_ask(f"chat of Ann {3 * MOST - 1}")
