"""Candidates become calls, or are refused with a reason (S1)."""

from __future__ import annotations

from dataclasses import dataclass

from callformats.block import Candidate
from callformats.json_value import Json
from callformats.loose_json import State, read_json
from callformats.offers import Meant, Offers
from callformats.quotation import Quotations
from callformats.reading import Call, Fault, Refusal
from callformats.schema import Schema, accepts, decoded, from_text, properties_of

Ruling = Call | Refusal

_SCHEMA_WORDS = frozenset(
    ("type", "properties", "required", "description", "additionalProperties", "items", "enum", "$schema")
)
_WRAPPERS = ("properties", "arguments", "parameters", "kwargs")


@dataclass(frozen=True, slots=True)
class Judge:
    """Rules on the candidates of one reply. `foreign`: texts of this run that were only to be read."""

    offers: Offers
    foreign: Quotations

    def rule(self, candidate: Candidate, format_id: str, *, must_fit: bool = False) -> Ruling:
        """A call, or why not. `must_fit`: the schema has to accept it."""
        candidate = self.offers.unglued(candidate)
        refuse = _Refuser(candidate)
        # Before anything that asks the model for a better call: nobody is to be led to a call that was only quoted.
        if self.quoted(candidate):
            return refuse(Fault.QUOTED)
        if candidate.broken:
            return refuse(Fault.UNREADABLE)
        found = self.offers.find(candidate.name)
        if found is None:
            return refuse(Fault.UNKNOWN_TOOL)
        if candidate.cut:
            return refuse(Fault.CUT_OFF)
        if candidate.unsure:
            return refuse(Fault.UNREADABLE)
        if (key := _doubled(candidate)) is not None:
            return Refusal(Fault.DOUBLED, candidate.name, candidate.raw, key)
        arguments, mended, exact = _arguments(candidate, found)
        if arguments is None:
            return refuse(Fault.UNREADABLE)
        if _echoes_schema(arguments, found.schema):
            return refuse(Fault.SCHEMA_ECHO)
        repaired = mended or candidate.mended or found.mended
        if (repaired or must_fit) and not accepts(found.schema, arguments):
            return refuse(Fault.NOT_ACCEPTED)
        return Call(found.name, arguments, format_id, candidate.id, repaired, candidate.exact and exact)

    def plausible(self, candidate: Candidate) -> bool:
        """Whether an unmarked candidate may be a call at all: fields beside a name are arguments only if the tool
        has parameters of these names; else the object is data with a name in it."""
        found = self.offers.find(candidate.name)
        if found is None:
            return True
        if candidate.arguments is None:
            return bool(_beside(candidate, found))
        if not candidate.flat or not isinstance(candidate.arguments, dict):
            return True
        return candidate.arguments.keys() <= properties_of(found.schema).keys()

    def quoted(self, candidate: Candidate) -> bool:
        """Whether it only repeats what stands in a text of others (I5)."""
        candidate = self.offers.unglued(candidate)
        found = self.offers.find(candidate.name)
        arguments = _arguments(candidate, found)[0] if found is not None else None
        if found is None or arguments is None or candidate.broken or candidate.cut:
            return self.foreign.hold_raw(candidate.raw)
        return self.foreign.hold((candidate.name, found.name), arguments)


@dataclass(frozen=True, slots=True)
class _Refuser:
    candidate: Candidate

    def __call__(self, fault: Fault) -> Refusal:
        return Refusal(fault, self.candidate.name, self.candidate.raw)


def _doubled(candidate: Candidate) -> str | None:
    """A key with two values, so that the call has no single reading (Sl)."""
    written = candidate.arguments
    return candidate.doubled or (read_json(written).doubled if isinstance(written, str) else None)


def _arguments(candidate: Candidate, found: Meant) -> tuple[dict[str, Json] | None, bool, bool]:
    """The arguments as an object of the schema's types, whether that took a repair, and whether a text in their place
    is JSON to the letter; None when they are none.
    """
    written = candidate.arguments
    mended, exact = False, True
    if isinstance(written, str):
        if not written.strip():
            written = None
        else:
            parsed = read_json(written)
            written, mended, exact = parsed.value, parsed.mended, parsed.exact
            if parsed.state not in (State.WHOLE, State.OPEN) or not parsed.sure:
                return None, True, False
    if written in (None, {}):
        return _beside(candidate, found), mended, exact
    if candidate.flat and isinstance(written, dict):
        written = {**_beside(candidate, found), **written}
    if not isinstance(written, dict):
        return None, True, False
    unwrapped = _unwrapped(written, found.schema)
    mended = mended or unwrapped is not written
    return _typed(unwrapped, found.schema, candidate.typed), mended, exact


def _beside(candidate: Candidate, found: Meant) -> dict[str, Json]:
    """What stood beside the name as if it belonged to the call, and is a parameter of the tool."""
    fields = candidate.beside or {}
    return {key: value for key, value in fields.items() if key in properties_of(found.schema)}


def _unwrapped(arguments: dict[str, Json], schema: Schema) -> dict[str, Json]:
    """Arguments inside one more object named as if they were a schema or a call."""
    if len(arguments) != 1:
        return arguments
    ((key, inner),) = arguments.items()
    if key not in _WRAPPERS or key in properties_of(schema):
        return arguments
    if isinstance(inner, str):
        parsed = read_json(inner)
        inner = parsed.value if parsed.sure else None
    if not isinstance(inner, dict) or any(isinstance(item, dict) and "type" in item for item in inner.values()):
        return arguments
    return inner


def _typed(arguments: dict[str, Json], schema: Schema, typed: bool) -> dict[str, Json]:
    if typed:
        return decoded(schema, arguments)
    properties = properties_of(schema)
    read = {key: _meant(value, properties.get(key), schema) for key, value in arguments.items()}
    return decoded(schema, read)


def _meant(value: Json, part: Json, schema: Schema) -> Json:
    return from_text(value, part, schema) if isinstance(value, str) else value


def _echoes_schema(arguments: dict[str, Json], schema: Schema) -> bool:
    """{"type": "object", "properties": {…}}: the offer itself, given back."""
    own = properties_of(schema)
    if not {"type", "properties"} <= arguments.keys() or "properties" in own:
        return False
    return arguments.keys() <= _SCHEMA_WORDS | own.keys()
