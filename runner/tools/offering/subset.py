"""A tool's schema in the part of JSON Schema that every provider takes (K3).

```
own schema ─▸ references and `allOf` merged ─▸ alternatives one by one ─▸ joined: one schema for each JSON type
```
The part: one `type` for each schema (`{}` for anything), `anyOf` of different types instead of a type, `properties`,
`required`, `additionalProperties` true or false, `items`, `enum` of strings, `minimum`, `maximum`, lengths up to 1,000,
item counts up to 100, `format` `date-time`, `title`, `description`, `default`. The reasons are known refusals: Gemini
knows no other words, no lists of types and no enum of numbers; Kimi takes no type beside `anyOf`; OpenAI and Anthropic
take no alternatives at the top; llama.cpp's grammar refuses most patterns and long repetitions; Anthropic takes plain
names of fields only.

What the part has no word for stands in the description as it was, where it is short. Values that the own schema lets
through are let through, with four exceptions in which the author's wish is plain: `properties` without a type make an
object, `items` an array, a tuple has no items beyond its positions, and of alternatives that are objects each speaks of
the fields it names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from runner.conversation.cut import head
from runner.host.events import Json
from runner.tools.offering.all_of import merged
from runner.tools.offering.alternatives import joined
from runner.tools.offering.fields import FieldNames
from runner.tools.offering.values import (
    Schema,
    bounds,
    is_of,
    lengths,
    strings,
    types_declared,
    types_of,
    values_of,
    without_said_bounds,
)
from runner.tools.offering.words import untold, with_words

MAX_DEPTH = 16
"""Levels of schemas; Gemini's own limit lies a little above."""

_MAX_NODES = 4_000
_MAX_CHARACTERS = 60_000
_MAX_REFERENCES = 12
_MAX_ALTERNATIVES = 250
_MAX_LENGTH = 1_000
_MAX_ITEMS = 100
_ALTERNATIVES = ("anyOf", "oneOf")
_WORDS = ("title", "description", "default", "examples", "example")

Trail = tuple[str, ...]
"""The references that were followed on the way to a schema."""


class Subset:
    """Converts one tool's schema. `names` tells which fields got other names; `cut`: it was too deep or too large."""

    def __init__(self, root: Schema, *, nodes: int = _MAX_NODES, references: int = _MAX_REFERENCES) -> None:
        self._root = root
        self._nodes = nodes
        self._references = references
        self._characters = _MAX_CHARACTERS
        self.names = FieldNames(root)
        self.cut = False

    def convert(self) -> dict[str, Json] | None:
        """The whole schema but for its own words; its description holds what had to be told. None when no value meets
        it."""
        return self._schema({word: value for word, value in self._root.items() if word not in _WORDS}, 0, ("#",))

    def _schema(self, node: Any, depth: int, trail: Trail) -> dict[str, Json] | None:
        if node is False:
            return None
        if not isinstance(node, Mapping) or not node or not self._fits(node, depth):
            return {}
        flat, trail = self._flat(node, depth, trail)
        if flat is None:
            return None
        keyword = next((word for word in _ALTERNATIVES if isinstance(flat.get(word), list) and flat[word]), None)
        if keyword is None:
            return self._simple(flat, depth, trail)
        base = {word: value for word, value in flat.items() if word != keyword and word not in _WORDS}
        words = {word: value for word, value in flat.items() if word in _WORDS}
        options = [*self._options(base, flat[keyword][:_MAX_ALTERNATIVES], depth, trail)]
        if len(flat[keyword]) > _MAX_ALTERNATIVES:
            self.cut = True
            options.append({})
        return with_words(joined(options), words, {}) if options else None

    def _part(self, node: Any, depth: int, trail: Trail) -> dict[str, Json] | None:
        """The schema of a field or an item. One that can only be null is told as anything: no type says that alone."""
        made = self._schema(node, depth + 1, trail)
        if made is None or made.get("type") != "null":
            return made
        rest = {word: value for word, value in made.items() if word != "type"}
        return with_words(rest, {}, {"enum": [None]})

    def _options(self, base: Schema, branches: Sequence[Any], depth: int, trail: Trail) -> Iterator[dict[str, Json]]:
        """What is left of the alternatives, each with what holds beside them."""
        for branch in branches:
            flat: Schema | None = None
            if isinstance(branch, Mapping):
                flat, after = self._flat(branch, depth, trail)
                flat = merged(flat, base) if flat is not None else None
            elif branch is not False:
                flat, after = base, trail
            option = self._schema(flat, depth + 1, after) if flat is not None else None
            if option is not None:
                yield option

    def _flat(self, node: Schema, depth: int, trail: Trail) -> tuple[Schema | None, Trail]:
        """The schema with its references and `allOf` merged into it; None when no value meets all of it.

        A reference back to a schema that is being told becomes its type alone: trees are told one level deep.
        """
        flat: Schema | None = node
        while flat is not None and ("$ref" in flat or "allOf" in flat):
            rest = {word: value for word, value in flat.items() if word not in ("$ref", "allOf")}
            others: list[Any] = [*flat["allOf"]] if isinstance(flat.get("allOf"), list) else []
            reference = flat.get("$ref")
            target = self._pointed_at(reference)
            if target is False:
                return None, trail
            if isinstance(target, Mapping) and (reference in trail or len(trail) > self._references):
                types = types_declared(target) or (("object",) if "properties" in target else ())
                others.insert(0, {"type": list(types)} if types else {})
            elif target is not None:
                others.insert(0, target)
                trail = (*trail, str(reference))
            flat = rest
            for other in others:
                if other is False or flat is None:
                    return None, trail
                if isinstance(other, Mapping) and self._fits(other, depth):
                    # What an `allOf` of the other one says has to be read beside its own words.
                    part, trail = self._flat(other, depth + 1, trail)
                    flat = merged(flat, part) if part is not None else None
        return flat, trail

    def _pointed_at(self, reference: Any) -> Any:
        """The schema inside the whole one at `#/a/b`; None where there is none."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            return None
        place: Any = self._root
        for step in reference[1:].split("/")[1:]:
            step = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(place, list) and step.isdecimal() and int(step) < len(place):
                place = place[int(step)]
            elif isinstance(place, Mapping) and step in place:
                place = place[step]
            else:
                return None
        return place

    def _simple(self, node: Schema, depth: int, trail: Trail) -> dict[str, Json] | None:
        """A schema without alternatives: one for each of its types, joined."""
        values = values_of(node)
        types = types_declared(node) or types_of(node, values)
        if values == []:
            return None
        if types is None:
            return with_words({}, node, untold(node, ()))
        options = [option for name in types if (option := self._typed(name, node, values, depth, trail)) is not None]
        return with_words(joined(options), node, {}) if options else None

    def _typed(
        self, name: str, node: Schema, values: list[Any] | None, depth: int, trail: Trail
    ) -> dict[str, Json] | None:
        """The schema for the values of one type; `values` are the only ones there are, None: any."""
        allowed = None if values is None else [value for value in values if is_of(value, name)]
        if allowed == []:
            return None
        made: dict[str, Json] | None = {"type": name}
        match name:
            case "object":
                made = self._object(node, depth, trail)
            case "array":
                made = self._array(node, depth, trail)
            case "string":
                made = {"type": name, **lengths(node, "minLength", "maxLength", _MAX_LENGTH), **strings(allowed)}
                if node.get("format") == "date-time":
                    made["format"] = "date-time"
            case "number" | "integer":
                made = {"type": name, **bounds(node, name, allowed)}
        if made is None:
            return None
        rest = untold(without_said_bounds(node, made), made, name)
        if allowed is not None and "enum" not in made and name != "null":
            rest["enum"] = allowed
        return with_words(made, {}, rest)

    def _object(self, node: Schema, depth: int, trail: Trail) -> dict[str, Json] | None:
        properties = node.get("properties")
        fields: dict[str, dict[str, Json] | None] = {
            name: self._part(part, depth, trail)
            for name, part in (properties.items() if isinstance(properties, Mapping) else ())
            if isinstance(name, str)
        }
        required = node.get("required")
        listed = required if isinstance(required, list) else []
        wanted = [*dict.fromkeys(name for name in listed if isinstance(name, str))]
        others = node.get("additionalProperties")
        for name in wanted:
            if name not in fields:
                fields[name] = self._part(others if others is not None else True, depth, trail)
            if fields[name] is None:
                return None
        made: dict[str, Json] = {"type": "object"}
        if isinstance(properties, Mapping) or fields:
            made["properties"] = {
                self.names.told(name): self._named(name, part) for name, part in fields.items() if part is not None
            }
        if _is_list(required):
            made["required"] = [self.names.told(name) for name in wanted]
        if isinstance(others, bool) and "patternProperties" not in node:
            made["additionalProperties"] = others
        return made

    def _named(self, name: str, part: dict[str, Json]) -> dict[str, Json]:
        """A field whose name some providers refuse is told with its own name."""
        said = self.names.said(name)
        return part if said is None else {**part, "description": _glued(said, part.get("description"))}

    def _array(self, node: Schema, depth: int, trail: Trail) -> dict[str, Json]:
        positions, rest = _items(node)
        if positions is not None:
            others = [rest] if isinstance(rest, Mapping) or len(positions) >= _MAX_ALTERNATIVES else []
            rest = {"anyOf": [*positions[: _MAX_ALTERNATIVES - 1], *others]} if positions or others else True
        each = self._part(rest, depth, trail)
        made: dict[str, Json] = {"type": "array"}
        made["items"] = each if each is not None else {}
        made.update(lengths(node, "minItems", "maxItems", _MAX_ITEMS))
        if each is None:
            made["maxItems"] = 0
            made.pop("minItems", None)
        return made

    def _fits(self, node: Schema, depth: int) -> bool:
        self._nodes -= 1
        self._characters -= sum(len(value) for value in node.values() if isinstance(value, str))
        fits = depth <= MAX_DEPTH and self._nodes >= 0 and self._characters >= 0
        self.cut = self.cut or not fits
        return fits


def _items(node: Schema) -> tuple[list[Any] | None, Any]:
    """The schemas of the first items by position, None without such, and the schema of the others."""
    items = node.get("items", True)
    if _is_list(node.get("prefixItems")):
        return node["prefixItems"], items
    return (items, node.get("additionalItems", True)) if isinstance(items, list) else (None, items)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _glued(name: str, description: Json) -> str:
    return head(f"{name}: {description}" if isinstance(description, str) and description else name, 2_000)
