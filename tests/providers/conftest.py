"""These tests speak to loopback alone."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

# What these hold of a chat is asserted in them: a failure shows the values.
pytest.register_assert_rewrite("tests.providers.situations", "tests.providers.situations", "tests.runs.scenes")

_LOOPBACK = ("127.0.0.1", "::1", "localhost", None)


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refuses every other name at once, and fails the test in which somebody asked for one."""
    look_up = socket.getaddrinfo
    asked: list[object] = []

    def getaddrinfo(host: Any, *more: Any, **options: Any) -> Any:
        if host in _LOOPBACK:
            return look_up(host, *more, **options)
        asked.append(host)
        raise OSError(f"no network in this test: {host}")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield
    assert asked == []
