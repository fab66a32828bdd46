"""A scenario played twice: with everything on, and with the part off that a sentence is about.

A scenario gets the parts of the small profile that are on and gives what is to be seen of its runs, as a plain value.
What has no switch (the guards have none, on purpose) is put out of work in its one place by a `Change`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from components.runner.default import DefaultRunner
from runner.small.part import EVERY_PART, Part, Parts, all_but
from tests.host import Model, RunRecord, TestHost, Tool, full_manifest
from tests.runs.scenes import assert_ended
from tests.written import CITY, bare

CIRCLES = "I was repeating the same steps"

Scenario = Callable[[Parts], Awaitable[object]]


@dataclass(frozen=True)
class Change:
    """`value` in the place of `owner.name` while the scenario runs."""

    owner: object
    name: str
    value: object


async def shows(off: Part | Change, scenario: Scenario, *, wanted: object, without: object) -> None:
    """The scenario gives `wanted`, and with the part off `without`, which is something else."""
    assert wanted != without
    assert await scenario(EVERY_PART) == wanted
    if isinstance(off, Part):
        assert await scenario(all_but(off)) == without
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(off.owner, off.name, off.value)
        assert await scenario(EVERY_PART) == without


def stage(
    parts: Parts,
    *replies: Any,
    tools: Sequence[Tool] = (),
    profile: str = "small",
    form: str = "json",
    host: dict[str, Any] | None = None,
    **config: Any,
) -> TestHost:
    """A Host with one model `m1`. `config` keys with underscores are fields with dashes; `host` goes to TestHost."""
    fields = {name.replace("_", "-"): value for name, value in config.items()}
    own = {"model-profile": profile, "tool-call-format": form, "date-grounding": False, "notice-language": "en_US"}
    return TestHost(
        DefaultRunner(parts=parts),
        manifest=full_manifest(),
        models=[Model("m1", list(replies))],
        tools=list(tools),
        config={**own, **fields},
        **(host or {}),
    )


async def play(
    parts: Parts, *replies: Any, text: str = "weather in Oslo?", tools: Sequence[Tool] = (), **given: Any
) -> RunRecord:
    """One message on such a stage, to the sound end of its run."""
    run = await stage(parts, *replies, tools=tools or [look()], **given).say(text)
    assert_ended(run)
    return run


def look(result: Any = "It is sunny.", **given: Any) -> Tool:
    """A tool that reads, by its name; one argument is required."""
    return _tool("get_weather", result, given)


def act(name: str = "save_note", result: Any = "ok", **given: Any) -> Tool:
    """A tool that does something."""
    return _tool(name, result, given)


def fails(why: Callable[[], str] = lambda: "the disk is full") -> Tool:
    """A tool that cannot do it."""

    def fail(_: Any) -> str:
        raise RuntimeError(why())

    return act("save_note", fail)


def _tool(name: str, result: Any, given: dict[str, Any]) -> Tool:
    made = result if callable(result) else lambda _: result
    return Tool(name, takes_dict=True, fn=made, **{"parameters": CITY, **given})


SAVE = bare("save_note", city="x")


def in_full(system: str, names: Sequence[str]) -> list[str]:
    """Which of these tools a prompt shows with their schemas, in its order."""
    places = [(system.find(f'"name": "{name}", "description"'), name) for name in names]
    return [name for place, name in sorted(places) if place >= 0]
