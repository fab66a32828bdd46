"""Two sights of one scenario: what counts as a difference, and what is only another name for the same thing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.host.seen import Seen, SeenRow, SeenTurn, contrast


def seen(offset: int = 0, **turn: Any) -> Seen:
    """A chat of one question on a Host whose numbers begin at `offset`."""
    page = f'[{{"next_cursor": "{offset + 1}", "seq": {offset + 2}}}]'
    told = SeenTurn(
        cards=[("He", "Hello")],
        requests=[{"model": "m1", "messages": [{"role": "user", "content": "hi"}]}],
        results=[("message.completed", {"message": {"content": page}})],
        status="completed",
        reason="stop",
        usage={"total_tokens": 10},
    )
    rows = [SeenRow(offset + n, role, "hi", {"content": "hi"}, [], {}) for n, role in ((1, "user"), (2, "assistant"))]
    return Seen([replace(told, **turn)], rows, {f"run-{offset}": "<run>"})


def test_numbers_and_ids_of_the_host_are_no_difference() -> None:
    here, there = seen(0, reason="run-0 on 2026-01-02"), seen(40, reason="run-40 on 2026-03-04T05:06:07Z")
    assert contrast(here, there, {}) == []


@pytest.mark.parametrize(
    ("turn", "path"),
    [
        ({"cards": [("He", "Hello!")]}, "/turns/0/cards/0/text"),
        ({"cards": [("Ho", "Hello")]}, "/turns/0/cards/0/grew"),
        ({"cards": []}, "/turns/0/cards"),
        ({"status": "failed"}, "/turns/0/status"),
        ({"usage": {"total_tokens": "10"}}, "/turns/0/usage/total_tokens"),
        ({"requests": []}, "/turns/0/requests"),
        ({"results": [("message.completed", {})]}, "/turns/0/results/0/1/message"),
        (
            {"results": [("message.completed", {"message": {"content": '[{"next_cursor": "2", "seq": 2}]'}})]},
            "/turns/0/results/0/1/message/content/list/0/next_cursor",
        ),
        (
            {"results": [("message.completed", {"message": {"content": '[{"next_cursor": 1, "seq": 2}]'}})]},
            "/turns/0/results/0/1/message/content/list/0/next_cursor",
        ),
    ],
)
def test_everything_else_is_one(turn: dict[str, Any], path: str) -> None:
    (found,) = contrast(seen(), seen(**turn), {})
    assert found.startswith(f"{path}: ")
    assert contrast(seen(), seen(**turn), {path: "known"}) == []


def test_a_row_that_is_stored_otherwise_is_a_difference() -> None:
    other = seen()
    changed = replace(other, rows=[other.rows[0], replace(other.rows[1], content_json={"content": None})])
    (found,) = contrast(seen(), changed, {})
    assert found == "/rows/1/content_json/content: 'hi' / None"
