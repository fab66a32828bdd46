"""The private record of what a run's tools were asked and returned (B6).

LangBot's transcript keeps one assistant row a run and no tool rows. The record rides on that row, under one key of the
message's provider fields, and the next run turns it back into units: as they were sent, with the ids and the words of
each round, since a provider's cache serves nothing behind the first byte that differs (L8). What is read back was
stored by others: it is checked, bounded again and made inert, and anything broken is ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from runner.conversation import failures
from runner.conversation.call_ids import made, may_stay
from runner.conversation.cut import clip, sendable
from runner.conversation.units import AssistantTurn, Span, ToolCall, ToolResult
from runner.guards import defang, frame
from runner.host.events import Json

KEY = "localagent"
"""The one key of `provider_specific_fields` that is ours; it never goes to a provider."""

AGREED = "(agreed to by {by})"
"""Stands before the result of a call that a person consented to (M3)."""

VERSION = 1
RUN_CHARACTERS = 16_000
CALL_CHARACTERS = 4_000
_SMALL_CALL_CHARACTERS = 600
_SPEAKERS_CHARACTERS = 3_000
_NAME_CHARACTERS = 100
_ID_CHARACTERS = 128
_LEAD_IN_CHARACTERS = 500
_MAX_CALLS = 200
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
_LEGAL_CODE = re.compile(r"[a-z_]{1,32}", re.ASCII)


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call. `arguments` is the JSON text of an object, `result` the result without its frame.

    `error` is the code of a failure (`timeout`, `failed`, …) or None. `id`: that under which its author knows the call,
    empty where it is not kept. `lead_in`: what the reply said before its calls; only the first of them has it.
    """

    name: str
    arguments: str
    result: str
    error: str | None = None
    id: str = ""
    lead_in: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """What one run left for the next ones. `turns` are its tool rounds, oldest first; `dropped` had no room.

    `speakers` maps the ids of people in a group to the names they had. `author`: the model that knows the calls by the
    ids that are kept.
    """

    turns: tuple[tuple[RecordedCall, ...], ...] = ()
    speakers: Mapping[str, str] = field(default_factory=dict)
    dropped: int = 0
    author: str | None = None

    def as_units(
        self, prefix: str, answer: str = "", *, span: Span | None = None, taken: set[str] | None = None
    ) -> tuple[AssistantTurn, ...]:
        """The rounds as assistant turns with results, and behind them what is left of the answer of that run.

        `prefix` must differ between the records of one request (a cursor does): the ids of the calls are made from it
        where none was kept, the same each time (K2). `answer` is all that people read of the run: what it said before
        calls stands with those calls again, and nothing of it is lost or doubled. `taken` holds the ids of other
        records of the request and takes those of this one: runs at the same time may have kept the same.
        """
        units: list[AssistantTurn] = []
        said, taken = set[str](), set() if taken is None else taken
        for number, turn in enumerate(self.turns):
            ids = [_unlike(taken, call.id, made("record", prefix, number, at)) for at, call in enumerate(turn)]
            calls = tuple(ToolCall(id_, call.name, call.arguments) for id_, call in zip(ids, turn, strict=True))
            results = tuple(ToolResult(id_, call.name, _sent(call)) for id_, call in zip(ids, turn, strict=True))
            lead_in, answer = _split(answer, turn[0].lead_in, said)
            units.append(AssistantTurn(lead_in, calls, results, author=self.author, span=span))
        return (*units, AssistantTurn(answer, span=span)) if answer.strip() else tuple(units)

    def as_text(self) -> str:
        """The same as text, for requests without tools (some providers refuse tool turns there); may be empty."""
        lines = [defang(f"{call.name}({call.arguments})") + f"\n{_sent(call)}" for turn in self.turns for call in turn]
        return "\n\n".join(["Tools used for this answer:", *lines]) if lines else ""


def was_agreed_to(record: Record) -> bool:
    """Whether the run began with calls that a person had consented to (M3)."""
    return bool(record.turns) and record.turns[0][0].result.startswith(AGREED.partition("{")[0])


def _unlike(taken: set[str], kept: str, ours: str) -> str:
    """The kept id of a call, or ours where there is none or it is taken; it is taken from then on."""
    call_id = kept if kept and kept not in taken else ours
    taken.add(call_id)
    return call_id


def _split(answer: str, lead_in: str, said: set[str]) -> tuple[str, str]:
    """The words of the answer up to the end of a lead-in, as they were sent, and those behind it. `said` holds the
    lead-ins before it: of one that was said again people read the first (K9)."""
    words = lead_in.strip()
    if not words or words in said:
        return lead_in if words else "", answer
    place = answer.find(words)
    if place < 0:
        return "", answer
    said.add(words)
    before, end = answer[:place].lstrip(), place + len(words)
    return (before + words if before else lead_in), answer[end:].lstrip()


def build(
    turns: Sequence[Sequence[RecordedCall]], speakers: Mapping[str, str] | None = None, author: str | None = None
) -> dict[str, Json] | None:
    """The JSON object to store under `KEY`, or None when there is nothing to keep.

    At most 16,000 characters of JSON text, 4,000 a call. The newest calls stand in full within half of the room; the
    others get a short form, the newest first, until the room is used up, and what is left makes them full again.
    """
    people = _bounded_speakers(speakers or {})
    flat = [(at, call) for at, turn in enumerate(turns) for call in turn]
    if not flat and not people:
        return None
    kept = _chosen([call for _, call in flat], RUN_CHARACTERS - _length(_stored([], people, len(flat), author)))
    grouped: dict[int, list[Json]] = {}
    for number in sorted(kept):
        grouped.setdefault(flat[number][0], []).append(kept[number])
    return _stored(list(grouped.values()), people, len(flat) - len(kept), author)


def _chosen(calls: Sequence[RecordedCall], room: int) -> dict[int, dict[str, Json]]:
    """The entries that fit `room` characters, by the number of their call."""
    half = room // 2
    kept: dict[int, dict[str, Json]] = {}
    for number in range(len(calls) - 1, -1, -1):
        entry = _entry(calls[number], CALL_CHARACTERS)
        if room - _cost(entry) < half:
            entry = _entry(calls[number], _SMALL_CALL_CHARACTERS)
        if _cost(entry) > room:
            break
        kept[number] = entry
        room -= _cost(entry)
    for number in sorted(kept, reverse=True):
        full = _entry(calls[number], CALL_CHARACTERS)
        if (more := _length(full) - _length(kept[number])) <= room:
            kept[number] = full
            room -= more
    return kept


def _cost(entry: dict[str, Json]) -> int:
    """With a comma, and brackets and theirs in case the call is alone in its turn."""
    return _length(entry) + 4


def read(provider_fields: object) -> Record | None:
    """The record of a stored message, or None. Hostile, foreign, newer or broken content is ignored; never raises."""
    stored = provider_fields.get(KEY) if isinstance(provider_fields, Mapping) else None
    if not isinstance(stored, Mapping) or stored.get("v") is not VERSION:
        return None
    turns = _read_turns(stored.get("turns"))
    speakers = _read_speakers(stored.get("speakers"))
    dropped = stored.get("dropped")
    count = dropped if isinstance(dropped, int) and not isinstance(dropped, bool) and dropped > 0 else 0
    author = stored.get("by")
    known = author if isinstance(author, str) and 0 < len(author) <= 2 * _NAME_CHARACTERS else None
    return Record(turns, speakers, count, known) if turns or speakers else None


def _read_turns(stored: object) -> tuple[tuple[RecordedCall, ...], ...]:
    """The readable calls, up to the limit of a run; none after it."""
    turns: list[tuple[RecordedCall, ...]] = []
    left = RUN_CHARACTERS
    for turn in islice(stored if isinstance(stored, list) else (), _MAX_CALLS):
        calls: list[RecordedCall] = []
        for item in islice(turn if isinstance(turn, list) else (), _MAX_CALLS):
            call = _read_call(item)
            left -= len(call.arguments) + len(call.result) if call else 0
            if call and left >= 0:
                calls.append(call)
        if calls:
            turns.append(tuple(calls))
        if left <= 0:
            break
    return tuple(turns)


def _stored(
    turns: Sequence[Json], speakers: Mapping[str, str], dropped: int, author: str | None = None
) -> dict[str, Json]:
    stored: dict[str, Json] = {"v": VERSION, "turns": list(turns)}
    if author:
        stored["by"] = author
    if speakers:
        stored["speakers"] = dict(speakers)
    if dropped:
        stored["dropped"] = dropped
    return stored


def _length(value: Json) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _entry(call: RecordedCall, limit: int) -> dict[str, Json]:
    """One call in at most `limit` characters of JSON text."""
    entry: dict[str, Json] = {
        "name": call.name[:64],
        "args": _bounded_arguments(call.arguments, limit // 2),
        "result": "",
    }
    if call.error:
        entry["error"] = call.error[:32]
    if 0 < len(call.id) <= _ID_CHARACTERS:
        entry["id"] = call.id
    if call.lead_in.strip() and len(call.lead_in) <= _LEAD_IN_CHARACTERS:
        entry["said"] = sendable(call.lead_in)
    room = limit - _length(entry)
    text, size = "", room
    for _ in range(8):
        text = sendable(clip(call.result, max(0, size)).text)
        excess = _length(text) - 2 - room
        if excess <= 0:
            break
        text, size = "", size - max(excess, size // 4)
    entry["result"] = text
    return entry


def _bounded_arguments(text: str, limit: int) -> dict[str, Json]:
    """The arguments as an object; long strings are shortened, and an object still too large becomes an empty one."""
    arguments = _object_of(text)
    if _length(arguments) <= limit:
        return arguments
    share = limit // (2 * len(arguments) + 1)
    shorter: dict[str, Json] = {
        name: clip(value, share).text if isinstance(value, str) else value for name, value in arguments.items()
    }
    return shorter if _length(shorter) <= limit else {}


def _object_of(text: str) -> dict[str, Json]:
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _bounded_speakers(speakers: Mapping[str, str]) -> dict[str, str]:
    """The speakers named last, within their share of the room."""
    kept: dict[str, str] = {}
    left = _SPEAKERS_CHARACTERS
    for person, name in reversed(list(speakers.items())):
        person, name = sendable(person), clip(sendable(name), _NAME_CHARACTERS, lambda _: "…").text
        left -= _length({person: name})
        if left < 0:
            break
        kept[person] = name
    return dict(reversed(list(kept.items())))


def _read_speakers(stored: object) -> dict[str, str]:
    if not isinstance(stored, Mapping):
        return {}
    known: dict[str, str] = {}
    for person, name in islice(stored.items(), _MAX_CALLS):
        if isinstance(person, str) and isinstance(name, str) and 0 < len(person) <= 2 * _NAME_CHARACTERS:
            known[sendable(person)] = defang(" ".join(sendable(clip(name, _NAME_CHARACTERS).text).split()))
    return known


def _read_call(stored: object) -> RecordedCall | None:
    if not isinstance(stored, Mapping):
        return None
    name, arguments, result, error = (stored.get(key) for key in ("name", "args", "result", "error"))
    if not isinstance(name, str) or not _LEGAL_NAME.fullmatch(name) or not isinstance(result, str):
        return None
    code = error if isinstance(error, str) and _LEGAL_CODE.fullmatch(error) else None
    told = defang(sendable(clip(result, CALL_CHARACTERS).text))
    call_id, said = stored.get("id"), stored.get("said")
    return RecordedCall(
        name,
        _read_arguments(arguments),
        told,
        code,
        call_id if isinstance(call_id, str) and len(call_id) <= _ID_CHARACTERS and may_stay(call_id) else "",
        said if isinstance(said, str) and len(said) <= _LEAD_IN_CHARACTERS else "",
    )


def _read_arguments(stored: object) -> str:
    if not isinstance(stored, dict):
        return "{}"
    try:
        text = json.dumps(stored, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return "{}"
    text = defang(sendable(text))
    return text if len(text) <= CALL_CHARACTERS and _object_of(text) else "{}"


def _sent(call: RecordedCall) -> str:
    framed = frame(call.result, f"tool {call.name}")
    return f"{failures.prefix(call.error)}{framed}" if call.error else framed
