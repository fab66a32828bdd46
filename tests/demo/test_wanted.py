"""Slips of a newcomer come to light before anything is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from demo import wanted
from demo.errors import DemoError
from demo.ports import LOOPBACK

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize(
    ("command", "env", "words"),
    [
        ("ask", {}, "there is no question"),
        ("ask", {"LOCALAGENT_QUESTION": "Hi", "DEMO_MODEL": "7b"}, "DEMO_MODEL=7b is unknown; choose one of 135m"),
        ("up", {"DEMO_MODEL": "7b"}, "DEMO_MODEL=7b is unknown"),
        ("up", {"DEMO_PORT": "http"}, "DEMO_PORT=http is not a port number"),
        ("up", {"MODEL_BASE_URL": "127.0.0.1:11434"}, "is no address"),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(command: str, env: dict[str, str], words: str) -> None:
    with pytest.raises(DemoError, match=words):
        wanted.check(command, env)


def test_a_port_in_use_is_refused_at_once() -> None:
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        listener.listen()
        with pytest.raises(DemoError, match="is in use"):
            wanted.check("up", {"DEMO_PORT": str(listener.getsockname()[1])})


@pytest.mark.parametrize(
    ("command", "env"),
    [
        ("up", {}),
        ("up", {"DEMO_MODEL": "0.5B"}),
        ("ask", {"LOCALAGENT_QUESTION": "Hi"}),
        # The model of the demo is not asked for where there is another.
        ("up", {"DEMO_MODEL": "7b", "MODEL_BASE_URL": "http://127.0.0.1:11434/v1"}),
    ],
)
def test_what_can_be_done_passes(command: str, env: dict[str, str]) -> None:
    wanted.check(command, env)


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`make` in a clone that has no .venv yet, holding what runs before there is one."""
    shutil.copy(ROOT / "Makefile", folder)
    for package in ("demo", "weights"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    names = ("MODEL_", "DEMO_", "LOCALAGENT_", "MAKE", "MFLAGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    return subprocess.run(
        ["make", *arguments], cwd=folder, env=kept, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ask"], "there is no question: make ask Q="),
        (["demo", "DEMO_MODEL=7b"], "DEMO_MODEL=7b is unknown"),
    ],
)
def test_make_looks_at_what_is_wanted_before_it_installs(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = make(tmp_path, *arguments, f"PYTHON={sys.executable}")
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("target", ["demo", "check", "package"])
def test_make_says_that_the_named_python_does_not_run_or_is_too_old(tmp_path: Path, target: str) -> None:
    old = tmp_path / "python3.8"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    for name in (str(old), "/nowhere/python3"):
        (folder := tmp_path / f"clone-{len(name)}").mkdir()
        done = make(folder, target, f"PYTHON={name}")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(
            f"localagent: PYTHON={name} does not run or is older than Python 3.11; name another"
        )
