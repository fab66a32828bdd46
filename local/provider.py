"""The contract between the agent loop and an engine that runs a model (S0).

A provider only generates; the loop owns tools, validation and the conversation. `Engine` is what it must have. What it
may have besides stands in `Provider` with the meaning of its absence; `Completed` reads that in one place.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from local.taking import member, resolved
from runner.host.events import Json

CallFormat = str
"""How the model writes calls, and so how its earlier ones go back into the history.

"tags" (Qwen, Hermes), "pythonic" (LFM2), or the id of any format of `callformats` that can be written. "guided"
holds the reply to a JSON schema (`GenerateRequest.schema`); its tools always stand in the prompt.
"""

OnProgress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A turn of the prompt. `tool` turns carry a tool's result; `name` is then the tool's."""

    role: Literal["user", "assistant", "tool"]
    content: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class CompactTool:
    """A tool as small models see it: at most 400 characters of description, and a compact schema."""

    name: str
    description: str
    parameters: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One generation.

    `stop` is set when the person stops the run or the step's time is up. `on_token` may be told the raw text as it is
    generated, from any thread; the pieces joined are the text. `schema` is a JSON schema that the text is to follow,
    and `temperature` is asked for where the reply has to come out differently; a provider may ignore both.
    """

    system: str
    messages: Sequence[ChatTurn]
    tools: Sequence[CompactTool]
    stop: asyncio.Event
    on_token: Callable[[str], None]
    schema: Mapping[str, Json] | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class GenerateResult:
    """The raw reply; the loop reads calls out of it. `cut`: a length limit ended it."""

    text: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Available:
    """Ready to generate."""

    state: Literal["available"] = "available"


@dataclass(frozen=True, slots=True)
class NeedsDownload:
    """Something has to be prepared first. `cached`: it was fetched before, so nobody has to agree again."""

    bytes: int | None = None
    note: str | None = None
    cached: bool = False
    state: Literal["needs-download"] = "needs-download"


@dataclass(frozen=True, slots=True)
class Downloading:
    """It is being prepared; `progress` from 0 to 1."""

    progress: float
    state: Literal["downloading"] = "downloading"


@dataclass(frozen=True, slots=True)
class Unavailable:
    """It cannot run here."""

    reason: str
    state: Literal["unavailable"] = "unavailable"


Availability = Available | NeedsDownload | Downloading | Unavailable


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """One model a provider offers. `bytes` of its file; `note` says where it is from."""

    id: str
    label: str
    bytes: int | None = None
    note: str | None = None


class Engine(Protocol):
    """What every provider has."""

    @property
    def id(self) -> str: ...

    @property
    def label(self) -> str: ...

    async def availability(self) -> Availability:
        """Whether it can run, and what it needs first. Never downloads."""

    async def prepare(self, on_progress: OnProgress) -> None:
        """Download and load the model; `on_progress` gets 0 to 1. Cancelling the task stops it."""

    async def generate(self, request: GenerateRequest) -> GenerateResult | str:
        """One generation: its raw text. Setting `broken` and raising makes the loop go on with the next provider."""


class Provider(ABC):
    """A base to inherit from: an engine with everything optional settled.

    `tools_inline`: tools stand in the prompt's text, for engines whose chat template takes none. `broken`: set it once
    the engine turns out not to run here, and say why.
    """

    id: str
    label: str
    tools_inline: bool = False
    call_format: CallFormat = "tags"
    broken: str | None = None

    @abstractmethod
    async def availability(self) -> Availability:
        """See `Engine`."""

    @abstractmethod
    async def prepare(self, on_progress: OnProgress) -> None:
        """See `Engine`."""

    @abstractmethod
    async def generate(self, request: GenerateRequest) -> GenerateResult | str:
        """See `Engine`."""

    async def fits(self, system: str, messages: Sequence[ChatTurn], tools: Sequence[CompactTool]) -> bool:
        """Whether a prompt fits the model's window with room for the reply."""
        return True

    def models(self) -> Sequence[ModelChoice]:
        """The models to choose from; none: it has one and shows no choice."""
        return ()

    async def select_model(self, model_id: str) -> None:
        """Switch to one of `models()`: frees the current one. Raises ValueError for an unknown id."""
        raise ValueError(f"{self.label} has no model {model_id!r} to choose")

    def dispose(self) -> None:  # noqa: B027  not every engine holds anything
        """Free the model."""


def complete(engine: Engine) -> Completed:
    """The engine with the defaults of `Provider` for whatever it does not have."""
    return engine if isinstance(engine, Completed) else Completed(engine)


class Completed:
    """Any engine as a whole provider: what it lacks has its default, and what it returns is read into our shapes.

    Everything is looked for each time, since engines set `broken` when they find out.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def id(self) -> str:
        return str(member(self._engine, "id") or type(self._engine).__name__)

    @property
    def label(self) -> str:
        return str(member(self._engine, "label") or self.id)

    @property
    def tools_inline(self) -> bool:
        return bool(member(self._engine, "tools_inline"))

    @property
    def call_format(self) -> CallFormat:
        written = member(self._engine, "call_format")
        return "tags" if written is None else str(written)

    @property
    def broken(self) -> str | None:
        reason = member(self._engine, "broken")
        return str(reason) if reason else None

    async def availability(self) -> Availability:
        asked = member(self._engine, "availability")
        return _availability(await resolved(asked())) if callable(asked) else Available()

    async def prepare(self, on_progress: OnProgress) -> None:
        prepare = member(self._engine, "prepare")
        if callable(prepare):
            await resolved(prepare(on_progress))

    async def generate(self, request: GenerateRequest) -> GenerateResult:
        """Raises TypeError for an answer that is no text."""
        answer: object = await resolved(self._engine.generate(request))
        text = answer if isinstance(answer, str) else member(answer, "text")
        if not isinstance(text, str):
            raise TypeError(f"the engine returned no text but {type(answer).__name__}")
        return GenerateResult(text, cut=bool(member(answer, "cut")))

    async def fits(self, system: str, messages: Sequence[ChatTurn], tools: Sequence[CompactTool]) -> bool:
        measure = member(self._engine, "fits")
        return not callable(measure) or bool(await resolved(measure(system, messages, tools)))

    def models(self) -> Sequence[ModelChoice]:
        offered = member(self._engine, "models")
        return offered() if callable(offered) else ()

    async def select_model(self, model_id: str) -> None:
        choose = member(self._engine, "select_model")
        if not callable(choose):
            raise ValueError(f"{self.label} has no model {model_id!r} to choose")
        await resolved(choose(model_id))

    def dispose(self) -> None:
        free = member(self._engine, "dispose")
        if callable(free):
            free()


def _availability(said: object) -> Availability:
    """What an engine says of itself; of anything else, that it cannot run."""
    if isinstance(said, Available | NeedsDownload | Downloading | Unavailable):
        return said
    state = said if isinstance(said, str) else member(said, "state")
    match str(state).replace("_", "-"):
        case "available":
            return Available()
        case "needs-download":
            size, note = member(said, "bytes"), member(said, "note")
            return NeedsDownload(
                size if isinstance(size, int) else None,
                note if isinstance(note, str) else None,
                cached=bool(member(said, "cached")),
            )
        case "downloading":
            progress = member(said, "progress")
            return Downloading(float(progress) if isinstance(progress, int | float) else 0.0)
    return Unavailable(str(member(said, "reason") or f"the engine says no more of its state than {said!r}"[:200]))
