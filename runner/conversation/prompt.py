"""The prompt: rows from the Host or the form, as one system message and opening turns (B1, B2)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import cast

from langbot_plugin.api.entities.builtin.provider.message import ContentElement, Message
from langbot_plugin.api.entities.builtin.provider.message import ToolCall as WireCall
from pydantic import ValidationError

from runner.conversation.call_ids import made
from runner.conversation.readable import is_readable
from runner.conversation.units import (
    AssistantTurn,
    Other,
    Part,
    System,
    Text,
    ToolCall,
    ToolResult,
    Unit,
    UserTurn,
    image_of,
    join_users,
)
from runner.host.errors import PromptMalformed
from runner.host.events import Json

OPENING = "[The conversation begins.]"
"""Stands before an opening that the assistant begins: many providers want a user turn first."""

_ROLES = frozenset({"system", "user", "assistant", "tool"})


@dataclass(frozen=True, slots=True)
class Prompt:
    """The system message and the turns that open every conversation (examples the owner wrote)."""

    system: System
    opening: tuple[Unit, ...] = ()


def read_prompt(rows: Sequence[object]) -> Prompt:
    """Read prompt rows (message dicts, SDK-valid or not).

    All system rows become one system message, in their order; metadata of the first one is kept. Rows with no content
    are skipped. Raises PromptMalformed for a row that the SDK's own message model refuses, or a tool row that answers
    no call: a broken prompt is told to the owner, it does not shrink in silence.
    """
    messages = [_row(place, row) for place, row in enumerate(rows, 1)]
    system_rows = [message for message in messages if message.role == "system" and parts_of(message.content)]
    first = system_rows[0] if system_rows else None
    system = System(
        parts=tuple(part for row in system_rows for part in parts_of(row.content)),
        name=first.name if first else None,
        provider_fields=cast(Mapping[str, Json] | None, first.provider_specific_fields) if first else None,
    )
    return Prompt(system, _opening([message for message in messages if message.role != "system"]))


def with_date(system: System, now: datetime) -> System:
    """The system message with today's UTC date and a reminder at its end (B2). `now` is an aware datetime."""
    today = now.astimezone(UTC)
    line = (
        f"Today is {today:%A}, {today:%Y-%m-%d} (UTC; the user's local date may differ). "
        "What you learned in training may be out of date: check facts that change with time, and say when you cannot."
    )
    return replace(system, added=(*system.added, line))


def parts_of(content: str | Sequence[ContentElement] | None) -> tuple[Part, ...]:
    """Message content as parts; elements that the runner does not interpret are passed on as they came."""
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),) if is_readable(content) else ()
    parts = (_part(element) for element in content)
    return tuple(part for part in parts if not isinstance(part, Text) or is_readable(part.text))


def _part(element: ContentElement) -> Part:
    if element.type == "text":
        return Text(element.text or "")
    return image_of(element) or Other(element)


def _row(place: int, row: object) -> Message:
    try:
        message = Message.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"]) or "the row"
        raise PromptMalformed(
            f"row {place} of the prompt cannot be read ({where}: {first['msg']}). "
            "Correct it in the prompt editor, or in the plugin that changes the prompt."
        ) from error
    if message.role not in _ROLES:
        raise PromptMalformed(
            f"row {place} of the prompt has the role {message.role[:40]!r}; use system, user or assistant."
        )
    return message


def _opening(messages: Sequence[Message]) -> tuple[Unit, ...]:
    units: list[Unit] = []
    place = 0
    while place < len(messages):
        message = messages[place]
        place += 1
        if message.role == "tool":
            raise PromptMalformed(
                "the prompt has a tool row that answers no call: put it right after the assistant row with the call."
            )
        if message.role == "user":
            _add(units, UserTurn(parts_of(message.content)))
            continue
        calls = tuple(_call(call) for call in message.tool_calls or ())
        answers = messages[place : place + len(calls)]
        place += len(calls)
        _add(units, _with_own_ids(_assistant(message, calls, answers), place))
    return tuple(units)


def _add(units: list[Unit], unit: Unit) -> None:
    """Append a turn so that roles alternate and a user turn is first; a turn that says nothing is skipped (B5)."""
    last = units[-1] if units else None
    if isinstance(unit, UserTurn):
        if isinstance(last, UserTurn) and unit.parts:
            units[-1] = join_users(last, unit)
        elif unit.parts:
            units.append(unit)
        return
    if not is_readable(unit.text) and not unit.calls:
        return
    if isinstance(last, AssistantTurn) and not last.calls and not unit.calls:
        units[-1] = replace(last, text=f"{last.text}\n\n{unit.text}")
        return
    if not isinstance(last, UserTurn):
        units.append(UserTurn((Text(OPENING),)))
    units.append(unit)


def _assistant(message: Message, calls: tuple[ToolCall, ...], answers: Sequence[Message]) -> AssistantTurn:
    texts = [part.text for part in parts_of(message.content) if isinstance(part, Text)]
    results = {answer.tool_call_id: _text(answer) for answer in answers if answer.role == "tool"}
    try:
        ordered = tuple(ToolResult(call.id, call.name, results[call.id]) for call in calls)
    except KeyError as error:
        raise PromptMalformed(
            "the prompt has an assistant row with a tool call that no tool row answers: add the row or drop the call."
        ) from error
    fields = cast(Mapping[str, Json] | None, message.provider_specific_fields)
    return AssistantTurn("\n\n".join(texts), calls, ordered, provider_fields=fields)


def _with_own_ids(turn: AssistantTurn, place: int) -> AssistantTurn:
    """The owner's ids only join rows: what is sent has to be taken by every provider, and stand there once (K2)."""
    ids = [made("prompt", place, at) for at in range(len(turn.calls))]
    calls = tuple(replace(call, id=call_id) for call, call_id in zip(turn.calls, ids, strict=True))
    results = tuple(replace(result, call_id=call_id) for result, call_id in zip(turn.results, ids, strict=True))
    return replace(turn, calls=calls, results=results)


def _call(call: WireCall) -> ToolCall:
    try:
        valid = isinstance(json.loads(call.function.arguments or "{}"), dict)
    except (ValueError, RecursionError):
        valid = False
    if not valid:
        raise PromptMalformed(
            f"the prompt has a call of {call.function.name[:60]!r} whose arguments are no JSON object: correct them."
        )
    fields = cast(Mapping[str, Json] | None, call.provider_specific_fields)
    return ToolCall(call.id, call.function.name, call.function.arguments or "{}", fields)


def _text(message: Message) -> str:
    return "\n\n".join(part.text for part in parts_of(message.content) if isinstance(part, Text))
