"""Tools as others hand them over, read into one shape (S1, S2): the border of the functions that anybody may call.

A `ToolSpec`; a mapping of name, description and schema, bare or inside `{"type": "function", "function": {…}}`; or an
object with attributes of these names, as the SDK's tools, MCP's and those of `local` are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from callformats.json_value import Json

_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it. `name` is unique in a request; `parameters` is a JSON Schema of an object.

    `altered`: it is not the tool's own schema, since that had to be changed; a provider may still not take it (K7).
    """

    name: str
    description: str
    parameters: Mapping[str, Json]
    altered: bool = False


@runtime_checkable
class Named(Protocol):
    """What an object has to have to be a tool."""

    @property
    def name(self) -> str: ...


Offered = ToolSpec | Mapping[str, object] | Named


def spec_of(tool: Offered) -> ToolSpec:
    """The tool as a model sees it; a schema that is none counts as one without fields. Raises TypeError."""
    if isinstance(tool, ToolSpec) and isinstance(tool.parameters, Mapping):
        return tool
    fields = tool if isinstance(tool, Mapping) else _attributes(tool)
    inner = fields.get("function")
    if "name" not in fields and inner is not None:
        return spec_of(inner)  # type: ignore[arg-type]  # whatever it is, the next call says
    if "name" not in fields:
        raise TypeError(f"no tool: {type(tool).__name__} without a name")
    schema = next((fields[key] for key in _SCHEMA_KEYS if isinstance(fields.get(key), Mapping)), {})
    parameters: Mapping[str, Json] = dict(schema)  # type: ignore[call-overload]
    return ToolSpec(str(fields["name"]), str(fields.get("description") or ""), parameters)


def _attributes(tool: object) -> dict[str, object]:
    names = ("name", "description", "function", *_SCHEMA_KEYS)
    return {name: getattr(tool, name) for name in names if hasattr(tool, name)}


def without_channel(name: str) -> str:
    """A name as a tool has it: gpt-oss writes `search<|channel|>commentary` now and then."""
    return name.partition("<|")[0].strip() if "<|" in name else name
