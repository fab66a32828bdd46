from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from demo import ports
from demo.errors import DemoError


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
