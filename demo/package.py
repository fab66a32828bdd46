"""Build the plugin's .lbpkg: an allow-list of files in a zip that is the same, byte for byte, each time it is built.

`python -m demo.package [FOLDER]` builds it into dist/ of the folder, of this repository where none is named. Beside the
package it leaves a folder of the same name with the same files, for the SDK's own commands: `lbp build` and
`lbp publish` pack everything they find, and in the repository that is more than LangBot takes (N1).
"""

from __future__ import annotations

import shutil
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from demo.bootstrap import ROOT
from demo.errors import DemoError

ROOT_FILES = ("manifest.yaml", "main.py", "requirements.txt", "README.md", "LICENSE")
REQUIRED = ("manifest.yaml", "main.py")
FOLDERS = ("assets", "callformats", "components", "config", "readme", "runner")
# What may lie in those folders; anything else stops the build instead of travelling to users unseen.
SUFFIXES = frozenset({".py", ".yaml", ".json", ".md", ".txt", ".svg", ".png", ".webp", ".gz", ".xz", ".sha256"})
NAMES = frozenset({"LICENSE", "py.typed"})
IGNORED = frozenset({"__pycache__", ".DS_Store"})

# The runtime's limits for a package.
MAX_ENTRIES = 512
MAX_ENTRY_BYTES = 16 * 2**20
MAX_TOTAL_BYTES = 64 * 2**20
MAX_MANIFEST_BYTES = 2**20

# The earliest time a zip can hold: no clock takes part in the bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a plugin is, from its manifest."""

    author: str
    name: str
    version: str

    @property
    def label(self) -> str:
        return f"{self.author}-{self.name}-{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.label}.lbpkg"


def identity(plugin: Path) -> Identity:
    """The identity in `plugin`/manifest.yaml. Raises DemoError when there is none."""
    path = plugin / "manifest.yaml"
    try:
        meta = yaml.safe_load(path.read_text(encoding="utf-8"))["metadata"]
        return Identity(str(meta["author"]), str(meta["name"]), str(meta["version"]))
    except FileNotFoundError:
        raise DemoError(f"{plugin} holds no plugin: there is no manifest.yaml") from None
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise DemoError(f"{path} names no author, name and version: {error!r}") from error


def files(plugin: Path) -> list[Path]:
    """What the package holds, relative to `plugin`, sorted.

    Raises DemoError for a missing required file, a symbolic link, or a file of a kind that is not on the list.
    """
    missing = [name for name in REQUIRED if not (plugin / name).is_file()]
    if missing:
        raise DemoError(f"the package lacks {', '.join(missing)} in {plugin}")
    found = [Path(name) for name in ROOT_FILES if (plugin / name).is_file()]
    for folder in FOLDERS:
        found += _walk(plugin, plugin / folder)
    return sorted(found, key=lambda path: path.as_posix())


def build(plugin: Path, out: Path) -> Path:
    """Write `out`/<author>-<name>-<version>.lbpkg and return its path. Raises DemoError when a limit is passed."""
    who = identity(plugin)
    listed = files(plugin)
    _check_limits(plugin, listed)
    out.mkdir(parents=True, exist_ok=True)
    target = out / who.file_name
    partial = target.with_suffix(".partial")
    # Stored, not deflated: no zlib version takes part in the bytes, and no compression ratio has to be watched.
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as package:
        for path in listed:
            entry = zipfile.ZipInfo(path.as_posix(), date_time=_EPOCH)
            entry.external_attr = 0o100644 << 16
            entry.create_system = 3
            package.writestr(entry, (plugin / path).read_bytes())
    partial.replace(target)
    return target


def lay_out(plugin: Path, out: Path) -> Path:
    """Copy what the package holds to `out`/<author>-<name>-<version>/, in place of what was there; returns the folder.

    Raises DemoError like `files`.
    """
    folder = out / identity(plugin).label
    listed = files(plugin)
    if folder.exists():
        shutil.rmtree(folder)
    for path in listed:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(plugin / path, folder / path)
    return folder


def _walk(plugin: Path, folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        return
    for path in folder.rglob("*"):
        relative = path.relative_to(plugin)
        if IGNORED.intersection(relative.parts):
            continue
        if path.is_symlink():
            raise DemoError(f"{relative} is a symbolic link; LangBot refuses packages that hold one")
        if path.is_dir():
            continue
        if path.suffix not in SUFFIXES and path.name not in NAMES:
            raise DemoError(f"{relative} is not of a kind that belongs in the package (see demo/package.py)")
        yield relative


def _check_limits(plugin: Path, listed: list[Path]) -> None:
    sizes = {path: (plugin / path).stat().st_size for path in listed}
    if len(listed) > MAX_ENTRIES:
        raise DemoError(f"the package holds {len(listed)} files; LangBot takes {MAX_ENTRIES}")
    for path, size in sizes.items():
        limit = MAX_MANIFEST_BYTES if path.name == "manifest.yaml" else MAX_ENTRY_BYTES
        if size > limit:
            raise DemoError(f"{path} has {size} bytes; LangBot takes {limit}")
    if sum(sizes.values()) > MAX_TOTAL_BYTES:
        raise DemoError(f"the package holds {sum(sizes.values())} bytes; LangBot takes {MAX_TOTAL_BYTES}")


def main(plugin: Path) -> int:
    try:
        built = build(plugin, plugin / "dist")
        folder = lay_out(plugin, plugin / "dist")
        size = f"{len(files(plugin))} files, {built.stat().st_size // 1024} KiB"
    except (DemoError, OSError) as error:
        print(f"localagent: {error}", file=sys.stderr)
        return 1
    print(f"localagent: {size}; for `lbp build` and `lbp publish`: {folder.relative_to(plugin)}", file=sys.stderr)
    print(built.relative_to(plugin))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT))
