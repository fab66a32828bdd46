"""LangBot's HTTP API, as far as the demo and the end-to-end tests need it (LangBot 4.11.2)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from demo.errors import DemoError
from demo.package import Identity
from demo.processes import wait_until
from weights.errors import one_line

# JSON of the Host as it comes; it is read into dataclasses in this module and goes no further.
Json = dict[str, Any]
RunnerConfig = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Account:
    user: str
    password: str


@dataclass(frozen=True, slots=True)
class Model:
    """What LangBot has to know of one chat model; `context_length` in tokens, 0 where nobody knows it."""

    name: str
    abilities: tuple[str, ...] = ("func_call", "vision")
    context_length: int = 8192
    extra_args: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PluginInfo:
    author: str
    name: str
    version: str
    enabled: bool
    debug: bool
    status: str


@dataclass(frozen=True, slots=True)
class FormField:
    """One item of a runner's form as LangBot's metadata shows it."""

    name: str
    type: str
    default: object
    has_default: bool
    required: bool


@dataclass(frozen=True, slots=True)
class Session:
    """What a chat connection has to present."""

    base_url: str
    token: str
    workspace: str


class LangBotApi:
    """A client of one LangBot at `base_url` (http://127.0.0.1:<port>).

    Every call raises DemoError with LangBot's own words when it is refused.
    """

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        # trust_env off: a proxy variable must not catch loopback calls. Nothing is kept alive: LangBot closes an idle
        # connection in the moment in which the next call goes out over it, and an upload cannot be sent twice.
        limits = httpx.Limits(max_keepalive_connections=0)
        self._http = httpx.Client(base_url=base_url, timeout=60, trust_env=False, limits=limits)
        self._token = ""
        self._workspace = ""

    def close(self) -> None:
        self._http.close()

    # -- health ---------------------------------------------------------------
    def connected(self) -> bool:
        """True once the Host answers and holds a connection to the plugin runtime."""
        try:
            health = self._http.get("/healthz", timeout=5).json()
        except httpx.HTTPError:
            return False
        return bool(health["resources"]["runtimes"]["plugin_runtime_connected"])

    def idle(self) -> bool:
        """True when no query waits or runs. A Host that is too busy to answer (its first model call is) is not idle."""
        try:
            pool = self._http.get("/healthz", timeout=30).json()["resources"]["query_pool"]
        except httpx.TimeoutException:
            return False
        except httpx.HTTPError as error:
            raise DemoError(f"LangBot stopped answering: {error or type(error).__name__}") from error
        return bool(pool["queued"] == 0 and pool["cached"] == 0)

    # -- account --------------------------------------------------------------
    def sign_in(self, account: Account) -> Session:
        """Create the first account of a fresh LangBot, or log in, and skip the first-run wizard."""
        credentials = {"user": account.user, "password": account.password}
        if not self._call("GET", "/user/init")["initialized"]:
            self._call("POST", "/user/init", credentials)
        self._token = str(self._call("POST", "/user/auth", credentials)["token"])
        self._workspace = str(self._call("GET", "/workspaces")["workspaces"][0]["uuid"])
        self._call("POST", "/system/wizard/completed", {"status": "skipped"})
        return self.session

    @property
    def session(self) -> Session:
        return Session(self.base_url, self._token, self._workspace)

    # -- models ---------------------------------------------------------------
    def add_provider(self, name: str, base_url: str, api_key: str, requester: str = "openai-chat-completions") -> str:
        """The id of a new provider; `base_url` of an OpenAI-compatible one ends in /v1. `requester`: LangBot's name of
        what speaks with it."""
        body = {
            "name": name,
            "requester": requester,
            "base_url": base_url,
            "api_keys": [api_key],
        }
        return str(self._call("POST", "/provider/providers", body)["uuid"])

    def add_model(self, provider: str, model: Model) -> str:
        """The id of a new chat model of `provider`."""
        body = {
            "name": model.name,
            "provider_uuid": provider,
            "abilities": list(model.abilities),
            "context_length": model.context_length or None,
            "extra_args": dict(model.extra_args),
        }
        return str(self._call("POST", "/provider/models/llm", body)["uuid"])

    # -- plugins --------------------------------------------------------------
    def install(self, package: Path, seconds: float = 300) -> None:
        """Upload a .lbpkg through LangBot's own endpoint and wait until it is installed."""
        with package.open("rb") as stream:
            upload = {"file": (package.name, stream, "application/octet-stream")}
            answer = self._call("POST", "/plugins/install/local", files=upload)
        self._finish_task(int(answer["task_id"]), f"install {package.name}", seconds)

    def uninstall(self, author: str, name: str) -> None:
        answer = self._call("DELETE", f"/plugins/{author}/{name}", params={"delete_data": "true"})
        self._finish_task(int(answer["task_id"]), f"uninstall {author}/{name}", 120)

    def plugins(self) -> list[PluginInfo]:
        found = []
        for row in self._call("GET", "/plugins")["plugins"]:
            meta = row["manifest"]["manifest"]["metadata"]
            found.append(
                PluginInfo(
                    author=str(meta["author"]),
                    name=str(meta["name"]),
                    version=str(meta["version"]),
                    enabled=bool(row["enabled"]),
                    debug=bool(row["debug"]),
                    status=str(row.get("status")),
                )
            )
        return found

    def wait_for_runner(self, author: str, name: str, seconds: float = 90) -> str:
        """The id of the plugin's first runner, once LangBot lists it."""
        prefix = f"plugin:{author}/{name}/"
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for runner in self.runners():
                if runner.startswith(prefix):
                    return runner
            time.sleep(0.2)
        raise DemoError(f"LangBot installed {author}/{name} but lists no runner of it after {seconds:.0f} s")

    def wait_for_tool(self, name: str, seconds: float = 60) -> None:
        """Return once LangBot lists the tool. Raises DemoError when it does not."""
        wait_until(f"the tool {name}", lambda: name in self.tools(), seconds)

    def tools(self) -> list[str]:
        """The names of all tools that LangBot can offer to a model."""
        return [str(tool["name"]) for tool in self._call("GET", "/tools")["tools"]]

    def runners(self) -> list[str]:
        """The runner ids that the AI tab of a pipeline offers."""
        stage = next(stage for stage in self._ai_stages() if stage["name"] == "runner")
        item = next(item for item in stage["config"] if item["name"] == "id")
        return [str(option["name"]) for option in item.get("options") or []]

    def form(self, runner_id: str) -> list[FormField]:
        """The form of `runner_id` as the web page gets it. Raises DemoError when LangBot does not know the runner."""
        stage = next((stage for stage in self._ai_stages() if stage["name"] == runner_id), None)
        if stage is None:
            raise DemoError(f"LangBot knows no runner {runner_id}")
        return [
            FormField(
                name=str(item["name"]),
                type=str(item["type"]),
                default=item.get("default"),
                has_default="default" in item,
                required=bool(item.get("required")),
            )
            for item in stage["config"]
        ]

    def _ai_stages(self) -> list[Json]:
        configs = self._call("GET", "/pipelines/_/metadata")["configs"]
        stages: list[Json] = next(config for config in configs if config["name"] == "ai")["stages"]
        return stages

    # -- knowledge ------------------------------------------------------------
    def add_knowledge_base(self, name: str, engine: str) -> str:
        """The id of a new knowledge base; `engine` is `author/name` of the plugin that serves it."""
        return str(self._call("POST", "/knowledge/bases", {"name": name, "knowledge_engine_plugin_id": engine})["uuid"])

    # -- pipelines ------------------------------------------------------------
    def add_pipeline(self, name: str, default: bool = False) -> str:
        body = {"name": name, "description": "", "is_default": default}
        return str(self._call("POST", "/pipelines", body)["uuid"])

    def bind(self, pipeline: str, runner_id: str, config: RunnerConfig) -> None:
        """Store `config` for `runner_id` in the pipeline, word for word, and select the runner."""
        full = self._call("GET", f"/pipelines/{pipeline}")["pipeline"]["config"]
        full["ai"] = {"runner": {"id": runner_id, "expire-time": 0}, "runner_config": {runner_id: config}}
        self._call("PUT", f"/pipelines/{pipeline}", {"config": full})

    def bind_plugins(self, pipeline: str, plugins: Sequence[Identity]) -> None:
        """Give the pipeline these plugins and no others."""
        body = {
            "enable_all_plugins": False,
            "bound_plugins": [{"author": each.author, "name": each.name} for each in plugins],
        }
        self._call("PUT", f"/pipelines/{pipeline}/extensions", body)

    def binding(self, pipeline: str) -> tuple[str, RunnerConfig]:
        """The runner a pipeline selects and the config it stores for it."""
        ai = self._call("GET", f"/pipelines/{pipeline}")["pipeline"]["config"]["ai"]
        runner_id = str(ai["runner"]["id"])
        return runner_id, dict(ai["runner_config"].get(runner_id) or {})

    def default_config(self, runner_id: str, primary: str, fallbacks: Sequence[str] = ()) -> RunnerConfig:
        """The form's defaults with `primary` (and `fallbacks`) in its model field."""
        config: RunnerConfig = {}
        for item in self.form(runner_id):
            if item.type == "model-fallback-selector":
                config[item.name] = {"primary": primary, "fallbacks": list(fallbacks)}
            elif item.has_default:
                config[item.name] = item.default
        return config

    # -- plumbing -------------------------------------------------------------
    def _call(self, method: str, path: str, body: object = None, **extra: Any) -> Json:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            answer = self._http.request(method, f"/api/v1{path}", json=body, headers=headers, **extra)
            data = answer.json()
        except httpx.HTTPError as error:
            raise DemoError(f"LangBot did not answer {method} {path}: {error or type(error).__name__}") from error
        except ValueError as error:
            raise DemoError(f"LangBot answered {method} {path} with no JSON: {one_line(answer.text)}") from error
        if answer.status_code != 200 or data.get("code") != 0:
            raise DemoError(f"LangBot refused {method} {path}: HTTP {answer.status_code}, {one_line(str(data))}")
        payload: Json = data.get("data") or {}
        return payload

    def _finish_task(self, task: int, what: str, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            runtime = self._call("GET", f"/system/tasks/{task}")["runtime"]
            if runtime["done"]:
                if runtime.get("exception"):
                    raise DemoError(f"LangBot could not {what}: {one_line(str(runtime['exception']))}")
                return
            time.sleep(0.2)
        raise DemoError(f"LangBot did not {what} within {seconds:.0f} s")
