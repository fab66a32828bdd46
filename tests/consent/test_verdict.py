"""What a message or a press means for an open request (M3). Pure."""

from __future__ import annotations

import pytest
from langbot_plugin.api.entities.builtin.runner.input import AgentInput

from config.choices import Agree
from runner.consent.request import SECONDS, ConsentRequest, HeldCall
from runner.consent.verdict import Heard, Verdict, heard_in, verdict

CALL = HeldCall(host_name="pay", kind="plugin", name="pay", label="pay", arguments="{}", values={}, digest="d")
ASKED = 1_000
REQUEST = ConsentRequest(calls=[CALL], asker="ann", who="asker", run_id="r", asked_at=ASKED, words=True)
YES, NO = Heard("ann", "Ann", agrees=True, at=ASKED + 5), Heard("ann", "Ann", agrees=False, at=ASKED + 5)


def of(heard: Heard, request: ConsentRequest = REQUEST, *, now: float = ASKED + 9, shown_at: float = 0) -> Verdict:
    return verdict(request, heard, Agree.ASKER, now, shown_at)


def test_M3_a_yes_agrees_and_anything_else_refuses() -> None:
    assert (of(YES), of(NO)) == (Verdict.AGREED, Verdict.REFUSED)


def test_M3_a_yes_that_was_sent_before_the_request_was_shown_agrees_to_nothing() -> None:
    assert of(YES, shown_at=ASKED + 6.2) is Verdict.REFUSED
    assert of(YES, shown_at=ASKED + 5.9) is Verdict.AGREED, "the Host counts whole seconds"


def test_M5_a_press_counts_for_its_own_request_alone() -> None:
    pressed = Heard("ann", "Ann", agrees=True, pressed=REQUEST.key)
    other = Heard("ann", "Ann", agrees=True, pressed="runner.consent.other")
    assert (of(pressed), of(other)) == (Verdict.AGREED, Verdict.NOTHING)


def test_M4_where_words_cannot_agree_they_mean_nothing() -> None:
    assert of(YES, REQUEST.model_copy(update={"words": False})) is Verdict.NOTHING


def test_M3_what_others_say_means_nothing() -> None:
    assert of(Heard("eve", "Eve", agrees=True)) is Verdict.NOTHING
    assert of(Heard(None, "", agrees=True), REQUEST.model_copy(update={"asker": None})) is Verdict.NOTHING


def test_M2_it_lapses_to_the_second() -> None:
    assert of(YES, now=ASKED + SECONDS - 1) is Verdict.AGREED
    assert of(YES, now=ASKED + SECONDS) is Verdict.LAPSED


@pytest.mark.parametrize(
    ("said", "agrees"),
    [
        ({"text": "yes", "contents": [{"type": "text", "text": "yes"}]}, True),
        (
            {
                "text": "yes",
                "contents": [{"type": "text", "text": "yes"}, {"type": "image_base64", "image_base64": "x"}],
            },
            False,
        ),
        ({"text": "yes", "attachments": [{"type": "file", "source": "url", "name": "plan.pdf"}]}, False),
        ({"text": "type='Quote' id='1' origin=MessageChain([Plain('no?')])yes"}, True),
        ({"text": "type='Quote' id='1' origin=MessageChain([Plain('yes')])"}, False),
    ],
)
def test_M3_a_message_is_a_yes_by_its_own_words_alone(said: dict[str, object], agrees: bool) -> None:
    assert heard_in(AgentInput.model_validate(said), "ann", "Ann").agrees is agrees
