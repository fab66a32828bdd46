"""Sending the answer of a run outside a pipeline, where the Host sends nothing by itself (J2, J4).

One reply, by a stream where the Host offers one, else by one call of `event_reply`. A text that may have reached the
person as a whole is never sent a second time; everything else is tried once more by `event_reply`, and then no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from runner.channel.answering import EVENT_REPLY
from runner.conversation.cut import head
from runner.host import clock
from runner.host.errors import HostCallFailed, HostFailure
from runner.host.events import Event, Json, Log, ToolFinished, ToolStarted
from runner.host.port import STREAM_CHARACTERS, Host
from runner.tools.execute import CallTool
from runner.tools.results import EVENT_CHARACTERS

_SURELY_NOT_DONE = frozenset({HostFailure.DENIED, HostFailure.REFUSED})
"""Failures after which nothing was sent; after the others the Host may have sent the text all the same."""

_WORTH_KEEPING = ("mock", "delivery")
"""Keys of the Host's answer for the run log; the debug page tells by `mock` that nothing was really sent."""

NO_RIGHT = "nothing was sent: this run has no right to use event_reply"
"""For the bot's owner, where the platform or the event does not let the run answer."""

_LETTING_GO = 0.3
"""Seconds that a stream which is given up may take to say so; the Host closes it in any case at the end of the run."""


Update = Callable[[str], Awaitable[str]]
"""Tells a reply stream all of the text so far; its answer is the delivery. Raises HostCallFailed."""


class Spoken:
    """What the model itself sent by `event_reply`; listens between the tools of a run and the Host.

    `texts`: what the Host confirmed; `tried`: whether anything was to be sent, confirmed or not.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.tried = False

    def heard(self, call_tool: CallTool) -> CallTool:
        """The same tools; what they send is noted once the Host has confirmed it."""

        async def call(name: str, arguments: dict[str, Json]) -> object:
            self.tried = self.tried or name == EVENT_REPLY
            result = await call_tool(name, arguments)
            if name == EVENT_REPLY and not refused(result):
                self.texts.append(str(arguments.get("text", "")))
            return result

        return call


class _Sent(StrEnum):
    """What is known about the whole text, once a way of sending it has ended."""

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"


@dataclass(slots=True)
class _Stream:
    """A reply stream on its way.

    `asked`: the text of the newest update; `said`: of the newest that was confirmed. `live`: the person sees updates
    as they come; None before the first answer. `finishing`: every update was confirmed.
    """

    asked: str = ""
    said: str = ""
    live: bool | None = None
    finishing: bool = False
    delivery: str = ""
    failure: HostCallFailed | None = None

    def takes(self, text: str | None) -> bool:
        """Whether an update with this text would show the person anything."""
        return text is not None and text != self.asked and self.live is not False

    def sent(self, whole: str) -> _Sent:
        """Whether the whole text has reached the person, after the stream has ended."""
        if self.failure is None:
            return _Sent.YES if self.finishing else _Sent.NO
        if self.finishing and self.live:
            return _Sent.YES  # it stands there; only the end of the stream was not confirmed
        if self.asked != whole:
            return _Sent.NO
        if self.failure.kind in _SURELY_NOT_DONE and not self.live:
            return _Sent.NO
        # When the run ends, the Host brings a visible card up to the newest text it was asked for, refused or not.
        # A buffered stream sends nothing before its end.
        return _Sent.NO if self.live is False and not self.finishing else _Sent.MAYBE


class Replier:
    """The reply of one run.

    `streams`: the Host offers a reply stream. `granted`: it lets this run reply at all. `recorded`: streams are named
    in the run log as calls of `event_reply`, as the SDK does for plugins that reply through the context.
    """

    def __init__(
        self, host: Host, post: Callable[[Event], None], *, streams: bool, granted: bool, recorded: bool = True
    ) -> None:
        self._host = host
        self._post = post
        self._streams = streams and granted
        self._granted = granted
        self._recorded = recorded
        self._stream = _Stream()
        self._pending: str | None = None
        self._whole: str | None = None
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._calls = 0
        self._stream_call: str | None = None

    def show(self, text: str) -> None:
        """All visible text so far. Only the newest one waits; the pause between two is the caller's (C6)."""
        if not self._streams or not text.strip() or len(text) > STREAM_CHARACTERS:
            return
        self._pending = text
        self._go_on()

    @property
    def is_live(self) -> bool:
        """Whether the person sees the text grow."""
        return self._stream.live is True

    def say_nothing_more(self) -> None:
        """Keep silent towards the Host from now on: it stops reading at the next thing it hears (G2)."""
        self._post = lambda _event: None

    async def close(self, text: str, files: Sequence[str] = (), *, seconds: float, cut_note: str = "") -> None:
        """Send the whole text, then the files (ids of exported ones); all is over after about `seconds`.

        Never raises for what the Host does: a failure is logged, and the run completes all the same.
        """
        if not self._granted:
            self._post(Log(NO_RIGHT, "error"))
            return
        whole = bounded(text, cut_note)
        last = 1 if files else 0
        end = clock.now() + seconds
        sent = await self._by_stream(whole, _share(end, 2 + last)) if self._streams else _Sent.NO
        if sent is _Sent.MAYBE:
            self._post(Log("the reply may not have arrived; it is not sent twice", "error"))
        if sent is _Sent.NO:
            await self._by_tool(whole, _share(end, 1 + last))
        if files:
            await self._send_files(files, _share(end, 1))

    async def give_up(self) -> None:
        """End a stream without finishing it. Does nothing when none is open."""
        task, self._task = self._task, None
        while task is not None and not task.done():
            # Twice if need be: a stream that is cancelled asks the Host to drop it, and that may hang as well.
            task.cancel()
            await asyncio.wait({task}, timeout=_LETTING_GO)

    async def _by_stream(self, whole: str, seconds: float) -> _Sent:
        stream = self._stream
        self._whole = whole
        self._go_on()
        if self._task is not None:
            _, hanging = await asyncio.wait({self._task}, timeout=seconds)
            if hanging:
                stream.failure = HostCallFailed("reply_stream", HostFailure.TIMEOUT, f"no answer within {seconds:g} s")
        await self.give_up()
        self._finished(self._stream_call, {"delivery": stream.delivery}, stream.failure)
        if stream.failure is not None:
            self._post(Log(f"the streamed reply failed: {stream.failure}", "warning"))
        return stream.sent(whole)

    def _go_on(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run_stream())
        self._changed.set()

    async def _run_stream(self) -> None:
        stream = self._stream
        if self._recorded:
            self._stream_call = self._started({"stream": True})
        try:
            async with self._host.reply_stream() as update:
                while (text := await self._next()) is not None:
                    stream.asked = text
                    stream.delivery = await self._updated(update, text)
                    stream.said, stream.live = text, stream.delivery == "streaming"
                stream.finishing = True
        except HostCallFailed as failure:
            stream.failure = failure

    async def _updated(self, update: Update, text: str) -> str:
        """One update. One that fails is looked at again at the end: if its text is the whole one, it is made once more,
        since nothing else may be sent when it is not known whether the person has that.
        """
        try:
            return await update(text)
        except HostCallFailed as failure:
            if failure.kind is HostFailure.DENIED or text != await self._ended():
                raise
        return await update(text)

    async def _ended(self) -> str:
        """The whole text, once it is known."""
        while self._whole is None:
            self._changed.clear()
            await self._changed.wait()
        return self._whole

    async def _next(self) -> str | None:
        """The next text to send: the newest one, and nothing before the end where it would not be seen."""
        while True:
            if self._whole is not None:
                return None if self._whole == self._stream.said else self._whole
            text, self._pending = self._pending, None
            if self._stream.takes(text):
                return text
            self._changed.clear()
            await self._changed.wait()

    async def _by_tool(self, text: str, seconds: float) -> None:
        call = self._started({"text": head(text, EVENT_CHARACTERS)})
        answer = await _answer_to(self._host.call_tool(EVENT_REPLY, {"text": text}), seconds)
        self._end("the reply", call, answer)

    async def _send_files(self, files: Sequence[str], seconds: float) -> None:
        call = self._started({"files": list(files)})
        self._end(f"{len(files)} files", call, await _answer_to(self._host.reply_files(files), seconds))

    def _end(self, what: str, call: str, answer: object) -> None:
        failure = answer if isinstance(answer, HostCallFailed) else None
        told = {name: answer[name] for name in _WORTH_KEEPING if name in answer} if isinstance(answer, dict) else {}
        self._finished(call, {"sent": True, **told}, failure)
        if failure is not None:
            self._post(Log(f"{what} could not be sent: {failure}", "error"))

    def _started(self, arguments: dict[str, Json]) -> str:
        self._calls += 1
        call = f"runner-reply-{self._calls}"
        self._post(ToolStarted(call, EVENT_REPLY, arguments))
        return call

    def _finished(self, call: str | None, result: dict[str, Json], failure: HostCallFailed | None) -> None:
        if call is not None and failure is None:
            self._post(ToolFinished(call, EVENT_REPLY, result))
        elif call is not None:
            self._post(ToolFinished(call, EVENT_REPLY, error=head(str(failure), EVENT_CHARACTERS)))


def _share(end: float, steps: int) -> float:
    """Seconds for the next of so many steps that have to be over at `end`, whatever those before it took."""
    return max(0.0, end - clock.now()) / steps


async def _answer_to(sending: Awaitable[object], seconds: float) -> object:
    """Await one call to the Host for so long: its answer, or the HostCallFailed that says what went wrong."""
    try:
        async with asyncio.timeout(seconds):
            answer = await sending
    except HostCallFailed as failure:
        return failure
    except TimeoutError:
        return HostCallFailed("reply", HostFailure.TIMEOUT, f"no answer within {seconds:g} s; it may have been sent")
    return HostCallFailed("reply", HostFailure.REFUSED, str(answer)) if refused(answer) else answer


def refused(answer: object) -> bool:
    """Whether a platform tool says that it failed: the Host's simulated platform answers so instead of raising."""
    return isinstance(answer, dict) and answer.get("ok") is False


def bounded(text: str, cut_note: str) -> str:
    """The text within what one reply may hold, the note at its end when something had to go."""
    if len(text) <= STREAM_CHARACTERS:
        return text
    note = f"\n\n{cut_note}"
    return head(text, STREAM_CHARACTERS - len(note)) + note
