"""What the tools' own declarations say of them, for whoever offers them without LangBot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class Declared:
    """A tool as a model is told of it; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


def declared() -> tuple[Declared, ...]:
    """Every tool beside this file, by name."""
    files = sorted(Path(__file__).parent.glob("*.yaml"))
    return tuple(_read(yaml.safe_load(file.read_text(encoding="utf-8"))) for file in files)


def _read(component: Mapping[str, Any]) -> Declared:
    spec = component["spec"]
    return Declared(component["metadata"]["name"], spec["llm_prompt"], spec["parameters"])
