"""What the user wants, looked at before anything is installed: a slip should not come to light after minutes of pip.

`python3 -m demo.wanted up|ask`, run by the Makefile with the system's Python: standard library only. Whether a model
really answers is found out later, in the bring-up.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from demo import model, ports
from demo.errors import DemoError
from weights.errors import one_line


def questions(arguments: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """The questions of `make ask`: those on the command line, or the one that make hands over in the environment.

    Raises DemoError when there is none.
    """
    found = [question for question in arguments if question.strip()]
    if not found and env.get("LOCALAGENT_QUESTION", "").strip():
        found = [env["LOCALAGENT_QUESTION"]]
    if not found:
        raise DemoError('there is no question: make ask Q="What is your name?"')
    return found


def address(env: Mapping[str, str]) -> str:
    """What MODEL_BASE_URL says, without a slash at its end; '' when it is not set.

    Raises DemoError for no address, and for a model that is named without one.
    """
    text = env.get("MODEL_BASE_URL", "").strip().rstrip("/")
    name = env.get("MODEL_NAME", "").strip()
    if name and not text:
        raise DemoError(
            f"MODEL_NAME={one_line(name, 60)} needs MODEL_BASE_URL, the address of the endpoint that serves it "
            "(the models that come with the demo are chosen by DEMO_MODEL)"
        )
    if text and not text.startswith(("http://", "https://")):
        raise DemoError(f"MODEL_BASE_URL={text} is no address; it looks like http://127.0.0.1:11434/v1")
    return text


def check(command: str, env: Mapping[str, str]) -> None:
    """Look at everything that `up` and `ask` read from the environment. Raises DemoError for the first slip."""
    if command == "ask":
        questions([], env)
    ports.choose(env.get("DEMO_PORT"))
    if not address(env):
        model.choose(env.get("DEMO_MODEL"))


def main(command: str) -> int:
    try:
        check(command, os.environ)
    except DemoError as error:
        print(f"localagent: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
