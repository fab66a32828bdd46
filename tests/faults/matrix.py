"""The matrix: the kinds of runs it is played on, its cases, what one comes to, and what was wrong with that."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import Any, Final

from tests.consent.table import ASKS, PAY, pay
from tests.host import (
    Attachment,
    Box,
    Fault,
    KnowledgeBase,
    Model,
    ModelRequest,
    Reply,
    RunRecord,
    TestHost,
    Tool,
    ToolCall,
)
from tests.host.faults import action_name
from tests.host.script import Json
from tests.host.steered import run_steered
from tests.runs.agents import agent
from tests.runs.long_chats import chatter, model_that, window
from tests.runs.scenes import Plants, host_with, looks, rounds_of
from tests.soak.chat import breaches, leftovers, unaffected
from tests.soak.world import CALM
from tests.written import CITY, bare

# The kinds of runs that the matrix of faults is played on, each on a Host of its own.

SECONDS = 120
"""What a run may take; the Host's own end is then too."""

FOLLOW_UPS = ("And the second thing?", "And the third?")
NOT_STREAMED = frozenset({"invoke", "count_tokens"})
THINKING = 1.1
"""Seconds before a model's first word: long enough for a look at the Host's flag."""

Mind = Callable[[ModelRequest], "Reply | str"]


@dataclass
class Stage:
    """A Host, and the message that begins its run. `follow_ups`: what is said meanwhile, once `host.when` says so.
    `before`: said and answered before anything fails; `after`: when nothing fails any more;
    `acts`: a tool that nobody may have to fear twice, and how often
    it may run (M5).
    """

    host: TestHost
    text: str = "What is there?"
    before: str = ""
    after: str = "And now?"
    acts: tuple[Tool, int] | None = None
    attachments: tuple[Attachment, ...] = ()
    follow_ups: list[str] = field(default_factory=list)

    async def prepare(self) -> None:
        if self.before:
            await self.host.say(self.before)

    def start(self) -> RunRecord:
        return self.host.start(self.text, attachments=self.attachments)


def _host(mind: Callable[[str], Mind], *, config: dict[str, Any] | None = None, **given: Any) -> TestHost:
    """Two models of one mind, with some words before."""
    operations = given.pop("operations", frozenset({"invoke", "stream", "count_tokens"}))
    models = [Model(name, default=_thinking(mind(name)), operations=operations) for name in ("m1", "m2")]
    models += given.pop("further", [])
    host = host_with(models=models, config={"timeout": SECONDS, **(config or {})}, **given)
    host.remember(("user", "Good morning"), ("assistant", "Good morning!"))
    return host


def _thinking(mind: Mind) -> Mind:
    def reply(request: ModelRequest) -> Reply:
        made = mind(request)
        return replace(Reply(made) if isinstance(made, str) else made, delay=THINKING)

    return reply


def plain() -> Stage:
    return Stage(_host(lambda name: lambda _: Reply(f"{name} knows", chunks=3)))


def tools() -> Stage:
    return Stage(_host(looks, tools=[Tool("look", result="found")]))


def slow_tools() -> Stage:
    """A call that goes on as a job while the model answers."""
    return Stage(_host(lambda name: looks(name, 1), tools=[Tool("look", result="found", delay=90)]))


def follow_ups() -> Stage:
    stage = Stage(_host(looks, tools=[Tool("look", result="found")]))

    def said(text: str) -> Callable[[], object]:
        def say() -> None:
            if stage.host.steer(text):
                stage.follow_ups.append(text)

        return say

    for text, nth in zip(FOLLOW_UPS, (1, 3), strict=True):
        stage.host.when("invoke_llm_stream", said(text), nth)
    return stage


def knowledge() -> Stage:
    bases = [KnowledgeBase(f"base{n}", [f"Fact {n}.{rank} about what is there." for rank in range(3)]) for n in (1, 2)]
    further = [Model("rank", rerank=True)]
    return Stage(_host(lambda name: lambda _: f"{name} knows", knowledge=bases, further=further))


def sandbox() -> Stage:
    """A file comes with the message, and two are left for the answer."""

    def mind(name: str) -> Mind:
        def reply(request: ModelRequest) -> Reply:
            paths = [word for word in request.text.split() if word.startswith("/workspace/outbox/")]
            done = rounds_of(request)
            if done < 2 and paths and "write" in request.tool_names:
                path = f"{paths[0].rstrip('.,')}/file{done}.txt"
                return Reply(tool_calls=[ToolCall("write", {"path": path, "content": "text"})])
            return Reply(f"{name} knows")

        return reply

    host = _host(mind, box=Box(), config={"box-enabled": True})
    return Stage(host, attachments=(Attachment("report.pdf", "JVBERi0xLjQ="),))


def compaction() -> Stage:
    """A chat longer than its window: a summary is asked for and kept."""
    mind = model_that(lambda _: "Noted.")
    host = _host(lambda _: mind, config=window(8_000))
    chatter(host, Random(7), 40, 190)
    return Stage(host)


def small_profile() -> Stage:
    """A weak model that writes its calls as text."""

    def mind(name: str) -> Mind:
        def reply(request: ModelRequest) -> str:
            return f"{name} knows it is sunny." if "sunny" in request.text else bare("get_weather", city="Oslo")

        return reply

    weather = Tool("get_weather", takes_dict=True, fn=lambda _: "It is sunny.", parameters=CITY)
    return Stage(_host(mind, tools=[weather], config={"model-profile": "small", "tool-call-format": "json"}))


def event_agent() -> Stage:
    """Outside a pipeline: the runner sends the answer itself, by a stream of replies."""
    models = [Model(name, default=Reply(f"{name} knows", chunks=3, delay=THINKING)) for name in ("m1", "m2")]
    return Stage(agent(models=models, config={"timeout": SECONDS}))


def agent_with_files() -> Stage:
    """The same without streams, with files to send and none that came."""
    stage = replace(sandbox(), attachments=())
    stage.host.world.mode = "agent"
    stage.host.world.withheld_apis = frozenset({"reply_stream"})
    return stage


def not_streamed() -> Stage:
    """A model that does not stream, with a reasoning level of its own."""
    host = _host(looks, tools=[Tool("look", result="found")], operations=NOT_STREAMED)
    host.config["model"]["reasoning"] = {"m1": "high"}
    return Stage(host)


def lost_pull() -> Stage:
    """Follow-ups that were handed over and lost on their way: they are looked for elsewhere."""
    stage = follow_ups()
    stage.host.fail("steering_pull", Fault.huge(), nth=1)
    return stage


def asking() -> Stage:
    """A tool waits for a person's consent, and nobody gives it (M2)."""
    tool = pay()

    def mind(name: str) -> Mind:
        return lambda request: Reply(f"{name} knows") if rounds_of(request) else Reply("I pay. ", tool_calls=[PAY])

    host = _host(mind, tools=[tool], config=ASKS, interactions=True)
    return Stage(host, text="Pay Bob", acts=(tool, 0))


def agreed() -> Stage:
    """The run that hears the yes (M3)."""
    stage = asking()
    assert stage.acts is not None
    return replace(stage, before="Pay Bob", text="yes", after="yes", acts=(stage.acts[0], 1))


STAGES: dict[str, Callable[[], Stage]] = {
    made.__name__: made
    for made in (
        plain,
        tools,
        slow_tools,
        follow_ups,
        knowledge,
        sandbox,
        compaction,
        small_profile,
        event_agent,
        agent_with_files,
        not_streamed,
        lost_pull,
        asking,
        agreed,
    )
}


# The matrix: its cases, what one of them comes to, and what was wrong with that.

QUIET_SECONDS: Final = 400.0
"""How long the Host may work on for a run that is over: longer than any call of its own."""

_TOKENS: Final[Json] = {"tokens": 7}
_PAGE: Final[Json] = {"items": [], "next_cursor": None, "has_more": False}
_RESULT: Final[Json] = {"result": "found"}
_PAGED: Final = frozenset({"history_page", "steering_pull", "run_list", "run_events_page", "export_box_files"})
_RESULTS: Final = frozenset({"call_tool", "call_platform_api", "reply_stream"})

MakeFault = Callable[[str], Fault]
FAULTS: Final[dict[str, MakeFault]] = {
    "error": lambda _: Fault.error("database is locked"),
    "time-out": lambda _: Fault.timeout(),
    "hang": lambda _: Fault.hang(),
    "slow": lambda _: Fault.slow(8.0),
    "cancel": lambda _: Fault.cancel(),
    "malformed": lambda _: Fault.malformed(),
    "wrong type": lambda _: Fault.wrong_type(),
    "wrong type below": lambda _: Fault.wrong_type(1),
    "20 MB": lambda _: Fault.huge(),
    "foreign reply": lambda action: Fault.malformed(_TOKENS if action in _PAGED else _PAGE),
    "foreign result": lambda action: Fault.malformed(_TOKENS if action in _RESULTS else _RESULT),
    "duplicate reply": lambda _: Fault.doubled(),
    "dropped": lambda _: Fault.drop(),
    "lost": lambda _: Fault.lost(),
    "disconnect": lambda _: Fault.disconnect(),
}
MIDWAY: Final[dict[str, MakeFault]] = {
    "error midway": lambda _: Fault.error("overloaded", after=1),
    "hang midway": lambda _: Fault.hang(after=1),
    "malformed midway": lambda _: Fault.malformed(after=1),
    "dropped midway": lambda _: Fault.drop(after=1),
    "cancel midway": lambda _: Fault.cancel(after=1),
    "disconnect midway": lambda _: Fault.disconnect(after=1),
}
"""In the middle of a stream."""

_STREAM: Final = "invoke_llm_stream"
_MODELS: Final = frozenset({_STREAM, "invoke_llm", "count_tokens"})
_REPLIES: Final = frozenset({"reply_stream", "call_platform_api", "call_tool"})


@dataclass(frozen=True)
class Case:
    """One cell: on this stage, this call fails so, the first time or always."""

    stage: str
    action: str
    fault: str
    always: bool

    def __str__(self) -> str:
        return f"{self.stage}/{self.action}/{self.fault}/{'always' if self.always else 'first'}"

    @property
    def cuts_off(self) -> bool:
        return self.fault.startswith("disconnect")

    def made(self) -> Fault:
        return (FAULTS | MIDWAY)[self.fault](action_name(self.action))

    def may_fail(self, code: str | None) -> bool:
        """Whether this run may end without an answer (Q4): every model failed, or a row of the prompt is malformed."""
        if code == "runner.prompt_malformed":
            return self.action == "get_prompt"
        return code == "runner.models_failed" and self.action in _MODELS and self.always


@dataclass
class Report:
    """What came of the cases played: `findings` name the case. `struck` counts those whose fault came to pass."""

    cases: int = 0
    runs: int = 0
    struck: int = 0
    endings: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        endings = ", ".join(f"{count} {name}" for name, count in self.endings.most_common())
        head = f"{self.cases} cases, {self.struck} of them struck, {self.runs} runs ({endings})"
        return "\n".join([head, *(f"  {finding}" for finding in self.findings)])


@cache
def actions_of(name: str) -> tuple[str, ...]:
    """The calls that a run of a stage makes when nothing fails, in their order."""
    return run_steered(_undisturbed(name))


async def _undisturbed(name: str) -> tuple[str, ...]:
    stage = STAGES[name]()
    await stage.prepare()
    run = await stage.start().wait()
    await stage.host.aclose()
    return tuple(dict.fromkeys(run.calls.names))


def all_cases() -> Iterator[Case]:
    """The whole matrix, in one order."""
    for stage in STAGES:
        for action in actions_of(stage):
            for fault in (*FAULTS, *(MIDWAY if action == _STREAM else ())):
                for always in (False, True):
                    yield Case(stage, action, fault, always)


def sample(seed: int, count: int) -> Sequence[Case]:
    """So many cases of the matrix, the same for the same seed."""
    return Random(seed).sample(list(all_cases()), count)


def play(case: Case, report: Report) -> None:
    """One case and, after it, a message without a fault."""
    report.cases += 1
    try:
        found = run_steered(_played(case, report))
    except Exception as accident:  # noqa: BLE001 - a loop in which nothing moves any more, or a Host that fell over
        found = [f"{type(accident).__name__}: {accident}"]
    report.findings += [f"{case}: {each[:600]}" for each in found]


async def _played(case: Case, report: Report) -> list[str]:
    stage = STAGES[case.stage]()
    async with stage.host as host:
        await stage.prepare()
        stage.host.fail(case.action, case.made(), times=None if case.always else 1)
        run = stage.start()
        found = await _ended(run, report)
        report.struck += any(call.fault and call.action == action_name(case.action) for call in run.calls)
        found += [*_of_the_run(case, stage, run)] if not found else []
        found += await leftovers(host, QUIET_SECONDS)
        found += await _of_the_next(stage, report)
        return [*found, *_acted(stage)]


async def _ended(run: RunRecord, report: Report) -> list[str]:
    """Waits for the end of a run; what is wrong with when it comes."""
    assert run.task is not None
    began = asyncio.get_running_loop().time()
    await asyncio.wait({run.task}, timeout=2 * SECONDS)
    took = asyncio.get_running_loop().time() - began
    report.runs += 1
    report.endings[f"{run.status} {run.finish_reason or run.code or ''}".strip()] += 1
    if not run.task.done():
        return ["the run never ended"]
    return [f"the run took {took:.1f} s"] if took > SECONDS else []


def _of_the_run(case: Case, stage: Stage, run: RunRecord) -> Iterator[str]:
    yield from breaches(stage.host, run, Plants(Random(1)), cut_off=case.cuts_off)
    if run.status == "failed" and not case.cuts_off and not case.may_fail(run.code):
        yield f"no answer: {run.code}: {run.error}"
    if run.status == "completed":
        yield from _words(case, stage.host, run)
        yield from _heard(case, stage, run)


def _words(case: Case, host: TestHost, run: RunRecord) -> Iterator[str]:
    """The person has an answer, once; where it could not be sent the owner is told so."""
    if not (run.final_text or "").strip():
        yield "it ended without words"
    replies = host.world.platform.replies
    if len(replies) != len(set(replies)):
        yield f"sent twice: {replies}"
    if host.world.mode == "agent" and not replies:
        named = any("sent" in line or "arrived" in line for line in run.logs)
        if case.action not in _REPLIES or not named:
            yield f"nothing was sent: {run.logs}"


def _heard(case: Case, stage: Stage, run: RunRecord) -> Iterator[str]:
    """Each follow-up that the run claimed was read by the model, or is named in the log."""
    read = "\n".join(request.text for request in run.requests)
    missing = [text for text in stage.follow_ups if text not in read]
    named = any("could not be asked for" in line or "taken and not answered" in line for line in run.logs)
    # Of a follow-up whose hand-over reads as an empty queue nobody can know.
    empty = case.action == "steering_pull" and case.fault.startswith(("malformed", "foreign", "wrong"))
    if missing and not named and not empty:
        yield f"follow-ups that nobody read: {missing}"


def _acted(stage: Stage) -> Iterator[str]:
    """A tool that asks first never runs more often than somebody agreed (M5)."""
    tool, most = stage.acts or (None, 0)
    if tool is not None and len(tool.calls) > most:
        yield f"{tool.name} ran {len(tool.calls)} times, agreed to {most}"


async def _of_the_next(stage: Stage, report: Report) -> list[str]:
    host = stage.host
    host.faults.clear()
    host.hooks.clear()
    for model in host.world.models:
        model.default = CALM
    run = host.start(stage.after)
    found = await _ended(run, report)
    if not found:
        found = [*breaches(host, run, Plants(Random(1)), cut_off=False), *unaffected(host, run)]
    return [f"the next run: {each}" for each in found] + await leftovers(host, QUIET_SECONDS)
