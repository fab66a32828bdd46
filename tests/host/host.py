"""`TestHost`: LangBot's side of the Runner protocol, in this process."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import Context, ContextVar, copy_context
from types import TracebackType
from typing import Any

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.platform.events import event_summary
from langbot_plugin.api.entities.builtin.runner.manifest import RunnerManifest
from langbot_plugin.runtime.plugin.runner_service import RunnerRuntimeService

from . import context
from .box import Box
from .chat import Attachment, Chat, Incoming
from .faults import Fault, FaultPlan, Hooks, action_name
from .host_handler import HostHandler
from .orchestrator import conduct
from .passthrough import PassThroughRunner
from .platform import InteractionCard, ReplyStreams
from .plugin import (
    RUNNER_ID,
    ObservedPluginHandler,
    component_spec,
    container_for,
    full_manifest,
    plugin_side,
    runtime_service,
)
from .records import CallLog
from .run_record import RunRecord
from .script import Json, Model, Scripted
from .texts import Language
from .tools import Chunk, KnowledgeBase, Skill, Skills, Tool
from .transcript import Row
from .wire import connect
from .world import Mode, World

Bases = Sequence[KnowledgeBase] | Mapping[str, Sequence[Chunk | str]]


SIDE: ContextVar[str] = ContextVar("side", default="host")
"""On whose side of the wire a task works, `plugin` or `host`: for measuring what each of them costs."""


def _context(side: str) -> Context:
    context = copy_context()
    context.run(SIDE.set, side)
    return context


class _Link:
    """A plugin and a Host joined for one event loop."""

    def __init__(
        self,
        runner: Runner,
        manifest: RunnerManifest,
        world: World,
        faults: FaultPlan,
        hooks: Hooks,
        *,
        threaded: bool,
    ) -> None:
        plugin_end, host_end, self.meter = connect()
        container = container_for(runner, component_spec(manifest))
        self.log = CallLog(self.meter)
        self.plugin: ObservedPluginHandler = plugin_side(plugin_end, container, runner)
        self.plugin.log, self.plugin.faults, self.plugin.world = self.log, faults, world
        self.plugin.hooks = hooks
        self.host = HostHandler(host_end, world, self.log)
        self.plugin.threaded = self.host.threaded = threaded
        self.service: RunnerRuntimeService = runtime_service(container, self.host)
        self.loop = asyncio.get_running_loop()
        self.closed = False
        self.bystanders = asyncio.all_tasks()
        self._tasks = [asyncio.create_task(self.plugin.run(), context=_context("plugin"))]
        self._tasks.append(asyncio.create_task(self.host.run(), context=_context("host")))

    @property
    def usable(self) -> bool:
        return not self.closed and self.loop is asyncio.get_running_loop() and not any(t.done() for t in self._tasks)

    @property
    def tasks(self) -> set[asyncio.Task[Any]]:
        return {*self._tasks, *self.host.working}

    async def close(self) -> None:
        self.closed = True
        if self.loop is not asyncio.get_running_loop():
            return
        await self.host.close()
        await self.plugin.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class TestHost:
    """A Host around one Runner.

    Runs reach the Runner through the SDK: real context models, `RunnerAPIProxy`, JSON, stream windows and size limits.
    Connections open at the first run and serve all runs of an event loop; `async with` or `aclose()` ends them early.
    A Runner instance belongs to one host at a time.

    `models` default to one, `m1`, that echoes; `config["model"]` to the first of them with the others (rerank models
    apart) as fallbacks; `config["knowledge-bases"]` to all; `config["prompt"]` to one system row, which is also the
    effective `prompt` unless given. `context_window` fills `model_context_window_tokens`, which 4.11.2 leaves empty.
    `threaded_codec`: JSON is coded in threads, as the SDK does in production; slower, for measuring the event loop.
    """

    __test__ = False

    def __init__(
        self,
        runner: Runner | None = None,
        *,
        manifest: RunnerManifest | None = None,
        models: Sequence[Model] = (),
        replies: Sequence[Scripted] = (),
        tools: Sequence[Tool] = (),
        knowledge: Bases = (),
        skills: Sequence[Skill] = (),
        box: Box | None = None,
        config: Json | None = None,
        prompt: list[Json] | None = None,
        language: Language = "en_US",
        mode: Mode = "pipeline",
        context_window: int | None = None,
        streaming_adapter: bool = True,
        pipeline_remove_think: bool = False,
        allowed_platform_tools: Sequence[str] = (),
        withheld_apis: Sequence[str] = (),
        workspace_storage: bool = False,
        interactions: bool = False,
        features: Sequence[str] = ("llm.reasoning_level",),
        idle_limit: float = 300.0,
        hop_limits: Mapping[str, float] | None = None,
        result_seconds: float = 0.0,
        chat_seconds: float = 0.0,
        threaded_codec: bool = False,
    ) -> None:
        self.runner = runner or PassThroughRunner()
        self.manifest = manifest or full_manifest()
        self.faults = FaultPlan()
        self.hooks = Hooks()
        models = list(models) or [Model("m1", replies=replies)]
        bases = _bases(knowledge)
        config = _with_defaults(config or {}, models, bases)
        self.world = World(
            manifest=self.manifest,
            models=models,
            tools=list(tools),
            knowledge=bases,
            config=config,
            mode=mode,
            language=language,
            prompt=prompt if prompt is not None else _prompt(config),
            box=box or Box(available=False),
            skills=Skills(list(skills)),
            streaming_adapter=streaming_adapter,
            pipeline_remove_think=pipeline_remove_think,
            context_window=context_window,
            idle_limit=idle_limit,
            hop_limits=dict(hop_limits or {}),
            result_seconds=result_seconds,
            chat_seconds=chat_seconds,
            features=list(features),
            allowed_platform_tools=list(allowed_platform_tools),
            withheld_apis=frozenset(withheld_apis),
            workspace_storage=workspace_storage,
            interactions=interactions,
        )
        self._threaded = threaded_codec
        self._link: _Link | None = None

    # Messages

    async def say(self, text: str | None, **message: Any) -> RunRecord:
        """A message and the whole run it starts. Takes what `start` takes."""
        return await self.start(text, **message).wait()

    def start(
        self,
        text: str | None,
        *,
        sender: str = "u1",
        sender_name: str = "",
        conversation: str | None = "person_1",
        images: Sequence[str] = (),
        attachments: Sequence[Attachment] = (),
        variables: Json | None = None,
    ) -> RunRecord:
        """A message whose run goes on by itself; `images` are base64 or data URLs, `attachments` files and voices."""
        source = "host_adapter" if self.world.mode == "pipeline" else "platform"
        return self._begin(
            Incoming(
                text=text,
                sender=sender,
                sender_name=sender_name,
                conversation=conversation,
                images=images,
                attachments=attachments,
                variables=variables or {},
                source=source,
            )
        )

    async def event(
        self, event_type: str, data: Json | None = None, *, text: str | None = None, **who: Any
    ) -> RunRecord:
        """A platform event in agent mode, and the whole run it starts. `who`: sender, sender_name, conversation.

        `text` defaults to what the SDK makes of the event: its summary field in `data`, or its type.
        """
        text = text if text is not None else event_summary({"type": event_type, **(data or {})})
        incoming = Incoming(text=text, event_type=event_type, data=data or {}, source="platform", **who)
        return await self._begin(incoming).wait()

    async def press(self, card: InteractionCard, action: str = "agree", *, sender: str = "u1") -> RunRecord:
        """A button of a card, and the whole run it starts. Raises CardRefused where the Host starts none."""
        return await self.start_press(card, action, sender=sender).wait()

    def start_press(self, card: InteractionCard, action: str = "agree", *, sender: str = "u1") -> RunRecord:
        """The same, without waiting for the run."""
        submission = self.world.cards.press(card, action, sender)
        return self.submit(submission, sender=sender, conversation=card.conversation)

    def submit(self, submission: Json, *, sender: str, conversation: str | None) -> RunRecord:
        """The run of a submission. No press of a person leads to one that the Host did not check: only another plugin
        can make such a one."""
        pipeline = self.world.mode == "pipeline"
        return self._begin(
            Incoming(
                text="submitted" if pipeline else submission["action_id"],
                sender=sender,
                conversation=conversation,
                event_type="interaction.submitted",
                data={"interaction": submission},
                source="host_adapter" if pipeline else "platform",
                interaction=submission,
            )
        )

    @property
    def cards(self) -> list[InteractionCard]:
        """The cards with buttons that runs asked for."""
        return self.world.cards.all

    def steer(
        self,
        text: str,
        *,
        sender: str = "u1",
        sender_name: str = "",
        conversation: str = "person_1",
        images: Sequence[str] = (),
    ) -> bool:
        """A message while a run of its conversation goes on: whether that run claimed it. An unclaimed one is lost."""
        incoming = Incoming(text=text, sender=sender, sender_name=sender_name, conversation=conversation, images=images)
        return self.world.claim(incoming, RUNNER_ID) is not None

    def cancel(self, run: RunRecord | None = None) -> None:
        """What RUN_CANCEL does to a run, or to all that go on."""
        for record in [run] if run is not None else [one for one in self.world.runs if one.active]:
            record.request_cancel("cancelled by a test")

    def reset(self, conversation: str = "person_1") -> None:
        """The user starts a new conversation: rows are hidden and conversation state is deleted."""
        self.world.transcript.hide(conversation)
        self.world.state.forget_conversation(conversation)

    def fail(self, action: str, fault: Fault, nth: int = 1, times: int | None = 1) -> None:
        """The `nth` call of `action` from now on fails so, and the `times` - 1 after it; None: all after it."""
        self.faults.add(action, fault, nth, times)

    def when(self, action: str, do: Callable[[], object], nth: int = 1) -> None:
        """Does something just before the `nth` call of `action` from now on goes out: steer, cancel, reset, look."""
        self.hooks.add(action, nth, do)

    def answer_with(self, action: str, make: Callable[[Json], Awaitable[Json]]) -> None:
        """A test's own answer to every call of a unary action: `make` gets the request data, gives the reply data."""
        self.world.answers[action_name(action)] = make

    # What there is

    @property
    def runs(self) -> list[RunRecord]:
        return self.world.runs

    @property
    def model(self) -> Model:
        """The first model."""
        return self.world.models[0]

    @property
    def state(self) -> Any:
        return self.world.state

    @property
    def config(self) -> Json:
        """The stored binding: changes hold from the next run on."""
        return self.world.config

    def transcript(self, conversation: str = "person_1") -> list[Row]:
        """Visible rows, oldest first."""
        return self.world.transcript.of(conversation)

    def remember(self, *rows: tuple[str, str], conversation: str = "person_1", sender: str = "u1") -> None:
        """Adds earlier rows as `(role, text)`."""
        for role, text in rows:
            parts = Incoming(text=text).contents() if role == "user" else text
            metadata = {"actor_type": "user", "actor_id": sender} if role == "user" else {"runner_id": RUNNER_ID}
            self.world.transcript.add(conversation, role, text, {"role": role, "content": parts}, metadata=metadata)

    @property
    def acknowledgements(self) -> int:
        """STREAM_ACKs the plugin sent: protocol, not calls."""
        return self._link.log.acknowledgements if self._link else 0

    @property
    def wire_bytes(self) -> tuple[int, int]:
        """All bytes from the plugin and to it, results and contexts included."""
        meter = self._link.meter if self._link else None
        return (meter.total_out, meter.total_in) if meter else (0, 0)

    # Life

    def _begin(self, incoming: Incoming) -> RunRecord:
        link = self._open()
        run_id = str(uuid.uuid4())
        ctx = context.build(self.world, incoming, run_id)
        chat = Chat(streaming=self.world.streaming_adapter, seconds=self.world.chat_seconds)
        streams = ReplyStreams(self.world.platform, native=self.world.streaming_adapter)
        record = RunRecord(run_id, incoming, ctx, chat, streams, number=len(self.runs) + 1)
        self.world.runs.append(record)
        record.runner_closed.set()  # until it has begun
        record.task = asyncio.create_task(conduct(self.world, record, link.service))
        return record

    def _open(self) -> _Link:
        if self._link is None or not self._link.usable:
            self._link = _Link(self.runner, self.manifest, self.world, self.faults, self.hooks, threaded=self._threaded)
        return self._link

    async def idle(self) -> None:
        """Waits for work the Host still does for calls that were given up."""
        while self._link is not None and self._link.host.working:
            await asyncio.wait(self._link.host.working)

    async def orphans(self) -> list[asyncio.Task[Any]]:
        """Tasks that live on although no run does: those of this Host and of the test itself are not among them."""
        assert self._link is not None
        await asyncio.sleep(0.05)  # the SDK's own closing words are still under way when a run ends
        own = self._link.tasks | {one for one in (asyncio.current_task(),) if one is not None}
        return [task for task in asyncio.all_tasks() - own - self._link.bystanders if not task.done()]

    async def use(self, runner: Runner) -> None:
        """Puts another Runner in the place of the one so far, as a new version of the plugin would be."""
        await self.aclose()
        self.runner = runner

    async def aclose(self) -> None:
        """Ends runs that still go on and closes the connections."""
        going = [record.task for record in self.runs if record.task is not None and not record.task.done()]
        for task in going:
            task.cancel()
        await asyncio.gather(*going, return_exceptions=True)
        if self._link is not None:
            await self._link.close()

    async def __aenter__(self) -> TestHost:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _bases(knowledge: Bases) -> list[KnowledgeBase]:
    if isinstance(knowledge, Mapping):
        return [KnowledgeBase(name, chunks) for name, chunks in knowledge.items()]
    return list(knowledge)


def _with_defaults(config: Json, models: Sequence[Model], bases: Sequence[KnowledgeBase]) -> Json:
    chat_models = [model.id for model in models if not model.rerank]
    rerank = next((model.id for model in models if model.rerank), "")
    primary = chat_models[0] if chat_models else ""
    return {
        "model": {"primary": primary, "fallbacks": chat_models[1:], "reasoning": {}},
        "prompt": [{"role": "system", "content": "You are a helpful assistant."}],
        "knowledge-bases": [base.id for base in bases],
        "rerank-model": rerank,
        **config,
    }


def _prompt(config: Json) -> list[Json]:
    unset = dict.fromkeys(("name", "tool_calls", "tool_call_id", "resp_message_id", "provider_specific_fields"))
    rows = config.get("prompt")
    return [{**unset, **row} for row in rows] if isinstance(rows, list) else []
