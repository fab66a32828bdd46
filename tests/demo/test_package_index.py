from __future__ import annotations

import os
from pathlib import Path

import pytest

from demo import package_index

INDEX = "LANGBOT_PLUGIN_PYPI_INDEX_URL"
HOST = "LANGBOT_PLUGIN_PYPI_TRUSTED_HOST"


def nothing(setting: str) -> str:
    return ""


def test_without_any_setting_LangBot_goes_by_its_own_default() -> None:
    assert package_index.variables({"HOME": "/home/ada"}, nothing) == {}


def test_LangBots_own_variables_come_first_then_pips_then_its_files() -> None:
    files = {"index-url": "https://files.example/simple", "trusted-host": "a.example b.example"}
    pip = {"PIP_INDEX_URL": "https://pip.example/simple"}
    own = {INDEX: "https://own.example/simple", HOST: "own.example"}
    assert package_index.variables({}, files.__getitem__) == {INDEX: files["index-url"], HOST: "a.example,b.example"}
    assert package_index.variables(pip, files.__getitem__)[INDEX] == pip["PIP_INDEX_URL"]
    assert package_index.variables({**pip, **own}, files.__getitem__) == own


def test_what_stands_in_pips_files_is_asked_of_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = https://mirror.example/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    assert package_index.variables({})[INDEX] == "https://mirror.example/simple"
