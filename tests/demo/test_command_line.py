"""What a newcomer sees when something is wrong: one line on stderr, nothing on stdout, a non-zero exit."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from demo.ports import LOOPBACK, free_ports

ROOT = Path(__file__).resolve().parent.parent.parent


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    names = ("MODEL_", "DEMO_", "LOCALAGENT_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    return subprocess.run(
        [sys.executable, "-m", "demo", *arguments],
        cwd=ROOT,
        env={**kept, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "env", "words"),
    [
        (["ask"], {}, "there is no question"),
        (["ask", "  "], {"LOCALAGENT_QUESTION": " "}, "there is no question"),
        (["ask", "Hi"], {"DEMO_MODEL": "7b"}, "DEMO_MODEL=7b is unknown"),
        (["ask", "Hi"], {"DEMO_PORT": "http"}, "is not a port number"),
        (["up"], {"MODEL_BASE_URL": f"http://{LOOPBACK}:{free_ports(1)[0]}/v1"}, "cannot reach the model"),
        (["--plugin", "/nowhere", "ask", "Hi"], {}, "holds no plugin"),
    ],
)
def test_a_mistake_is_one_line_and_a_non_zero_exit(arguments: list[str], env: dict[str, str], words: str) -> None:
    done = run(*arguments, **env)
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_in_use_is_one_line_and_a_non_zero_exit() -> None:
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        listener.listen()
        done = run("up", DEMO_PORT=str(listener.getsockname()[1]))
    assert done.returncode == 1
    assert "is in use" in done.stderr
    assert done.stderr.count("\n") == 1
