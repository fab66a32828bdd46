"""A request of the loop as a provider takes one: system text, turns by role, tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from local.provider import ChatTurn, CompactTool
from runner.conversation.cut import sendable
from runner.conversation.readable import is_readable
from runner.conversation.request import Request
from runner.conversation.units import Image, Part, System, Text, Told, Unit, UserTurn
from runner.host.events import Json


def system_text(system: System) -> str:
    """The system message as one text."""
    own = [part.text for part in system.parts if isinstance(part, Text)]
    return sendable("\n\n".join([*own, *system.added]))


def chat_turns(units: tuple[Unit, ...]) -> tuple[ChatTurn, ...]:
    """Units as turns. A tool's result is a turn of its own; its call stands in the assistant's text before it."""
    return tuple(turn for unit in units for turn in _turns(unit))


def chat_rows(system: str, messages: Sequence[ChatTurn], *, told: bool) -> list[dict[str, str]]:
    """Turns as messages of a chat, two of the user in a row as one.

    `told`: tools stand in words, of which the chat template knows nothing, so their results are told by the user.
    """
    rows = [{"role": "system", "content": system}] if system else []
    for turn in messages:
        row = _told_row(turn) if told and turn.role == "tool" else _row(turn)
        if rows and rows[-1]["role"] == row["role"] == "user":
            rows[-1]["content"] += f"\n\n{row['content']}"
        else:
            rows.append(row)
    return rows


def _row(turn: ChatTurn) -> dict[str, str]:
    row = {"role": turn.role, "content": turn.content}
    return {**row, "name": turn.name} if turn.name else row


def _told_row(turn: ChatTurn) -> dict[str, str]:
    return {"role": "user", "content": f"Result of {turn.name}:\n{turn.content}"}


def compact_tools(request: Request) -> tuple[CompactTool, ...]:
    """The tools that go through the engine's chat template."""
    return tuple(CompactTool(tool.name, tool.description, tool.parameters) for tool in request.tools)


def schema_of(extra: Mapping[str, Json]) -> Mapping[str, Json] | None:
    """The JSON schema inside a `response_format`, which the loop writes as an OpenAI endpoint takes it (S8)."""
    match extra.get("response_format"):
        case {"json_schema": {"schema": dict(schema)}}:
            return schema
    return None


def temperature_of(extra: Mapping[str, Json]) -> float | None:
    """The temperature the loop asks for, if it does."""
    wanted = extra.get("temperature")
    return float(wanted) if isinstance(wanted, int | float) else None


def _turns(unit: Unit) -> Iterator[ChatTurn]:
    if isinstance(unit, UserTurn):
        yield from _user_turns(unit.parts)
        return
    if is_readable(unit.text):
        yield ChatTurn("assistant", sendable(unit.text))
    for result in unit.results:
        yield ChatTurn("tool", sendable(result.text), result.name)


def _user_turns(parts: tuple[Part, ...]) -> Iterator[ChatTurn]:
    said: list[str] = []
    for part in parts:
        if isinstance(part, Told):
            if said:
                yield ChatTurn("user", sendable("\n\n".join(said)))
                said.clear()
            yield ChatTurn("tool", sendable(part.result), part.tool)
        elif isinstance(part, Text):
            said.append(part.text)
        elif isinstance(part, Image):
            said.append("[picture]")
    if said:
        yield ChatTurn("user", sendable("\n\n".join(said)))
