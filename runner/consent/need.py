"""Which calls need consent (M1), and which of those cannot wait for it (M4). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from config.choices import Ask
from config.settings import Consent as Settings
from runner.tools.catalogue import Entry, Kind

_NEVER_ASK: Final = frozenset({(Kind.PLATFORM, "event_reply"), (Kind.SKILL, "activate")})
"""They only answer, or read a skill. The loop's own tools (`Entry.own`) ask as little."""

_OF_THE_EVENT: Final = "event_"
"""How platform tools begin whose target is whoever the current event is about."""


@dataclass(frozen=True, slots=True)
class Need:
    """The binding's rule. A name with `*` stands for every name that fits, whoever's tool it is."""

    ask: Ask
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> Need:
        return cls(settings.ask, settings.names)

    def wants(self, entry: Entry) -> bool:
        """Whether a person has to agree before this tool runs."""
        if entry.own or (entry.kind, entry.host_name) in _NEVER_ASK:
            return False
        if self.ask is Ask.CHANGES:
            return not entry.known_to_read
        return self.ask is Ask.LISTED and any(
            _fits(name, own) for name in self.names for own in (entry.host_name, entry.name)
        )


def cannot_wait(entry: Entry) -> bool:
    """Whether the tool acts on the event of its own run: after a yes that would be somebody else."""
    return entry.kind is Kind.PLATFORM and entry.host_name.startswith(_OF_THE_EVENT)


def twin_of(entry: Entry) -> str:
    """The platform tool that does the same and is told whom it is about."""
    return f"platform_{entry.host_name.removeprefix(_OF_THE_EVENT)}"


def _fits(pattern: str, name: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None
