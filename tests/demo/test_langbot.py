"""The LangBot of the demo: its environment and processes, its refusals in plain words, its package and its agent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import psutil
import pytest
import yaml

from config.settings import Settings
from demo import langbot, package, package_index, stage
from demo.agent import STRONG_OR_WEAK, WEAK
from demo.api import LangBotApi, RunnerConfig
from demo.errors import DemoError
from demo.first_questions import CHINESE, ENGLISH, Answered, Question, is_good, page
from demo.ports import Ports
from demo.processes import Children, wait_until
from everyday.components.tools.declared import declared
from tests import oldest
from tests.sdk_build import built_by_the_SDK

# The LangBot of the demo: its environment and processes, its refusals in plain words, and the package it is given.

# The LangBot of the demo: its environment, its processes, and its refusals in plain words.


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


# The package that `make package` builds, and the package index that LangBot is told of.

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


# The agent of the demo and the page about its first answers.


@pytest.mark.parametrize(("bound", "profile", "form"), [(WEAK, "small", "guided"), (STRONG_OR_WEAK, "auto", "auto")])
def test_the_form_reads_what_the_demo_binds(bound: RunnerConfig, profile: str, form: str) -> None:
    settings, notes = Settings.read(bound)
    assert (settings.small.profile, settings.small.call_format, notes) == (profile, form, ())
    assert settings.prompt[0]["role"] == "system"


def test_the_questions_name_tools_that_there_are() -> None:
    tools = {tool.name for tool in declared()}
    assert {question.tool for question in (*ENGLISH, *CHINESE)} - {""} <= tools
    assert len(ENGLISH) == len(CHINESE) == 5


def test_a_good_answer_is_right_and_comes_from_the_tool() -> None:
    time, weekday = ENGLISH[1], CHINESE[1]
    now = datetime(2026, 3, 4, 14, 5)
    assert is_good(time, "It is 14:03.", ["current_time"], now)
    assert is_good(time, "It is 2:03 PM.", ["current_time"], now)
    assert not is_good(time, "It is 14:03.", [], now)
    assert not is_good(time, "It is 10:00 AM.", ["current_time"], now)
    assert is_good(weekday, "今天是星期三。", [], now)
    assert not is_good(weekday, "今天是星期二。", [], now)


def test_a_failure_stands_on_the_page_as_what_it_is() -> None:
    asked = Question("What time is it?", "current_time", r"\d:\d\d")
    guessed = Answered(asked, "It is 9:05.", (), 2.0, good=False)
    looked = Answered(asked, "It is 9:05.", [("current_time", "{}")], 2.0, good=True)
    text = page("a-model", [[guessed, looked], [Answered(asked, "", [], 1.0, good=False)]])
    assert "**Good answers: 1 of 3.**" in text
    assert text.count("(not good, ") == 2
    assert "> (no answer)" in text
