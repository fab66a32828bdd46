"""C1, C3, C5, C7, C8, K8: which model answers when one does not, or when nothing comes of it."""

from __future__ import annotations

import pytest

from config.locales import Locale
from config.notices import Notice, say
from runner.models import waiting
from tests.host import LANGUAGES, Fault, Language, Model, Reason, Reply, Tool, ToolCall

from .scenes import LOOK, assert_sound, broken_rules, host_with, rows

# Which model answers when one does not (C1, C3, C5, C7, C8).

FAILS = Reply(error=Reason.API_ERROR)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("reason", [reason for reason in Reason if reason is not Reason.CONTEXT_LENGTH])
async def test_C1_whatever_the_reason_and_the_hosts_language_the_next_model_answers(
    reason: Reason, language: Language
) -> None:
    models = [Model("m1", replies=[Reply(error=reason)]), Model("m2", replies=["Here."])]
    run = await host_with(models=models, language=language).say("go")
    assert (run.status, run.final_text) == ("completed", "Here.")
    assert [request.model for request in run.requests] == ["m1", "m2"]


async def test_C1_models_are_asked_in_the_order_of_the_binding_and_each_once() -> None:
    models = [Model(f"m{n}", default=FAILS) for n in range(4)]
    host = host_with(models=models, config={"model": {"primary": "m2", "fallbacks": ["", "m0", "m2", "m3"]}})
    run = await host.say("go")
    assert [request.model for request in run.requests] == ["m2", "m0", "m3"]
    assert (run.status, run.code) == ("failed", "runner.models_failed")
    await assert_sound(host, run)


async def test_C1_a_model_that_is_not_authorised_is_passed_over_without_a_call() -> None:
    models = [Model("m1", operations=frozenset({"count_tokens"})), Model("m2", replies=["Here."])]
    host = host_with(models=models, config={"model": {"primary": "gone", "fallbacks": ["m1", "m2"]}})
    run = await host.say("go")
    assert [request.model for request in run.requests] == ["m2"]
    assert run.final_text == "Here."


async def test_C8_without_a_usable_model_the_person_reads_so_and_the_owner_finds_the_code_in_the_log() -> None:
    host = host_with(config={"model": {"primary": "", "fallbacks": []}})
    run = await host.say("go")
    assert (run.status, run.finish_reason) == ("completed", "error")
    assert run.final_text == say(Notice.NO_MODEL, Locale.EN_US)
    assert any("runner.no_model" in log for log in run.logs)
    await assert_sound(host, run)


async def test_C1_the_model_that_answered_stays_for_the_run() -> None:
    models = [Model("m1", replies=[FAILS], default="never"), Model("m2", replies=[LOOK, "Here."])]
    run = await host_with(models=models, tools=[Tool("look")]).say("go")
    assert [request.model for request in run.requests] == ["m1", "m2", "m2"]


async def test_C1_the_next_run_begins_with_the_primary_again() -> None:
    models = [Model("m1", replies=[FAILS, "Back."]), Model("m2", replies=["Here."])]
    host = host_with(models=models)
    assert [(await host.say("go")).final_text, (await host.say("go")).final_text] == ["Here.", "Back."]


async def test_C1_a_switch_in_a_later_turn_keeps_the_rounds_done_so_far() -> None:
    models = [Model("m1", replies=[Reply("Looking. ", tool_calls=[ToolCall("look")]), FAILS])]
    models.append(Model("m2", replies=["Here."]))
    tool = Tool("look", result="found it")
    host = host_with(models=models, tools=[tool])
    run = await host.say("go")
    assert len(tool.calls) == 1
    assert "found it" in run.requests[-1].text
    assert run.final_text == "Looking. \n\nHere."
    await assert_sound(host, run)


@pytest.mark.parametrize("shown", ["", "   \n", "\n\n"])
async def test_C1_white_space_is_nothing_visible_and_leaves_no_trace(shown: str) -> None:
    broken = Reply(chunks=[shown, "x"], error=Reason.CONNECTION, error_after=1) if shown else FAILS
    models = [Model("m1", replies=[broken]), Model("m2", replies=["Here."])]
    host = host_with(models=models)
    run = await host.say("go")
    assert run.final_text == "Here."
    await assert_sound(host, run)


async def test_C1_after_visible_words_nobody_starts_over() -> None:
    models = [Model("m1", replies=[Reply(chunks=["Well, ", "x"], error=Reason.CONNECTION, error_after=1)])]
    models.append(Model("m2"))
    host = host_with(models=models)
    run = await host.say("go")
    assert [request.model for request in run.requests] == ["m1"]
    assert run.final_text == f"Well, \n\n{say(Notice.BROKEN_OFF_NOTE, Locale.EN_US)}"
    assert run.finish_reason == "error"
    assert rows(host)[-1] == ("assistant", run.final_text)
    await assert_sound(host, run)


async def test_C1_a_broken_stream_with_half_a_call_runs_no_tool() -> None:
    events: list[dict[str, object]] = [
        {"chunk": {"role": "assistant", "tool_calls": [_fragment("c1", "look", '{"a"')]}},
        {"chunk": {"role": "assistant", "tool_calls": [_fragment("c1", "look", ": 1}")]}},
        {"chunk": {"role": "assistant", "is_final": True}},
    ]
    models = [Model("m1", replies=[Reply(events=events)])]
    models.append(Model("m2", replies=["Here."]))
    tool = Tool("look")
    host = host_with(models=models, tools=[tool])
    host.fail("invoke_llm_stream", Fault.drop(after=2))
    run = await host.say("go")
    assert tool.calls == []
    assert run.final_text == "Here."
    await assert_sound(host, run)


def _fragment(call_id: str, name: str, arguments: str) -> dict[str, object]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize("empty", [""])
async def test_C1_an_empty_reply_is_a_failure_of_its_model(empty: str) -> None:
    models = [Model("m1", replies=[Reply(empty)]), Model("m2", replies=["Here."])]
    run = await host_with(models=models).say("go")
    assert run.final_text == "Here."


async def test_C6_an_empty_reply_of_every_model_is_a_visible_sentence() -> None:
    host = host_with(models=[Model("m1", replies=[Reply()]), Model("m2", replies=[Reply()])])
    run = await host.say("go")
    assert [request.model for request in run.requests] == ["m1", "m2"]
    assert run.final_text == say(Notice.EMPTY_ANSWER, Locale.EN_US)
    await assert_sound(host, run)


async def test_C3_the_level_of_each_model_goes_with_every_call_of_that_model() -> None:
    models = [Model("m1", replies=[FAILS]), Model("m2", replies=[LOOK, "Here."])]
    config = {"model": {"primary": "m1", "fallbacks": ["m2"], "reasoning": {"m1": "low", "m2": "high"}}}
    run = await host_with(models=models, tools=[Tool("look")], config=config).say("go")
    assert [(request.model, request.level) for request in run.requests] == [
        ("m1", "low"),
        ("m2", "high"),
        ("m2", "high"),
    ]
    counts = {call.data["llm_model_uuid"]: call.data.get("reasoning_level") for call in run.calls.of("count_tokens")}
    assert counts == {"m1": "low", "m2": "high"}


@pytest.mark.parametrize("abilities", [{"func_call"}, {"func_call", "reasoning"}])
async def test_C3_a_refused_level_is_left_out_on_the_same_model_and_not_tried_again(abilities: set[str]) -> None:
    model = Model("m1", replies=[LOOK, "Here."], abilities=frozenset(abilities), levels=["low"])
    config = {"model": {"primary": "m1", "reasoning": {"m1": "xhigh"}}}
    host = host_with(models=[model, Model("m2")], tools=[Tool("look")], config=config)
    run = await host.say("go")
    assert run.final_text == "Here."
    assert [(request.model, request.level) for request in run.requests] == [("m1", None), ("m1", None)]
    await assert_sound(host, run)


async def test_C5_usage_of_all_calls_is_added_up_and_goes_out_with_a_failure_too() -> None:
    count = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    answer = [Reply("Looking.", tool_calls=[ToolCall("look")], usage=count), Reply("Here.", usage=count)]
    run = await host_with(replies=answer, tools=[Tool("look")]).say("go")
    assert run.usage is not None
    assert {key: run.usage[key] for key in count} == {key: 2 * value for key, value in count.items()}
    failing = host_with(models=[Model("m1", replies=[answer[0]], default=FAILS)], tools=[Tool("look")])
    failed = await failing.say("go")
    assert failed.usage is not None
    assert failed.usage["total_tokens"] == 12


@pytest.mark.parametrize(("reason", "retryable"), [(Reason.RATE_LIMIT, True), (Reason.AUTHENTICATION, False)])
async def test_C8_only_what_may_pass_by_itself_is_retryable(reason: Reason, retryable: bool) -> None:
    run = await host_with(models=[Model("m1", default=Reply(error=reason))]).say("go")
    assert run.terminal["data"]["retryable"] is retryable
    assert run.code == "runner.models_failed"


@pytest.mark.parametrize("language", LANGUAGES)
async def test_C7_an_overflow_is_tried_once_more_on_the_same_model_and_then_on_the_next(language: Language) -> None:
    overflow = Reply(error=Reason.CONTEXT_LENGTH)
    models = [Model("m1", replies=[overflow, overflow, "never"]), Model("m2", replies=["Here."])]
    run = await host_with(models=models, language=language).say("go")
    assert run.final_text == "Here."
    asked = [request.model for request in run.requests if request.funcs == []]
    assert asked.count("m1") <= 2
    assert asked[-1] == "m2"


async def test_B4_a_model_that_refuses_pictures_is_asked_again_without_them() -> None:
    models = [Model("m1", replies=[Reply(error=Reason.BAD_REQUEST), "I read words only."])]
    host = host_with(models=models)
    run = await host.say("what is this?", images=["aGk="])
    assert run.final_text is not None
    assert run.final_text.startswith("I read words only.")
    assert "image" not in str(run.requests[-1].messages[-1]["content"])
    assert "picture" in run.requests[-1].last_user
    await assert_sound(host, run)


async def test_C2_fields_of_one_model_never_reach_another() -> None:
    first = Reply(
        "Looking.",
        tool_calls=[ToolCall("look", provider_specific_fields={"thought_signature": "sig"})],
        provider_specific_fields={"citations": ["a"]},
        reasoning="secret thought",
    )
    models = [Model("m1", replies=[first, FAILS], family="deepseek"), Model("m2", replies=["Here."], family="deepseek")]
    run = await host_with(models=models, tools=[Tool("look")], config={"remove-think": True}).say("go")
    own, others = str(run.requests[1].messages), str(run.requests[2].messages)
    assert [request.model for request in run.requests] == ["m1", "m1", "m2"]
    assert "thought_signature" in own
    assert "secret thought" in own
    assert "thought_signature" not in others
    assert "secret thought" not in others
    assert broken_rules(run) == []


# K8: a model of which nothing comes gives way to the next one.

HANGS = Reply("never", delay=60)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LEAST", 0.2)
    monkeypatch.setattr(waiting, "MOST", 0.2)
    monkeypatch.setattr(waiting, "SLOW", 60.0)


@pytest.mark.usefixtures("quick")
async def test_K8_a_model_that_hangs_gives_way_and_its_stream_is_closed() -> None:
    models = [Model("m1", replies=[HANGS]), Model("m2", replies=["Here."])]
    host = host_with(models=models)
    run = await host.say("go")
    assert run.final_text == "Here."
    assert [request.model for request in run.requests] == ["m1", "m2"]
    assert models[0].aborted == 1
    assert any("nothing came within" in log for log in run.logs)
    await assert_sound(host, run)


@pytest.mark.usefixtures("quick")
async def test_K8_in_the_middle_of_a_run_its_rounds_stay() -> None:
    tool = Tool("look", result="found it")
    models = [Model("m1", replies=[LOOK, HANGS]), Model("m2", replies=["Here."])]
    host = host_with(models=models, tools=[tool])
    run = await host.say("go")
    assert (run.final_text, len(tool.calls)) == ("Here.", 1)
    assert "found it" in run.requests[-1].text
    await assert_sound(host, run)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "begins", [Reply("Here I am.", chunks=["Here ", "I am."], chunk_delay=0.5), Reply("Here I am.", reasoning="hm")]
)
async def test_K8_a_model_that_has_begun_is_not_hurried(begins: Reply) -> None:
    host = host_with(models=[Model("m1", replies=[begins]), Model("m2")])
    run = await host.say("go")
    assert [request.model for request in run.requests] == ["m1"]
    assert run.final_text is not None
    assert run.final_text.endswith("Here I am.")


@pytest.mark.usefixtures("quick")
async def test_K8_the_last_model_is_waited_for_and_its_slow_beginning_remembered() -> None:
    slow = Reply("Here.", delay=0.5)
    models = [Model("m1", replies=[slow, slow]), Model("m2")]
    host = host_with(models=models, config={"model": {"primary": "m1", "fallbacks": []}})
    assert (await host.say("go")).final_text == "Here."
    host.config["model"] = {"primary": "m1", "fallbacks": ["m2"]}
    run = await host.say("again")
    assert [request.model for request in run.requests] == ["m1"], "it was seen to begin late"


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "config", [{"remove-think": True}, {"model": {"primary": "m1", "fallbacks": ["m2"], "reasoning": {"m1": "low"}}}]
)
async def test_K8_a_model_that_may_think_unseen_has_longer(config: dict[str, object]) -> None:
    host = host_with(models=[Model("m1", replies=[Reply("Here.", delay=0.5)]), Model("m2")], config=config)
    assert [request.model for request in (await host.say("go")).requests] == ["m1"]


@pytest.mark.usefixtures("quick")
async def test_K8_where_nothing_streams_nobody_can_tell_so_the_model_is_waited_for() -> None:
    models = [
        Model("m1", replies=[Reply("Here.", delay=0.5)], operations=frozenset({"invoke", "count_tokens"})),
        Model("m2"),
    ]
    assert [request.model for request in (await host_with(models=models).say("go")).requests] == ["m1"]


@pytest.mark.usefixtures("quick")
async def test_K8_in_the_small_profile_the_time_for_one_step_rules_instead() -> None:
    models = [Model("m1", replies=[Reply("Here.", delay=0.5)]), Model("m2")]
    host = host_with(models=models, config={"model-profile": "small"})
    assert [request.model for request in (await host.say("go")).requests] == ["m1"]


@pytest.mark.usefixtures("quick")
async def test_K8_where_every_model_hangs_the_last_one_has_the_rest_of_the_time() -> None:
    host = host_with(models=[Model("m1", replies=[HANGS]), Model("m2", replies=[HANGS])], config={"timeout": 3})
    run = await host.say("go")
    assert [request.model for request in run.requests] == ["m1", "m2"]
    assert run.final_text == say(Notice.TIME_LIMIT, Locale.EN_US)
    await assert_sound(host, run)


@pytest.mark.usefixtures("quick")
async def test_K8_a_silence_is_no_refusal_however_full_the_window_is() -> None:
    full = {"context-window-tokens": 1_000, "context-reserve-tokens": 250}
    host = host_with(models=[Model("m1", replies=[HANGS]), Model("m2", replies=["Here."])], config=full)
    run = await host.say("word " * 690)
    assert run.requests[0].tokens > 650, "near the window, where other failures are tried once more with less (C7)"
    assert [request.model for request in run.requests] == ["m1", "m2"]
