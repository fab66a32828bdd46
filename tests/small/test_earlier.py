"""S3: calls that an earlier run finished without an answer."""

from __future__ import annotations

from runner.conversation.record import Record, RecordedCall
from runner.conversation.units import AssistantTurn, Text, Unit, UserTurn
from runner.small.answers import Done
from runner.small.earlier import calls_of, unanswered
from runner.tools.catalogue import Catalogue

ASKED = UserTurn((Text("save it"),))
TURNS = Record(
    ((RecordedCall("save", '{"a":1}', "saved\nas 7", None),), (RecordedCall("save", "{}", "disk full", "failed"),))
).as_units("unsaid")


def test_S3_a_history_that_ends_on_words_leaves_nothing_unanswered() -> None:
    said: tuple[Unit, ...] = (ASKED, *TURNS, AssistantTurn("Saved."))
    assert unanswered(said) == ()
    assert unanswered((ASKED,)) == unanswered(()) == ()


def test_S3_calls_come_back_as_the_run_that_made_them_knew_them() -> None:
    turns = unanswered((ASKED, AssistantTurn("Well."), ASKED, *TURNS))
    assert list(calls_of(turns, Catalogue())) == [
        Done("save", '{"a":1}', "saved\nas 7"),
        Done("save", "{}", "disk full", code="failed"),
    ]
