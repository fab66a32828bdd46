"""F2: the local tokenizer plans, downloads nothing, and never fails."""

from __future__ import annotations

import base64
import hashlib
import random
import shutil
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langbot_plugin.api.entities.builtin.provider.message import ContentElement

from runner.context import tokens
from runner.context.tokens import (
    IMAGE_TOKENS,
    MESSAGE_TOKENS,
    VOCABULARY,
    Ruler,
    Tokenizer,
    VocabularyBroken,
    build_encoding,
    guess_tokens,
    load_tokenizer,
    read_vocabulary,
)
from runner.conversation.units import AssistantTurn, Image, Other, ToolCall, ToolResult, Unit, UserTurn
from tests.context.conversations import assistant, ruler, texts, tokenizer, user

TIKTOKEN_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"


def test_F2_the_shipped_vocabulary_is_tiktokens_own_file_byte_for_byte() -> None:
    ranks = read_vocabulary()
    text = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items())
    assert hashlib.sha256(text).hexdigest() == TIKTOKEN_SHA256


def test_F2_the_licence_stands_beside_the_vocabulary() -> None:
    assert "MIT License" in VOCABULARY.with_name("LICENSE").read_text("utf-8")


async def test_F2_loading_opens_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the tokenizer went to the network")

    monkeypatch.setattr(tokens, "_shared", None)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    loaded = await load_tokenizer()
    assert loaded.exact
    assert loaded.estimate("The quick brown fox") == 4
    assert await load_tokenizer() is loaded


@pytest.mark.parametrize("damage", ["missing", "no checksum", "cut short", "other bytes"])
async def test_F2_a_damaged_vocabulary_falls_back_to_characters(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / VOCABULARY.name
    sums = tmp_path / (VOCABULARY.name + ".sha256")
    shutil.copy(VOCABULARY, copy)
    shutil.copy(VOCABULARY.with_name(sums.name), sums)
    if damage == "missing":
        copy.unlink()
    elif damage == "no checksum":
        sums.write_text("")
    else:
        data = VOCABULARY.read_bytes()
        copy.write_bytes(data[:1000] if damage == "cut short" else b"\0" + data[1:])
    with pytest.raises(VocabularyBroken):
        read_vocabulary(copy)
    monkeypatch.setattr(tokens, "_shared", None)
    monkeypatch.setattr(tokens, "build_encoding", lambda: build_encoding(copy))
    loaded = await load_tokenizer()
    assert not loaded.exact
    assert loaded.estimate("hello world, how are you?") == guess_tokens("hello world, how are you?") > 0
    monkeypatch.setattr(tokens, "_shared", None)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("The deployment failed because the disk was full. " * 40, 0.15, 0.3),
        ("部署失败，因为磁盘已满。请检查服务器配置并重试。" * 40, 0.6, 1.5),
        ("def run(self, x: int) -> int:\n    return self.y + x\n" * 40, 0.2, 0.45),
        (base64.b64encode(random.Random(1).randbytes(6_000)).decode(), 0.6, 1.0),
        ("a" * 50_000, 0.1, 0.3),
        (" " * 50_000, 0.005, 0.05),
        ("没有标点的长句子" * 5_000, 0.6, 1.6),
    ],
    ids=["english", "chinese", "code", "base64", "one letter", "spaces", "unbroken chinese"],
)
def test_F2_every_kind_of_text_gets_a_sensible_price(text: str, least: float, most: float) -> None:
    assert least <= tokenizer().estimate(text) / len(text) <= most


@given(texts(5_000), texts(5_000))
def test_F2_the_price_of_two_texts_together_is_about_the_sum(first: str, second: str) -> None:
    apart = tokenizer().estimate(first) + tokenizer().estimate(second)
    # Joined texts may share up to one token at each of the runs cut at 128 characters.
    slack = 3 + (len(first) + len(second)) // 64
    assert abs(tokenizer().estimate(first + second) - apart) <= slack


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Z", "C", "M"]), max_size=400))
def test_F2_any_text_at_all_has_a_price(text: str) -> None:
    assert (tokenizer().estimate(text) > 0) == bool(text)
    assert (guess_tokens(text) > 0) == bool(text)


def test_F2_lone_surrogates_and_control_tokens_are_priced_as_text() -> None:
    assert tokenizer().estimate("a\ud800b") > 0
    assert tokenizer().estimate("<|endoftext|>") > 1


def test_F2_a_very_long_text_is_sampled_and_the_price_stays_near() -> None:
    piece = "Line of a log file with a number 12345 and a path /var/log/app.log\n"
    long = piece * 10_000
    exact = tokenizer().estimate(piece * 1_000) * 10
    assert abs(tokenizer().estimate(long) - exact) < exact * 0.05


def test_F2_pictures_have_a_fixed_price_whatever_their_bytes() -> None:
    small = UserTurn((Image(base64="QUJD"),))
    large = UserTurn((Image(base64="QUJD" * 100_000),))
    assert ruler().unit(small) == ruler().unit(large) == IMAGE_TOKENS + MESSAGE_TOKENS
    assert ruler().part(Other(ContentElement(type="file_url", file_url="https://x/y"))) == IMAGE_TOKENS
    assert ruler().part(Other(ContentElement.from_text("two words"))) == 2


def test_F2_a_unit_costs_its_text_its_calls_and_its_results() -> None:
    plain = AssistantTurn("done")
    with_call = AssistantTurn(
        "done", (ToolCall("1", "read", '{"path": "x"}'),), (ToolResult("1", "read", "word " * 50),)
    )
    assert ruler().unit(with_call) >= ruler().unit(plain) + 50


def test_Q2_a_unit_is_tokenised_once() -> None:
    seen: list[str] = []

    class Watching(Tokenizer):
        def estimate(self, text: str) -> int:
            seen.append(text)
            return len(text)

    watched = Ruler(Watching(None))
    units: tuple[Unit, ...] = (user("long" * 5), assistant("more" * 5))
    total = sum(map(watched.unit, units))
    assert total == sum(map(watched.unit, units)) == 40 + 2 * MESSAGE_TOKENS
    assert seen == ["long" * 5, "more" * 5]
