"""Prompt + history + this message → one streamed model call → cumulative deltas → one completed message."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk
from langbot_plugin.api.entities.builtin.runner import HistoryPage, RunnerContext, RunnerResult


class DefaultRunner(Runner):
    async def run(self, ctx: RunnerContext) -> AsyncGenerator[RunnerResult, None]:  # type: ignore[override]
        api = self.get_run_api(ctx)
        prompt = [Message.model_validate(row) for row in await api.get_prompt()]
        page = HistoryPage.model_validate(await api.history_page(limit=50))
        history = [
            Message.model_validate(item.content_json)
            for item in reversed(page.items)
            if item.event_id != ctx.event.event_id and item.content_json
        ]
        messages = [*prompt, *history, Message(role="user", content=ctx.input.text or "")]
        model = ctx.resources.models[0].model_id
        text = ""
        async for chunk in api.invoke_llm_stream(model, messages):
            if chunk.content:
                text += str(chunk.content)
                delta = MessageChunk(role="assistant", content=text, all_content=text, msg_sequence=1, is_final=False)
                yield RunnerResult.message_delta(ctx.run_id, delta)
        yield RunnerResult.message_completed(ctx.run_id, Message(role="assistant", content=text))
        yield RunnerResult.run_completed(ctx.run_id)
