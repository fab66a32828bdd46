"""Ten tasks with plugin tools through the real LangBot and a real model: standard, small, and small guided.

`python -m bench --only tasks`. The model is that of MODEL_BASE_URL, else the one of `make demo` (DEMO_MODEL).
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator

from bench import bringup
from bench.table import Row
from demo import endpoint, model
from demo.api import Model
from demo.ports import free_ports
from demo.processes import Children
from tests.e2e.bed import Bed
from tests.e2e.scripted_model import Recorder
from tests.e2e.toolbox import DESK, TASKS, Outcome, play, plugin_installed

MODES: dict[str, dict[str, object]] = {
    "standard": {},
    "small": {"model-profile": "small", "tool-call-format": "auto"},
    "guided": {"model-profile": "small", "tool-call-format": "guided"},
}


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def rows() -> Iterator[Row]:
    """Finished tasks by mode, beside `standard`; markup in the chat; requests that carried a schema."""
    played = _played()
    plain = played["standard"]
    for mode, outcomes in played.items():
        scene = f"{len(TASKS)} tasks, {mode}"
        beside = None if mode == "standard" else float(_finished(plain))
        yield Row("Q5", scene, "tasks finished", beside, float(_finished(outcomes)))
        yield Row("Q5", scene, "chats that show markup of calls", None, float(sum(each.markup for each in outcomes)))
        yield Row("Q5", scene, "requests to the model", None, float(sum(each.requests for each in outcomes)))
        yield Row("Q5", scene, "of them with response_format", None, float(sum(each.guided for each in outcomes)))


def _finished(outcomes: list[Outcome]) -> int:
    return sum(outcome.done for outcome in outcomes)


def _played() -> dict[str, list[Outcome]]:
    with bringup.bed() as bed, Children() as children:
        folder, api = bed.langbot.folder, bed.langbot.api
        theirs = endpoint.from_environment(os.environ)
        if theirs is None:
            (port,) = free_ports(1)
            theirs = endpoint.serve_gguf(
                children, model.choose(os.environ.get("DEMO_MODEL")), port, folder / "logs", _say
            )
        with Recorder(theirs.base_url) as recorder, plugin_installed(bed, folder / "desk", DESK, "track_parcel"):
            provider = api.add_provider("recorded", recorder.base_url, theirs.api_key)
            model_id = api.add_model(provider, Model(theirs.name, ("func_call",)))
            return {mode: asyncio.run(_mode(bed, recorder, model_id, mode)) for mode in MODES}


async def _mode(bed: Bed, recorder: Recorder, model_id: str, mode: str) -> list[Outcome]:
    outcomes = []
    for task in TASKS:
        outcome = await play(bed, recorder, model_id, task, {"context-window-tokens": 8192, **MODES[mode]})
        outcomes.append(outcome)
        verdict = "done" if outcome.done else "not done"
        _say(f"{mode}: {verdict}, {outcome.requests} requests: {task.question} -> {outcome.answer[:160]!r}")
    return outcomes
