"""Limits of slow tools, made short."""

from __future__ import annotations

import pytest

from runner.tools import execute, jobs


@pytest.fixture
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "SOFT_SECONDS", 0.05)
    monkeypatch.setattr(jobs, "SMALL_SOFT_SECONDS", 0.05)
    monkeypatch.setattr(execute, "LISTENING_SECONDS", 5.0)


@pytest.fixture
def roomy_limits(short_limits: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long enough for a quick tool on any machine."""
    monkeypatch.setattr(jobs, "SOFT_SECONDS", 0.6)
    monkeypatch.setattr(jobs, "SMALL_SOFT_SECONDS", 0.6)
