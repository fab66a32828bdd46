"""K1: every requester of LangBot before the provider it is made for, and each rule of that provider bites."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from tests.providers import page
from tests.providers.catalogue import DRIVEN, NOT_DRIVEN, Case, chat_requesters
from tests.providers.dialect import Dialect
from tests.providers.dialects.anthropic import Anthropic
from tests.providers.dialects.deepseek import DeepSeekR1
from tests.providers.dialects.gemini import Gemini
from tests.providers.dialects.mistral import VLLMWithoutTools
from tests.providers.dialects.ollama import OllamaWithoutTools
from tests.providers.dialects.qwen import QwenGateway
from tests.providers.legal import ANTHROPIC, CHAT, GEMINI, Break, legal
from tests.providers.server import Provider
from tests.providers.situations import SITUATIONS, Situation

# Every requester of LangBot before the provider it is made for, in every situation.

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


# Each rule of each scripted provider bites: a request that breaks it is refused, with that provider's words.

ODD = (DeepSeekR1, OllamaWithoutTools, QwenGateway, VLLMWithoutTools)
DIALECTS: list[Dialect] = [make() for make in dict.fromkeys([*(case.dialect for case in DRIVEN), *ODD])]
RULES = [(dialect, rule.name) for dialect in DIALECTS for rule in dialect.rules]

every_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.name)
every_rule = pytest.mark.parametrize(("dialect", "rule"), RULES, ids=lambda one: getattr(one, "name", one))


def breaks_of(dialect: Dialect) -> dict[str, Break]:
    match dialect:
        case Anthropic():
            return ANTHROPIC
        case Gemini():
            return GEMINI
        case _:
            return CHAT


@every_dialect
def test_K1_a_legal_request_is_taken(dialect: Dialect) -> None:
    assert dialect.refusal(dialect.heard(*legal(dialect))) is None


@every_rule
def test_K1_a_request_that_breaks_a_rule_is_refused_for_it(dialect: Dialect, rule: str) -> None:
    path, body = legal(dialect)
    breaks_of(dialect)[rule](body)
    refusal = dialect.refusal(dialect.heard(path, body))
    assert refusal is not None
    assert refusal.rule == rule


@every_dialect
def test_K1_the_provider_tells_the_refusal_in_its_own_form(dialect: Dialect) -> None:
    path, body = legal(dialect)
    breaks_of(dialect)[dialect.rules[-1].name](body)
    with Provider(dialect) as provider:
        answer = httpx.post(f"http://127.0.0.1:{provider.port}{path}", json=body, trust_env=False)
        (refusal,) = provider.refusals
    assert (answer.status_code, answer.json()) == (refusal.status, dialect.error(refusal.status, refusal.words))


def test_K1_no_break_is_left_without_its_rule() -> None:
    for kind, breaks in ((Anthropic, ANTHROPIC), (Gemini, GEMINI)):
        assert breaks.keys() == {rule.name for rule in kind.rules}
    others = [dialect for dialect in DIALECTS if not isinstance(dialect, Anthropic | Gemini)]
    assert CHAT.keys() == {rule.name for dialect in others for rule in dialect.rules}
