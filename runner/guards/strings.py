"""One change for every string of a JSON value, keys included."""

from __future__ import annotations

from collections.abc import Callable

from runner.host.events import Json


def in_strings(value: Json, change: Callable[[str], str]) -> Json:
    """The value with each of its strings changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [in_strings(item, change) for item in value]
    if isinstance(value, dict):
        return {change(key): in_strings(item, change) for key, item in value.items()}
    return value
