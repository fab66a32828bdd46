from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from demo.errors import DemoError
from demo.processes import Children, wait_until

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
