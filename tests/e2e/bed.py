"""One real LangBot with the plugin under test in it, and what a test does with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from demo.api import Account, Model
from demo.chat import Chat
from demo.langbot import LangBot
from demo.package import Identity
from demo.ports import free_ports
from demo.processes import wait_until
from demo.records import Records
from tests.e2e.scripted_model import ScriptedModel


@dataclass(slots=True)
class Bed:
    """`model_ids` maps the name of a model to LangBot's id of it."""

    langbot: LangBot
    account: Account
    plugin: Path
    identity: Identity
    runner_id: str
    scripted: ScriptedModel
    provider: str
    dead_provider: str
    model_ids: dict[str, str] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=lambda: count(1))

    @property
    def records(self) -> Records:
        return Records(self.langbot.database)

    def model(self, name: str, abilities: Sequence[str] = ("func_call", "vision"), up: bool = True) -> str:
        """LangBot's id of a model served by the scripted endpoint, or (`up` False) by a port where nobody listens."""
        if name not in self.model_ids:
            provider = self.provider if up else self.dead_provider
            self.model_ids[name] = self.langbot.api.add_model(provider, Model(name, tuple(abilities)))
        return self.model_ids[name]

    def pipeline(
        self,
        primary: str | None = None,
        fallbacks: Sequence[str] = (),
        config: Mapping[str, object] | None = None,
        reasoning: Mapping[str, str] | None = None,
    ) -> str:
        """A new pipeline bound to the plugin's runner: the form's defaults, these models, and `config` on top."""
        api = self.langbot.api
        bound = api.default_config(self.runner_id, primary or self.model("scripted"), fallbacks)
        if reasoning:
            bound["model"]["reasoning"] = dict(reasoning)
        pipeline = api.add_pipeline(f"test {next(self._numbers)}")
        api.bind(pipeline, self.runner_id, {**bound, **(config or {})})
        return pipeline

    def wait_for_row(self, conversation_id: str, text: str) -> None:
        """Return once the transcript holds `text` as a message of its own."""
        wait_until(
            f"the transcript row {text!r}",
            lambda: any(row.text == text for row in self.records.transcript(conversation_id)),
            seconds=60,
        )

    def chat(self, pipeline: str) -> Chat:
        return Chat(self.langbot.api, pipeline)


def furnish(langbot: LangBot, plugin: Path, built: Path, identity: Identity, scripted: ScriptedModel) -> Bed:
    """Sign in, add the model providers, install the package through LangBot's endpoint."""
    api = langbot.api
    account = Account("tester@example.com", "not-a-secret-1")
    api.sign_in(account)
    provider = api.add_provider("scripted", scripted.base_url, "scripted-key")
    dead = api.add_provider("down", f"http://127.0.0.1:{free_ports(1)[0]}/v1", "scripted-key")
    api.install(built)
    runner_id = api.wait_for_runner(identity.author, identity.name)
    return Bed(langbot, account, plugin, identity, runner_id, scripted, provider, dead)
