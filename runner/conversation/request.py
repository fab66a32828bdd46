"""What is asked of a model: one system message, units, tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from callformats import ToolSpec
from runner.conversation.units import System, Unit
from runner.host.events import Json

__all__ = ["Request", "ToolSpec"]


@dataclass(frozen=True, slots=True)
class Request:
    """One model call. `extra` goes to the provider as it is (for example `tool_choice`)."""

    system: System
    units: tuple[Unit, ...]
    tools: tuple[ToolSpec, ...] = ()
    extra: Mapping[str, Json] = field(default_factory=dict)
