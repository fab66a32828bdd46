"""Plays the scenarios of tests/host/scenario.py in the real LangBot."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import uuid
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from demo.chat import Chat
from demo.chat import Turn as ChatTurn
from tests.e2e.bed import Bed
from tests.e2e.scripted_model import Call, Reply, Request
from tests.host.scenario import Outcome, Scenario
from tests.host.seen import Seen, SeenRow, SeenTurn

Json = dict[str, Any]
_BOT = "websocket-proxy-bot"


def reply_of(data: Json) -> Reply:
    """A reply of a scenario for the scripted endpoint."""
    text, size = str(data.get("text", "")), int(data.get("chunk_size", 8))
    usage = data.get("usage", {})
    return Reply(
        chunks=tuple(text[start : start + size] for start in range(0, len(text), size)),
        reasoning=str(data.get("reasoning", "")),
        calls=tuple(_call_of(call, place) for place, call in enumerate(data.get("tool_calls", ()))),
        finish_reason=str(data.get("finish_reason", "")),
        prompt_tokens=int(usage.get("prompt_tokens", 7)),
        completion_tokens=int(usage.get("completion_tokens", 3)),
        first_delay=float(data.get("first_delay", 0)),
        chunk_delay=float(data.get("chunk_delay", 0)),
        status=int(data.get("status", 200)),
        overflow=bool(data.get("context_error")),
        for_model=str(data.get("model", "")),
    )


def _call_of(data: Json, place: int) -> Call:
    arguments = data.get("arguments", {})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return Call(str(data["name"]), text, str(data.get("id", f"call_{place}")))


async def witness(bed: Bed, scenario: Scenario, runner_id: str) -> tuple[list[Outcome], Seen]:
    """Plays a scenario with a runner of this LangBot: what came of each turn, and all that was seen."""
    bed.scripted.script(*map(reply_of, scenario.replies))
    pipeline = _pipeline(bed, scenario, runner_id)
    ledger = _Ledger(bed.langbot.database)
    outcomes: list[Outcome] = []
    turns: list[SeenTurn] = []
    async with bed.chat(pipeline) as chat:
        chat_id = chat.conversation_id
        for said in scenario.turns:
            await asyncio.to_thread(ledger.copy_rows, chat_id, said.copies)
            before = len(bed.scripted.requests)
            turn = await chat.ask(said.text)
            requests = bed.scripted.requests[before:]
            run_id = (await asyncio.to_thread(ledger.runs, chat_id))[-1]
            turns.append(await asyncio.to_thread(ledger.turn, run_id, _cards(turn), requests))
            outcomes.append(Outcome(turn.answer, [request.messages for request in requests]))
        rows = await asyncio.to_thread(ledger.rows, chat_id)
        names = _names(bed, chat, await asyncio.to_thread(ledger.runs, chat_id), runner_id, pipeline)
    return outcomes, Seen(turns, rows, names)


def _pipeline(bed: Bed, scenario: Scenario, runner_id: str) -> str:
    api = bed.langbot.api
    models = [bed.model(name) for name in scenario.models]
    pipeline = api.add_pipeline(scenario.name[:40])
    bound = api.default_config(runner_id, models[0], models[1:])
    api.bind(pipeline, runner_id, {**bound, **scenario.config})
    return pipeline


def _names(bed: Bed, chat: Chat, runs: Sequence[str], runner_id: str, pipeline: str) -> dict[str, str]:
    own = {
        chat.conversation_id: "<chat>",
        f"websocket_{chat.connection_id}": "<sender>",
        runner_id: "<runner>",
        _BOT: "<bot>",
        pipeline: "<processor>",
        "WebSocketAdapter": "<adapter>",
        f"instance_{bed.langbot.api.session.workspace}": "<instance>",
        bed.langbot.api.session.workspace: "<workspace>",
    }
    return dict.fromkeys(runs, "<run>") | own | {model: name for name, model in bed.model_ids.items()}


def _cards(turn: ChatTurn) -> list[tuple[str, str]]:
    texts = [[frame.text for frame in turn.frames if frame.card == card] for card in turn.cards]
    return [(shown[0], shown[-1]) for shown in texts]


class _Ledger:
    """LangBot's own rows, read from its database, and copied where a scenario wants a long history."""

    def __init__(self, database: Path) -> None:
        self._database = database

    def _ask(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{self._database}?mode=ro", uri=True, timeout=10)) as rows:
            return rows.execute(query, values).fetchall()

    def runs(self, chat_id: str) -> list[str]:
        found = self._ask("select run_id from agent_run where conversation_id = ? order by id", chat_id)
        return [str(run_id) for (run_id,) in found]

    def turn(self, run_id: str, cards: Sequence[tuple[str, str]], requests: Sequence[Request]) -> SeenTurn:
        ((status, reason, usage),) = self._ask(
            "select status, status_reason, usage_json from agent_run where run_id = ?", run_id
        )
        results = self._ask("select type, data_json from agent_run_event where run_id = ? order by sequence", run_id)
        return SeenTurn(
            cards=cards,
            requests=[_request(request) for request in requests],
            results=[(str(kind), json.loads(data or "{}")) for kind, data in results],
            status=status,
            reason=reason,
            usage=json.loads(usage) if usage else None,
        )

    def rows(self, chat_id: str) -> list[SeenRow]:
        found = self._ask(
            "select seq, role, content, content_json, attachment_refs_json, metadata_json from transcript"
            " where conversation_id = ? order by id",
            chat_id,
        )
        return [
            SeenRow(seq, role, content, _loaded(message), _loaded(references) or [], _loaded(metadata) or {})
            for seq, role, content, message, references, metadata in found
        ]

    def copy_rows(self, chat_id: str, times: int) -> None:
        """Adds the rows of a chat `times` times over, each under a number and an event of its own."""
        if not times:
            return
        with closing(sqlite3.connect(self._database, timeout=30)) as rows, rows:
            names = [str(column[1]) for column in rows.execute("pragma table_info(transcript)")][1:]
            query = f"select {', '.join(names)} from transcript where conversation_id = ? order by id"
            for row in rows.execute(query, (chat_id,)).fetchall() * times:
                changed = dict(zip(names, row, strict=True)) | {
                    "transcript_id": str(uuid.uuid4()),
                    "event_id": str(uuid.uuid4()),
                    "seq": rows.execute("select max(id) + 1 from transcript").fetchone()[0],
                }
                places = ", ".join("?" * len(names))
                rows.execute(f"insert into transcript ({', '.join(names)}) values ({places})", tuple(changed.values()))


def _loaded(text: str | None) -> Any:
    return json.loads(text) if text else None


def _request(request: Request) -> Json:
    body = request.body
    wanted = {"model": request.model, "messages": request.messages, "tools": body.get("tools") or []}
    return {**wanted, "stream": bool(body.get("stream"))}
