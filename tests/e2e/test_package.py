"""The package as the SDK's own command built it in the real LangBot (N1), and `make ask` as a stranger runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import yaml

from demo.processes import wait_until
from tests.e2e.bed import Bed
from tests.e2e.scripted_model import ScriptedModel, say

# The package in the real LangBot: as the SDK's own command built it (N1), installed through its endpoint, offered with
# its form, bound word for word.


def test_A1_the_installed_plugin_offers_its_runner(bed: Bed) -> None:
    (plugin,) = [row for row in bed.langbot.api.plugins() if row.name == bed.identity.name]
    assert (plugin.author, plugin.version, plugin.debug) == (bed.identity.author, bed.identity.version, False)
    assert bed.runner_id == f"plugin:{bed.identity.author}/{bed.identity.name}/default"
    assert bed.runner_id in bed.langbot.api.runners()


def test_A3_the_page_gets_the_form_of_the_component_field_by_field(bed: Bed) -> None:
    component = yaml.safe_load((bed.plugin / "components/runner/default.yaml").read_text(encoding="utf-8"))
    declared = [(item["name"], item["type"]) for item in component["spec"]["config"]]
    assert [(item.name, item.type) for item in bed.langbot.api.form(bed.runner_id)] == declared


@pytest.mark.usefixtures("ours")
def test_A3_the_form_holds_the_fields_that_pipelines_bring_along(bed: Bed) -> None:
    defaults = {item.name: item.default for item in bed.langbot.api.form(bed.runner_id)}
    assert defaults["timeout"] == 300
    assert defaults["tool-execution-mode"] == "parallel"
    assert {"model", "prompt", "remove-think", "knowledge-bases", "context-window-tokens"} <= set(defaults)


def test_A4_a_binding_is_stored_word_for_word(bed: Bed) -> None:
    odd = {"model": {"primary": bed.model("scripted"), "fallbacks": ""}, "timeout": "300", "unknown-key": None}
    pipeline = bed.pipeline()
    bed.langbot.api.bind(pipeline, bed.runner_id, odd)
    assert bed.langbot.api.binding(pipeline) == (bed.runner_id, odd)


# `make ask` as a stranger runs it, with the scripted model as MODEL_BASE_URL.

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
