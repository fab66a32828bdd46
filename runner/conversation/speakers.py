"""Who speaks, for chats with several people (B4, B5).

The transcript knows actor ids only; names come with each run and travel on in the record of earlier answers (B6).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from runner.conversation.cut import head
from runner.conversation.names import one_line
from runner.conversation.readable import without_invisible
from runner.guards import defang, lines_beginning, quoted
from runner.guards.posing import CLOSING_BRACKETS, OPENING_BRACKETS

_NAME_LIMIT = 60
"""Characters of a speaker's name that reach the model."""

_ROUNDS = 4

_IN_BRACKETS = lines_beginning(f"[{re.escape(OPENING_BRACKETS)}]")
"""A line of a message that begins with a bracket is shown as quoted, so that nobody speaks in another's name."""

_NO_BRACKETS = str.maketrans(dict.fromkeys(OPENING_BRACKETS, "(") | dict.fromkeys(CLOSING_BRACKETS, ")"))
"""A name cannot look as if its own brackets were closed."""

GROUP_LINE = (
    "Several people take part in this group chat. Each message begins with its sender's name in square brackets."
)
"""Added to the system message in groups only."""


_NOBODY = "unknown sender"

_ID_CHARACTERS = 24
"""A longer id is told by its digest."""

_ALIKE = str.maketrans("авеікмнорстухѕјαβεικμνορτυχ", "abeikmhopctyxsjabeikuvoptux")
"""Cyrillic and Greek letters for the Latin ones that they look like."""

_ACCENTS = re.compile("[\u0300-\u036f]+")


@dataclass(frozen=True, slots=True)
class Speakers:
    """Names by actor id. In a private chat nobody is named: the prompt stays as it would be without groups (S6).

    Members whose names look the same are told apart by their ids: `Ann (u1)`, `Ann (u7)`.
    """

    group: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    _shown: Mapping[str, str] = field(init=False, repr=False, compare=False)
    _looks: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        shown = _told_apart(self.names) if self.group else {}
        object.__setattr__(self, "_shown", shown)
        object.__setattr__(self, "_looks", frozenset(map(_look, (_NOBODY, *shown.values()))))

    def says(self, actor_id: str | None, text: str) -> str:
        """The text as the model reads it: in a group with its sender, and inert, since others wrote it (S7); unchanged
        elsewhere."""
        if not self.group:
            return text
        return defang(f"[{self.name_of(actor_id)}] {quoted(text, _IN_BRACKETS)}")

    def name_of(self, actor_id: str | None) -> str:
        """A short name on one line that cannot close its own brackets; the id where no name is known."""
        known = self._shown.get(actor_id or "")
        if known is not None:
            return known
        name = _short(actor_id or "")
        return _with_id(name, actor_id or "") if name and _look(name) in self._looks else name or _NOBODY

    def knowing(self, more: Mapping[str, str]) -> Speakers:
        """The same chat with more names; what is known already wins (it is newer)."""
        return Speakers(self.group, {**more, **self.names})


def _told_apart(names: Mapping[str, str]) -> dict[str, str]:
    """The names as they are shown, no two alike; a name may itself look like one that was told apart."""
    names_alone = {actor: _short(name) or _short(actor) or _NOBODY for actor, name in names.items()}
    shown = names_alone
    for _ in range(_ROUNDS):
        looks = Counter([_look(_NOBODY), *map(_look, shown.values())])
        if max(looks.values()) == 1:
            break
        shown = {
            actor: name if looks[_look(name)] == 1 else _with_id(names_alone[actor], actor)
            for actor, name in shown.items()
        }
    return shown


def _short(name: str) -> str:
    return one_line(name.translate(_NO_BRACKETS), _NAME_LIMIT)


def _with_id(name: str, actor_id: str) -> str:
    told = _short(actor_id)
    if len(told) > _ID_CHARACTERS or told != actor_id:
        told = sha256(actor_id.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{head(name, _NAME_LIMIT - len(told) - 3).rstrip()} ({told})"


def _look(name: str) -> str:
    """What two names share that a reader may take for the same."""
    letters = _ACCENTS.sub("", unicodedata.normalize("NFKD", without_invisible(name)).casefold())
    return " ".join(letters.translate(_ALIKE).split())
