"""What a newcomer sees when something wanted is wrong or missing: one line on stderr, before anything is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo import endpoint, model, ports, wanted
from demo.errors import DemoError
from demo.ports import LOOPBACK, free_ports
from tests.e2e.scripted_model import Reply, ScriptedModel

# What a newcomer sees when something is wrong: one line on stderr, nothing on stdout, a non-zero exit.

ROOT = Path(__file__).resolve().parent.parent.parent


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    names = ("MODEL_", "DEMO_", "LOCALAGENT_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    return subprocess.run(
        [sys.executable, "-m", "demo", *arguments],
        cwd=ROOT,
        env={**kept, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "env", "words"),
    [
        (["ask"], {}, "there is no question"),
        (["ask", "  "], {"LOCALAGENT_QUESTION": " "}, "there is no question"),
        (["ask", "Hi"], {"DEMO_MODEL": "7b"}, "DEMO_MODEL=7b is unknown"),
        (["ask", "Hi"], {"DEMO_PORT": "http"}, "is not a port number"),
        (["up"], {"MODEL_BASE_URL": f"http://{LOOPBACK}:{free_ports(1)[0]}/v1"}, "cannot reach the model"),
        (["--plugin", "/nowhere", "ask", "Hi"], {}, "holds no plugin"),
    ],
)
def test_a_mistake_is_one_line_and_a_non_zero_exit(arguments: list[str], env: dict[str, str], words: str) -> None:
    done = run(*arguments, **env)
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_in_use_is_one_line_and_a_non_zero_exit() -> None:
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        listener.listen()
        done = run("up", DEMO_PORT=str(listener.getsockname()[1]))
    assert done.returncode == 1
    assert "is in use" in done.stderr
    assert done.stderr.count("\n") == 1


# Slips of a newcomer come to light before anything is installed.


@pytest.mark.parametrize(
    ("command", "env", "words"),
    [
        ("ask", {}, "there is no question"),
        ("ask", {"LOCALAGENT_QUESTION": "Hi", "DEMO_MODEL": "7b"}, "DEMO_MODEL=7b is unknown; choose one of 135m"),
        ("up", {"DEMO_MODEL": "7b"}, "DEMO_MODEL=7b is unknown"),
        ("up", {"DEMO_PORT": "http"}, "DEMO_PORT=http is not a port number"),
        ("up", {"MODEL_BASE_URL": "127.0.0.1:11434"}, "is no address"),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(command: str, env: dict[str, str], words: str) -> None:
    with pytest.raises(DemoError, match=words):
        wanted.check(command, env)


def test_a_port_in_use_is_refused_at_once() -> None:
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        listener.listen()
        with pytest.raises(DemoError, match="is in use"):
            wanted.check("up", {"DEMO_PORT": str(listener.getsockname()[1])})


@pytest.mark.parametrize(
    ("command", "env"),
    [
        ("up", {}),
        ("up", {"DEMO_MODEL": "0.5B"}),
        ("ask", {"LOCALAGENT_QUESTION": "Hi"}),
        # The model of the demo is not asked for where there is another.
        ("up", {"DEMO_MODEL": "7b", "MODEL_BASE_URL": "http://127.0.0.1:11434/v1"}),
    ],
)
def test_what_can_be_done_passes(command: str, env: dict[str, str]) -> None:
    wanted.check(command, env)


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`make` in a clone that has no .venv yet, holding what runs before there is one."""
    shutil.copy(ROOT / "Makefile", folder)
    for package in ("demo", "weights"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    names = ("MODEL_", "DEMO_", "LOCALAGENT_", "MAKE", "MFLAGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    return subprocess.run(
        ["make", *arguments], cwd=folder, env=kept, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ask"], "there is no question: make ask Q="),
        (["demo", "DEMO_MODEL=7b"], "DEMO_MODEL=7b is unknown"),
    ],
)
def test_make_looks_at_what_is_wanted_before_it_installs(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = make(tmp_path, *arguments, f"PYTHON={sys.executable}")
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("target", ["demo", "check", "package"])
def test_make_says_that_the_named_python_does_not_run_or_is_too_old(tmp_path: Path, target: str) -> None:
    old = tmp_path / "python3.8"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    for name in (str(old), "/nowhere/python3"):
        (folder := tmp_path / f"clone-{len(name)}").mkdir()
        done = make(folder, target, f"PYTHON={name}")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(
            f"localagent: PYTHON={name} does not run or is older than Python 3.11; name another"
        )


@pytest.fixture(scope="module")
def served() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


def test_without_an_address_the_demo_brings_its_own_model() -> None:
    assert endpoint.from_environment({}) is None


@pytest.mark.parametrize("address", ["", "  "])
def test_a_model_that_is_named_without_its_address_is_refused_before_anything_is_installed(address: str) -> None:
    env = {"MODEL_NAME": "qwen3:8b", "MODEL_BASE_URL": address, "LOCALAGENT_QUESTION": "Hi"}
    for command in ("up", "ask"):
        with pytest.raises(DemoError, match="MODEL_NAME=qwen3:8b needs MODEL_BASE_URL"):
            wanted.check(command, env)


def test_an_endpoint_that_answers_is_taken_as_it_is(served: ScriptedModel) -> None:
    served.script()
    env = {"MODEL_BASE_URL": served.base_url + "/", "MODEL_NAME": "mine", "MODEL_API_KEY": "k"}
    assert endpoint.from_environment(env) == endpoint.Endpoint(served.base_url, "mine", "k")
    assert [request.model for request in served.requests] == ["mine"]


def test_the_only_model_on_offer_needs_no_name(served: ScriptedModel) -> None:
    served.script()
    found = endpoint.from_environment({"MODEL_BASE_URL": served.base_url})
    assert found is not None
    assert found.name == "scripted"


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_said_to_be_refused(served: ScriptedModel, status: int) -> None:
    served.script(Reply(status=status))
    with pytest.raises(DemoError, match=r"refused the key .*check MODEL_API_KEY"):
        endpoint.from_environment({"MODEL_BASE_URL": served.base_url, "MODEL_NAME": "x"})


def test_a_model_that_fails_is_named_with_its_status(served: ScriptedModel) -> None:
    served.script(Reply(status=404))
    with pytest.raises(DemoError, match=r"the model x at MODEL_BASE_URL=.* does not answer: HTTP 404"):
        endpoint.from_environment({"MODEL_BASE_URL": served.base_url, "MODEL_NAME": "x"})


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:11434", "is no address"),
        ("http://127.0.0.1:{closed}/v1", "cannot reach the model"),
        ("http://[broken", "cannot reach the model"),
    ],
)
def test_a_wrong_address_is_one_clear_line(address: str, words: str) -> None:
    with pytest.raises(DemoError, match=words) as raised:
        (closed,) = free_ports(1)
        endpoint.from_environment({"MODEL_BASE_URL": address.replace("{closed}", str(closed)), "MODEL_NAME": "x"})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("env", [{}, {"MODEL_NAME": "x"}])
def test_an_address_without_its_v1_is_told_so(served: ScriptedModel, env: dict[str, str]) -> None:
    with pytest.raises(DemoError, match=r"often ends in /v1"):
        endpoint.from_environment({"MODEL_BASE_URL": served.base_url.removesuffix("/v1"), **env})


def test_the_model_is_the_one_that_is_named_or_the_default() -> None:
    assert model.choose(None).key == model.DEFAULT
    assert model.choose(" 0.5B ").key == "0.5b"


def test_a_name_that_is_in_no_catalogue_is_one_line() -> None:
    with pytest.raises(DemoError, match=r"DEMO_MODEL=7b is unknown; choose one of 135m, 0\.5b, 1\.5b"):
        model.choose("7b")


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind((ports.LOOPBACK, 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_free_ports_are_different_and_free() -> None:
    found = ports.free_ports(20)
    assert len(set(found)) == 20
    assert all(ports.is_free(port) for port in found)


def test_the_port_the_user_asked_for_is_taken_when_it_is_free() -> None:
    (port,) = ports.free_ports(1)
    assert ports.choose(web=str(port)).web == port


def test_a_port_in_use_is_one_line_that_names_port_and_variable(taken: int) -> None:
    with pytest.raises(DemoError, match=rf"^port {taken} \(DEMO_PORT\) is in use") as raised:
        ports.choose(web=str(taken))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("nonsense", ["0", "65536", "-1", "http", "80 80", "٣٠٠٠x"])
def test_what_is_no_port_is_said_to_be_none(nonsense: str) -> None:
    with pytest.raises(DemoError, match="is not a port number"):
        ports.choose(web=nonsense)


def test_a_preferred_port_in_use_is_replaced_by_a_free_one(taken: int) -> None:
    chosen = ports.choose(prefer_web=taken)
    assert chosen.web != taken
    assert len({chosen.web, chosen.control, chosen.debug, chosen.model}) == 4
