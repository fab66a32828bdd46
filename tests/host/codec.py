"""Coding on the event loop instead of in the SDK's threads: quicker, and the same order of events in every run."""

from __future__ import annotations

import json
from typing import Any

from langbot_plugin.runtime.io.handler import Handler


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
