"""How what a run says reaches the person: by the Host, by a reply of the runner, or by the model's own calls (J2)."""

from __future__ import annotations

from dataclasses import replace

from langbot_plugin.api.entities.builtin.runner.context import RunnerContext

from config.settings import Settings
from runner.channel.answering import Answering, answering_of, may_reply
from runner.channel.outbox import Outbox
from runner.channel.replying import NO_RIGHT, Replier, Spoken
from runner.channel.visible import Visible
from runner.host.events import Answer, Event, Failed, Log
from runner.host.port import Host
from runner.tools.execute import CallTool

_MOST_SECONDS = 60.0
"""How long sending the answer may take, where the run's own limit leaves so much."""

_PAST_THE_END = 1.8
"""Seconds past the run's own end that are still there for sending: the Host's end comes 2 to 5 seconds after it."""

_LEAST_SECONDS = 0.3

_NOT_CALLED = "the model did not call event_reply, so nothing was sent"


class Delivery:
    """Sends the answer of one run. Where the Host delivers (a pipeline), it does nothing at all."""

    def __init__(self, ctx: RunnerContext, host: Host, settings: Settings, outbox: Outbox) -> None:
        self.answering = answering_of(ctx, settings)
        self._outbox = outbox
        self._spoken = Spoken()
        self._granted = may_reply(ctx.resources.tools)
        # Outside a pipeline the debug page alone shows deltas; elsewhere each would be written down for nobody.
        deltas = self.answering is Answering.HOST or ctx.delivery.supports_streaming
        self._replier = Replier(
            host,
            outbox.post,
            streams=ctx.context.available_apis.reply_stream,
            granted=self._granted,
            recorded=not deltas,
        )
        outbox.divert(self._replier.show if self.answering is Answering.RUNNER else None, deltas=deltas)

    @property
    def sends_files(self) -> bool:
        """Whether files of the run go out with its answer (H3, J4). Fetching them takes them out of the sandbox."""
        return self.answering is Answering.HOST or (self.answering is Answering.RUNNER and self._granted)

    @property
    def speaks(self) -> bool:
        """Whether what the run says reaches the chat."""
        return self.sends_files

    def listening(self, call_tool: CallTool) -> CallTool:
        """The same tools, with an eye on what the model sends by itself."""
        return self._spoken.heard(call_tool)

    @property
    def spoke(self) -> bool:
        """Whether the model itself sent anything."""
        return bool(self._spoken.texts)

    def may_be_silent(self) -> bool:
        """Whether an empty reply of the model is an answer by now: nobody waits for text."""
        return self.answering is Answering.NOBODY or self.spoke

    @property
    def is_done(self) -> bool:
        """Outside a pipeline: whether the person has all of the answer already, or waits for none."""
        return self.may_be_silent() or self._replier.is_live

    def quote(self, visible: Visible) -> None:
        """Where the model wrote nothing, what it sent by itself is what the history keeps (J4)."""
        for text in self._spoken.texts if not visible.shown else ():
            visible.note(text)

    def hush(self) -> None:
        """After a wish to stop the Host reads one thing more: let that be the completed message (G2)."""
        self._replier.say_nothing_more()

    async def tell(
        self, last: tuple[Event, ...], hint: str | None, *, seconds: float | None, cut_note: str
    ) -> tuple[Event, ...]:
        """Tell the person what the last events of a run say; what is returned is left for the Host.

        `hint`: what they are told where the run failed without an answer. `seconds`: until the run's own end, None
        without one.
        """
        if self.answering is Answering.HOST:
            return last
        answer = next((event for event in last if isinstance(event, Answer)), None)
        text = answer.text if answer else hint if isinstance(last[-1], Failed) else None
        if self.answering is Answering.RUNNER and text is not None:
            left = _MOST_SECONDS if seconds is None else seconds + _PAST_THE_END
            await self._reply(text, answer, max(_LEAST_SECONDS, min(_MOST_SECONDS, left)), cut_note)
        elif answer is not None:
            self._log(answer)
        # Files on the message would fail a run that is no pipeline's.
        return tuple(replace(event, file_ids=()) if isinstance(event, Answer) else event for event in last)

    async def give_up(self) -> None:
        """Leave no stream behind."""
        await self._replier.give_up()

    async def _reply(self, text: str, answer: Answer | None, seconds: float, cut_note: str) -> None:
        files = answer.file_ids if answer else ()
        try:
            await self._replier.close(text, files, seconds=seconds, cut_note=cut_note)
        except Exception as fault:  # noqa: BLE001 - whatever it is, the run still ends with its answer on record (Q4)
            self._outbox.post(Log(f"the reply failed: {type(fault).__name__}", "error"))

    def _log(self, answer: Answer) -> None:
        if self.answering is Answering.NOBODY:
            self._outbox.post(Log(answer.text))
        elif not self._granted:
            self._outbox.post(Log(NO_RIGHT, "error"))
        elif not self.spoke:
            why = "the Host confirmed no event_reply of the model" if self._spoken.tried else _NOT_CALLED
            self._outbox.post(Log(why, "warning"))
