"""A chat in the terminal with the demo's tools: `MODEL.gguf` runs in this process, `URL MODEL` on a server (Sk)."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from local.agent import LocalAgent, create
from local.chat import TOOLS, Chat
from local.llama import LlamaProvider
from local.openai import OpenAIProvider
from local.provider import Engine
from weights.catalogue import CATALOGUE
from weights.engine import EngineFailed
from weights.errors import StepFailed, one_line

_PROMPT = "> "


def say(text: str) -> None:
    print(f"localagent: {text}", file=sys.stderr, flush=True)


def show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


class _Bar:
    """Progress in whole tenths, on stderr."""

    def __init__(self) -> None:
        self._told = -1

    def __call__(self, share: float) -> None:
        tenths = int(share * 10)
        if tenths > self._told:
            self._told = tenths
            say(f"loading the model: {tenths * 10} %")


def ask() -> str | None:
    """The next line of the user; None at the end of the input."""
    if sys.stdin.isatty():
        show(_PROMPT)  # `input` would write it to the error output of the process, which the engine's log has
    line = sys.stdin.readline()
    return line.strip() if line else None


def talk(agent: LocalAgent, runner: asyncio.Runner) -> None:
    """Questions and answers until the input ends. Ctrl-C stops an answer; at the prompt it ends the chat."""
    chat = Chat(agent, show)
    while (line := ask()) is not None:
        if not line:
            continue
        try:
            runner.run(chat.say(line))
        except KeyboardInterrupt:
            show("\n[stopped]\n")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local", description=__doc__)
    keys = ", ".join(CATALOGUE)
    parser.add_argument("model", help=f"a GGUF file, {keys} (a model of the demo), or a server's address")
    parser.add_argument("name", nargs="?", help="the server's name for the model; its key comes from MODEL_API_KEY")
    formats = ("guided", "json", "tags", "pythonic")
    parser.add_argument("--calls", choices=formats, default="guided", help="how the model writes tool calls")
    return parser.parse_args(arguments)


def engine_of(options: argparse.Namespace) -> Engine:
    """The engine that the command line names. Raises ValueError for what names none."""
    named = options.model
    if "://" in named:
        if options.name is None:
            raise ValueError(f"name the model behind the address: python -m local {named} MODEL")
        return OpenAIProvider(named, options.name, os.environ.get("MODEL_API_KEY", ""), call_format=options.calls)
    if options.name is not None:
        raise ValueError(f"{named} is no address of a server: it begins with http:// or https://")
    model = named if named in CATALOGUE else Path(named)
    return LlamaProvider(model, call_format=options.calls, say=say)


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    try:
        agent = create([engine_of(options)])
    except ValueError as error:
        say(one_line(str(error), 600))
        return 2
    try:
        with asyncio.Runner() as runner:
            runner.run(agent.prepare(_Bar()))
            say(f"tools: {', '.join(tool.name for tool in TOOLS)}; Ctrl-D or Ctrl-C ends the chat")
            talk(agent, runner)
    except KeyboardInterrupt:
        say("stopped")
        return 130
    except (StepFailed, EngineFailed, RuntimeError, OSError) as error:
        say(one_line(str(error), 600))
        return 1
    finally:
        agent.dispose()
    return 0


def quiet_engine() -> None:
    """llama.cpp writes its log to the error output; here it goes nowhere, what is ours still goes there."""
    ours = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    sys.stderr = os.fdopen(ours, "w", buffering=1)


if __name__ == "__main__":
    if "--help" not in sys.argv and "-h" not in sys.argv:
        quiet_engine()
    sys.exit(main(sys.argv[1:]))
