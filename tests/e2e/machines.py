"""A Host and a plugin runtime that are stopped and started apart from each other, as on machines of their own."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from demo import ports
from demo.api import LangBotApi
from demo.langbot import LangBot, base_environment, host_settings, start_host, start_runtime
from demo.processes import Child, Children, wait_until
from tests.e2e.bed import Bed


class Machines:
    """Data of the Host goes to folder/host, that of a runtime to folder/<its name>.

    Everything raises DemoError when a program does not come up.
    """

    def __init__(self, children: Children, folder: Path, settings: Mapping[str, str]) -> None:
        self._children = children
        self._folder = folder
        self._ports = ports.choose()
        self._env = base_environment(secrets.token_urlsafe(48))
        # The same secret each time, so that who is signed in stays so.
        self._host_env = {**self._env, **host_settings(self._ports, secrets.token_urlsafe(48)), **settings}

    def start(self, runtime: str) -> LangBot:
        """Both, with a runtime of this name."""
        started = self._runtime(runtime)
        api, host = self._host()
        return LangBot(api=api, folder=self._folder / "host", host=host, runtime=started)

    def restart_host(self, bed: Bed) -> None:
        self._children.end(bed.langbot.host)
        _, host = self._host()
        bed.langbot = replace(bed.langbot, host=host)

    def change_runtime(self, bed: Bed, runtime: str) -> None:
        """Stop the runtime that serves the Host and start another, which has nothing but what the Host gives it."""
        self._children.end(bed.langbot.runtime)
        wait_until("the Host to miss its runtime", lambda: not bed.langbot.api.connected(), 60)
        bed.langbot = replace(bed.langbot, runtime=self._runtime(runtime))
        wait_until("the Host to find the new runtime", bed.langbot.api.connected, 120)
        bed.langbot.api.wait_for_runner(bed.identity.author, bed.identity.name)

    def _runtime(self, name: str) -> Child:
        return start_runtime(self._children, self._folder / name, self._ports, self._env, self._log(name))

    def _host(self) -> tuple[LangBotApi, Child]:
        return start_host(self._children, self._folder / "host", self._ports, self._host_env, self._log("host"))

    def _log(self, name: str) -> Path:
        return self._folder / "logs" / f"{name}.log"
