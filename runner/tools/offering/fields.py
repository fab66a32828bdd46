"""Names of fields that some provider refuses, exchanged for ones that all take, and back (K3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import count
from typing import Any

from runner.conversation.names import one_line
from runner.guards import defang
from runner.host.events import Json
from runner.tools.legal_names import is_field_name, with_digest


class FieldNames:
    """The fields of one tool's schema. `own` maps the names that were made up to the tool's own ones."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._told: dict[str, str] = {}

    @property
    def own(self) -> dict[str, str]:
        return {told: name for name, told in self._told.items()}

    def told(self, name: str) -> str:
        """The name under which a field is offered."""
        if is_field_name(name) and defang(name) == name:
            return name
        if name not in self._told:
            self._told[name] = self._free(with_digest(name, "field"))
        return self._told[name]

    def said(self, name: str) -> str | None:
        """A field's own name, harmless, for the description of one that is offered under another."""
        return one_line(name) or '""' if self.told(name) != name else None

    def _free(self, wish: str) -> str:
        wishes = (f"{wish}_{number}" if number else wish for number in count())
        name = next(name for name in wishes if name not in self._taken)
        self._taken.add(name)
        return name

    @cached_property
    def _taken(self) -> set[str]:
        return set(_keys(self._schema))


def with_names(values: dict[str, Json], names: Mapping[str, str]) -> dict[str, Json]:
    """The values with the names of fields exchanged, at every level; a name that is not among them stays."""
    return {names.get(name, name): _with_names(value, names) for name, value in values.items()} if names else values


def _with_names(value: Json, names: Mapping[str, str]) -> Json:
    if isinstance(value, dict):
        return with_names(value, names)
    return [_with_names(part, names) for part in value] if isinstance(value, list) else value


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from value
        for part in value.values():
            yield from _keys(part)
    elif isinstance(value, list):
        for part in value:
            yield from _keys(part)
