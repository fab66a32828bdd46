"""The package that `make package` builds, and the package index that LangBot is told of."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
import yaml

from demo import package, package_index
from demo.errors import DemoError
from tests import oldest
from tests.sdk_build import built_by_the_SDK

ROOT = Path(__file__).resolve().parent.parent.parent
MANIFEST = "metadata: {author: a-team, name: Thing, version: 1.2.3}\n"


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    folder = tmp_path / "plugin"
    for name, text in {
        "manifest.yaml": MANIFEST,
        "main.py": "pass\n",
        "requirements.txt": "",
        "README.md": "# Thing\n",
        "components/runner/default.py": "pass\n",
        "runner/__init__.py": "",
        "tests/test_thing.py": "assert True\n",
        "demo/secret.py": "pass\n",
        "notes.txt": "mine\n",
        "runner/__pycache__/x.pyc": "x",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_only_listed_files_are_packed(plugin: Path, tmp_path: Path) -> None:
    built = package.build(plugin, tmp_path / "dist")
    assert built.name == "a-team-Thing-1.2.3.lbpkg"
    with zipfile.ZipFile(built) as archive:
        assert archive.namelist() == [
            "README.md",
            "components/runner/default.py",
            "main.py",
            "manifest.yaml",
            "requirements.txt",
            "runner/__init__.py",
        ]


def test_the_same_files_give_the_same_bytes_whatever_their_times_and_modes(plugin: Path, tmp_path: Path) -> None:
    first = package.build(plugin, tmp_path / "one").read_bytes()
    os.utime(plugin / "main.py", (time.time() + 5000, time.time() + 5000))
    (plugin / "main.py").chmod(0o755)
    assert package.build(plugin, tmp_path / "two").read_bytes() == first


def test_a_file_of_an_unknown_kind_stops_the_build(plugin: Path, tmp_path: Path) -> None:
    (plugin / "runner" / "weights.gguf").write_bytes(b"GGUF")
    with pytest.raises(DemoError, match=r"runner/weights\.gguf is not of a kind"):
        package.build(plugin, tmp_path)


def test_a_symbolic_link_stops_the_build(plugin: Path, tmp_path: Path) -> None:
    (plugin / "runner" / "passwd.txt").symlink_to("/etc/passwd")
    with pytest.raises(DemoError, match="symbolic link"):
        package.build(plugin, tmp_path)


def test_LangBots_limits_are_kept(plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "MAX_ENTRIES", 5)
    with pytest.raises(DemoError, match="holds 6 files; LangBot takes 5"):
        package.build(plugin, tmp_path)
    monkeypatch.undo()
    (plugin / "runner" / "big.json").write_bytes(b" " * (package.MAX_ENTRY_BYTES + 1))
    with pytest.raises(DemoError, match=r"runner/big\.json has 16777217 bytes"):
        package.build(plugin, tmp_path)


@pytest.mark.parametrize("manifest", ["metadata: [", "metadata: {author: a}", "", "[]"])
def test_a_manifest_without_an_identity_is_named(plugin: Path, tmp_path: Path, manifest: str) -> None:
    (plugin / "manifest.yaml").write_text(manifest)
    with pytest.raises(DemoError, match=r"manifest\.yaml names no author, name and version"):
        package.build(plugin, tmp_path)


def test_our_own_package_holds_the_plugin_and_nothing_of_the_workshop() -> None:
    listed = {path.as_posix() for path in package.files(ROOT)}
    assert {"manifest.yaml", "main.py", "components/runner/default.yaml", "components/runner/default.py"} <= listed
    assert {path.split("/")[0] for path in listed} <= {*package.ROOT_FILES, *package.FOLDERS}
    assert not {"local", "weights", "demo", "bench", "tests"} & set(package.FOLDERS)


def run(code: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_prints_where_the_package_is(plugin: Path) -> None:
    done = run(["-m", "demo.package", str(plugin)])
    assert (done.returncode, done.stdout) == (0, "dist/a-team-Thing-1.2.3.lbpkg\n")
    assert (plugin / "dist" / "a-team-Thing-1.2.3.lbpkg").is_file()


def test_N1_a_folder_for_the_SDKs_own_commands_lies_beside_the_package(plugin: Path) -> None:
    out = plugin / "dist"
    (out / "a-team-Thing-1.2.3").mkdir(parents=True)
    (out / "a-team-Thing-1.2.3" / "old.py").write_text("left by an earlier build")
    folder = package.lay_out(plugin, out)
    laid = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert (folder.name, laid) == ("a-team-Thing-1.2.3", package.files(plugin))


def test_N1_what_the_SDKs_own_command_builds_there_is_what_LangBot_takes(tmp_path: Path) -> None:
    with zipfile.ZipFile(built_by_the_SDK(ROOT, tmp_path)) as archive:
        assert sorted(archive.namelist()) == [path.as_posix() for path in package.files(ROOT)]
        assert yaml.safe_load(archive.read("manifest.yaml"))["metadata"]["name"] == package.identity(ROOT).name
        assert len(archive.namelist()) <= package.MAX_ENTRIES


def test_the_command_says_in_one_line_that_there_is_no_plugin(tmp_path: Path) -> None:
    done = run(["-m", "demo.package", str(tmp_path)])
    assert (done.returncode, done.stdout) == (1, "")
    assert "holds no plugin" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_package_is_built_without_LangBot_and_what_comes_with_it() -> None:
    done = run(
        [
            "-c",
            "import sys, demo.package; print(sorted({'httpx', 'psutil', 'langbot', 'websockets'} & set(sys.modules)))",
        ]
    )
    assert done.stdout == "[]\n"


def test_N1_each_requirement_of_the_plugin_names_a_lowest_version_and_the_major_one_that_is_too_new() -> None:
    for requirement in oldest.allowed():
        assert oldest.oldest(requirement)
        # regex counts by years, so that no version says it breaks.
        assert "<" in str(requirement.specifier) or requirement.name == "regex"


INDEX = "LANGBOT_PLUGIN_PYPI_INDEX_URL"
HOST = "LANGBOT_PLUGIN_PYPI_TRUSTED_HOST"


def nothing(setting: str) -> str:
    return ""


def test_without_any_setting_LangBot_goes_by_its_own_default() -> None:
    assert package_index.variables({"HOME": "/home/ada"}, nothing) == {}


def test_LangBots_own_variables_come_first_then_pips_then_its_files() -> None:
    files = {"index-url": "https://files.example/simple", "trusted-host": "a.example b.example"}
    pip = {"PIP_INDEX_URL": "https://pip.example/simple"}
    own = {INDEX: "https://own.example/simple", HOST: "own.example"}
    assert package_index.variables({}, files.__getitem__) == {INDEX: files["index-url"], HOST: "a.example,b.example"}
    assert package_index.variables(pip, files.__getitem__)[INDEX] == pip["PIP_INDEX_URL"]
    assert package_index.variables({**pip, **own}, files.__getitem__) == own


def test_what_stands_in_pips_files_is_asked_of_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = https://mirror.example/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    assert package_index.variables({})[INDEX] == "https://mirror.example/simple"
