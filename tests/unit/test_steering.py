"""G1: follow-ups become user turns, in order, with their speaker."""

from __future__ import annotations

import pytest

from runner.conversation.speakers import Speakers
from runner.conversation.units import Image, Text
from runner.steering import Steering
from tests.unit.border import Handler, context, follow_up, host_over


def steering(answer: object, *, group: bool = False, apis: dict[str, bool] | None = None) -> tuple[Steering, Handler]:
    handler = Handler(answers={"steering_pull": answer})
    ctx = context(apis={"steering_pull": True} if apis is None else apis)
    return Steering(host_over(handler, ctx), Speakers(group, {"u1": "Ann"})), handler


async def test_G1_items_become_one_user_turn_in_the_order_sent() -> None:
    pulled, _ = steering({"items": [follow_up("one"), follow_up("two")]})
    turn = await pulled.pull()
    assert turn is not None and turn.parts == (Text("one"), Text("two"))
    assert pulled.pulled == 2


async def test_G1_in_a_group_each_item_names_its_speaker_new_names_included() -> None:
    items = [follow_up("one", "u1", None), follow_up("two", "u2", "Bob"), follow_up("three", "u3", None)]
    pulled, _ = steering({"items": items}, group=True)
    turn = await pulled.pull()
    assert turn is not None and turn.text() == "[Ann] one\n\n[Bob] two\n\n[u3] three"


async def test_G1_pictures_of_a_follow_up_come_along() -> None:
    item = follow_up("look")
    item["input"] = {"text": "look", "contents": [{"type": "image_base64", "image_base64": "aGk="}]}
    pulled, _ = steering({"items": [item]})
    turn = await pulled.pull()
    assert turn is not None and turn.parts == (Text("look"), Image(base64="aGk="))


async def test_G1_nobody_spoke_is_no_turn() -> None:
    pulled, _ = steering({"items": []})
    assert await pulled.pull() is None


@pytest.mark.parametrize("odd", [RuntimeError("x"), {"items": 5}, {"items": [{}]}, [], {"items": [None]}])
async def test_Q4_a_pull_that_fails_is_counted_and_silence(odd: object) -> None:
    pulled, _ = steering(odd)
    assert await pulled.pull() is None
    assert pulled.failed_pulls == 1 and pulled.pulled == 0


async def test_G1_where_the_host_offers_no_steering_it_is_not_asked() -> None:
    pulled, handler = steering({"items": [follow_up("x")]}, apis={})
    assert await pulled.pull() is None
    assert handler.calls == [] and pulled.failed_pulls == 0
