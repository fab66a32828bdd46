"""What a line of the log may hold, whatever a Host or a provider says (docs/security.md)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.guards import HIDDEN, loggable

KEY = "q8Zr2Lw9Tn4Xc7Vb1Md6Hs3J"


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: sk-{KEY}",
        f"sk-proj-{KEY}_{KEY}",
        f"Authorization: Bearer {KEY}",
        f"{{'authorization': 'Basic {KEY}='}}",
        f'{{"api_key": "{KEY}", "model": "m"}}',
        f"x-api-key={KEY}",
        f"https://user:{KEY}@proxy.example:8080/v1",
        f"GET /v1?access_token={KEY}&limit=3",
        f"client_secret : {KEY}",
        f"password={KEY}",
        f"ghp_{KEY} and xoxb-{KEY}",
        f"AIza{KEY}{KEY}",
        f"123456789:{KEY}{KEY}",
        f"eyJhbGciOiJIUzI1NiJ9.{KEY}.{KEY}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_a_key_is_hidden_wherever_a_client_may_put_it(text: str) -> None:
    shown = loggable(text)
    assert KEY not in shown
    assert HIDDEN in shown


@pytest.mark.parametrize(
    "text",
    [
        "model m1: rate_limit: Model request failed: Rate limit exceeded or insufficient balance",
        "the newest message alone needs 300 tokens and the input budget leaves it 200: raise `context-window-tokens`.",
        "run: answered in 1.2 s: 3 model turns, 2 tool calls in 1 round (0 failed), 5 tokens in and 1 out",
        "model request failed: Invalid API key",
        "knowledge base 3f2b8c1e-7d55-4a56-9c55-0d8f1f4a7a11 was skipped: retrieve: timeout: no answer in time",
        "见 https://example.org:8080/a?b=c，第 3 行 👩‍👩‍👧",
    ],
)
def test_a_line_without_a_key_stays_as_it_is(text: str) -> None:
    assert loggable(text) == text


def test_a_line_cannot_pass_for_two() -> None:
    shown = loggable("gone\r\nrun: answered\u2028run: again\x85run: once more\x0brun: end")
    assert [line for line in shown.splitlines() if line.startswith("run:")] == []
    assert shown.count("run:") == 4


@given(st.text())
def test_a_line_has_no_character_that_is_not_seen(text: str) -> None:
    shown = loggable(text)
    assert {unicodedata.category(character) for character in shown if character not in "\n\t\u200c\u200d"} & {
        "Cc",
        "Cf",
        "Cs",
        "Co",
    } == set()
    assert loggable(shown).replace(" ", "") == shown.replace(" ", "")


@pytest.mark.parametrize(
    "unit", ["sk-", "eyJ", "eyJ-", "://a:", "token=", "bearer ", "123456789:", "AIza-", "-----BEGIN "]
)
def test_a_line_is_read_a_bounded_number_of_times(unit: str) -> None:
    # A quadratic pattern would not come back from a text this long within minutes.
    assert loggable(unit * (200_000 // len(unit)))
