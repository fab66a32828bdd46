"""The contract between the agent loop and an engine that runs a model (S0).

A provider only generates; the loop owns tools, validation and the conversation. `Engine` is what it must have. What it
may have besides stands in `Provider` with the meaning of its absence; `Completed` reads that in one place.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from runner.events import Json

CallFormat = str
"""How the model writes calls, and so how its earlier ones go back into the history.

"tags" (Qwen, Hermes), "pythonic" (LFM2), or the id of any format of `runner.callformats` that can be written. "guided"
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

    async def generate(self, request: GenerateRequest) -> GenerateResult:
        """One generation. Setting `broken` and raising makes the loop go on with the next provider."""


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
    async def generate(self, request: GenerateRequest) -> GenerateResult:
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


@runtime_checkable
class _InlinesTools(Protocol):
    @property
    def tools_inline(self) -> bool: ...


@runtime_checkable
class _HasCallFormat(Protocol):
    @property
    def call_format(self) -> CallFormat: ...


@runtime_checkable
class _MayBreak(Protocol):
    @property
    def broken(self) -> str | None: ...


@runtime_checkable
class _Measures(Protocol):
    async def fits(self, system: str, messages: Sequence[ChatTurn], tools: Sequence[CompactTool]) -> bool: ...


@runtime_checkable
class _Chooses(Protocol):
    def models(self) -> Sequence[ModelChoice]: ...

    async def select_model(self, model_id: str) -> None: ...


@runtime_checkable
class _Disposes(Protocol):
    def dispose(self) -> None: ...


def complete(engine: Engine) -> Completed:
    """The engine with the defaults of `Provider` for whatever it does not have."""
    return engine if isinstance(engine, Completed) else Completed(engine)


class Completed:
    """Any engine as a whole provider. `broken` is looked for each time: engines set it when they find out."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def id(self) -> str:
        return self._engine.id

    @property
    def label(self) -> str:
        return self._engine.label

    @property
    def tools_inline(self) -> bool:
        return isinstance(self._engine, _InlinesTools) and self._engine.tools_inline

    @property
    def call_format(self) -> CallFormat:
        return self._engine.call_format if isinstance(self._engine, _HasCallFormat) else "tags"

    @property
    def broken(self) -> str | None:
        return self._engine.broken if isinstance(self._engine, _MayBreak) else None

    async def availability(self) -> Availability:
        return await self._engine.availability()

    async def prepare(self, on_progress: OnProgress) -> None:
        await self._engine.prepare(on_progress)

    async def generate(self, request: GenerateRequest) -> GenerateResult:
        return await self._engine.generate(request)

    async def fits(self, system: str, messages: Sequence[ChatTurn], tools: Sequence[CompactTool]) -> bool:
        return not isinstance(self._engine, _Measures) or await self._engine.fits(system, messages, tools)

    def models(self) -> Sequence[ModelChoice]:
        return self._engine.models() if isinstance(self._engine, _Chooses) else ()

    async def select_model(self, model_id: str) -> None:
        if not isinstance(self._engine, _Chooses):
            raise ValueError(f"{self.label} has no model {model_id!r} to choose")
        await self._engine.select_model(model_id)

    def dispose(self) -> None:
        if isinstance(self._engine, _Disposes):
            self._engine.dispose()
