"""Who speaks, for chats with several people (B4, B5).

The transcript knows actor ids only; names come with each run and travel on in the record of earlier answers (B6).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from runner.conversation.names import one_line
from runner.guards import defang, lines_beginning, quoted
from runner.guards.posing import CLOSING_BRACKETS, OPENING_BRACKETS

_NAME_LIMIT = 60
"""Characters of a speaker's name that reach the model."""

_IN_BRACKETS = lines_beginning(f"[{re.escape(OPENING_BRACKETS)}]")
"""A line of a message that begins with a bracket is shown as quoted, so that nobody speaks in another's name."""

_NO_BRACKETS = str.maketrans(dict.fromkeys(OPENING_BRACKETS, "(") | dict.fromkeys(CLOSING_BRACKETS, ")"))
"""A name cannot look as if its own brackets were closed."""

GROUP_LINE = (
    "Several people take part in this group chat. Each message begins with its sender's name in square brackets."
)
"""Added to the system message in groups only."""


@dataclass(frozen=True, slots=True)
class Speakers:
    """Names by actor id. In a private chat nobody is named: the prompt stays as it would be without groups (S6)."""

    group: bool = False
    names: Mapping[str, str] = field(default_factory=dict)

    def says(self, actor_id: str | None, text: str) -> str:
        """The text as the model reads it: in a group with its sender, and inert, since others wrote it (S7); unchanged
        elsewhere."""
        if not self.group:
            return text
        return defang(f"[{self.name_of(actor_id)}] {quoted(text, _IN_BRACKETS)}")

    def name_of(self, actor_id: str | None) -> str:
        """A short name on one line that cannot close its own brackets; the id where no name is known."""
        name = self.names.get(actor_id or "", "") or actor_id
        return one_line((name or "").translate(_NO_BRACKETS), _NAME_LIMIT) or "unknown sender"

    def knowing(self, more: Mapping[str, str]) -> Speakers:
        """The same chat with more names; what is known already wins (it is newer)."""
        return Speakers(self.group, {**more, **self.names})
