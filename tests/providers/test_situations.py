"""Every requester of LangBot before the provider it is made for, in every situation."""

from __future__ import annotations

import asyncio

import pytest

from tests.providers import page
from tests.providers.catalogue import DRIVEN, NOT_DRIVEN, Case, chat_requesters
from tests.providers.situations import SITUATIONS, Situation

LONG = 60
"""Seconds after which a chat hangs, on any machine."""


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: one.name)
@pytest.mark.parametrize("case", DRIVEN, ids=str)
async def test_K1_each_provider_is_spoken_to_as_it_wants(case: Case, situation: Situation) -> None:
    async with asyncio.timeout(LONG):
        await situation.play(case)


def test_K1_every_chat_requester_that_langbot_ships_is_driven_or_named() -> None:
    assert sorted({case.requester for case in DRIVEN} | NOT_DRIVEN.keys()) == chat_requesters()


def test_K1_the_page_tells_what_is_driven() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert text == page.written(text), "run `python -m tests.providers.page`"
