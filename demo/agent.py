"""The agent that visitors of the demo meet: who it is, its tools, and how its model is guided."""

from __future__ import annotations

from typing import Final

from demo.api import RunnerConfig
from demo.bootstrap import ROOT

TOOLS: Final = ROOT / "everyday"
"""Folder of the plugin with the demo's tools."""
ONE_OF_THEM: Final = "calculate"
"""When LangBot lists this tool, the others are there too."""
PROMPT: Final = (
    "You are LocalAgent, an assistant that runs on the user's own computer, inside LangBot. You have a clock and "
    "calendar, a calculator, a unit converter and a notebook. Use them for whatever they can do, since you cannot know "
    "the time or the notes and reckon badly; do everything else yourself. Answer in one or two sentences, in the "
    "language of the user."
)
WINDOW: Final = "context-window-tokens"
"""Name of the field for the window of the model."""

_WHO: Final[RunnerConfig] = {"prompt": [{"role": "system", "content": PROMPT}]}
WEAK: Final[RunnerConfig] = {**_WHO, "model-profile": "small", "tool-call-format": "guided"}
"""For the bundled models: llama.cpp holds each reply to a schema."""
STRONG_OR_WEAK: Final[RunnerConfig] = {**_WHO, "model-profile": "auto", "tool-call-format": "auto"}
"""For a model of the visitor's own, of which nothing is known."""
