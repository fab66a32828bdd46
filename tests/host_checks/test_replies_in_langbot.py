"""Our replies through LangBot's own reply streams (langbot/pkg/agent/runner/reply_stream.py), on adapters of the tests.

Skipped without the `langbot` package. Nothing listens on a network: the adapter keeps what it is asked to show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from langbot_plugin.api.entities.builtin.platform import entities, events, message

from components.runner.default import DefaultRunner
from tests.host import Reply, RunRecord, TestHost, full_manifest
from tests.host.host import TestHost as Host

reply_stream = pytest.importorskip("langbot.pkg.agent.runner.reply_stream")

ANSWER = "The kettle is in the left cupboard, behind the tea."


@dataclass
class Adapter:
    """A platform: `card` is what stands on the card of a native stream, `sent` the messages of their own.

    `breaks_at` counts updates of the card from 1: that one fails, and so do all later ones when `for_good`.
    """

    native: bool
    breaks_at: int = 0
    for_good: bool = True
    cards: list[str] = field(default_factory=list)
    finals: int = 0
    sent: list[str] = field(default_factory=list)
    updates: int = 0

    async def is_stream_output_supported(self) -> bool:
        return self.native

    async def create_message_card(self, _message_id: str, _event: Any) -> bool:
        self.cards.append("")
        return True

    async def reply_message_chunk(self, *, message: message.MessageChain, is_final: bool, **_rest: Any) -> None:
        self.updates += 1
        if self.breaks_at and (self.updates == self.breaks_at or (self.for_good and self.updates > self.breaks_at)):
            raise RuntimeError("the card cannot be changed")
        self.cards[-1] = str(message)
        self.finals += is_final

    async def reply_message(self, *, message: message.MessageChain, **_rest: Any) -> None:
        if self.breaks_at:
            raise RuntimeError("the platform refuses")
        self.sent.append(str(message))


def host_on(adapter: Adapter, *replies: Reply | str, surface: str = "platform", **mock: Any) -> tuple[Host, Any]:
    """A test host whose reply streams are LangBot's own, on this adapter."""
    host = TestHost(
        runner=DefaultRunner(),
        manifest=full_manifest(),
        mode="agent",
        replies=list(replies),
        config={"notice-language": "en_US"},
    )
    capabilities = {"debug_mock": surface == "webui", "mock_options": mock}
    delivery = SimpleNamespace(reply_target={}, surface=surface, platform_capabilities=capabilities)
    source = events.MessageReceivedEvent(
        message_id="1", message_chain=message.MessageChain([message.Plain(text="hi")]), sender=entities.User(id="u1")
    )
    session = reply_stream.ReplyStreamSession(SimpleNamespace(delivery=delivery), adapter, source)

    async def apply(data: dict[str, Any]) -> dict[str, Any]:
        asked = {key: data[key] for key in ("stream_id", "operation", "text")}
        return {"result": await session.apply(reply_stream.ReplyStreamRequest.model_validate(asked))}

    host.answer_with("reply_stream", apply)
    return host, session


async def asked(host: Host, session: Any) -> RunRecord:
    """One message, and the end of the run as the Host makes it: open streams are closed."""
    run = await host.say("Where is the kettle?")
    await session.close()
    assert (run.status, run.final_text) == ("completed", ANSWER)
    return run


def slowly() -> Reply:
    return Reply(ANSWER, chunks=6, chunk_delay=0.15)


@pytest.mark.parametrize("reply", [ANSWER, slowly()], ids=["at once", "slowly"])
async def test_J2_a_native_stream_shows_one_card_with_the_whole_text_closed_once(reply: Reply | str) -> None:
    adapter = Adapter(native=True)
    host, session = host_on(adapter, reply)
    await asked(host, session)
    assert (adapter.cards, adapter.finals, adapter.sent) == ([ANSWER], 1, [])
    assert host.world.platform.replies == []


@pytest.mark.parametrize("reply", [ANSWER, slowly()], ids=["at once", "slowly"])
async def test_J2_an_adapter_without_streams_gets_one_message(reply: Reply | str) -> None:
    adapter = Adapter(native=False)
    host, session = host_on(adapter, reply)
    await asked(host, session)
    assert (adapter.cards, adapter.sent, host.world.platform.replies) == ([], [ANSWER], [])


async def test_J2_a_simulated_stream_sends_nothing() -> None:
    adapter = Adapter(native=True)
    host, session = host_on(adapter, slowly(), surface="webui")
    run = await asked(host, session)
    assert (adapter.cards, adapter.sent, host.world.platform.replies) == ([], [], [])
    assert [call.data["operation"] for call in run.calls.of("reply_stream")] == ["update", "update", "finish"]


def whole(adapter: Adapter, host: Host) -> int:
    """How many times the person has the whole answer before them."""
    return [*adapter.cards, *adapter.sent, *host.world.platform.replies].count(ANSWER)


@pytest.mark.parametrize(
    ("adapter", "reply"),
    [
        (lambda: Adapter(native=True, breaks_at=1), slowly),
        (lambda: Adapter(native=True, breaks_at=2), slowly),
        (lambda: Adapter(native=True, breaks_at=1), lambda: Reply(ANSWER)),
        (lambda: Adapter(native=True, breaks_at=2), lambda: Reply(ANSWER)),
        (lambda: Adapter(native=True, breaks_at=2, for_good=False), lambda: Reply(ANSWER)),
        (lambda: Adapter(native=True, breaks_at=2, for_good=False), lambda: Reply(ANSWER, chunks=2, chunk_delay=0.5)),
        (lambda: Adapter(native=False, breaks_at=1), slowly),
        (lambda: Adapter(native=False, breaks_at=1), lambda: Reply(ANSWER)),
    ],
    ids=[
        "first",
        "second",
        "only one",
        "the end",
        "the end, once",
        "the last text, once",
        "buffered, slowly",
        "buffered, at once",
    ],
)
async def test_J2_whatever_breaks_in_the_adapter_the_answer_arrives_whole_once(
    adapter: Callable[[], Adapter], reply: Callable[[], Reply]
) -> None:
    platform = adapter()
    host, session = host_on(platform, reply())
    await asked(host, session)
    assert whole(platform, host) == 1


LOST = "ActionCallTimeoutError: Action reply_stream call timed out"


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("words", ["Runtime connection is busy", LOST], ids=["refused", "lost"])
@pytest.mark.parametrize("heard", [True, False], ids=["heard", "unheard"])
@pytest.mark.parametrize(
    ("reply", "nth"), [(Reply(ANSWER), 1), (Reply(ANSWER, chunks=2, chunk_delay=0.5), 2)], ids=["first", "last"]
)
async def test_J2_an_update_with_the_whole_text_is_told_again_and_shown_once(
    reply: Reply, nth: int, heard: bool, words: str, native: bool
) -> None:
    adapter = Adapter(native=native)
    host, session = host_on(adapter, reply)
    apply, calls = host.world.answers["reply_stream"], 0

    async def once_in_vain(data: dict[str, Any]) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        answer = await apply(data) if calls != nth or heard else {}
        if calls == nth:
            raise ValueError(words)
        return answer

    host.answer_with("reply_stream", once_in_vain)
    await asked(host, session)
    assert whole(adapter, host) == 1
