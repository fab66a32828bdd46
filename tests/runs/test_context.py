"""Long conversations through whole runs: no request is refused, no question lost, few calls (F2-F6, Q1)."""

from __future__ import annotations

from random import Random

import pytest

from runner.context import tokens
from tests.host import (
    Fault,
    Model,
    ModelRequest,
    Reason,
    Reply,
    RunRecord,
    TestHost,
    Tool,
    ToolCall,
    mcp_content,
)
from tests.host.tokens import count_text

from .long_chats import (
    FACT,
    SHOWING,
    assert_within,
    budget_of,
    chats,
    chatter,
    copied,
    fact,
    model_that,
    nowhere,
    prose,
    stored,
    summaries,
    summary_in,
    waited,
    window,
)
from .scenes import NUMBERED, assert_sound, counted, host_with, rounds_of


async def test_L11_a_chat_that_fits_never_loads_the_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise AssertionError("nothing was to be cut")

    monkeypatch.setattr(tokens, "_shared", None)
    monkeypatch.setattr(tokens, "build_encoding", refuse)
    look = Tool("look", result="The whole text.")
    host = host_with(replies=[Reply(tool_calls=[ToolCall("look")]), "Here."], tools=[look])
    chatter(host, Random(1), 20, 60)
    for text in ("Look it up.", "And now?"):
        await assert_sound(host, await host.say(text))


async def test_L11_the_vocabulary_is_loaded_when_the_first_cut_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_shared", None)
    host = host_with(models=[Model("m1", default=model_that())], config=window(3_000))
    await host.say("Hello.")
    assert vars(tokens)["_shared"] is None
    chatter(host, Random(1), 30, 160)
    run = await host.say("And now?")
    assert run.final_text == "Noted."
    assert vars(tokens)["_shared"].exact


class Chat:
    """A chat of hundreds of turns with a model that answers, looks things up, fails, and summarises badly at times.

    `told`: the facts that stood in a request whose summary was fit to be one.
    """

    def __init__(self, seed: int, tokens: int, failures: float) -> None:
        self.random = Random(seed)
        self.failures = failures
        self.told: set[str] = set()
        self.turn = 0
        self.budget = budget_of(tokens)
        models = [Model(name, default=model_that(self.answer, self.summary)) for name in ("m1", "m2")]
        tools = [Tool("look", takes_dict=True, fn=lambda _: f"Found {prose(self.random, 60)}")]
        self.host = host_with(models=models, tools=tools, config=window(tokens, date_grounding=False))

    def fails(self) -> bool:
        return self.random.random() < self.failures

    def answer(self, request: ModelRequest) -> Reply:
        if self.fails():
            # A model that refused everything, whatever its size, would teach a window that holds nothing (C7).
            too_long = [Reason.CONTEXT_LENGTH] if request.tokens > 0.6 * self.budget else []
            return Reply(error=self.random.choice([Reason.CONNECTION, Reason.RATE_LIMIT, *too_long]))
        if self.random.random() < 0.1 and rounds_of(request) < 3:
            return Reply("Looking. ", tool_calls=[ToolCall("look", {"n": self.turn})])
        return Reply(f"It is {fact(self.random, self.turn)}. {prose(self.random, self.random.randint(0, 40))}")

    def summary(self, request: ModelRequest) -> Reply | str:
        if self.fails():
            bad = ["", "<think>hm</think>", "Error: 502 Bad Gateway", "ok"]
            return Reply(error=Reason.TIMEOUT) if self.fails() else self.random.choice(bad)
        self.told |= set(FACT.findall(request.text))
        return copied(request)

    async def say(self) -> RunRecord:
        self.turn += 1
        for action in ("history_page", "state_get", "state_set", "count_tokens"):
            if self.fails():
                self.host.fail(action, Fault.error())
        run = await self.host.say(f"Turn {self.turn}: {fact(self.random, self.turn)}. {prose(self.random, 20)}")
        self.host.faults.clear()
        assert_within(run, self.budget)
        if self.turn % 10 == 0:
            assert nowhere(self.host, self.told) == []
        return run


async def test_F6_five_hundred_turns_with_failures_of_every_kind_lose_no_question_and_no_row() -> None:
    chat = Chat(seed=11, tokens=3_000, failures=0.08)
    ended = [(await chat.say()).status for _ in range(500)]
    assert set(ended) <= {"completed", "failed"}
    assert ended.count("completed") > 450
    assert sum(len(summaries(run)) for run in chat.host.runs) > 50
    chat.failures = 0.0
    chat.host.world.chat_seconds = SHOWING
    for _ in range(150):
        run = await chat.say()
        assert run.status == "completed"
        checkpoint = stored(chat.host)
        assert checkpoint is not None
        if not checkpoint.gaps:
            break
    assert checkpoint is not None and checkpoint.gaps == ()


async def test_Q1_a_hundred_tools_of_20000_characters_take_450_calls_60_mb_and_3_summaries() -> None:
    result = prose(Random(1), 3_400)[:20_000]
    assert len(result) == 20_000

    def answer(request: ModelRequest) -> Reply:
        done = len(tool.calls)
        return Reply(tool_calls=[ToolCall("look", {"n": done})]) if done < 100 else Reply("Done.")

    tool = Tool("look", takes_dict=True, fn=lambda _: result, parameters=NUMBERED)
    host = host_with(models=[Model("m1", default=model_that(answer))], tools=[tool], config=window(200_000))
    run = await host.say("Please look a hundred things up for KEY-4711-1.")
    assert (run.status, run.final_text, len(tool.calls)) == ("completed", "Done.", 100)
    assert counted(run) <= 450
    assert run.calls.bytes_out <= 60_000_000
    assert 1 <= len(summaries(run)) <= 3 or _stubbed(run)
    assert_within(run, budget_of(200_000))


def _stubbed(run: RunRecord) -> bool:
    """Whether stubs alone sufficed: then earlier results are short, and the newest are whole."""
    results = [str(message["content"]) for message in chats(run)[-1].messages if message["role"] == "tool"]
    return len(results) > 90 and len(results[0]) < 1_000 and len(results[-1]) > 10_000


@pytest.mark.parametrize(("rounds", "at_once"), [(30, 1), (2, 9)])
async def test_F4_older_pictures_of_tools_give_way_as_their_results_do(rounds: int, at_once: int) -> None:
    """More screenshots than the window holds; what people said stays."""

    def answer(request: ModelRequest) -> Reply:
        if len(tool.calls) >= rounds * at_once:
            return Reply("Done.")
        done = len(tool.calls)
        return Reply("", tool_calls=[ToolCall("look", {"n": done + place}) for place in range(at_once)])

    shown = mcp_content("shown", {"type": "image_base64", "image_base64": "aGk="})
    tool = Tool("look", takes_dict=True, fn=lambda _: shown, parameters=NUMBERED)
    model = Model("m1", default=model_that(answer), abilities=frozenset({"func_call", "vision"}))
    host = host_with(models=[model], tools=[tool], config=window(8_000))
    run = await host.say("Watch the screen.")
    assert (run.status, run.final_text) == ("completed", "Done.")
    assert len(tool.calls) == rounds * at_once
    assert_within(run, budget_of(8_000))
    await assert_sound(host, run)


@pytest.mark.parametrize(("rounds", "size"), [(100, 500), (30, 20_000)])
async def test_F3_many_tools_in_an_8k_window_keep_the_question_and_the_newest_result(rounds: int, size: int) -> None:
    def answer(request: ModelRequest) -> Reply:
        done = len(tool.calls)
        if done:
            assert f"result {done} " in str(request.messages[-1]["content"])
        return Reply(tool_calls=[ToolCall("look", {"n": done})]) if done < rounds else Reply("Done.")

    random = Random(size)
    tool = Tool(
        "look", takes_dict=True, fn=lambda _: f"This is result {len(tool.calls)} with {prose(random, size // 7)}"
    )
    host = host_with(models=[Model("m1", default=model_that(answer))], tools=[tool], config=window(8_000))
    run = await host.say("Please look a hundred things up for KEY-4711-1.")
    assert (run.status, run.final_text, len(tool.calls)) == ("completed", "Done.", rounds)
    assert counted(run) <= 7 * rounds
    assert_within(run, budget_of(8_000))


@pytest.mark.parametrize("words", ["prose", "Chinese"])
async def test_Q1_four_hundred_rows_cold_into_24k_take_twelve_calls_one_summary_and_the_gap_is_recorded(
    words: str,
) -> None:
    host = host_with(models=[Model("m1", default=model_that())], config=window(32_000))
    facts = chatter(host, Random(3), 400, 300, chinese=words == "Chinese")
    assert 130_000 < sum(count_text(row.text) for row in host.transcript()) < 190_000
    run = await host.say("And what now?")
    assert (run.status, run.final_text) == ("completed", "Noted.")
    assert counted(run) <= 12
    assert len(summaries(run)) == 1
    assert_within(run, 24_000)
    checkpoint = stored(host)
    assert checkpoint is not None
    assert checkpoint.gaps[-1].after is None
    assert nowhere(host, FACT.findall(summaries(run)[0].text)) == []
    assert facts[-1] in chats(run)[0].text


async def test_F6_a_cold_chat_of_months_is_folded_by_later_runs_until_no_gap_is_left() -> None:
    told: set[str] = set()

    def summary(request: ModelRequest) -> str:
        told.update(FACT.findall(request.text))
        return copied(request)

    models = [Model("m1", default=model_that(summary=summary))]
    host = host_with(models=models, config=window(32_000), chat_seconds=SHOWING)
    facts = chatter(host, Random(4), 400, 40)
    for turn in range(15):
        run = await host.say(f"Turn {turn}")
        assert_within(run, 24_000)
        assert counted(run) <= 16
        assert len(summaries(run)) <= 1
        assert nowhere(host, told) == []
        checkpoint = stored(host)
        assert checkpoint is not None
        if not checkpoint.gaps:
            break
    assert checkpoint is not None and checkpoint.gaps == ()
    assert set(facts[:-60]) <= told


async def test_Q1_ten_turns_in_an_8k_window_take_a_hundred_calls_and_at_most_one_summary_each() -> None:
    random = Random(5)
    host = host_with(
        models=[Model("m1", default=model_that(lambda _: f"{fact(random, 0)} {prose(random, 500)}"))],
        config=window(8_000),
    )
    runs = [await host.say(f"Turn {turn}. {prose(random, 300)}") for turn in range(10)]
    for run in runs:
        assert run.status == "completed"
        assert len(summaries(run)) <= 1
        assert_within(run, budget_of(8_000))
    assert sum(map(counted, runs)) <= 100
    assert sum(len(summaries(run)) for run in runs) >= 1


async def test_L1_a_chat_that_outgrows_the_fetch_limit_is_folded_behind_an_answer_every_so_many_turns_only() -> None:
    random = Random(6)
    host = host_with(
        models=[Model("m1", default=model_that(lambda _: prose(random, 30)))],
        config={"context-history-fetch-limit": 20},
        chat_seconds=SHOWING,
    )
    runs = [await host.say(f"Turn {turn}. {fact(random, turn)}. {prose(random, 30)}") for turn in range(1, 32)]
    assert [turn for turn, run in enumerate(runs, 1) if summaries(run)] == [12, 18, 24, 30]
    assert not any(waited(run) for run in runs)


# Nobody waits while a request fits (L1); counts of issue 16


async def chat(turns: int, size: int, settings: dict[str, object], *, rows: int = 0, shows: bool = False) -> TestHost:
    """A chat of so many turns, `size` characters each message; with earlier rows, if wanted."""
    random = Random(2)

    def words() -> str:
        return prose(random, size // 5)[:size]

    model = Model("m1", default=model_that(lambda _: words()))
    host = host_with(models=[model], config=settings, chat_seconds=SHOWING if shows else 0.0)
    chatter(host, random, rows, 60)
    for turn in range(turns):
        run = await host.say(f"Turn {turn} is about {fact(random, turn)}. {words()}")
        assert run.status == "completed"
    return host


def waits(host: TestHost) -> int:
    return sum(map(waited, host.runs))


async def test_L1_sixty_messages_at_default_settings_wait_for_nothing() -> None:
    assert waits(await chat(60, 250, {})) == 0


async def test_L1_in_a_chat_of_a_thousand_rows_nobody_waits_while_it_is_folded() -> None:
    host = await chat(26, 250, window(32_768), rows=1_000)
    assert waits(host) == 0
    assert sum(len(summaries(run)) for run in host.runs) >= 2


@pytest.mark.parametrize(("tokens", "size"), [(8_192, 2_400), (4_096, 800)])
@pytest.mark.parametrize("shows", [False, True])
async def test_L1_long_messages_in_a_small_window_seldom_wait_and_never_while_they_fit(
    tokens: int, size: int, shows: bool
) -> None:
    host = await chat(30, size, window(tokens, date_grounding=False), shows=shows)
    assert waits(host) <= 8
    before = 0
    for run in host.runs:
        if waited(run):
            # What the last run sent, its answer and the new message are more than the budget.
            said = count_text(host.runs[run.number - 2].final_text or "") + count_text(run.incoming.text or "")
            assert before + said > 0.9 * budget_of(tokens)
        before = chats(run)[-1].tokens


@pytest.mark.parametrize("seed", range(3))
async def test_F5_a_fact_of_turn_3_stands_in_the_request_of_turn_60(seed: int) -> None:
    random = Random(seed)
    planted = fact(random, 3)
    host = host_with(
        models=[Model("m1", default=model_that(lambda _: prose(random, 80)))],
        config=window(8_000, date_grounding=False),
    )
    for turn in range(1, 61):
        told = f"Remember that the vault opens with {planted}. " if turn == 3 else ""
        run = await host.say(f"{told}Turn {turn}. {prose(random, 60)}")
        assert_within(run, budget_of(8_000))
    (last,) = chats(run)
    assert sum(len(summaries(one)) for one in host.runs) >= 2
    assert planted in (summary_in(last) or "")
    assert "Turn 3." not in "".join(str(message["content"]) for message in last.messages if message["role"] == "user")
