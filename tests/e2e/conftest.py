"""The real LangBot, once a session: `bed` for every test, with the plugin folder of E2E_PLUGIN (default: this one)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo import langbot, package, ports
from demo.processes import Children
from tests.e2e.bed import Bed, furnish
from tests.e2e.scripted_model import ScriptedModel
from tests.e2e.served import Doors
from tests.e2e.telegram import Telegram
from tests.e2e.toolbox import plugin_installed
from tests.sdk_build import built_by_the_SDK

ROOT = Path(__file__).resolve().parent.parent.parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def plugin_folder() -> Path:
    return Path(os.environ.get("E2E_PLUGIN", ROOT)).resolve()


@pytest.fixture(scope="session")
def scripted() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture(scope="session")
def telegram(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Telegram]:
    with Telegram(tmp_path_factory.mktemp("telegram")) as platform:
        yield platform


@pytest.fixture(scope="session")
def bed(
    plugin_folder: Path, scripted: ScriptedModel, telegram: Telegram, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bed]:
    folder = tmp_path_factory.mktemp("langbot")
    built = built_by_the_SDK(plugin_folder, folder)
    with Children() as children:
        bot = langbot.start(children, folder, ports.choose(), folder / "logs", telegram.variables)
        yield furnish(bot, plugin_folder, built, package.identity(plugin_folder), scripted)
        ended = [child.name for child in children.dead()]
        assert not ended, f"ended during the tests: {ended}; logs in {folder / 'logs'}"


@pytest.fixture
def model(bed: Bed) -> ScriptedModel:
    """The scripted model with an empty page."""
    bed.scripted.script()
    return bed.scripted


@pytest.fixture(scope="module")
def tools(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The toolbox, for the tests of a module."""
    with plugin_installed(bed, tmp_path_factory.mktemp("tools")):
        yield


@pytest.fixture
def doors() -> Iterator[Doors]:
    with Doors() as opened:
        yield opened


@pytest.fixture
def ours(plugin_folder: Path) -> None:
    """For tests of what only LocalAgent promises, not the pass-through yardstick."""
    if plugin_folder != ROOT:
        pytest.skip("E2E_PLUGIN names another plugin than LocalAgent")
