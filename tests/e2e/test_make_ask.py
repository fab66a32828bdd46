"""`make ask` as a stranger runs it, with the scripted model as MODEL_BASE_URL."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.e2e.scripted_model import ScriptedModel, say

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = 600


def run(arguments: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MODEL_", "DEMO_", "MAKE"))}
    return subprocess.run(
        arguments,
        cwd=ROOT,
        env={**kept, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def ours_running() -> list[int]:
    """Processes of a bring-up whose data lies in this repository's .demo folder."""
    found = []
    for process in psutil.process_iter(["pid", "cwd"]):
        if (process.info["cwd"] or "").startswith(str(ROOT / ".demo")):
            found.append(process.info["pid"])
    return found


def test_the_answer_alone_is_on_stdout_and_the_proof_on_stderr(scripted: ScriptedModel, plugin_folder: Path) -> None:
    if plugin_folder != ROOT:
        pytest.skip("E2E_PLUGIN names another plugin than LocalAgent")
    # The first reply answers the demo's own look at the endpoint.
    scripted.script(say("."), say("I am scripted, 100 %."))
    question = 'What\'s $5 & your "name"?'
    done = run(
        ["make", "ask", f"Q={question}"],
        MODEL_BASE_URL=scripted.base_url,
        MODEL_NAME="scripted",
        MODEL_API_KEY="a-key-that-stays-secret",
    )
    assert (done.returncode, done.stdout) == (0, "I am scripted, 100 %.\n"), done.stderr
    assert "runner plugin:langbot-team/LocalAgent/default" in done.stderr
    assert "transcript row 2" in done.stderr
    assert "a-key-that-stays-secret" not in done.stderr
    assert scripted.requests[-1].texts[-1] == ("user", question)
    assert scripted.requests[-1].headers["Authorization"] == "Bearer a-key-that-stays-secret"
    assert ours_running() == []


def test_without_the_plugin_it_fails_and_prints_no_answer(scripted: ScriptedModel, plugin_folder: Path) -> None:
    scripted.script(say("."))
    python = sys.executable
    done = run(
        [python, "-m", "demo", "--plugin", str(plugin_folder), "ask", "--without-plugin", "Who are you?"],
        MODEL_BASE_URL=scripted.base_url,
        MODEL_NAME="scripted",
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "no runner answered" in done.stderr.splitlines()[-1]
    assert len(scripted.requests) == 1
    assert ours_running() == []
