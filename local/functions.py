"""Plain typed functions as tools: the docstring describes, the annotations are the schema (Sk)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from local.request import Tool, ToolFailed
from runner.host.events import Json

_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_ANY: Final = TypeAdapter(Any)


class Functions:
    """Functions for one `Request`: `Request(messages, functions.tools, functions.call)`.

    Async ones are awaited, others run in a thread. Raises TypeError for parameters that have no name of their own,
    ValueError for two functions of one name.
    """

    def __init__(self, functions: Sequence[Callable[..., object]]) -> None:
        self._functions = {function.__name__: _Function.of(function) for function in functions}
        if len(self._functions) < len(functions):
            raise ValueError("two functions have the same name")

    def tools(self) -> Sequence[Tool]:
        """The functions as they are offered to a model."""
        return [function.tool for function in self._functions.values()]

    async def call(self, name: str, arguments: Mapping[str, Json]) -> Json:
        """What the function returns, as JSON. Raises ToolFailed for arguments that its annotations refuse."""
        if name not in self._functions:
            raise ToolFailed(f"there is no tool {name}")
        result: Json = _ANY.dump_python(await self._functions[name].run(arguments), mode="json")
        return result


@dataclass(frozen=True, slots=True)
class _Function:
    function: Callable[..., object]
    fields: Mapping[str, str]
    """The model's field of each parameter: a parameter may have a name that no field can have."""
    model: type[BaseModel]

    @classmethod
    def of(cls, function: Callable[..., object]) -> _Function:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
        for parameter in parameters.values():
            if parameter.kind not in _NAMED:
                raise TypeError(f"{function.__name__}: a tool's arguments come by name, {parameter} cannot")
        fields = {name: f"field_{place}" for place, name in enumerate(parameters)}
        shapes: dict[str, Any] = {
            fields[name]: (
                hints.get(name, Any),
                Field(... if parameter.default is parameter.empty else parameter.default, alias=name),
            )
            for name, parameter in parameters.items()
        }
        model = create_model(function.__name__, __config__=ConfigDict(extra="forbid"), **shapes)
        return cls(function, fields, model)

    @property
    def tool(self) -> Tool:
        schema = self.model.model_json_schema()
        return Tool(self.function.__name__, inspect.getdoc(self.function) or "", schema)

    async def run(self, arguments: Mapping[str, Json]) -> object:
        try:
            read = self.model.model_validate(dict(arguments))
        except ValidationError as error:
            wrong = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_url=False))
            raise ToolFailed("; ".join(wrong)) from error
        values = {name: getattr(read, field) for name, field in self.fields.items()}
        if inspect.iscoroutinefunction(self.function):
            return await self.function(**values)
        return await asyncio.to_thread(self.function, **values)
