"""A GGUF model in this process by llama.cpp, as a provider (S0). What blocks runs in threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from callformats import all_formats
from local.provider import (
    Availability,
    Available,
    CallFormat,
    ChatTurn,
    CompactTool,
    Downloading,
    GenerateRequest,
    GenerateResult,
    ModelChoice,
    NeedsDownload,
    OnProgress,
    Provider,
    Unavailable,
)
from local.turns import chat_rows
from weights import engine
from weights.catalogue import CATALOGUE, Gguf, cache_folder
from weights.engine import CONTEXT_TOKENS, Completion, Engine, EngineFailed, Sampling
from weights.fetch import Watcher, fetch

REPLY_TOKENS: Final = 1024
"""Tokens a reply may have, and the room that a prompt has to leave for it."""

DEFAULT_MODEL: Final = "1.5b"
_FETCH_SHARE: Final = 0.95
_CALM: Final = 0.2
"""Temperature: weak models choose tools best near zero, and at zero they chant."""


class NotReady(RuntimeError):
    """The model is not loaded: `prepare` was not called, or it was freed."""


class LlamaProvider(Provider):
    """One GGUF model at a time: a file, or a key of the catalogue, which `prepare` fetches where it is missing.

    Guided calls are on from the start, since a schema can always be held to here (S8); `call_format` "tags" or
    "pythonic" lets the model's own chat template show the tools instead. `folder` holds the models to choose from;
    `context_tokens` is the window, `reply_tokens` the room in it for a reply. `say` gets lines for a person while a
    model is fetched.
    """

    id = "llama.cpp"
    label = "llama.cpp in this process"

    def __init__(
        self,
        model: Path | str = DEFAULT_MODEL,
        *,
        folder: Path | None = None,
        call_format: CallFormat = "guided",
        context_tokens: int = CONTEXT_TOKENS,
        reply_tokens: int = REPLY_TOKENS,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._folder = folder or cache_folder()
        self.call_format = call_format
        self.tools_inline = call_format in ("json", "guided")
        self._context_tokens = context_tokens
        self._reply_tokens = min(reply_tokens, context_tokens // 2)
        self._say = say
        self._engine: Engine | None = None
        self._progress: float | None = None
        self._model = self._named(model) if isinstance(model, str) else model

    def models(self) -> Sequence[ModelChoice]:
        """The catalogue, then whatever else lies in the folder as `*.gguf`; the id of a file is its name."""
        known = [
            ModelChoice(model.key, model.name, model.size, f"{model.source}; licence: {model.licence}")
            for model in CATALOGUE.values()
        ]
        names = {model.file for model in CATALOGUE.values()}
        found = sorted(path for path in self._folder.glob("*.gguf") if path.name not in names)
        return [*known, *(ModelChoice(path.name, path.stem, path.stat().st_size) for path in found)]

    async def select_model(self, model_id: str) -> None:
        chosen = self._named(model_id)
        self.dispose()
        self.broken = None
        self._model = chosen

    async def availability(self) -> Availability:
        if not engine.is_installed():
            return Unavailable("llama.cpp is not installed: pip install -r requirements-model.txt")
        if self.broken is not None:
            return Unavailable(self.broken)
        if self._engine is not None:
            return Available()
        if self._progress is not None:
            return Downloading(self._progress)
        return self._on_disk()

    async def prepare(self, on_progress: OnProgress) -> None:
        """Fetch (only a model of the catalogue), check and load. Raises StepFailed, EngineFailed; then it is broken
        if the file is no model."""
        if self._engine is not None:
            on_progress(1.0)
            return
        watcher = self._watcher(on_progress)
        try:
            file = await self._file(watcher)
            loaded = await asyncio.to_thread(self._load, file, watcher.stop)
        except EngineFailed as failure:
            self.broken = str(failure)
            raise
        finally:
            # The thread goes on for a moment after a cancellation, and minds this.
            watcher.stop.set()
            self._progress = None
        self._engine = loaded
        on_progress(1.0)

    async def fits(self, system: str, messages: Sequence[ChatTurn], tools: Sequence[CompactTool]) -> bool:
        loaded = self._loaded()

        def count() -> int:
            return loaded.count(
                loaded.prompt(chat_rows(system, messages, told=self.tools_inline), list(map(_tool, tools)))
            )

        return await asyncio.to_thread(count) + self._reply_tokens <= self._context_tokens

    async def generate(self, request: GenerateRequest) -> GenerateResult:
        """Raises NotReady, EngineFailed."""
        loaded, given_up = self._loaded(), threading.Event()

        def write() -> Completion:
            prompt = loaded.prompt(
                chat_rows(request.system, request.messages, told=self.tools_inline), list(map(_tool, request.tools))
            )
            return loaded.complete(prompt, self._sampling(request), request.on_token, given_up.is_set)

        try:
            done = await asyncio.to_thread(write)
        finally:
            given_up.set()
        return GenerateResult(done.text, done.cut)

    def dispose(self) -> None:
        loaded, self._engine = self._engine, None
        if loaded is not None:
            loaded.close()

    def _named(self, model_id: str) -> Path | Gguf:
        if model_id in CATALOGUE:
            return CATALOGUE[model_id]
        path = self._folder / model_id
        if path.name != model_id or path.suffix != ".gguf" or not path.is_file():
            raise ValueError(f"{self._folder} has no model {model_id!r}")
        return path

    def _on_disk(self) -> Availability:
        if isinstance(self._model, Path):
            if not self._model.is_file():
                return Unavailable(
                    f"there is no file {self._model}: check its path, or name one of {', '.join(CATALOGUE)}"
                )
            return NeedsDownload(self._model.stat().st_size, cached=True)
        file = self._folder / self._model.file
        whole = file.is_file() and file.stat().st_size == self._model.size
        note = f"{self._model.name} from {self._model.source}; licence: {self._model.licence}"
        return NeedsDownload(self._model.size, note, cached=whole)

    def _watcher(self, on_progress: OnProgress) -> Watcher:
        loop = asyncio.get_running_loop()
        self._progress = 0.0

        def tell(share: float) -> None:
            if self._progress is not None and not loop.is_closed():
                self._progress = share * _FETCH_SHARE
                loop.call_soon_threadsafe(on_progress, self._progress)

        on_progress(0.0)
        return Watcher(self._say, tell)

    async def _file(self, watcher: Watcher) -> Path:
        if isinstance(self._model, Path):
            return self._model
        return await asyncio.to_thread(fetch, self._model, self._folder, watcher)

    def _load(self, file: Path, stop: threading.Event) -> Engine:
        loaded = Engine(file, context_tokens=self._context_tokens)
        if stop.is_set():  # nobody waits for it any more
            loaded.close()
        return loaded

    def _loaded(self) -> Engine:
        if self._engine is None:
            raise NotReady("the model is not loaded")
        return self._engine

    def _sampling(self, request: GenerateRequest) -> Sampling:
        markers = [] if self.tools_inline else [mark for one in all_formats() for mark in (*one.opens, *one.closes)]
        temperature = _CALM if request.temperature is None else request.temperature
        return Sampling(self._reply_tokens, temperature, request.schema, markers=markers)


def _tool(tool: CompactTool) -> dict[str, object]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}
