"""K8: a model of which nothing comes gives way to the next one."""

from __future__ import annotations

import pytest

from config.locales import Locale
from config.notices import Notice, say
from runner.models import waiting
from tests.host import Model, Reply, Tool

from .scenes import LOOK, assert_sound, host_with

HANGS = Reply("never", delay=60)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LEAST", 0.2)
    monkeypatch.setattr(waiting, "MOST", 0.2)
    monkeypatch.setattr(waiting, "SLOW", 60.0)


async def test_K8_a_model_that_hangs_gives_way_and_its_stream_is_closed() -> None:
    models = [Model("m1", replies=[HANGS]), Model("m2", replies=["Here."])]
    host = host_with(models=models)
    run = await host.say("go")
    assert run.final_text == "Here."
    assert [request.model for request in run.requests] == ["m1", "m2"]
    assert models[0].aborted == 1
    assert any("nothing came within" in log for log in run.logs)
    await assert_sound(host, run)


async def test_K8_in_the_middle_of_a_run_its_rounds_stay() -> None:
    tool = Tool("look", result="found it")
    models = [Model("m1", replies=[LOOK, HANGS]), Model("m2", replies=["Here."])]
    host = host_with(models=models, tools=[tool])
    run = await host.say("go")
    assert (run.final_text, len(tool.calls)) == ("Here.", 1)
    assert "found it" in run.requests[-1].text
    await assert_sound(host, run)


@pytest.mark.parametrize(
    "begins", [Reply("Here I am.", chunks=["Here ", "I am."], chunk_delay=0.5), Reply("Here I am.", reasoning="hm")]
)
async def test_K8_a_model_that_has_begun_is_not_hurried(begins: Reply) -> None:
    host = host_with(models=[Model("m1", replies=[begins]), Model("m2")])
    run = await host.say("go")
    assert [request.model for request in run.requests] == ["m1"]
    assert run.final_text is not None
    assert run.final_text.endswith("Here I am.")


async def test_K8_the_last_model_is_waited_for_and_its_slow_beginning_remembered() -> None:
    slow = Reply("Here.", delay=0.5)
    models = [Model("m1", replies=[slow, slow]), Model("m2")]
    host = host_with(models=models, config={"model": {"primary": "m1", "fallbacks": []}})
    assert (await host.say("go")).final_text == "Here."
    host.config["model"] = {"primary": "m1", "fallbacks": ["m2"]}
    run = await host.say("again")
    assert [request.model for request in run.requests] == ["m1"], "it was seen to begin late"


@pytest.mark.parametrize(
    "config", [{"remove-think": True}, {"model": {"primary": "m1", "fallbacks": ["m2"], "reasoning": {"m1": "low"}}}]
)
async def test_K8_a_model_that_may_think_unseen_has_longer(config: dict[str, object]) -> None:
    host = host_with(models=[Model("m1", replies=[Reply("Here.", delay=0.5)]), Model("m2")], config=config)
    assert [request.model for request in (await host.say("go")).requests] == ["m1"]


async def test_K8_where_nothing_streams_nobody_can_tell_so_the_model_is_waited_for() -> None:
    models = [
        Model("m1", replies=[Reply("Here.", delay=0.5)], operations=frozenset({"invoke", "count_tokens"})),
        Model("m2"),
    ]
    assert [request.model for request in (await host_with(models=models).say("go")).requests] == ["m1"]


async def test_K8_in_the_small_profile_the_time_for_one_step_rules_instead() -> None:
    models = [Model("m1", replies=[Reply("Here.", delay=0.5)]), Model("m2")]
    host = host_with(models=models, config={"model-profile": "small"})
    assert [request.model for request in (await host.say("go")).requests] == ["m1"]


async def test_K8_where_every_model_hangs_the_last_one_has_the_rest_of_the_time() -> None:
    host = host_with(models=[Model("m1", replies=[HANGS]), Model("m2", replies=[HANGS])], config={"timeout": 3})
    run = await host.say("go")
    assert [request.model for request in run.requests] == ["m1", "m2"]
    assert run.final_text == say(Notice.TIME_LIMIT, Locale.EN_US)
    await assert_sound(host, run)


async def test_K8_a_silence_is_no_refusal_however_full_the_window_is() -> None:
    full = {"context-window-tokens": 1_000, "context-reserve-tokens": 250}
    host = host_with(models=[Model("m1", replies=[HANGS]), Model("m2", replies=["Here."])], config=full)
    run = await host.say("word " * 690)
    assert run.requests[0].tokens > 650, "near the window, where other failures are tried once more with less (C7)"
    assert [request.model for request in run.requests] == ["m1", "m2"]
