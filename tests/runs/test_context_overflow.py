"""C7, F7, C8: a model refuses a request as too long, or what cannot be cut is above the budget."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

import pytest

from config.locales import Locale
from config.notices import Notice, say
from tests.host import LANGUAGES, Language, Model, ModelRequest, Reason, Reply, RunRecord, TestHost, Tool, ToolCall
from tests.host.texts import model_error

from .long_chats import SHOWING, assert_within, budget_of, chats, chatter, model_that, prose, stored, summaries, window
from .scenes import assert_sound, counted, host_with, rows

# A model refuses a request as too long: once more, with less, and the size is remembered (C7).

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "overflow_errors.jsonl").read_text("utf-8").splitlines()
]
OVERFLOWS = [case["message"] for case in CASES if case["is_context_overflow"]]
OTHERS = [case["message"] for case in CASES if not case["is_context_overflow"]]


def refusing(error: str, times: int = 1, *, after: int = 0) -> Model:
    """A model that refuses its first requests for an answer; summaries it writes."""
    left = [times]

    def answer(request: ModelRequest) -> Reply:
        left[0] -= 1
        if left[0] >= 0:
            return Reply(chunks=["Well, ", "then."], error=error, error_after=after)
        return Reply("Here.")

    return Model("m1", default=model_that(answer))


def scene(model: Model, language: Language = "en_US", **settings: object) -> TestHost:
    """A chat of about 4,000 tokens in a window of 32,000, and a second model."""
    host = host_with(
        models=[model, Model("m2", default=model_that("I am the second."))],
        language=language,
        config=window(32_000, **settings),
    )
    chatter(host, Random(1), 30, 100)
    return host


async def whole_chat() -> ModelRequest:
    """The request of that chat with nothing cut."""
    async with scene(Model("m1", default="Here.")) as host:
        (request,) = (await host.say("And now?")).requests
    return request


async def nearly_full() -> int:
    """The window that the whole chat and the reply to come fill to 95 %: nothing is cut for it."""
    return int((await whole_chat()).tokens / 0.7)


def learned(host: TestHost) -> dict[str, int]:
    checkpoint = stored(host)
    return dict(checkpoint.windows) if checkpoint else {}


async def assert_recovered(host: TestHost, run: RunRecord) -> None:
    first, second = chats(run)
    assert (run.status, run.final_text) == ("completed", "Here.")
    assert [first.model, second.model] == ["m1", "m1"]
    assert second.tokens <= first.tokens // 2
    assert len(summaries(run)) <= 1
    assert learned(host) == {"m1": first.tokens}
    assert_within(run, budget_of(32_000))
    await assert_sound(host, run)


@pytest.mark.parametrize("text", OVERFLOWS)
async def test_C7_an_overflow_in_a_providers_words_is_recovered_once_on_the_same_model(text: str) -> None:
    host = scene(refusing(text))
    await assert_recovered(host, await host.say("And now?"))


@pytest.mark.parametrize("language", LANGUAGES)
async def test_C7_an_overflow_in_the_hosts_words_is_recovered_in_each_of_its_languages(language: Language) -> None:
    host = scene(refusing(Reason.CONTEXT_LENGTH), language)
    assert model_error(Reason.CONTEXT_LENGTH, language) != model_error(Reason.RATE_LIMIT, language)
    await assert_recovered(host, await host.say("And now?"))


async def test_C7_the_refused_size_is_the_models_window_in_later_runs() -> None:
    host = scene(refusing(Reason.CONTEXT_LENGTH))
    refused = chats(await host.say("And now?"))[0].tokens
    for turn in range(8):
        run = await host.say(f"Turn {turn}")
        assert run.final_text == "Here."
        assert max(request.tokens for request in run.requests) <= refused - refused // 4
    assert learned(host) == {"m1": refused}


async def test_C7_a_smaller_window_than_the_owner_set_is_found_and_kept_to() -> None:
    """The model's own window is 3,000; the setting says 32,000: a refusal or two teach it for the whole chat."""
    model = Model("m1", default=model_that("Here."), window=3_000)
    host = scene(model)
    refused = 0
    for turn in range(12):
        run = await host.say(f"Turn {turn}: {'and so on ' * 40}")
        assert run.final_text == "Here."
        refused += sum(request.tokens > 3_000 for request in run.requests)
    assert 1 <= refused <= 2


async def test_C7_the_window_is_learned_for_one_chat_and_one_model() -> None:
    host = scene(refusing(Reason.CONTEXT_LENGTH))
    await host.say("And now?")
    assert stored(host, "person_2") is None
    run = await host.say("Hello", conversation="person_2", sender="u2")
    assert (run.final_text, len(run.requests)) == ("Here.", 1)


async def test_C7_refused_twice_the_next_model_answers_with_its_own_budget() -> None:
    host = scene(refusing(Reason.CONTEXT_LENGTH, times=2))
    run = await host.say("And now?")
    assert run.final_text == "I am the second."
    assert [request.model for request in chats(run)] == ["m1", "m1", "m2"]
    assert len(summaries(run)) <= 1
    assert set(learned(host)) == {"m1"}
    await assert_sound(host, run)


@pytest.mark.parametrize("text", [*OTHERS, "429 Too Many Requests", "You exceeded your current quota"])
async def test_C7_a_providers_other_trouble_is_no_overflow(text: str) -> None:
    host = scene(refusing(text))
    run = await host.say("And now?")
    assert run.final_text == "I am the second."
    assert [request.model for request in run.requests] == ["m1", "m2"]
    assert run.requests[0].messages == run.requests[1].messages
    assert learned(host) == {}


@pytest.mark.parametrize("language", LANGUAGES)
async def test_C7_a_rate_limit_in_the_hosts_words_is_none_however_full_the_window(language: Language) -> None:
    host = scene(refusing(Reason.RATE_LIMIT), language, context_window_tokens=await nearly_full())
    run = await host.say("And now?")
    asked = chats(run)
    assert run.final_text == "I am the second."
    assert [request.model for request in asked] == ["m1", "m2"]
    assert asked[0].tokens == asked[1].tokens
    assert learned(host) == {}


async def test_C7_any_failure_of_a_nearly_full_window_is_tried_once_more_with_less() -> None:
    host = scene(refusing(Reason.BAD_REQUEST), context_window_tokens=await nearly_full())
    run = await host.say("And now?")
    first, second = chats(run)
    assert first.tokens == (await whole_chat()).tokens
    assert [first.model, second.model] == ["m1", "m1"]
    assert second.tokens <= first.tokens // 2
    assert run.final_text == "Here."
    assert learned(host) == {"m1": first.tokens}


async def test_C7_a_failure_that_less_does_not_cure_teaches_nothing_of_the_window() -> None:
    host = scene(refusing(Reason.BAD_REQUEST, times=2), context_window_tokens=await nearly_full())
    run = await host.say("And now?")
    assert run.final_text == "I am the second."
    assert learned(host) == {}


async def test_C7_trouble_on_the_way_teaches_nothing_of_the_window() -> None:
    host = scene(refusing("Connection error."), context_window_tokens=await nearly_full())
    run = await host.say("And now?")
    assert run.final_text == "Here."
    assert learned(host) == {}


async def test_K7_a_tighter_request_is_the_last_step_and_has_again_what_did_not_help() -> None:
    refused: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Reply:
        if len(refused) == 2:
            return Reply("Here.")
        refused.append(request)
        return Reply(error=Reason.BAD_REQUEST)

    host = host_with(
        models=[Model("m1", default=model_that(answer)), Model("m2")],
        tools=[Tool("look")],
        config=window(await nearly_full()),
    )
    chatter(host, Random(1), 30, 100)
    run = await host.say("And now?")
    first, second, third = chats(run)
    assert [request.tool_names for request in (first, second, third)] == [["look"], [], ["look"]]
    assert third.tokens <= first.tokens // 2
    assert run.final_text == "Here."
    assert chats(await host.say("And then?"))[-1].tool_names == ["look"]


async def test_K7_near_the_budget_nobody_believes_at_once_that_the_tools_were_what_was_refused() -> None:
    host = host_with(
        models=[Model("m1", default=model_that(lambda one: Reply(error=Reason.BAD_REQUEST) if one.funcs else "Here."))],
        tools=[Tool("look")],
        config=window(await nearly_full()),
    )
    chatter(host, Random(1), 30, 100)
    asked = [len(chats(await host.say(f"And now? {turn}"))) for turn in range(2)]
    assert asked[:2] == [2, 2]


async def test_C7_after_visible_words_nothing_is_tried_again() -> None:
    host = scene(refusing(Reason.CONTEXT_LENGTH, after=1))
    run = await host.say("And now?")
    assert [request.model for request in run.requests] == ["m1"]
    assert run.final_text == f"Well, \n\n{say(Notice.BROKEN_OFF_NOTE, Locale.EN_US)}"
    assert run.finish_reason == "error"
    await assert_sound(host, run)


async def test_C7_an_overflow_in_a_later_turn_keeps_the_rounds_and_what_was_shown() -> None:
    script = [
        Reply("Looking. ", tool_calls=[ToolCall("look")]),
        Reply(error=Reason.CONTEXT_LENGTH),
        Reply("Found it."),
    ]
    tool = Tool("look", result="the answer is KEY-5150-1")
    host = host_with(
        models=[Model("m1", default=model_that(lambda _: script.pop(0)))], tools=[tool], config=window(32_000)
    )
    chatter(host, Random(2), 30, 100)
    run = await host.say("And now?")
    assert (run.final_text, len(tool.calls)) == ("Looking. \n\nFound it.", 1)
    assert "KEY-5150-1" in run.requests[-1].text
    assert run.requests[-1].tokens <= run.requests[-2].tokens
    assert_within(run, budget_of(32_000))
    await assert_sound(host, run)


async def test_C7_a_model_whose_learned_window_is_too_small_gives_way_to_the_next_in_later_runs_too() -> None:
    """The tools alone need more than the first model ever takes; the second takes them."""
    tools = [Tool(f"tool_{number}", description="word " * 60) for number in range(20)]
    refuses = Model("m1", default=Reply(error=Reason.CONTEXT_LENGTH))
    second = Model("m2", default=model_that("I am the second."))
    host = host_with(models=[refuses, second], tools=tools, config=window(32_000))
    for _ in range(3):
        run = await host.say("Hello")
        assert (run.status, run.final_text) == ("completed", "I am the second.")
        await assert_sound(host, run)
    assert [request.model for request in run.requests] == ["m2"]


async def test_C7_where_no_further_model_is_left_the_person_reads_that_it_is_too_large() -> None:
    tools = [Tool(f"tool_{number}", description="word " * 60) for number in range(20)]
    host = host_with(models=[Model("m1", default=Reply(error=Reason.CONTEXT_LENGTH))], tools=tools)
    for _ in range(2):
        run = await host.say("Hello")
        assert run.final_text == say(Notice.TOOLS_TOO_LARGE, Locale.EN_US)
        assert run.finish_reason == "error"
        await assert_sound(host, run)


async def test_C7_a_refusal_that_meant_something_else_does_not_end_the_chat_for_good() -> None:
    """The tools alone need more than what was refused, and the model takes them after all: there is no other model."""
    tools = [Tool(f"tool_{number}", description="word " * 60) for number in range(20)]
    host = host_with(models=[refusing(Reason.CONTEXT_LENGTH)], tools=tools, config=window(32_000))
    first = await host.say("Hello")
    assert first.final_text == say(Notice.TOOLS_TOO_LARGE, Locale.EN_US)
    assert learned(host) == {"m1": first.requests[0].tokens}
    for _ in range(2):
        run = await host.say("Hello again")
        assert (run.final_text, len(run.requests)) == ("Here.", 1)
        assert learned(host) == {}
        await assert_sound(host, run)


async def test_C7_a_window_that_really_is_too_small_costs_one_refusal_a_message_and_stays_learned() -> None:
    tools = [Tool(f"tool_{number}", description="word " * 60) for number in range(20)]
    host = host_with(
        models=[Model("m1", default=model_that("Here."), window=1_500)], tools=tools, config=window(32_000)
    )
    for turn in range(3):
        run = await host.say(f"Turn {turn}")
        assert run.final_text == say(Notice.TOOLS_TOO_LARGE, Locale.EN_US)
        assert len(run.requests) == 1
        assert set(learned(host)) == {"m1"}
        await assert_sound(host, run)


async def test_C7_a_second_refusal_of_a_run_is_remembered_too() -> None:
    host = scene(refusing(Reason.CONTEXT_LENGTH, times=2))
    run = await host.say("And now?")
    assert learned(host) == {"m1": chats(run)[1].tokens}


async def test_F5_a_summary_request_that_a_model_refuses_as_too_long_is_smaller_in_a_later_run() -> None:
    """The owner left the window at 200,000; the model's own is 6,000."""
    models = [Model("m1", default=model_that("Here."), window=6_000)]
    host = host_with(models=models, config=window(200_000), chat_seconds=SHOWING)
    chatter(host, Random(9), 300, 60)
    written = 0
    for turn in range(8):
        run = await host.say(f"Turn {turn}")
        written += sum(request.tokens <= 6_000 for request in summaries(run))
    assert written >= 3
    checkpoint = stored(host)
    assert checkpoint is not None and checkpoint.gaps


# What cannot be cut is above the budget: one clear sentence, no model asked, nothing tried twice (F7, C8).

SETTING = "context-window-tokens"


def narrow_scene(prompt: str = "Be kind.", **given: object) -> TestHost:
    """A window of 2,000, a chat of about 1,500 tokens before, and a second model."""
    models = [Model(name, default=model_that("Here.")) for name in ("m1", "m2")]
    settings = window(2_000, date_grounding=False, prompt=[{"role": "system", "content": prompt}])
    host = host_with(models=models, config=settings, **given)
    chatter(host, Random(1), 10, 90)
    return host


def large_tools() -> list[Tool]:
    properties = {f"field_{n}": {"type": "string", "description": prose(Random(n), 30)} for n in range(60)}
    return [Tool("look", parameters={"type": "object", "properties": properties})]


async def assert_ended_once(host: TestHost, run: RunRecord, notice: Notice, part: str) -> None:
    """The person reads the sentence, the owner finds part, setting and numbers; no model was asked for anything."""
    assert (run.status, run.finish_reason) == ("completed", "error")
    assert run.final_text == say(notice, Locale.EN_US)
    assert run.requests == []
    counts = 3 if part == "pictures" else 2  # what pictures cost is asked once (L7)
    assert run.calls.count("count_tokens") <= counts
    assert counted(run) <= 6
    (line,) = [line for line in run.logs if "runner.input_too_large" in line]
    assert part in line and SETTING in line
    needed, left = map(int, re.findall(r"(\d+) tokens and the input budget leaves it (\d+)", line)[0])
    assert needed > left
    assert left <= budget_of(2_000)
    assert rows(host)[-1] == ("assistant", run.final_text)
    assert sum("context:" in line for line in run.logs) <= 1
    await assert_sound(host, run)


async def test_F7_a_prompt_above_the_budget_is_named_with_its_setting() -> None:
    host = narrow_scene(prompt=prose(Random(2), 1_600))
    run = await host.say("And now?")
    await assert_ended_once(host, run, Notice.PROMPT_TOO_LARGE, "system prompt")


async def test_F7_tools_above_the_budget_are_named_with_the_setting() -> None:
    host = narrow_scene(tools=large_tools())
    run = await host.say("And now?")
    await assert_ended_once(host, run, Notice.TOOLS_TOO_LARGE, "list of tools")


async def test_L7_pictures_above_the_budget_are_named() -> None:
    host = narrow_scene()
    run = await host.say("What is on these?", images=["aGk="] * 12)
    await assert_ended_once(host, run, Notice.PICTURES_TOO_LARGE, "pictures")


async def test_F3_a_message_above_the_budget_is_cut_visibly_head_and_tail_and_answered() -> None:
    host = narrow_scene()
    text = f"KEY-100-1 is how it begins. {prose(Random(3), 6_000)} And KEY-100-2 is how it ends."
    run = await host.say(text)
    assert run.final_text == "Here."
    (request,) = [request for request in run.requests if request.model == "m1" and request not in summaries(run)]
    assert request.tokens <= budget_of(2_000)
    assert request.violations() == []
    assert "KEY-100-1" in request.last_user and "KEY-100-2" in request.last_user
    assert "characters" in request.last_user
    await assert_sound(host, run)


async def test_F7_the_same_prompt_with_a_larger_window_is_answered() -> None:
    host = narrow_scene(prompt=prose(Random(2), 1_600))
    await host.say("And now?")
    host.config[SETTING] = 8_000
    run = await host.say("And now?")
    assert run.final_text == "Here."
    assert_within(run, budget_of(8_000))


async def test_F7_every_run_of_such_a_chat_ends_the_same_way_and_remembers_nothing_wrong() -> None:
    host = narrow_scene(prompt=prose(Random(2), 1_600))
    runs = [await host.say(f"Turn {turn}") for turn in range(4)]
    assert len({run.final_text for run in runs}) == 1
    assert [counted(run) for run in runs] == [counted(runs[0])] * 4
    assert all(run.requests == [] for run in runs)
    assert stored(host) is None


@pytest.mark.parametrize("factor", [8, 40])
async def test_F7_a_host_that_counts_far_more_than_any_plan_ends_in_one_sentence(factor: int) -> None:
    """Every message counts many times what any tokenizer says: no cut can ever suffice."""
    host = narrow_scene()

    async def count(data: dict[str, object]) -> dict[str, object]:
        return {"tokens": factor * len(str(data["messages"]))}

    host.answer_with("count_tokens", count)
    run = await host.say("And now?")
    assert (run.status, run.finish_reason) == ("completed", "error")
    assert run.calls.count("count_tokens") <= 5
    assert len(summaries(run)) <= 1
    assert [request for request in run.requests if request not in summaries(run)] == []
    await assert_sound(host, run)


@pytest.mark.parametrize(("factor", "window_tokens"), [(0.3, 4_000), (3.0, 16_000)])
async def test_F2_a_host_that_counts_otherwise_than_we_plan_gets_requests_that_fit_by_its_own_count(
    factor: float, window_tokens: int
) -> None:
    host = host_with(
        models=[Model("m1", default=model_that("Here."))], config=window(window_tokens, date_grounding=False)
    )
    counts: dict[int, int] = {}

    async def count(data: dict[str, object]) -> dict[str, object]:
        tokens = max(1, int(len(str(data["messages"])) / 4 * factor))
        messages = data["messages"]
        assert isinstance(messages, list)
        counts[len(messages)] = tokens
        return {"tokens": tokens}

    host.answer_with("count_tokens", count)
    chatter(host, Random(1), 60, 150)
    for turn in range(6):
        run = await host.say(f"Turn {turn}. {prose(Random(turn), 60)}")
        assert run.final_text == "Here."
        asked: ModelRequest = chats(run)[-1]
        assert counts[len(asked.messages)] <= budget_of(window_tokens)
        assert run.calls.count("count_tokens") <= 4
