"""For all tests: no clock judges them, chance is the same in each run; in CI none is skipped, and elsewhere what was
skipped is said last."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from tests.seeds import EXAMPLES, SEED, USUAL, give_more_examples

# What a machine that is shared takes its time for says nothing about the code: properties are judged by what holds.
# The same examples in each run: a green one means something, and a red one can be had again.
settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=SEED == USUAL
)
settings.load_profile("untimed")

_skipped: dict[str, str] = {}


@pytest.hookimpl(tryfirst=True)  # before the plugin of hypothesis reads it
def pytest_configure(config: pytest.Config) -> None:
    if SEED != USUAL:
        config.option.hypothesis_seed = str(SEED)


def pytest_report_header() -> str:
    return f"seed {SEED} (LOCALAGENT_SEED), {EXAMPLES} x the examples of each property (LOCALAGENT_EXAMPLES)"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if EXAMPLES != 1:
        give_more_examples(items)


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    # A skip is reported as (path, line, "Skipped: reason").
    return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)


def _judge(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    _skipped[report.nodeid] = _reason(report)
    if _in_ci():
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, where nothing may be missing: {_skipped[report.nodeid]}"


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Whom anything has tried to reach over the network in this test; nobody is reached."""
    tried: list[object] = []

    def refuse(*address: object, **_options: object) -> None:
        tried.append(address)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    return tried


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _judge(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _judge(report)
    return report


def pytest_unconfigure(config: pytest.Config) -> None:
    if _skipped and not _in_ci():
        reasons = "; ".join(sorted({reason.removeprefix("Skipped: ") for reason in _skipped.values()}))
        sys.stdout.write(f"{len(_skipped)} skipped: {reasons}\n")
