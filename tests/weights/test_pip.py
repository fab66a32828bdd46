from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from weights import pip
from weights.errors import StepFailed, Stopped


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("WARNING: Retrying … NewConnectionError('<x>: [Errno -2] Name or service not known')", "no network"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "no space left"),
        ("ERROR: No matching distribution found for langbot==9", "does not have it"),
        ("Collecting x\nERROR: Something never seen before", "ERROR: Something never seen before"),
        ("", "pip said nothing"),
    ],
)
def test_the_cause_of_a_failure_is_named_in_one_line(words: str, sentence: str) -> None:
    assert sentence in pip.cause(words)
    assert "\n" not in pip.cause(words)


def test_a_full_disk_is_not_taken_for_a_network_failure() -> None:
    assert "no space" in pip.cause("Connection broken: OSError(28, 'No space left on device')")


def test_a_pip_that_cannot_reach_an_index_ends_in_one_line_and_leaves_its_words_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_CONFIG_FILE", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    arguments = ["download", "--no-deps", "--index-url", "http://127.0.0.1:9/simple", "six"]
    arguments += ["--dest", str(tmp_path)]
    monkeypatch.setattr(pip, "RETRIES", "1")
    with pytest.raises(StepFailed, match=r"^could not fetch six: no network") as raised:
        pip.run(sys.executable, arguments, tmp_path / "pip.log", "fetch six", show=lambda line: None)
    assert "\n" not in str(raised.value)
    assert "127.0.0.1" in (tmp_path / "pip.log").read_text()


def test_too_little_disk_space_is_said_before_anything_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match=r"not enough disk space to keep the moon: \d+ MiB needed"):
        pip.require_space(tmp_path / "not" / "there", 2**62, "keep the moon")
    pip.require_space(tmp_path, 1, "keep a byte")


def test_S0_a_pip_that_runs_is_ended_when_it_is_stopped(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o700)
    with pytest.raises(Stopped, match="before it could fetch six"):
        pip.run(str(slow), ["download"], tmp_path / "log", "fetch six", lambda line: None, stop)
