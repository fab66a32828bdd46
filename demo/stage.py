"""Everything of one bring-up, in order: model, plugin runtime, LangBot, plugin, pipeline."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from demo import agent, endpoint, langbot, model, package, ports
from demo.api import Account, LangBotApi, Model, RunnerConfig
from demo.bootstrap import ROOT
from demo.errors import DemoError
from demo.langbot import LangBot
from demo.processes import Child, Children

STATE = Path(os.environ.get("LOCALAGENT_STATE") or ROOT / ".demo")
USER = "demo@example.com"
PREFERRED_PORT = 5300


@dataclass(frozen=True, slots=True)
class Stage:
    """A LangBot with the plugin in it and a pipeline bound to it."""

    langbot: LangBot
    account: Account
    identity: package.Identity
    runner_id: str
    pipeline: str
    model_name: str
    children: Children

    def dead(self) -> list[Child]:
        return self.children.dead()


@contextmanager
def bring_up(
    plugin: Path, say: Callable[[str], None], env: Mapping[str, str], prefer_port: int | None = None
) -> Iterator[Stage]:
    """Bring everything up, yield it, and take everything down, files included; logs stay in .demo/logs.

    Raises DemoError with one line for whatever step fails.
    """
    begin = time.monotonic()
    # Looked at first: what the user can mend at once should not come after minutes of waiting.
    chosen = ports.choose(env.get("DEMO_PORT"), prefer_port)
    theirs = endpoint.from_environment(env)
    as_bound = agent.STRONG_OR_WEAK if theirs else agent.WEAK
    gguf = None if theirs else model.choose(env.get("DEMO_MODEL"))
    built = package.build(plugin, STATE / "package" if plugin != ROOT else ROOT / "dist")
    tools = package.build(agent.TOOLS, STATE / "package")
    folder = STATE / f"run-{os.getpid()}"
    logs = folder / "logs"
    try:
        with Children() as children:
            if theirs is None:
                assert gguf is not None
                theirs = endpoint.serve_gguf(children, gguf, chosen.model, logs, say)
            say("starting LangBot (half a minute)")
            bot = langbot.start(children, folder, chosen, logs)
            api = bot.api
            account = Account(USER, secrets.token_urlsafe(9))
            api.sign_in(account)
            say(f"installing {built.name} and {tools.name} through LangBot")
            for each in (built, tools):
                _install(api, each)
            who = package.identity(plugin)
            runner_id = api.wait_for_runner(who.author, who.name)
            pipeline = _furnish(api, who, runner_id, theirs, as_bound)
            stage = Stage(bot, account, who, runner_id, pipeline, theirs.name, children)
            say(f"ready after {time.monotonic() - begin:.0f} s")
            yield stage
    finally:
        _keep_logs(logs)
        shutil.rmtree(folder, ignore_errors=True)


def _furnish(
    api: LangBotApi, who: package.Identity, runner_id: str, answering: endpoint.Endpoint, as_bound: RunnerConfig
) -> str:
    """The id of a pipeline in which the runner answers with this model and the demo's tools."""
    provider = api.add_provider("demo", answering.base_url, answering.api_key)
    described = Model(answering.name, abilities=("func_call",), context_length=answering.context_tokens)
    model_id = api.add_model(provider, described)
    tools = package.identity(agent.TOOLS)
    api.wait_for_tool(agent.ONE_OF_THEM)
    pipeline = api.add_pipeline("LocalAgent demo", default=True)
    api.bind_plugins(pipeline, [who, tools])
    config = api.default_config(runner_id, model_id)
    wanted = {**as_bound, **({agent.WINDOW: answering.context_tokens} if answering.context_tokens else {})}
    api.bind(pipeline, runner_id, {**config, **{name: value for name, value in wanted.items() if name in config}})
    return pipeline


def _install(api: LangBotApi, built: Path) -> None:
    try:
        api.install(built)
    except DemoError as error:
        if "dependency" not in str(error):
            raise
        # LangBot keeps pip's words to itself, and this is what it means nearly every time.
        raise DemoError(
            f"{error}. At every start LangBot fetches the plugin's requirements (6 MB) from pypi.org or the index that "
            "PIP_INDEX_URL names: is it within reach?"
        ) from error


def _keep_logs(logs: Path) -> None:
    """Keep the logs of the latest bring-up for whoever wants to know why it failed."""
    if logs.is_dir():
        kept = STATE / "logs"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(logs, kept, dirs_exist_ok=True)
