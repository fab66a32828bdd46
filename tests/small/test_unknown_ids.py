"""Sg: which arguments are ids that a model cannot have read anywhere."""

from __future__ import annotations

from typing import Any

import pytest

from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import AssistantTurn, Reference, System, Text, ToolCall, ToolResult, UserTurn
from runner.small.unknown_ids import unknown_id

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"list_id": {"type": "string", "default": "inbox"}, "kind_id": {"enum": [7, 8]}},
}


def request() -> Request:
    call = ToolCall("c1", "find", '{"id": "made-up-before"}')
    found = ToolResult("c1", "find", '{"orderId": 4711, "key": "cus_9s6XKzkNRiz8i3"}')
    units = (
        UserTurn((Text("Where is px-204? My Telegram is 55, code１２."), Reference("Manual of Z-900"))),
        AssistantTurn("I look at ticket 12.", (call,), (found,)),
    )
    return Request(System((Text("Shop SHOP-77."),), ("You are in room R-42.",)), units, (ToolSpec("find", "", SCHEMA),))


@pytest.mark.parametrize(
    ("arguments", "unknown"),
    [
        ({"id": "4711"}, None),
        ({"orderId": 4711}, None),
        ({"order_id": 471}, ("order_id", "471")),
        ({"order_id": 5}, ("order_id", "5")),
        ({"number": "PX-204"}, None),
        ({"number": "PX-205"}, ("number", "PX-205")),
        ({"list_id": "inbox"}, None),
        ({"kind_id": 8}, None),
        ({"kind_id": 9}, ("kind_id", "9")),
        ({"ticket-id": "12", "shop": "SHOP-77", "room": "R-42", "model": "Z-900"}, None),
        ({"ids": ["4711", "4712"]}, ("ids", "4712")),
        ({"deep": [{"userId": "u1"}]}, ("userId", "u1")),
        ({"customer": "cus_9s6XKzkNRiz8i3"}, None),
        ({"customer": "cus_XXXXXXXXXXXXXX"}, ("customer", "cus_XXXXXXXXXXXXXX")),
        ({"which": "123e4567-e89b-12d3-a456-426614174000"}, ("which", "123e4567-e89b-12d3-a456-426614174000")),
        ({"id": "made-up-before"}, ("id", "made-up-before")),
        ({"id": ""}, None),
        ({"id": None, "paid": "5", "valid": 9, "date": "2026-03-04", "city": "Oslo", "file": "app2.py"}, None),
        ({"is_id": True}, None),
    ],
)
def test_Sg_an_id_is_unknown_when_it_stands_in_no_message_result_or_schema(
    arguments: dict[str, Any], unknown: tuple[str, str] | None
) -> None:
    assert unknown_id(arguments, request()) == unknown
