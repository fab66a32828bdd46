"""F1, F2, F3, C7: how large a request may be, how its tokens are counted, and how an overflow is recognised."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langbot_plugin.api.entities.builtin.provider.message import ContentElement

from runner.context import tokens
from runner.context.budget import LEAST_WINDOW, Budget, planning_scale
from runner.context.clipping import clip_tokens
from runner.context.meter import CountFailed, Meter, counting_unavailable
from runner.context.overflow import HOST_RATE_LIMITS, HOST_TEXTS, Overflow, is_overflow, recognise
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
from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import AssistantTurn, Image, Other, System, Text, ToolCall, ToolResult, Unit, UserTurn
from runner.host.errors import CountingUnavailable, HostCallFailed, HostFailure, ModelFailed, ModelTrouble
from runner.host.events import Json
from tests.context.conversations import assistant, ruler, texts, tokenizer, tool_turn, user

# F1 and C7: how large a request may be.


def test_F1_the_input_budget_is_the_window_less_the_reserve() -> None:
    assert Budget.of(200_000, 16_384).input == 183_616


def test_F1_the_reserve_is_at_most_a_quarter_of_the_window() -> None:
    assert Budget.of(8_000, 16_384) == Budget(8_000, 2_000)


@pytest.mark.parametrize("reported", [None, 0, -1, True, "128000", 128_000.0, [], {}])
def test_F1_a_window_the_host_does_not_really_report_changes_nothing(reported: Json) -> None:
    assert Budget.of(100_000, 10_000, reported=reported) == Budget.of(100_000, 10_000)


def test_F1_the_hosts_window_counts_up_to_the_setting() -> None:
    assert Budget.of(100_000, 10_000, reported=32_000).window == 32_000
    assert Budget.of(100_000, 10_000, reported=1_000_000).window == 100_000


def test_C7_a_learned_window_holds_where_it_is_smaller() -> None:
    assert Budget.of(100_000, 10_000, reported=64_000, learned=30_000).window == 30_000
    assert Budget.of(100_000, 10_000, learned=300_000).window == 100_000
    assert Budget.of(100_000, 10_000, learned=3).window == 100_000


def test_C7_a_refusal_halves_what_was_counted_or_keeps_a_smaller_budget() -> None:
    budget = Budget.of(100_000, 10_000)
    assert budget.tighter(40_000).input == 20_000
    assert budget.tighter(40_000).tighter(20_000).input == 10_000
    assert budget.tighter(400_000).input == 90_000


@given(st.integers(-10, 10**7), st.integers(-10, 10**7), st.integers(0, 10**7))
def test_F1_every_budget_leaves_room_for_input(window: int, reserve: int, counted: int) -> None:
    budget = Budget.of(window, reserve)
    assert budget.window >= LEAST_WINDOW
    assert 0 < budget.tighter(counted).input <= budget.input <= budget.window
    assert budget.input >= budget.window * 3 // 4
    assert budget.near <= budget.input


def test_F2_the_scale_is_the_ratio_of_both_counts_within_bounds() -> None:
    assert planning_scale(300, 200) == 1.5
    assert planning_scale(0, 200) == planning_scale(300, 0) == 1.0
    assert planning_scale(10**9, 1) == 4.0


# F2: the local tokenizer plans, downloads nothing, and never fails.

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


# F2: the Host's counts decide, each token is counted once, and a count that fails never becomes a guess.

BUDGET = Budget(10_000, 1_000)
SYSTEM = System((Text("be helpful"),))
TOOL = ToolSpec("read", "reads", {"type": "object"})


class Host:
    """Counts 100 tokens a unit, 50 for a system message, 30 a tool, 3 for every call; fails as told."""

    def __init__(self, *failures: HostCallFailed | object) -> None:
        self.failures = list(failures)
        self.asked: list[tuple[str, int]] = []

    async def count(self, model: str, request: Request) -> int:
        self.asked.append((model, len(request.units)))
        if self.failures:
            failure = self.failures.pop(0)
            if isinstance(failure, HostCallFailed):
                raise failure
            if failure is not None:
                return failure  # type: ignore[return-value]
        fixed = 50 if request.system.parts else 0
        return 3 + fixed + 30 * len(request.tools) + 100 * len(request.units)


def refused(text: str = "busy", kind: HostFailure = HostFailure.REFUSED) -> HostCallFailed:
    return HostCallFailed("count_tokens", kind, text)


async def test_F2_the_whole_request_is_counted_once_and_then_only_what_was_added() -> None:
    host = Host()
    meter = Meter(host.count)
    request = Request(SYSTEM, (user("a"), assistant("b"), user("c")), (TOOL,))
    assert await meter.measure(request, model="m", budget=BUDGET) == 383
    longer = replace(request, units=(*request.units, tool_turn("x"), user("more")))
    assert await meter.measure(longer, model="m", budget=BUDGET) == 383 + 203
    assert await meter.measure(longer, model="m", budget=BUDGET) == 586
    assert host.asked == [("m", 3), ("m", 2)]
    assert meter.calls == 2


@pytest.mark.parametrize("change", ["model", "system", "tools", "units", "fewer"])
async def test_F2_anything_but_added_units_is_counted_whole(change: str) -> None:
    host = Host()
    meter = Meter(host.count)
    request = Request(SYSTEM, (user("a"), assistant("b"), user("c")), (TOOL,))
    await meter.measure(request, model="m", budget=BUDGET)
    changed = {
        "model": request,
        "system": replace(request, system=replace(SYSTEM, summary="s")),
        "tools": replace(request, tools=()),
        "units": replace(request, units=(user("a"), *request.units[1:])),
        "fewer": replace(request, units=request.units[2:]),
    }[change]
    await meter.measure(changed, model="other" if change == "model" else "m", budget=BUDGET)
    assert host.asked[1] == ("other" if change == "model" else "m", len(changed.units))


async def test_F2_the_request_is_counted_whole_where_it_nears_the_budget_and_where_its_sum_exceeds_it() -> None:
    host = Host()
    meter = Meter(host.count)
    budget = Budget(1_000, 0)
    units: tuple[Unit, ...] = tuple(user(str(place)) for place in range(4))
    sizes: list[int] = []
    for _ in range(6):
        units = (*units, user("x"))
        sizes.append(await meter.measure(Request(SYSTEM, units), model="m", budget=budget))
    assert sizes == [553, 656, 759, 862, 953, 1053]
    assert host.asked == [("m", 5), *[("m", 1)] * 4, ("m", 9), ("m", 1), ("m", 10)]


async def test_F2_between_there_and_the_budget_only_what_was_added_is_counted() -> None:
    host = Host()
    meter = Meter(host.count)
    budget = Budget(1_000, 0)
    units: tuple[Unit, ...] = tuple(user(str(place)) for place in range(9))
    assert await meter.measure(Request(SYSTEM, units), model="m", budget=budget) == 953
    wider = Budget(1_058, 0)
    assert await meter.measure(Request(SYSTEM, (*units, user("x"))), model="m", budget=wider) == 1_056
    assert host.asked == [("m", 9), ("m", 1)]


async def test_Q1_a_hundred_tool_rounds_cost_a_hundred_and_one_counts() -> None:
    host = Host()
    meter = Meter(host.count)
    units: tuple[Unit, ...] = (user("go"),)
    budget = Budget(200_000, 16_384)
    for number in range(101):
        await meter.measure(Request(SYSTEM, units), model="m", budget=budget)
        units = (*units, tool_turn("r", number))
    assert meter.calls == 101


@pytest.mark.parametrize("first", [refused(), refused(kind=HostFailure.TIMEOUT), 0, -5, True, "12", None])
async def test_F2_a_count_that_fails_in_passing_is_tried_once_more(first: object) -> None:
    host = Host(first)
    meter = Meter(host.count)
    assert await meter.measure(Request(SYSTEM, (user("a"),)), model="m", budget=BUDGET) == 153
    assert meter.calls == (1 if first is None else 2)


async def test_F2_a_count_that_fails_twice_is_that_models_failure() -> None:
    meter = Meter(Host(refused(), refused("late", HostFailure.TIMEOUT)).count)
    with pytest.raises(ModelFailed) as caught:
        await meter.measure(Request(SYSTEM, (user("a"),)), model="m", budget=BUDGET)
    assert (caught.value.model_id, caught.value.cause) == ("m", ModelTrouble.TIMEOUT)
    assert await meter.measure(Request(SYSTEM, (user("a"),)), model="n", budget=BUDGET) == 153


async def test_F2_counting_not_granted_ends_the_run_closed() -> None:
    meter = Meter(Host(refused("", HostFailure.DENIED)).count)
    with pytest.raises(CountingUnavailable):
        await meter.measure(Request(SYSTEM, (user("a"),)), model="m", budget=BUDGET)
    assert CountingUnavailable.code == "runner.token_count_unavailable"


async def test_F2_a_model_the_host_cannot_count_for_is_not_asked_twice() -> None:
    text = "ActionCallError: Token counting failed: This requester does not support token counting"
    meter = Meter(Host(refused(text)).count)
    with pytest.raises(CountFailed) as caught:
        await meter.measure(Request(SYSTEM, (user("a"),)), model="m", budget=BUDGET)
    assert meter.calls == 1
    assert isinstance(counting_unavailable((caught.value,)), CountingUnavailable)
    assert counting_unavailable((caught.value, ModelFailed("n", ModelTrouble.AUTH, ""))) is None
    assert counting_unavailable(()) is None


async def test_F2_a_failed_count_leaves_the_last_good_one_in_place() -> None:
    host = Host()
    meter = Meter(host.count)
    request = Request(SYSTEM, (user("a"),))
    await meter.measure(request, model="m", budget=BUDGET)
    longer = replace(request, units=(*request.units, user("b")))
    host.failures = [refused(), refused()]
    with pytest.raises(ModelFailed):
        await meter.measure(longer, model="m", budget=BUDGET)
    assert await meter.measure(longer, model="m", budget=BUDGET) == 153 + 103


# F3: a text cut to tokens keeps head and tail, and says that something is gone.


@given(texts(4_000), st.integers(30, 400))
def test_F3_a_text_is_cut_to_tokens_and_says_so(text: str, tokens: int) -> None:
    long = text * 20
    kept = clip_tokens(long, tokens, tokenizer().estimate)
    assert tokenizer().estimate(kept) <= tokens
    assert kept == long or "characters cut" in kept


def test_F3_a_text_that_fits_is_the_same_object() -> None:
    text = "short enough"
    assert clip_tokens(text, 10, tokenizer().estimate) is text


def test_F3_head_and_tail_both_stay() -> None:
    kept = clip_tokens("FIRST " + "middle " * 3_000 + "LAST", 60, tokenizer().estimate)
    assert kept.startswith("FIRST") and kept.endswith("LAST")


# C7: an overflow is recognised by the Host's words, the provider's, or its size; a rate limit never is.

CASES = Path(__file__).parents[1] / "runs" / "cases" / "overflow_errors.jsonl"

OWN_CASES = (
    (True, "litellm.BadRequestError: prompt is too long: 215000 tokens > 200000 maximum"),
    (True, "This endpoint's maximum context length is 32768 tokens. However, you requested about 40100 tokens."),
    (True, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    (True, "Please reduce the length of the messages or completion."),
    (True, "输入内容过长，超过模型支持的最大长度"),
    (True, "Requested tokens (5000) exceed context window of 4096"),
    (True, "request (9000 tokens) exceeds the available context size (8192 tokens)"),
    (True, "413 (no body)"),
    (False, "max_tokens must be at most 8192"),
    (False, "429 Too Many Requests: input tokens per minute exceeded"),
    (False, "You exceeded your current quota, please check your plan"),
    (False, "Invalid API key"),
    (False, "Connection failed"),
    (False, "tool_call_id call_0 was not found in messages"),
    (False, "请求过于频繁，请稍后再试"),
)


def recorded_cases() -> tuple[tuple[bool, str], ...]:
    rows = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]
    return tuple((row["is_context_overflow"], row["message"]) for row in rows)


@pytest.mark.parametrize(("overflow", "text"), (*OWN_CASES, *recorded_cases()))
def test_C7_provider_texts_are_told_apart(overflow: bool, text: str) -> None:
    assert is_overflow(text, counted=1_000, window=100_000) is overflow
    wrapped = f"ActionCallError: RequesterError: Model request failed: {text}"
    assert is_overflow(wrapped, counted=1_000, window=100_000) is overflow


@pytest.mark.parametrize("text", HOST_TEXTS)
def test_C7_the_hosts_sentence_is_known_in_each_of_its_languages(text: str) -> None:
    assert recognise(f"RequesterError: x: {text.upper()}", counted=10, window=100_000) is Overflow.SAID


@pytest.mark.parametrize("text", HOST_RATE_LIMITS)
def test_C7_a_rate_limit_is_no_overflow_even_near_the_window(text: str) -> None:
    assert not is_overflow(f"RequesterError: x: {text}", counted=99_000, window=100_000)


def test_C7_there_is_a_sentence_for_each_of_the_eight_languages() -> None:
    assert len(set(HOST_TEXTS)) == len(set(HOST_RATE_LIMITS)) == 8


@pytest.mark.parametrize("text", ["Invalid request parameters", "API error", "", "请求参数错误"])
def test_C7_any_failure_within_a_tenth_of_the_window_may_be_one(text: str) -> None:
    assert recognise(text, counted=90_000, window=100_000) is Overflow.CLOSE
    assert recognise(text, counted=74_000, window=100_000, reserve=16_000) is Overflow.CLOSE
    assert recognise(text, counted=89_999, window=100_000) is Overflow.NONE
