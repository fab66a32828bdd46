"""The real LangBot 4.11.2 and its plugin runtime: two child processes on loopback with a data folder of their own."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from demo import package_index
from demo.api import LangBotApi
from demo.errors import DemoError
from demo.ports import LOOPBACK, Ports
from demo.processes import Child, Children, wait_until

RUNTIME_SECONDS = 60.0
HOST_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class LangBot:
    """A LangBot that is up: its API, and where it keeps its data."""

    api: LangBotApi
    folder: Path
    host: Child
    runtime: Child

    @property
    def database(self) -> Path:
        return self.folder / "data" / "langbot.db"


def base_environment(control_token: str, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
    """What both processes get: the caller's environment, without LangBot's settings and the model's key."""
    source = os.environ if inherited is None else inherited
    env = {
        name: value
        for name, value in source.items()
        if "__" not in name and not name.startswith(("MODEL_", "LOCALAGENT_", "LANGBOT_", "PYTHON", "MAKE", "MFLAGS"))
    }
    programs = Path(sys.executable).parent
    env["PATH"] = f"{programs}{os.pathsep}{env.get('PATH', os.defpath)}"
    env["PYTHONUNBUFFERED"] = "1"
    env["NO_PROXY"] = env["no_proxy"] = f"{LOOPBACK},localhost"
    # litellm would otherwise fetch its price table when it is imported.
    env["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    env["LANGBOT_PLUGIN_RUNTIME_CONTROL_TOKEN"] = control_token
    return env


def host_settings(ports: Ports, jwt_secret: str) -> dict[str, str]:
    """LangBot's settings, as it reads them from the environment: loopback only, nothing fetched, no sandbox."""
    return {
        "API__HOST": LOOPBACK,
        "API__PORT": str(ports.web),
        "API__WEBHOOK_PREFIX": f"http://{LOOPBACK}:{ports.web}",
        "SYSTEM__JWT__SECRET": jwt_secret,
        "SPACE__DISABLE_TELEMETRY": "true",
        "SPACE__DISABLE_MODELS_SERVICE": "true",
        "SPACE__URL": f"http://{LOOPBACK}:9",
        "PLUGIN__ENABLE_MARKETPLACE": "false",
        "PLUGIN__RUNTIME_WS_URL": f"ws://{LOOPBACK}:{ports.control}/control/ws",
        "PLUGIN__DISPLAY_PLUGIN_DEBUG_URL": f"ws://{LOOPBACK}:{ports.debug}/plugin/debug/ws",
        "BOX__ENABLED": "false",
    }


def with_data_folder(env: Mapping[str, str], folder: Path) -> dict[str, str]:
    """`env` with the Host's data in `folder`.

    LangBot takes a folder above its own with a main.py and a pyproject.toml for its source, and this repository is one
    above .venv: left alone it would make a data folder here.
    """
    return {**env, "LANGBOT_DATA_ROOT": str(folder / "data")}


def program(name: str) -> str:
    """The path of a program of this environment. Raises DemoError when it is not installed."""
    path = Path(sys.executable).parent / name
    if not path.is_file():
        raise DemoError(f"{name} is not installed in this Python environment; start it by `make demo` or `make ask`")
    return str(path)


def start(
    children: Children, folder: Path, ports: Ports, logs: Path, settings: Mapping[str, str] | None = None
) -> LangBot:
    """Start runtime and Host in `folder` (their data goes to folder/data) and wait until both are connected.

    `settings` are further variables for the Host, above those of `host_settings`.
    Raises DemoError when one of them ends, or is not ready in time.
    """
    env = base_environment(secrets.token_urlsafe(48))
    # The runtime first: the Host's pauses between attempts to connect grow to a minute.
    runtime = start_runtime(children, folder, ports, env, logs / "runtime.log")
    settings = {**host_settings(ports, secrets.token_urlsafe(48)), **(settings or {})}
    api, host = start_host(children, folder, ports, {**env, **settings}, logs / "langbot.log")
    return LangBot(api=api, folder=folder, host=host, runtime=runtime)


def start_runtime(children: Children, folder: Path, ports: Ports, env: Mapping[str, str], log: Path) -> Child:
    """Start a plugin runtime in `folder` and wait until it listens. Raises DemoError when it does not."""
    folder.mkdir(parents=True, exist_ok=True)
    argv = [program("lbp"), "rt", "--ws-control-port", str(ports.control), "--ws-debug-port", str(ports.debug)]
    env = {**env, **package_index.variables(os.environ)}
    runtime = children.start("plugin runtime", argv, folder, env, log)
    wait_until("the plugin runtime", lambda: _runtime_lives(ports.control), RUNTIME_SECONDS, runtime)
    return runtime


def start_host(
    children: Children, folder: Path, ports: Ports, env: Mapping[str, str], log: Path
) -> tuple[LangBotApi, Child]:
    """Start the Host in `folder` and wait until it is connected to the plugin runtime.

    `env` holds its settings and the control token of its runtime. Raises DemoError when it is late or ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # Without the flag, a Host outside a container would start a runtime of its own.
    argv = [program("langbot"), "--standalone-runtime"]
    host = children.start("LangBot", argv, folder, with_data_folder(env, folder), log)
    api = LangBotApi(f"http://{LOOPBACK}:{ports.web}")
    wait_until("LangBot", api.connected, HOST_SECONDS, host)
    return api, host


def _runtime_lives(port: int) -> bool:
    try:
        answer = httpx.get(f"http://{LOOPBACK}:{port}/healthz", timeout=2, trust_env=False)
    except httpx.HTTPError:
        return False
    return bool(answer.json()["live"])
