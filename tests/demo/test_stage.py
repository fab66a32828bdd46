from __future__ import annotations

from pathlib import Path

import pytest

from demo import stage
from demo.api import LangBotApi
from demo.errors import DemoError


class Refusing(LangBotApi):
    """A LangBot that cannot install a package, in words of its own."""

    def __init__(self, words: str) -> None:
        super().__init__("http://127.0.0.1:9")
        self._words = words

    def install(self, package: Path, seconds: float = 300) -> None:
        raise DemoError(self._words)


def test_requirements_that_LangBot_could_not_fetch_are_told_with_what_to_do() -> None:
    said = "LangBot could not install a.lbpkg: [dependency_prepare_failed]: installer exited with code 1"
    with pytest.raises(DemoError, match=r"exited with code 1\. At every start .* PIP_INDEX_URL") as raised:
        stage._install(Refusing(said), Path("a.lbpkg"))
    assert "\n" not in str(raised.value)


def test_any_other_refusal_stays_in_LangBots_words() -> None:
    with pytest.raises(DemoError, match=r"^invalid manifest$"):
        stage._install(Refusing("invalid manifest"), Path("a.lbpkg"))
