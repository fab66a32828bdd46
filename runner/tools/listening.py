"""Which ports something listens on in the sandbox, read from the kernel's own table (S4). Pure.

A banner is a courtesy, often held back in a buffer; the table is not. Only numbers are taken out of the answer.
"""

from __future__ import annotations

import re
from typing import Final

from runner.host.events import Json

ARGUMENTS: Final[dict[str, Json]] = {"command": "cat /proc/net/tcp /proc/net/tcp6", "timeout_sec": 3}
"""For the Host's `exec`: needs no program that an image may lack."""

MOST_PORTS: Final = 20

_TABLE = "local_address"
_LISTENS = re.compile(r"\b\d{1,6}: [0-9A-F]{8,32}:([0-9A-F]{4}) [0-9A-F]{8,32}:[0-9A-F]{4} 0A\b")


def listening_ports(answer: str) -> tuple[int, ...] | None:
    """The ports, ascending, at most 20; None when the answer holds no such table."""
    if _TABLE not in answer:
        return None
    return tuple(sorted({int(port, 16) for port in _LISTENS.findall(answer)})[:MOST_PORTS])
