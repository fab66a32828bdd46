"""`run_local_agent`: the loop of `runner/` on a provider in this process, without LangBot (S0, S3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from langbot_plugin.api.entities.builtin.runner.resources import ToolResource

from config.choices import CallFormat, ModelProfile
from config.notices import Notice, say
from config.notices.language import locale_of
from config.settings import Small
from local.fitting import WINDOW, ProviderFitting
from local.history import read_past
from local.models import GRACE, Line, own_manner
from local.outcomes import Outcomes
from local.parts import Error, Finish, Part
from local.provider import Completed, Engine, complete
from local.request import RunRequest, ToolFailed
from local.speaking import Speaking
from local.taking import Signal, TakenRequest, stopped
from runner.channel.visible import Visible
from runner.context.compaction import View
from runner.context.overflow import is_overflow
from runner.conversation.call_ids import CallIds
from runner.conversation.units import System, Text, UserTurn
from runner.host import clock
from runner.host.deadline import Deadline
from runner.host.errors import AllModelsFailed, HostCallFailed, HostFailure, InputTooLarge, ModelTrouble
from runner.host.events import Json
from runner.loop.loop import Ending, Loop
from runner.loop.policy import Stop
from runner.loop.progress import Progress
from runner.loop.rounds import Rounds
from runner.loop.turn import BrokenOff, StepTimedOut, Turns
from runner.loop.view import RunView
from runner.models.refusals import Refusals, Step
from runner.small.guiding import PSEUDO_TOOLS, Guiding
from runner.small.memory import Memory
from runner.tools.catalogue import Catalogue
from runner.tools.execute import Executor, ToolSlots
from runner.tools.memory import ToolMemory

MAX_STEPS: Final = 6
STEP_TIMEOUT: Final = 60.0
"""Seconds until a reply begins, and again from there to its end."""

MAX_TOOLS: Final = 8
_STEPS: Final = frozenset({Step.FORCING, Step.SIZE})
"""What an engine can be spared (K7): its tools are its own word."""

PROMPT: Final = "You are a helpful assistant."


@dataclass(frozen=True, slots=True)
class Options:
    """The limits of a run. `step_timeout` in seconds; `tools_inline` forces tools into the prompt's text.

    Raises ValueError for a limit nothing could run within.
    """

    max_steps: int = MAX_STEPS
    step_timeout: float = STEP_TIMEOUT
    max_tools: int = MAX_TOOLS
    tools_inline: bool = False
    instructions: str | None = None

    def __post_init__(self) -> None:
        for name, value in (("max_steps", self.max_steps), ("max_tools", self.max_tools)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        if not self.step_timeout > 0:
            raise ValueError(f"step_timeout must be more than 0 seconds, not {self.step_timeout:g}")


async def run_local_agent(
    provider: Engine,
    request: RunRequest,
    *,
    max_steps: int = MAX_STEPS,
    step_timeout: float = STEP_TIMEOUT,
    max_tools: int = MAX_TOOLS,
    tools_inline: bool = False,
    instructions: str | None = None,
) -> AsyncGenerator[Part, None]:
    """Everything one run says; the last part is `Finish` or `Error`. The provider must be prepared.

    `max_steps` times the model is asked, corrections not counted; `step_timeout` seconds for each generation;
    `max_tools` shown in full at each step; `tools_inline` lists them in the prompt's text whatever the provider says;
    `instructions` tell what the place is and how its tools fit together. What `request.agent` says wins. Closing the
    generator ends the run. Raises ValueError for a request or an option that makes no sense.
    """
    options = Options(max_steps, step_timeout, max_tools, tools_inline, instructions)
    async with aclosing(run_agent([complete(provider)], request, options)) as parts:
        async for part in parts:
            yield part


async def run_agent(
    providers: Sequence[Completed], request: RunRequest, options: Options
) -> AsyncGenerator[Part, None]:
    """The same with further providers, each for the case that the one before it turns out to be broken (S0)."""
    taken = TakenRequest(request)
    try:
        run = _Run(providers, taken, options)
    except ValueError:
        raise
    except Exception as failure:  # noqa: BLE001  reading the tools runs whatever the place does for that
        locale = locale_of(taken.messages[-1].text if taken.messages else "")
        yield Error(say(Notice.FAILED, locale, reason=f"{type(failure).__name__}: {failure}"))
        return
    if taken.stop.is_set():
        yield Finish("aborted")
        return
    driving = asyncio.create_task(run.drive())
    watching = asyncio.create_task(_stops(taken.stop, run.speaking))
    driving.add_done_callback(lambda _: run.speaking.end(Error(run.say(Notice.INTERNAL_NOTE))))
    try:
        async for part in run.speaking.parts():
            yield part
    finally:
        driving.cancel()
        watching.cancel()
        # A tool that does not mind being cancelled must not hold whoever reads.
        await asyncio.wait({driving, watching}, timeout=2 * GRACE)


async def _stops(stop: Signal, speaking: Speaking) -> None:
    await stopped(stop)
    speaking.end(Finish("aborted"))


class _Run:
    """One run: the parts of the loop, made for these providers."""

    def __init__(self, providers: Sequence[Completed], request: TakenRequest, options: Options) -> None:
        agent = request.agent
        if agent.max_steps is not None:
            options = replace(options, max_steps=agent.max_steps)
        self._request = request
        self._line = Line(providers)
        self._renderer = Outcomes()
        self._ids = CallIds()
        self._past = read_past(request.messages, self._catalogue(), self._renderer, self._ids)
        self.speaking = Speaking()
        self._visible = Visible()
        small = Small(
            profile=ModelProfile.SMALL,
            call_format=CallFormat.NATIVE,
            max_tools_shown=options.max_tools,
            max_steps=options.max_steps,
            step_timeout=options.step_timeout,
            site_instructions=agent.instructions or options.instructions or "",
        )
        self._small = small
        self._policy = self._make_manner(providers, small, inline=options.tools_inline)

    def say(self, notice: Notice, **values: object) -> str:
        """A sentence of the runner in the language of the newest request."""
        return say(notice, locale_of(self._past.asked), **values)

    async def drive(self) -> None:
        """Run, and whatever happens end with one last part."""
        try:
            ending = await self._loop().run()
        except (AllModelsFailed, BrokenOff) as failure:
            self.speaking.end(Error(self._words(failure)))
        except InputTooLarge:
            self.speaking.end(Error(self.say(Notice.TOO_LONG)))
        except Exception as failure:  # noqa: BLE001  the last resort: whatever it is, the run ends with words (Q4)
            self.speaking.end(Error(self.say(Notice.FAILED, reason=f"{type(failure).__name__}: {failure}")))
        else:
            self._finish(ending)

    def _finish(self, ending: Ending) -> None:
        if ending.cut:
            self._note(Notice.LENGTH_LIMIT_NOTE)
        if not self._visible.shown and not ending.silent:
            self._note(Notice.EMPTY_ANSWER)
        self.speaking.end(Finish("max-steps" if ending.stop is Stop.STEPS else "stop"))

    def _note(self, notice: Notice) -> None:
        self._visible.note(self.say(notice))
        self.speaking.show(self._visible.text)

    def _words(self, failure: AllModelsFailed | BrokenOff) -> str:
        last = failure.failures[-1] if isinstance(failure, AllModelsFailed) else failure
        if isinstance(last, StepTimedOut):
            return self.say(Notice.TOOK_TOO_LONG, seconds=f"{last.seconds:g}")
        if last.cause is ModelTrouble.TIMEOUT:
            return self.say(Notice.TOOK_TOO_LONG, seconds=f"{self._small.step_timeout:g}")
        if is_overflow(last.text, counted=0, window=WINDOW.window):
            return self.say(Notice.TOO_LONG)
        return self.say(Notice.FAILED, reason=last.text)

    def _loop(self) -> Loop:
        catalogue = self._catalogue()
        progress = Progress(self._visible, self.speaking.show, wanted=False)
        rounds = Rounds(catalogue, self._executor(), progress, self.say, self._ids, ToolMemory((), wanted=False))
        fitting = ProviderFitting(self._line, self._policy, self._catalogue, self._at_step(rounds))
        view = RunView(self._view(catalogue), fitting, lambda _: WINDOW)
        turns = Turns(
            self._line,
            view,
            self._visible,
            self.speaking.show,
            progress,
            self.say,
            _unheard,
            policy=self._policy,
            refusals=Refusals(steps=_STEPS),
        )
        self._policy.asked(self._past.asked)
        self._policy.recall(self._past.since_asked)
        return Loop(
            view,
            turns,
            rounds,
            _NoFollowUps(),
            Deadline(None, None),
            _nothing_to_settle,
            max_rounds=self._small.max_steps + 1,  # the policy ends the run before, with words
            clock=clock.now,
            policy=self._policy,
        )

    def _at_step(self, rounds: Rounds) -> Callable[[Catalogue], None]:
        def take(catalogue: Catalogue) -> None:
            rounds.catalogue = catalogue
            self.speaking.step()

        return take

    def _view(self, catalogue: Catalogue) -> View:
        return View(System((Text(PROMPT),)), self._past.units, catalogue.specs, question=self._past.question)

    def _executor(self) -> Executor:
        return Executor(self._call_tool, self._renderer, ToolSlots(), self.speaking.tool, serial=True)

    async def _call_tool(self, name: str, arguments: Mapping[str, Json]) -> object:
        try:
            return await self._request.call_tool(name, arguments)
        except ToolFailed as failure:
            raise HostCallFailed("call_tool", HostFailure.REFUSED, str(failure)) from failure
        except TimeoutError as failure:
            raise HostCallFailed("call_tool", HostFailure.TIMEOUT, str(failure)) from failure
        except Exception as failure:  # any accident of a tool is a failed call, and its words are the model's to read
            words = f"{type(failure).__name__}: {failure}"
            raise HostCallFailed("call_tool", HostFailure.REFUSED, words) from failure

    def _catalogue(self) -> Catalogue:
        """The tools as they are now."""
        tools = [
            ToolResource(tool_name=tool.name, description=tool.description, parameters=dict(tool.parameters))
            for tool in self._request.tools
        ]
        return Catalogue.build(tools, hide_sandbox=False, reserved=PSEUDO_TOOLS)

    def _make_manner(self, providers: Sequence[Completed], small: Small, *, inline: bool) -> Guiding:
        """What there is to know of each provider is its own word: nothing is found out about it."""
        memory = Memory(None, _forgotten)
        own = {provider.id: own_manner(provider, inline=inline) for provider in providers}
        return Guiding(small, memory, self._catalogue(), self.say, _unheard, own=own, last_word=False)


class _NoFollowUps:
    """Nobody speaks in between on this door: what comes next is another run."""

    async def pull(self) -> UserTurn | None:
        return None

    def answered(self) -> None:
        return None


def _unheard(line: str) -> None:
    """Lines for the owner of a bot: here the error part says what matters."""


def _forgotten(value: Json) -> None:
    """What a run learns of a model ends with it."""


async def _nothing_to_settle(ending: Ending) -> None:
    return None
