"""One real LangBot with this plugin in it and a scripted model behind it, for a measurement."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from demo import langbot, package, ports
from demo.bootstrap import ROOT
from demo.processes import Children
from tests.e2e.bed import Bed, furnish
from tests.e2e.scripted_model import ScriptedModel


def end_when_asked() -> None:
    """What is asked to end (SIGTERM) takes down what it started."""
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


@contextmanager
def bed(settings: Mapping[str, str] | None = None) -> Iterator[Bed]:
    """LangBot in a folder of its own that goes with it. `settings`: LangBot's, by the names of its environment."""
    folder = tempfile.TemporaryDirectory(prefix="localagent-bench-")
    with folder as name, ScriptedModel() as model, Children() as children:
        place = Path(name)
        bot = langbot.start(children, place, ports.choose(), place / "logs", settings)
        yield furnish(bot, ROOT, package.build(ROOT, place / "dist"), package.identity(ROOT), model)


def second_runner(bed: Bed, plugin: Path) -> str:
    """Install another plugin with a runner beside ours; LangBot's id of that runner."""
    who = package.identity(plugin)
    bed.langbot.api.install(package.build(plugin, bed.langbot.folder / "dist"))
    return bed.langbot.api.wait_for_runner(who.author, who.name)
