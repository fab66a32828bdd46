"""`python -m demo up | ask | first-questions | model`, for the Makefile. Progress on stderr, results on stdout."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from demo import first_questions, model, wanted
from demo.ask import ask_all
from demo.bootstrap import ROOT
from demo.errors import DemoError
from demo.stage import PREFERRED_PORT, STATE, bring_up
from weights.catalogue import cache_folder
from weights.errors import StepFailed, one_line
from weights.fetch import Watcher
from weights.fetch import fetch as fetch_weights

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def say(text: str) -> None:
    print(f"localagent: {text}", file=sys.stderr, flush=True)


def _stop_once() -> None:
    """The first Ctrl-C (or TERM, or a closed terminal) stops everything in order; later ones do not disturb that."""
    seen = 0

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            say("stopping; this takes some seconds")
            raise KeyboardInterrupt
        say("already stopping")

    for number in _SIGNALS:
        signal.signal(number, stop)


def up(options: argparse.Namespace) -> int:
    with bring_up(options.plugin, say, os.environ, prefer_port=PREFERRED_PORT) as stage:
        print(f"\n  LangBot with {stage.identity.name} {stage.identity.version} and {stage.model_name}:\n")
        print(f"    address   {stage.langbot.api.base_url}")
        print(f"    user      {stage.account.user}")
        print(f"    password  {stage.account.password}\n")
        print("  Log in; the page with the chat and the agent's settings is")
        print(f"    {stage.langbot.api.base_url}/home/agents?id={stage.pipeline}\n")
        print("  A new browser is shown LangBot's guide (Skip) and LangBot's own assistant at the lower edge (fold it")
        print("  away); neither is this agent, which answers in the Debug Chat on the left.\n")
        print("  Stop with Ctrl-C; this LangBot and what you did in it are removed then.\n", flush=True)
        try:
            while not (dead := stage.dead()):
                time.sleep(1)
        except KeyboardInterrupt:
            return 0
        raise DemoError(f"{dead[0].name} ended by itself: {dead[0].last_words()} (logs: {STATE / 'logs'})")


def ask(options: argparse.Namespace) -> int:
    questions = wanted.questions(options.question, os.environ)
    with bring_up(options.plugin, say, os.environ) as stage:
        if options.without_plugin:
            stage.langbot.api.uninstall(stage.identity.author, stage.identity.name)
        asyncio.run(ask_all(stage, questions, lambda text: print(text, flush=True), say))
        say("each `make ask` brings up a LangBot of its own; for more questions `make demo` is quicker")
    return 0


def ask_first_questions(options: argparse.Namespace) -> int:
    """Both conversations, one after the other, and the page about them."""
    groups = (first_questions.ENGLISH, first_questions.CHINESE)
    with bring_up(options.plugin, say, os.environ) as stage:
        asked = [asyncio.run(first_questions.ask(stage, questions, say)) for questions in groups]
        first_questions.PAGE.write_text(first_questions.page(stage.model_name, asked), encoding="utf-8")
    return 0


def fetch(options: argparse.Namespace) -> int:
    print(fetch_weights(model.choose(os.environ.get("DEMO_MODEL")), cache_folder(), Watcher(say)))
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--plugin", type=Path, default=ROOT, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(required=True)
    commands.add_parser("up", help="LangBot in the browser, until Ctrl-C").set_defaults(run=up)
    asking = commands.add_parser("ask", help="questions in one conversation; answers on stdout")
    asking.add_argument("question", nargs="*")
    asking.add_argument("--without-plugin", action="store_true", help=argparse.SUPPRESS)
    asking.set_defaults(run=ask)
    firsts = commands.add_parser("first-questions", help="ten questions of visitors; writes docs/first-questions.md")
    firsts.set_defaults(run=ask_first_questions)
    commands.add_parser("model", help="fetch the model of DEMO_MODEL").set_defaults(run=fetch)
    return parser.parse_args(arguments)


def main() -> int:
    options = parse(sys.argv[1:])
    command: Callable[[argparse.Namespace], int] = options.run
    _stop_once()
    try:
        return command(options)
    except StepFailed as error:
        say(one_line(str(error), 600))
    except OSError as error:
        say(f"the operating system refused: {error}")
    except KeyboardInterrupt:
        say("stopped")
        return 130
    return 1


if __name__ == "__main__":
    sys.exit(main())
