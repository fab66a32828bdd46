"""`make ask` as a stranger runs it, with the scripted model as MODEL_BASE_URL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from demo.processes import wait_until
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


def left_in(state: Path) -> list[str]:
    """Processes whose working folder lies in `state`, and the folders of bring-ups there."""
    processes = [
        f"{process.info['pid']} {process.info['name']}"
        for process in psutil.process_iter(["pid", "name", "cwd"])
        if (process.info["cwd"] or "").startswith(str(state))
    ]
    return processes + [folder.name for folder in state.glob("run-*")]


def test_the_answer_alone_is_on_stdout_and_the_proof_on_stderr(
    scripted: ScriptedModel, plugin_folder: Path, tmp_path: Path
) -> None:
    if plugin_folder != ROOT:
        pytest.skip("E2E_PLUGIN names another plugin than LocalAgent")
    # The first reply answers the demo's own look at the endpoint.
    scripted.script(say("."), say("I am scripted, 100 %."))
    question = 'What\'s $5 & your "name"?'
    done = run(
        ["make", "ask", f"Q={question}"],
        MODEL_BASE_URL=scripted.base_url,
        MODEL_NAME="scripted",
        LOCALAGENT_STATE=str(tmp_path),
        MODEL_API_KEY="a-key-that-stays-secret",
    )
    assert (done.returncode, done.stdout) == (0, "I am scripted, 100 %.\n"), done.stderr
    assert "runner plugin:langbot-team/LocalAgent/default" in done.stderr
    assert "transcript row 2" in done.stderr
    assert "a-key-that-stays-secret" not in done.stderr
    assert scripted.requests[-1].texts[-1] == ("user", question)
    assert scripted.requests[-1].headers["Authorization"] == "Bearer a-key-that-stays-secret"
    assert left_in(tmp_path) == []


def test_without_the_plugin_it_fails_and_prints_no_answer(
    scripted: ScriptedModel, plugin_folder: Path, tmp_path: Path
) -> None:
    scripted.script(say("."))
    python = sys.executable
    done = run(
        [python, "-m", "demo", "--plugin", str(plugin_folder), "ask", "--without-plugin", "Who are you?"],
        MODEL_BASE_URL=scripted.base_url,
        MODEL_NAME="scripted",
        LOCALAGENT_STATE=str(tmp_path),
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "no runner answered" in done.stderr.splitlines()[-1]
    assert len(scripted.requests) == 1
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_halfway_it_takes_everything_down(
    scripted: ScriptedModel, tmp_path: Path, signal_number: signal.Signals
) -> None:
    scripted.script(say("."))
    env = {"MODEL_BASE_URL": scripted.base_url, "MODEL_NAME": "scripted", "LOCALAGENT_STATE": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-m", "demo", "ask", "Who are you?"],
        cwd=ROOT,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        wait_until("LangBot and its runtime", lambda: len(left_in(tmp_path)) > 2, SECONDS)
        running.send_signal(signal_number)
        out, err = running.communicate(timeout=SECONDS)
    assert (running.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "localagent: stopped"
    assert left_in(tmp_path) == []
