"""One request for consent as it is kept: the exact calls, who asked, until when (M2). Pure.

Its key in the conversation's state is the hash of all of it. So what is found under a key is what was shown under it,
or it is not believed (M5).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from config.choices import Agree
from runner.host.events import Json
from runner.tools.catalogue import Entry
from runner.tools.prepare import Ready

PREFIX: Final = "runner.consent."
"""How the keys begin."""

SHOWN: Final = "runner.consent-shown"
"""Conversation state: the key of the request that people were shown last. No other can be agreed to."""

SECONDS: Final = 30 * 60
"""How long a request can be agreed to; the Host's cards lapse then too."""

MOST_BYTES: Final = 256 * 1024 - 1024
"""What the Host takes as one value of state, less some room."""


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class HeldCall(_Stored):
    """One call that waits. `values` go to the tool, `arguments` is their text in the history.

    `host_name`, `kind` and `digest` (of its schema) say which tool it was; `name` and `label` what models and people
    call it.
    """

    host_name: str
    kind: str
    name: str
    label: str
    arguments: str
    values: dict[str, JsonValue]
    digest: str


class ConsentRequest(_Stored):
    """What waits for a yes. Times are epoch seconds; `asker` is the id of who may agree, None: nobody is known.

    `who` is the rule that people were told. `words`: a message can agree, not only a button. `sandbox` names the
    sandbox of the run that asked, `skills` those it had activated.
    """

    calls: list[HeldCall]
    asker: str | None
    who: str
    run_id: str
    asked_at: int
    words: bool
    sandbox: str = ""
    skills: list[str] = []

    @property
    def lapses_at(self) -> int:
        return self.asked_at + SECONDS

    @property
    def names(self) -> str:
        """The tools as people know them."""
        return ", ".join(dict.fromkeys(call.label for call in self.calls))

    @property
    def stored(self) -> dict[str, Json]:
        stored: dict[str, Json] = self.model_dump(mode="json")
        return stored

    @property
    def key(self) -> str:
        """Where it is kept: the hash of what it says."""
        return PREFIX + hashlib.sha256(_canonical(self.stored).encode()).hexdigest()[:40]

    @property
    def fits(self) -> bool:
        return len(_canonical(self.stored)) <= MOST_BYTES

    def may_agree(self, actor: str | None, rule: Agree) -> bool:
        """Whether this person may agree, by the rule told and by the one that holds now."""
        if self.who == Agree.ANYONE and rule is Agree.ANYONE:
            return True
        return self.asker is not None and actor == self.asker


def held(ready: Ready) -> HeldCall:
    """A call as it is kept."""
    entry = ready.entry
    return HeldCall(
        host_name=entry.host_name,
        kind=entry.kind.value,
        name=entry.name,
        label=entry.label,
        arguments=ready.call.arguments,
        values=json.loads(json.dumps(ready.values)),
        digest=digest_of(entry),
    )


def digest_of(entry: Entry) -> str:
    """What a tool says of itself; a tool that says something else is not the one that was agreed to."""
    told: Json = [entry.kind.value, entry.host_name, dict(entry.accepts)]
    return hashlib.sha256(_canonical(told).encode()).hexdigest()[:40]


def open_request(state: Mapping[str, object]) -> ConsentRequest | None:
    """The request that people were shown last, if it still waits. Whatever else stands in the state is ignored."""
    key = state.get(SHOWN)
    return read(key, state.get(key)) if isinstance(key, str) else None


def read(key: str, value: object) -> ConsentRequest | None:
    """A stored request; None where it is none, or not what its key stands for. Never raises."""
    try:
        request = ConsentRequest.model_validate(value)
        return request if request.calls and request.key == key else None
    except (ValidationError, ValueError, RecursionError):
        return None


def stale_keys(state: Mapping[str, object], but: str = "") -> tuple[str, ...]:
    """Keys of other requests: they cannot be agreed to any more."""
    return tuple(key for key in state if key.startswith(PREFIX) and key != but)


def _canonical(value: Json) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
