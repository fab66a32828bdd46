"""Two in-memory `Connection`s joined back to back, metering what crosses them.

The SDK's own handlers sit on both ends, so encoding, chunk windows and size limits are the real ones; only the
pipe or socket between two processes is replaced.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from typing import Any

from langbot_plugin.entities.io.errors import ConnectionClosedError
from langbot_plugin.runtime.io.connection import MAX_MESSAGE_BYTES, Connection
from langbot_plugin.runtime.io.handler import Handler

_HEAD = re.compile(r'\{(?:"stream_index": \d+, )?"seq_id": (\d+), "(action|code)"')


class Meter:
    """Bytes on the wire of the plugin's own calls, by sequence number."""

    def __init__(self) -> None:
        self.asked: defaultdict[int, int] = defaultdict(int)
        self.answered: defaultdict[int, int] = defaultdict(int)
        self.total_out = 0
        self.total_in = 0

    def from_plugin(self, message: str, size: int) -> None:
        self.total_out += size
        head = _HEAD.match(message)
        if head and head[2] == "action":
            self.asked[int(head[1])] += size

    def to_plugin(self, message: str, size: int) -> None:
        self.total_in += size
        head = _HEAD.match(message)
        if head and head[2] == "code":
            self.answered[int(head[1])] += size


class Pipe(Connection):
    """One end of an in-memory pair. A message over 16 MiB is refused as the stdio connection does
    (langbot_plugin runtime/io/connections/stdio.py)."""

    def __init__(self, meter: Meter, *, plugin_side: bool) -> None:
        self._meter = meter
        self._plugin_side = plugin_side
        self._inbox: asyncio.Queue[str | None] = asyncio.Queue()
        self._closed = False
        self._peer: Pipe | None = None

    async def send(self, message: str) -> None:
        peer = self._peer
        if self._closed or peer is None or peer._closed:
            raise ConnectionClosedError("Connection closed")
        size = len(message) if message.isascii() else len(message.encode("utf-8"))
        if size > MAX_MESSAGE_BYTES:
            raise ValueError(f"Runtime message exceeds {MAX_MESSAGE_BYTES} byte limit")
        if self._plugin_side:
            self._meter.from_plugin(message, size)
        else:
            self._meter.to_plugin(message, size)
        peer._inbox.put_nowait(message)

    async def receive(self) -> str:
        message = await self._inbox.get()
        if message is None:
            self._closed = True
            raise ConnectionClosedError("Connection closed")
        return message

    async def close(self) -> None:
        """Closes both ends: each reader gets a `ConnectionClosedError`."""
        for end in (self, self._peer):
            if end is not None and not end._closed:
                end._closed = True
                end._inbox.put_nowait(None)

    def join(self, peer: Pipe) -> None:
        self._peer, peer._peer = peer, self


def connect() -> tuple[Pipe, Pipe, Meter]:
    """A joined pair: the plugin's end, the Host's end, and the meter of both directions."""
    meter = Meter()
    plugin_end, host_end = Pipe(meter, plugin_side=True), Pipe(meter, plugin_side=False)
    plugin_end.join(host_end)
    return plugin_end, host_end, meter


# Coding on the event loop instead of in the SDK's threads: quicker, and the same order of events in every run.


class InlineCodec(Handler):
    """A handler that codes inline while `threaded` is False. What is written and read is the same, byte for byte.

    In production the SDK codes in worker threads (io/handler.py:_encode_message): `threaded` keeps that, to measure how
    long the event loop is held.
    """

    threaded: bool = False

    async def _decode_message(self, message: str, *, blocking_scope: str | None = None) -> Any:
        if self.threaded:
            return await super()._decode_message(message, blocking_scope=blocking_scope)
        return json.loads(message)

    async def _encode_message(
        self, payload: Any, *, action_context: Any = None, blocking_scope: str | None = None
    ) -> str:
        if self.threaded:
            return await super()._encode_message(payload, action_context=action_context, blocking_scope=blocking_scope)
        return json.dumps(payload.model_dump() if hasattr(payload, "model_dump") else payload)

    async def _validate_message_model(self, model_type: Any, payload: Any, *, blocking_scope: str | None = None) -> Any:
        if self.threaded:
            return await super()._validate_message_model(model_type, payload, blocking_scope=blocking_scope)
        return model_type.model_validate(payload)
