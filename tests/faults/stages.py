"""The kinds of runs that the matrix of faults is played on, each on a Host of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tests.consent.chats import ASKS, PAY, pay
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
from tests.runs.agents import agent
from tests.runs.long_chats import chatter, model_that, window
from tests.runs.scenes import host_with, looks, rounds_of
from tests.written import CITY, bare

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
