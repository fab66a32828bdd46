"""Calls as text again: what goes into the history is what the model itself would write (S1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol

from callformats.json_value import Json
from callformats.registry import format_named


class Callable_(Protocol):
    """What can be written: a `Call`, or a call of the history with its arguments as JSON text."""

    @property
    def name(self) -> str: ...

    @property
    def arguments(self) -> Mapping[str, Json] | str: ...


def render(call: Callable_, format: str) -> str:
    """One valid call in a format, by id or alias. Raises ValueError for an unknown format or broken arguments."""
    arguments = call.arguments
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    if not isinstance(arguments, Mapping):
        raise ValueError(f"the arguments of {call.name!r} are no JSON object")
    return format_named(format).write(call.name, arguments)
