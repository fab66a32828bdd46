"""The LangBot of the demo: its environment, its processes, and its refusals in plain words."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from demo import langbot, stage
from demo.api import LangBotApi
from demo.errors import DemoError
from demo.ports import Ports
from demo.processes import Children, wait_until


def test_no_setting_of_another_LangBot_and_no_key_of_the_model_reaches_the_children() -> None:
    inherited = {
        "API__PORT": "1",
        "MODEL_API_KEY": "secret",
        "LANGBOT_BOX_CONTROL_TOKEN": "x",
        "PYTHONPATH": "/elsewhere",
        "MAKEFLAGS": "-j",
        "PIP_INDEX_URL": "https://mirror.example/simple",
        "HOME": "/home/ada",
    }
    env = langbot.base_environment("token", inherited)
    assert set(env) & set(inherited) == {"PIP_INDEX_URL", "HOME"}
    assert "secret" not in env.values()
    assert env["NO_PROXY"] == "127.0.0.1,localhost"


def test_the_host_listens_on_loopback_and_calls_nobody() -> None:
    settings = langbot.host_settings(Ports(web=1, control=2, debug=3, model=4), "jwt")
    assert (settings["API__HOST"], settings["API__PORT"]) == ("127.0.0.1", "1")
    assert settings["SPACE__DISABLE_TELEMETRY"] == settings["SPACE__DISABLE_MODELS_SERVICE"] == "true"


def test_the_host_keeps_its_data_in_the_folder_of_the_bring_up_and_makes_none_in_the_repository() -> None:
    folder = Path("/somewhere/run-1")
    env = langbot.with_data_folder({"HOME": "/home/ada", "LANGBOT_DATA_ROOT": "/elsewhere"}, folder)
    assert env == {"HOME": "/home/ada", "LANGBOT_DATA_ROOT": "/somewhere/run-1/data"}


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(600)
"""


def start(children: Children, code: str, folder: Path, name: str = "program") -> Path:
    log = folder / f"{name}.log"
    children.start(name, [sys.executable, "-c", code], folder, dict(os.environ), log)
    return log


def test_a_program_that_ignores_TERM_and_what_it_started_elsewhere_are_gone(tmp_path: Path) -> None:
    children = Children()
    log = start(children, STUBBORN, tmp_path)
    wait_until("the grandchild", lambda: log.read_text().strip().isdigit(), 30)
    grandchild = int(log.read_text())
    assert psutil.pid_exists(grandchild)
    children.stop(grace=0.2)
    assert not psutil.pid_exists(grandchild) or psutil.Process(grandchild).status() == psutil.STATUS_ZOMBIE


def test_one_program_can_be_stopped_before_the_others_and_does_not_count_as_dead(tmp_path: Path) -> None:
    with Children() as children:
        argv = [sys.executable, "-c", "import time; time.sleep(600)"]
        first, second = [children.start(name, argv, tmp_path, dict(os.environ), tmp_path / name) for name in "ab"]
        children.end(first, grace=2)
        assert first.exit_code is not None and second.exit_code is None
        assert children.dead() == []
    assert second.exit_code is not None


def test_a_program_that_ends_before_it_is_ready_is_reported_with_its_last_words(tmp_path: Path) -> None:
    with Children() as children:
        log = tmp_path / "x.log"
        argv = [sys.executable, "-c", "print('address already in use'); raise SystemExit(3)"]
        child = children.start("LangBot", argv, tmp_path, dict(os.environ), log)
        with pytest.raises(DemoError, match="LangBot ended with exit code 3 before it was ready: address already in"):
            wait_until("LangBot", lambda: False, 30, child)
        assert children.dead() == [child]


def test_a_probe_that_cannot_connect_yet_is_asked_again() -> None:
    answers: Iterator[Exception | bool] = iter([ConnectionRefusedError(), ValueError(), False, True])

    def probe() -> bool:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    wait_until("the server", probe, 30)
    assert next(answers, None) is None


def test_what_is_never_ready_says_how_long_it_was_waited_for() -> None:
    with pytest.raises(DemoError, match="the server was not ready after 0 s"):
        wait_until("the server", lambda: False, 0)


class Refusing(LangBotApi):
    """A LangBot that cannot install a package, in words of its own."""

    def __init__(self, words: str) -> None:
        super().__init__("http://127.0.0.1:9")
        self._words = words

    def install(self, package: Path, seconds: float = 300) -> None:
        raise DemoError(self._words)


def test_requirements_that_LangBot_could_not_fetch_are_told_with_what_to_do() -> None:
    said = "LangBot could not install a.lbpkg: [dependency_prepare_failed]: installer exited with code 1"
    with pytest.raises(DemoError, match=r"exited with code 1\. At every start .* PIP_INDEX_URL") as raised:
        stage._install(Refusing(said), Path("a.lbpkg"))
    assert "\n" not in str(raised.value)


def test_any_other_refusal_stays_in_LangBots_words() -> None:
    with pytest.raises(DemoError, match=r"^invalid manifest$"):
        stage._install(Refusing("invalid manifest"), Path("a.lbpkg"))
