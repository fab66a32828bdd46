"""Tools as the Host lists them, for the tests of this folder."""

from __future__ import annotations

from typing import Any

from langbot_plugin.api.entities.builtin.runner.resources import ToolResource

from runner.tools.catalogue import Catalogue, Entry


def offer(
    name: str, kind: str | None = "plugin", parameters: dict[str, Any] | None = None, **more: Any
) -> ToolResource:
    return ToolResource(tool_name=name, tool_type=kind, parameters=parameters, **more)


def catalogue(*tools: ToolResource, hide_sandbox: bool = False) -> Catalogue:
    return Catalogue.build(list(tools), hide_sandbox=hide_sandbox)


def entry(name: str = "lookup", kind: str = "plugin") -> Entry:
    return catalogue(offer(name, kind)).entries[0]
