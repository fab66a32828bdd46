"""What of a tool's schema is offered to a model: the part of JSON Schema that every provider takes (D1, K3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.host.events import Json
from runner.tools.offering.own import own_schema
from runner.tools.offering.subset import Subset

_NO_ARGUMENTS: dict[str, Json] = {"type": "object", "properties": {}}
_WORDS = ("title", "description")
_REFERENCES_TRIED = (12, 3, 1)
_NODES = 200


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool's arguments. `schema` is offered, `own` is what arguments are checked against. `altered`: the schema that
    the tool gave is another one, or a field in it may be anything; some providers take no such field (K7).

    `told` belongs into the tool's description: what the offered schema has no word for. `fields` maps offered names of
    fields to the tool's own ones where they differ. `note` is for the log.
    """

    schema: Mapping[str, Json]
    own: Mapping[str, Json]
    told: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    note: str | None = None
    altered: bool = False


@dataclass(frozen=True, slots=True)
class Unofferable:
    """A tool that no model can be told how to call; `why` is for the log."""

    why: str


def offered_schema(parameters: Mapping[str, Any] | None) -> Offer | Unofferable:
    """The schema to offer. None means no arguments. Never raises."""
    if parameters is None:
        return Offer(_NO_ARGUMENTS, _NO_ARGUMENTS)
    own, note = own_schema(parameters)
    subset, made = _converted(own)
    if made is None:
        return Unofferable("nothing meets its schema")
    if (made := _object_of(made)) is None:
        return Unofferable("its schema is not that of an object")
    told = made.pop("description", "")
    made.update({word: own[word] for word in _WORDS if isinstance(own.get(word), str)})
    if isinstance(own.get("default"), dict):
        made["default"] = own["default"]
    made.setdefault("properties", {})
    if subset.cut and note is None:
        note = "its schema was changed: it is too large"
    schema = _in_order(made, own)
    if schema == own:
        schema = own
    return Offer(schema, own, str(told), subset.names.own, note, altered=schema != parameters or _is_open(schema))


def _converted(own: Mapping[str, Json]) -> tuple[Subset, dict[str, Json] | None]:
    """The schema with its references told out, as far as that stays within three times its size."""
    nodes = _NODES + 3 * _count(dict(own))
    for references in _REFERENCES_TRIED:
        subset = Subset(own, nodes=nodes, references=references)
        made = subset.convert()
        if not subset.cut:
            break
    return subset, made


def _object_of(made: dict[str, Json]) -> dict[str, Json] | None:
    """What of a schema is for objects: arguments are nothing else."""
    branches = made.get("anyOf", [made])
    for branch in branches if isinstance(branches, list) else ():
        if isinstance(branch, dict) and branch.get("type", "object") == "object":
            return {**branch, "type": "object"}
    return None


def _is_open(schema: Json) -> bool:
    """Whether a field somewhere in an offered schema has no type: Kimi and llama.cpp refuse the whole request."""
    if not isinstance(schema, dict):
        return False
    properties, branches = schema.get("properties"), schema.get("anyOf")
    parts = [
        *(properties.values() if isinstance(properties, dict) else ()),
        *(branches if isinstance(branches, list) else ()),
    ]
    parts += [schema["items"]] if "items" in schema else []
    return not {"type", "anyOf"} & schema.keys() or any(map(_is_open, parts))


def _count(value: Json) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_count, parts))


def _in_order(made: dict[str, Json], own: Mapping[str, Json]) -> dict[str, Json]:
    """The same schema with everything in the order of the tool's own, so that one which needs no change has its very
    bytes."""
    names = [*(name for name in own if name in made), *(name for name in made if name not in own)]
    return {name: _part_in_order(made[name], own.get(name)) for name in names}


def _part_in_order(made: Json, own: Json) -> Json:
    if isinstance(made, dict) and isinstance(own, dict):
        return _in_order(made, own)
    if isinstance(made, list) and isinstance(own, list) and len(made) == len(own):
        return [_part_in_order(part, other) for part, other in zip(made, own, strict=True)]
    return made
