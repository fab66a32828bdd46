"""Ports on loopback: a preferred one where it is free, any free one else, and a clear word when the user insists."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from dataclasses import dataclass

from demo.errors import DemoError

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Ports:
    """The TCP ports of one bring-up, all on loopback."""

    web: int
    control: int
    debug: int
    model: int


def is_free(port: int) -> bool:
    """True when this process could listen on `port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a port in TIME_WAIT counts as free, a port somebody listens on does not.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_ports(count: int) -> list[int]:
    """`count` different ports that were free a moment ago."""
    with ExitStack() as held:
        found = []
        for _ in range(count):
            probe = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            probe.bind((LOOPBACK, 0))
            found.append(int(probe.getsockname()[1]))
    return found


def forced(value: str, variable: str) -> int:
    """The port the user asked for by `variable`. Raises DemoError when it is no port or is in use."""
    if not value.isdecimal() or not 0 < int(value) < 65536:
        raise DemoError(f"{variable}={value} is not a port number (1 to 65535)")
    port = int(value)
    if not is_free(port):
        raise DemoError(f"port {port} ({variable}) is in use; free it, or choose another: {variable}=<port>")
    return port


def choose(web: str | None = None, prefer_web: int | None = None) -> Ports:
    """Ports for one bring-up.

    `web` is what DEMO_PORT says: it must be free. `prefer_web` is taken when it is free. The rest are free ones.
    Raises DemoError when the asked port cannot be had.
    """
    any_web, control, debug, model = free_ports(4)
    if web:
        any_web = forced(web, "DEMO_PORT")
    elif prefer_web is not None and is_free(prefer_web):
        any_web = prefer_web
    return Ports(web=any_web, control=control, debug=debug, model=model)
