"""Cards of the test host beside LangBot's own (interaction_manager.py, interaction_store.py), and our card in both.

Skipped without the `langbot` package. The platform is an adapter that keeps what it is asked to show.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from tests.consent.chats import PAY, chat
from tests.host import CardRefused, Reply
from tests.host.interactions import Cards
from tests.host.script import Json

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


class Adapter:
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


async def ask(manager: Any, payload: Any, adapter: Adapter, run_id: str = "run-1") -> bool:
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
    adapter, card = Adapter(), await our_card()
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
            theirs = await ask(manager, card, Adapter())
        except Exception:  # noqa: BLE001 - any of LangBot's own fails the run
            theirs = False
    assert ours == theirs == (name == "as it is")


async def test_M2_a_card_that_the_platform_refuses_fails_the_run_in_both() -> None:
    card = await our_card()
    async with real() as manager:
        with pytest.raises(RuntimeError):
            await ask(manager, card, Adapter(breaks=True))


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
