"""The transcript as units: what earlier runs and people said, as a legal provider sequence (B5).

The Host's rows are uneven: pictures come back hollow, people in a group share one role, failed runs leave questions
without an answer, another runner's answers stand between ours, and `content` is cut at 4,000 characters. All of that
is settled here, without I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from langbot_plugin.api.entities.builtin.runner.transcript import TranscriptItem

from callformats import without_thoughts
from runner.conversation import quotes
from runner.conversation.attachments import VOICE_NAMES
from runner.conversation.cut import sendable
from runner.conversation.names import one_line
from runner.conversation.readable import is_readable
from runner.conversation.record import Record, was_agreed_to
from runner.conversation.record import read as read_record
from runner.conversation.speakers import Speakers
from runner.conversation.units import AssistantTurn, Span, Text, Unit, UserTurn
from runner.guards import defang

EARLIER_CUT = "[Earlier messages are not shown.]"
"""Stands for what came before when the history would begin with an answer: many providers want a user turn first."""

AGREED_BY_BUTTON = "[A button was pressed: the calls below were agreed to.]"
"""Stands for a press, which is no row of the transcript (M3)."""

_WORDS_FOR = {"image_url": "image", "image_base64": "image", "file_url": "file", "file_base64": "file"}


@dataclass(frozen=True, slots=True)
class Row:
    """One transcript row, read: its role, its text with placeholders for what is no text, and where it stands.

    `key` tells rows apart even where the Host gives no cursor.
    """

    role: str
    text: str
    cursor: str
    actor_id: str | None
    record: Record | None = None
    key: str = field(default="", compare=False)


def rows_after(items: Iterable[TranscriptItem], event_id: str) -> list[TranscriptItem]:
    """The rows newer than the current event, oldest first; none when it is not among `items` (newest first)."""
    newest_first = list(items)
    place = next((place for place, item in enumerate(newest_first) if item.event_id == event_id), 0)
    return newest_first[:place][::-1]


def read_row(item: TranscriptItem) -> Row | None:
    """One row, None when there is nothing to say in it. Never raises: a row it cannot read gives its plain text."""
    if item.role not in ("user", "assistant"):
        return None
    body = item.content_json if item.content_json is not None else {"content": item.content}
    text = _text_of(body.get("content")) or (item.content or "")
    text = without_thoughts(text) if item.role == "assistant" else quotes.in_words(text)
    text = sendable(text)
    if not (text.strip() if item.role == "user" else is_readable(text)):
        return None
    actor = item.metadata.get("actor_id")
    record = read_record(body.get("provider_specific_fields"))
    cursor = item.cursor or ""
    return Row(item.role, text, cursor, str(actor) if actor is not None else None, record, cursor or item.transcript_id)


class ToolMemoryForm(StrEnum):
    """How earlier tool calls come back: as turns, as text where the request has no tools, or not at all (B6)."""

    TURNS = "turns"
    TEXT = "text"
    NONE = "none"


def units_of(
    rows: Sequence[Row], speakers: Speakers, memory: ToolMemoryForm = ToolMemoryForm.TURNS
) -> tuple[Unit, ...]:
    """Rows, oldest first, as units: a user turn is first, and each message a unit of its own (`Alternation`)."""
    speakers = speakers.knowing(names_in(rows))
    units: list[Unit] = []
    taken: set[str] = set()
    for row in rows:
        if row.role == "user":
            units.append(_user_turn(_by_others(speakers, row), row))
        else:
            # Another runner's answers stand here, too, and in an own one people may have had the model write anything.
            _add_answer(units, replace(row, text=defang(row.text)), memory, taken)
    return tuple(units)


def names_in(rows: Iterable[Row]) -> dict[str, str]:
    """Names by actor id from the records of answers, oldest row first: the name that somebody had last (B6)."""
    records = (row.record for row in rows if row.record is not None)
    return {actor: name for record in records for actor, name in record.speakers.items()}


def _by_others(speakers: Speakers, row: Row) -> str:
    """What a person said; inert where other people take part than the one who asks now (S7)."""
    said = speakers.says(row.actor_id, row.text)
    return defang(said) if speakers.group else said


def _user_turn(text: str, row: Row) -> UserTurn:
    return UserTurn((Text(text),), Span(row.cursor, row.cursor))


def _add_answer(units: list[Unit], row: Row, memory: ToolMemoryForm, taken: set[str]) -> None:
    span = Span(row.cursor, row.cursor)
    last = units[-1] if units else None
    record = row.record if row.record is not None and row.record.turns else None
    goes_on = isinstance(last, AssistantTurn) and (record is None or memory is ToolMemoryForm.NONE)
    if not isinstance(last, UserTurn) and not goes_on:
        agreed = units and record is not None and was_agreed_to(record)
        units.append(_user_turn(AGREED_BY_BUTTON if agreed else EARLIER_CUT, row))
    if record is not None and memory is ToolMemoryForm.TEXT:
        units.append(_user_turn(record.as_text(), row))
    elif record is not None and memory is ToolMemoryForm.TURNS:
        units.extend(record.as_units(row.key, row.text, span=span, taken=taken))
        return
    units.append(AssistantTurn(row.text, span=span))


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    return "\n".join(filter(None, (_element_text(element) for element in content)))


def _element_text(element: object) -> str:
    """A text element's text, anything else as words: pictures and files come back as hollow shells."""
    if not isinstance(element, Mapping):
        return ""
    kind = element.get("type")
    if kind == "text":
        text = element.get("text")
        return text if isinstance(text, str) else ""
    name = element.get("file_name")
    if isinstance(name, str) and name in VOICE_NAMES:
        return "[voice message]"
    word = _WORDS_FOR.get(str(kind), "attachment")
    known = one_line(name if isinstance(name, str) else None)
    return f"[{word}: {known}]" if known else f"[{word}]"
