"""The sandbox of one run: bound when it is first needed, files in, files out (H1-H3).

```
open ─▸ no file came: ask whether there is one ─┐          first tool call ─▸ acquire, bind
      ─▸ files came: acquire, bind, import them ─┴▸ turns ─┤
                                                          └▸ tools ran ─▸ collect: list the outbox, export
```
Whatever fails here costs the sandbox, never the answer (Q4).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from langbot_plugin.api.entities.builtin.runner.box import BoxBinding
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext

from config.settings import Box as BoxSettings
from runner.conversation.attachments import NOWHERE, Attached, Place, attached
from runner.host import clock
from runner.host.errors import HostCallFailed, HostFailure
from runner.host.events import Json
from runner.host.port import Host
from runner.sandbox import exports
from runner.sandbox.exports import MOST_FILES, Unsent
from runner.sandbox.key import chat_of, reuse_key
from runner.tools.catalogue import sandbox_tools_of

STATUS_SECONDS: Final = 10.0
BIND_SECONDS: Final = 90.0
"""A backend may have to start a container for it."""

IMPORT_SECONDS: Final = 60.0
IMPORTS_SECONDS: Final = 120.0
"""For one file, and for all of a message: the person waits for their answer meanwhile."""

NOT_THERE: Final = (
    "The sandbox cannot be used now, so nothing was run, and its tools are not offered any more for this message. "
    "Answer without them and say what could not be done."
)

OUTBOX_LINE: Final = "(Files saved under {outbox} in the sandbox are sent to the chat along with your answer.)"
"""Stands in the user turn: the folder is another one in each run, and the system message should stay the same."""

_WRITERS: Final = frozenset({"exec", "write"})


@dataclass(slots=True)
class Collected:
    """What goes out with the answer: ids by name, and what stays behind."""

    file_ids: dict[str, str] = field(default_factory=dict)
    unsent: dict[str, Unsent] = field(default_factory=dict)

    def names(self, why: Unsent) -> str:
        """Names of the files that stay behind for this reason."""
        return exports.names_of(path for path, reason in self.unsent.items() if reason is why)


class Sandbox:
    """The sandbox of one run.

    `log` gets a line for the bot's owner; `on_lost` is told when its tools have to go. `attaches`: files that the run
    makes are sent with its answer.
    """

    def __init__(
        self, ctx: RunnerContext, host: Host, settings: BoxSettings, log: Callable[[str], None], *, attaches: bool
    ) -> None:
        granted = sandbox_tools_of(ctx.resources.tools)
        self._wanted = settings.enabled and ctx.context.available_apis.box and bool(granted)
        self._tools = granted if self._wanted else frozenset[str]()
        self._attaches = attaches
        self._host = host
        self._log = log
        self._key = reuse_key(settings.session_template, chat_of(ctx))
        self._required: str | None = None
        self._asked = False
        self._run_id = ctx.run_id
        self._outbox = f"/workspace/outbox/{ctx.run_id}"
        self._bound = False
        self._lost = not self._wanted
        self._lock = asyncio.Lock()
        self._ran = False
        self._unlisted = False
        self._listed = False
        self._written: dict[str, None] = {}
        self._owed: dict[str, None] = {}
        self.on_lost: Callable[[], None] = _nobody
        self.collected = Collected()

    @property
    def offered(self) -> bool:
        """Whether the model may be shown the sandbox tools."""
        return not self._lost

    @property
    def key(self) -> str:
        """The key of the chat's sandbox: runs with the same key share one."""
        return self._key

    @property
    def line(self) -> str:
        """What the model has to know about files; empty where it can write none or none would be sent."""
        return OUTBOX_LINE.format(outbox=self._outbox) if self._sends and self._tools & _WRITERS else ""

    @property
    def _sends(self) -> bool:
        return self.offered and self._attaches

    async def open(self, ctx: RunnerContext, notes: list[str]) -> Mapping[str, Place]:
        """Look whether there is a sandbox and put the message's files into it; their places by reference.

        With files the sandbox is bound at once, which tells whether it is there; without, only its status is asked.
        What could not be had goes into `notes`: the log has one line of everything that the run begins with (D1).
        """
        log, self._log = self._log, notes.append
        try:
            return await self._open(ctx)
        finally:
            self._log = log

    async def _open(self, ctx: RunnerContext) -> Mapping[str, Place]:
        if not self._wanted:
            return NOWHERE
        files = [file for file in attached(ctx.input) if file.ref]
        try:
            if not files:
                async with asyncio.timeout(STATUS_SECONDS):
                    await self._ask_status()
                return NOWHERE
            await self._bind()
        except (HostCallFailed, TimeoutError) as failure:
            self._lose(failure)
            return {file.ref: Place(None) for file in files if file.ref}
        return await self._import(files)

    async def call_tool(self, name: str, arguments: dict[str, Json]) -> Json:
        """One tool call; a sandbox tool binds the sandbox first. Raises HostCallFailed."""
        if name not in self._tools:
            return await self._host.call_tool(name, arguments)
        try:
            await self._bind()
        except (HostCallFailed, TimeoutError) as failure:
            self._lose(failure)
            raise HostCallFailed("sandbox", HostFailure.REFUSED, NOT_THERE) from failure
        self._ran = True
        self._unlisted = self._unlisted or name == "exec"
        try:
            result = await self._host.call_tool(name, arguments)
        except BaseException:
            self._unlisted = self._unlisted or name in _WRITERS  # it may have written all the same
            raise
        if path := exports.written_path(name, arguments, result, self._outbox):
            self._written[path] = None
        return result

    async def collect(self, until: float) -> None:
        """Export what the run left in its outbox; `until` is a time of the event loop's clock.

        May be called again when the run goes on: only what was made since is exported then.
        """
        if not (self._ran and self._bound and self._attaches):
            return
        self._ran = False
        try:
            async with asyncio.timeout_at(until):
                await self._export_all(await self._outgoing())
                failed = [path for path, why in self.collected.unsent.items() if why is Unsent.FAILED]
                if failed and not self._listed:
                    # What `write` was told need not be what the backend calls the file.
                    self._written.update(dict.fromkeys(failed))
                    self._unlisted = True
                    await self._export_all(await self._outgoing())
        except TimeoutError:
            self._log("sandbox: the files could not be fetched in time")
            self.collected.unsent.update(dict.fromkeys(self._owed, Unsent.FAILED))

    async def _bind(self) -> None:
        """Acquire and bind, once a run, however many calls need it at the same time."""
        async with self._lock:
            if self._lost:
                raise HostCallFailed("sandbox", HostFailure.REFUSED, "it was lost before")
            if not self._bound:
                async with asyncio.timeout(BIND_SECONDS):
                    binding = await self._acquired()
                self._outbox, self._bound = binding.outbox.rstrip("/"), True

    async def _acquired(self) -> BoxBinding:
        try:
            box_id = await self._host.acquire_box(self._required or self._key)
        except HostCallFailed as failure:
            # A managed deployment takes one key only, and its status names it.
            if self._asked or failure.kind is not HostFailure.REFUSED:
                raise
            await self._ask_status()
            if self._required is None:
                raise
            box_id = await self._host.acquire_box(self._required)
        binding = await self._host.bind_box(box_id)
        if not exports.is_outbox(binding.outbox.rstrip("/"), self._run_id):
            raise HostCallFailed("bind_box", HostFailure.MALFORMED, "its outbox is none of this run")
        return binding

    async def _ask_status(self) -> None:
        status = await self._host.box_status()
        self._asked = True
        self._required = status.required_reuse_key
        if not (status.enabled and status.available):
            raise HostCallFailed("box_status", HostFailure.REFUSED, status.reason or "no sandbox is available")

    def _lose(self, failure: Exception) -> None:
        if not self._lost:
            self._lost = True
            self._log(f"sandbox: not used in this run: {failure or 'no answer in time'}")
            self.on_lost()

    async def _import(self, files: Sequence[Attached]) -> Mapping[str, Place]:
        """One after the other: the Host takes them so, and one that waits behind others would use up its own time."""
        end = clock.now() + IMPORTS_SECONDS
        refs = dict.fromkeys(file.ref for file in files if file.ref)
        return {ref: await self._import_one(ref, min(IMPORT_SECONDS, end - clock.now())) for ref in refs}

    async def _import_one(self, ref: str, seconds: float) -> Place:
        try:
            if seconds <= 0:
                raise TimeoutError
            async with asyncio.timeout(seconds):
                file = await self._host.import_attachment(ref)
        except (HostCallFailed, TimeoutError) as failure:
            self._log(f"sandbox: {ref} was not imported: {failure or 'no answer in time'}")
            return Place(None)
        return Place(file.path, file.size)

    async def _outgoing(self) -> Sequence[str]:
        """Files of the outbox, oldest first. After `write` alone they are known; a command may have made any."""
        written = tuple(self._written)
        self._owed = dict(self._written)
        self._written.clear()
        self._listed, self._unlisted = self._unlisted, False
        if not self._listed:
            return self._within_limit(written)
        tool, arguments = "glob", exports.glob_arguments(self._outbox)
        if tool not in self._tools:
            tool, arguments = "exec", exports.find_arguments(self._outbox)
        try:
            listed = await self._host.call_tool(tool, arguments)
        except HostCallFailed as failure:
            self._log(f"sandbox: the outbox could not be listed: {failure}")
            return self._within_limit(written)
        if not exports.is_list(listed):
            return self._within_limit(written)
        # What stayed behind before is in the list again, and what is not is gone.
        self.collected.unsent.clear()
        if exports.is_incomplete(listed):
            self.collected.unsent["…"] = Unsent.LIMIT
        return self._within_limit(exports.paths_in(listed, self._outbox))

    async def _export_all(self, paths: Sequence[str]) -> None:
        self._owed = dict.fromkeys(paths)
        for batch in exports.batches(paths):
            await self._export(batch)

    def _within_limit(self, paths: Sequence[str]) -> Sequence[str]:
        room = MOST_FILES - len(self.collected.file_ids)
        self.collected.unsent.update(dict.fromkeys(paths[room:], Unsent.LIMIT))
        return paths[:room]

    async def _export(self, paths: Sequence[str]) -> None:
        """One batch; where it is refused, file by file: the Host takes a batch only as a whole."""
        try:
            files = await self._host.export_files(paths)
        except HostCallFailed as failure:
            if failure.kind is HostFailure.REFUSED and len(paths) > 1:
                for path in paths:
                    await self._export([path])
                return
            why = exports.why_refused(failure.text)
            self._settled(paths, why)
            if why is not None:
                self._log(f"sandbox: {len(paths)} file(s) not exported: {failure}")
            return
        self._settled(paths, None)
        self.collected.file_ids.update({file.id: file.name for file in files})
        for warning in {file.warning for file in files if file.warning}:
            self._log(f"sandbox: {warning}")

    def _settled(self, paths: Sequence[str], why: Unsent | None) -> None:
        """Note what became of paths: None, nothing stays behind."""
        for path in paths:
            self._owed.pop(path, None)
            self.collected.unsent.pop(path, None)
            if why is not None:
                self.collected.unsent[path] = why


def _nobody() -> None:
    """Before the run's turns there is nobody to tell."""
