"""Our replies and cards in LangBot's own reply streams and interaction manager, on adapters of the tests.

Skipped without the `langbot` package. Nothing listens on a network."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from langbot_plugin.api.entities.builtin.platform import entities, events, message

from components.runner.default import DefaultRunner
from tests.consent.table import PAY, chat
from tests.host import CardRefused, Reply, RunRecord, TestHost, full_manifest
from tests.host.host import TestHost as Host
from tests.host.platform import Cards
from tests.host.script import Json

# Our replies through LangBot's own reply streams (langbot/pkg/agent/runner/reply_stream.py), on adapters of the tests.
#
# Skipped without the `langbot` package. Nothing listens on a network: the adapter keeps what it is asked to show.

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


# Cards of the test host beside LangBot's own (interaction_manager.py, interaction_store.py), and our card in both.
#
# Skipped without the `langbot` package. The platform is an adapter that keeps what it is asked to show.

manager_of = pytest.importorskip("langbot.pkg.agent.runner.interaction_manager").InteractionManager
engine_of = pytest.importorskip("sqlalchemy.ext.asyncio").create_async_engine
RUNNER = SimpleNamespace(
    id="r",
    capabilities=SimpleNamespace(interactions=True),
    permissions=SimpleNamespace(interactions=["request"]),
)
BINDING = SimpleNamespace(
    processor_id="agent-1",
    agent_id="agent-1",
    binding_id="bot:b:1",
    processor_type="agent",
    delivery_policy=SimpleNamespace(enable_interactions=True),
)
EVENT = SimpleNamespace(
    delivery=SimpleNamespace(reply_target={"target_type": "person", "target_id": "1"}, interactions=None),
    input=SimpleNamespace(interaction=None),
    actor=SimpleNamespace(actor_id="u1"),
    legacy_identity=None,
    bot_id="b",
    workspace_id=None,
    conversation_id="person_1",
    thread_id=None,
)


class ButtonAdapter:
    """A platform with buttons: `shown` is what it was asked to show."""

    def __init__(self, breaks: bool = False) -> None:
        self.shown: list[Json] = []
        self._breaks = breaks

    def get_supported_apis(self) -> list[str]:
        return ["interaction.request"]

    async def call_platform_api(self, _action: str, params: Json) -> Json:
        if self._breaks:
            raise RuntimeError("the platform refuses")
        self.shown.append(params)
        return {"ok": True}


@asynccontextmanager
async def real() -> AsyncIterator[Any]:
    base = pytest.importorskip("langbot.pkg.entity.persistence.base").Base
    pytest.importorskip("langbot.pkg.entity.persistence.agent_interaction")
    engine = engine_of("sqlite+aiosqlite:///:memory:")
    async with engine.begin() as connection:
        await connection.run_sync(base.metadata.create_all)
    yield manager_of(SimpleNamespace(persistence_mgr=SimpleNamespace(get_db_engine=lambda: engine), logger=None))
    await engine.dispose()


async def ask(manager: Any, payload: Any, adapter: ButtonAdapter, run_id: str = "run-1") -> bool:
    result = {"type": "action.requested", "data": {"action": "interaction.requested", "payload": payload}}
    return bool(
        await manager.handle_result(
            result_dict=result,
            event=EVENT,
            binding=BINDING,
            descriptor=RUNNER,
            run_id=run_id,
            adapter_context={"_delivery_adapter": adapter},
        )
    )


async def our_card() -> Json:
    """The card that a run of ours asks for."""
    host = chat(replies=[Reply("", tool_calls=[PAY])], interactions=True)
    run = await host.say("Pay Bob")
    (action,) = run.of("action.requested")
    payload: Json = action["payload"]
    return payload


async def test_M2_langbot_takes_our_card_and_a_press_of_it_once() -> None:
    adapter, card = ButtonAdapter(), await our_card()
    async with real() as manager:
        assert await ask(manager, card, adapter)
        (shown,) = adapter.shown
        assert shown["request"]["actions"] == card["actions"]

        async def press(actor: str) -> Json:
            record: Json = await manager.consume_callback(
                callback_token=shown["callback_token"],
                submission={"action_ref": "0"},
                bot_id="b",
                conversation_id="person_1",
                actor_id=actor,
            )
            return record

        with pytest.raises(Exception, match="actor scope mismatch"):
            await press("eve")
        record = await press("u1")
        assert record["submission"]["interaction_id"] == card["interaction_id"]
        assert record["submission"]["action_id"] == "agree"
        with pytest.raises(Exception, match="already submitted"):
            await press("u1")


def _odd_requests() -> list[tuple[str, Callable[[Json], Json]]]:
    return [
        ("as it is", lambda card: card),
        ("without a title", lambda card: {**card, "title": ""}),
        ("a key too many", lambda card: {**card, "colour": "red"}),
        ("expired", lambda card: {**card, "expires_at": int(time.time()) - 1}),
        ("expires late", lambda card: {**card, "expires_at": int(time.time()) + 25 * 3600}),
        ("the same action twice", lambda card: {**card, "actions": [card["actions"][0]] * 2}),
        ("a long description", lambda card: {**card, "description": "x" * 10_001}),
        ("no fallback", lambda card: {**card, "fallback_text": ""}),
    ]


@pytest.mark.parametrize(("name", "change"), _odd_requests())
async def test_M2_both_hosts_take_and_refuse_the_same_cards(name: str, change: Callable[[Json], Json]) -> None:
    card = change(await our_card())
    try:
        Cards().request(card, "run-1", "person_1", "u1")
        ours = True
    except CardRefused:
        ours = False
    async with real() as manager:
        try:
            theirs = await ask(manager, card, ButtonAdapter())
        except Exception:  # noqa: BLE001 - any of LangBot's own fails the run
            theirs = False
    assert ours == theirs == (name == "as it is")


async def test_M2_a_card_that_the_platform_refuses_fails_the_run_in_both() -> None:
    card = await our_card()
    async with real() as manager:
        with pytest.raises(RuntimeError):
            await ask(manager, card, ButtonAdapter(breaks=True))


async def test_M3_of_two_runs_that_delete_a_key_langbot_tells_one_alone_that_it_did() -> None:
    store_module = pytest.importorskip("langbot.pkg.agent.runner.persistent_state_store")
    base = pytest.importorskip("langbot.pkg.entity.persistence.base").Base
    engine = engine_of("sqlite+aiosqlite:///:memory:")
    async with engine.begin() as connection:
        await connection.run_sync(base.metadata.create_all)
    store = store_module.PersistentStateStore(engine)
    context = {"bot_id": "b", "workspace_id": None, "conversation_id": "person_1"}
    await store.state_set(
        scope_key="s",
        state_key="k",
        value={"a": 1},
        runner_id="r",
        binding_identity="i",
        scope="conversation",
        context=context,
        logger=None,
    )
    told = [await store.state_delete("s", "k") for _ in range(2)]
    assert told == [True, False]
    await engine.dispose()


async def test_M2_telegram_shows_our_card_with_two_buttons() -> None:
    telegram = pytest.importorskip("langbot.pkg.platform.adapters.telegram.interaction")
    card, sent = await our_card(), []

    class Bot:
        async def send_message(self, **message: Any) -> Any:
            sent.append(message)
            return SimpleNamespace(message_id=1)

    target = {"target_type": "person", "target_id": "1"}
    await telegram.send_interaction(Bot(), {"request": card, "reply_target": target, "callback_token": "t" * 24})
    (message,) = sent
    labels = [button.text for row in message["reply_markup"].inline_keyboard for button in row]
    assert labels == ["Agree", "Refuse"]
    assert "to: Bob" in message["text"]
