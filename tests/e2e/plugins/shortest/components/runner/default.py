"""One answer, one last look for follow-ups, the shortest end the protocol knows (G1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk
from langbot_plugin.api.entities.builtin.runner import RunnerContext, RunnerResult

IDLE = 1.0
"""Seconds after which LangBot has shown everything it was sent, so that its backlog is no part of the window."""


class DefaultRunner(Runner):
    async def run(self, ctx: RunnerContext) -> AsyncGenerator[RunnerResult, None]:  # type: ignore[override]
        api = self.get_run_api(ctx)
        messages = [Message(role="user", content=ctx.input.text or "")]
        said: list[str] = []
        while True:
            answer = ""
            async for chunk in api.invoke_llm_stream(ctx.resources.models[0].model_id, messages):
                answer += str(chunk.content or "")
                if not said and chunk.content and answer == chunk.content:
                    shown = MessageChunk(role="assistant", content=answer, all_content=answer, msg_sequence=1)
                    yield RunnerResult.message_delta(ctx.run_id, shown)
            said.append(answer)
            await asyncio.sleep(IDLE)
            items = (await api.steering_pull()).items
            if not items:
                break
            messages = [*messages, Message(role="assistant", content=answer)]
            messages += [Message(role="user", content=item.input.text or "") for item in items]
        whole = Message(role="assistant", content="\n\n".join(said))
        yield RunnerResult.message_completed(ctx.run_id, whole)
        yield RunnerResult.run_completed(ctx.run_id)
