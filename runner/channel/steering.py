"""Follow-up messages: what people say while the run works (G1), and what knowledge bases hold for it (E1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Final

from langbot_plugin.api.entities.builtin.runner.run_ledger import AgentRun
from langbot_plugin.api.entities.builtin.runner.steering import SteeringInputItem
from langbot_plugin.api.entities.builtin.runner.transcript import TranscriptItem

from runner.consent.verdict import Heard, heard_in
from runner.conversation.current import NOTHING_SAID, parts_of_input, said_in
from runner.conversation.history import read_row, rows_after
from runner.conversation.speakers import Speakers
from runner.conversation.units import Part, Reference, Text, UserTurn
from runner.host import clock
from runner.host.errors import HostCallFailed
from runner.host.port import STEERING_LIMIT, Host

_LOOK_SECONDS = 5.0
"""How long each look elsewhere may take where a pull was lost: the answer waits, and each pull looks until one did."""
SEARCH_SECONDS: Final = 5.0
"""How long a follow-up may wait for what the knowledge bases hold for it: people have waited for the run already."""

PULL_SECONDS: Final = 1.0
"""So often people are listened to while the bases are searched."""

Search = Callable[[str, float], Coroutine[object, None, Reference | None]]
"""What the bases hold for what somebody said, within so many seconds; never raises over a base."""


@dataclass(frozen=True, slots=True)
class _Said:
    """One follow-up: its parts, and its own words for a search."""

    parts: tuple[Part, ...]
    words: str


@dataclass(slots=True)
class Steering:
    """Pulls follow-ups of one run.

    `search`: asks the knowledge bases; None where there are none. `hear`: is told of each message, where something
    waits for consent (M3).

    `event_id`: of the current message; None where newer messages of the chat belong to other runs (J5). `run_id`: this
    run's own.
    `pulled` counts what came, `unanswered` what came since the last reply, `failed_pulls` what could not be asked for;
    `newest_text` is what was said last. All for the log and the language of notices.
    """

    host: Host
    speakers: Speakers
    event_id: str | None = None
    run_id: str = ""
    search: Search | None = None
    hear: Callable[[Heard], None] | None = None
    pulled: int = 0
    unanswered: int = 0
    failed_pulls: int = 0
    newest_text: str = ""
    _heard: set[str] = field(default_factory=set)
    _recovered: set[str] = field(default_factory=set)
    _doubtful: bool = False
    _kept: list[_Said] = field(default_factory=list)

    async def more_said(self) -> bool:
        """Whether people have said something since the last pull; the next one hands it over."""
        self._kept += await self._said()
        return bool(self._kept)

    async def pull(self) -> UserTurn | None:
        """Everything said since the last pull as one user turn, in the order sent; None when nobody spoke.

        A pull that fails twice is counted and treated as silence: the answer matters more (Q4). Before each message
        stands what the bases hold for it; while they are searched, what else is said joins the turn.
        """
        said, self._kept = [*self._kept, *await self._said()], []
        if not said:
            return None
        if self.search is None:
            return UserTurn(tuple(part for each in said for part in each.parts))
        return UserTurn(await self._informed(said, self.search))

    async def _informed(self, said: list[_Said], search: Search) -> tuple[Part, ...]:
        until = clock.now() + SEARCH_SECONDS
        heard: list[tuple[_Said, asyncio.Task[Reference | None]]] = []
        async with asyncio.TaskGroup() as group:
            while said:
                left = max(0.0, until - clock.now())
                heard += [(each, group.create_task(search(each.words, left))) for each in said]
                said = await self._said_meanwhile([task for _, task in heard])
        found = ((each, task.result()) for each, task in heard)
        return tuple(part for each, known in found for part in (*((known,) if known else ()), *each.parts))

    async def _said_meanwhile(self, searches: Sequence[asyncio.Task[Reference | None]]) -> list[_Said]:
        """What is said before all searches are over, or just then; empty when nobody spoke."""
        while True:
            _, open_ = await asyncio.wait(searches, timeout=PULL_SECONDS)
            if (said := await self._said()) or not open_:
                return said

    async def _said(self) -> list[_Said]:
        """Everything said since the last pull, in the order sent."""
        items, sure = await self._items()
        self._doubtful = self._doubtful or not sure
        self._count(items)  # before anything else is awaited: a run that ends meanwhile names them
        missed = await self._missed() if self._doubtful else ()
        self._count(missed)
        if not items and not missed:
            return []
        self.newest_text = items[-1].input.to_text() if items else missed[-1].content or self.newest_text
        if self.hear is not None:
            self._tell(self.hear, missed, items)
        rows = list(map(self._said_in_row, missed))
        return [*rows, *(_Said(self._parts(item), said_in(item.input)) for item in items)]

    def _tell(
        self, hear: Callable[[Heard], None], missed: Sequence[TranscriptItem], items: Sequence[SteeringInputItem]
    ) -> None:
        """A message that was read from the transcript is no yes: what else it held is not known."""
        for row in missed:
            actor = row.metadata.get("actor_id")
            hear(Heard(None if actor is None else str(actor), "", agrees=False))
        for item in items:
            actor = item.actor.actor_id if item.actor else None
            name = (item.actor.actor_name if item.actor else None) or actor or ""
            hear(heard_in(item.input, actor, name, item.event.event_time))

    def _count(self, messages: Sequence[object]) -> None:
        self.pulled += len(messages)
        self.unanswered += len(messages)

    async def _items(self) -> tuple[Sequence[SteeringInputItem], bool]:
        """What the Host hands over, and whether that is sure to be all."""
        sure = True
        for _ in range(2):
            try:
                items = await self.host.steering()
            except HostCallFailed:
                sure = False
                continue
            self._heard.update(item.event.event_id for item in items)
            return [item for item in items if item.event.event_id not in self._recovered], sure
        self.failed_pulls += 1
        return (), False

    async def _missed(self) -> Sequence[TranscriptItem]:
        """Follow-ups that got lost on their way, oldest first; looked for until the transcript could be read.

        The Host hands out each once, so what is lost with a reply, or is too large for one (a picture of 8 MB), never
        comes again. The transcript has what was said, with words for the pictures.
        """
        if self.event_id is None:
            return ()
        items = await self._newest_rows()
        if all(item.event_id != self.event_id for item in items):
            self.failed_pulls = max(1, self.failed_pulls)  # what the lost reply held nobody can say
            return ()
        newer = rows_after(items, self.event_id)
        known = self._heard | self._recovered
        missed = [item for item in newer if item.role == "user" and item.event_id not in known]
        missed = await self._ours(missed) if missed else []
        self._recovered.update(item.event_id for item in missed)
        self._doubtful = False
        return missed

    async def _newest_rows(self) -> Sequence[TranscriptItem]:
        """The newest of the transcript, newest first; none where it cannot be read."""
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                return (await self.host.history_page(limit=STEERING_LIMIT)).items
        except (HostCallFailed, TimeoutError):
            return ()

    async def _ours(self, missed: Sequence[TranscriptItem]) -> list[TranscriptItem]:
        """Without messages that other runs of the chat are for: a bot may allow several at once."""
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                runs = await self.host.runs()
        except (HostCallFailed, TimeoutError):
            return list(missed)  # one run at a time is what LangBot does unless it is told otherwise
        own = next((run for run in runs if run.run_id == self.run_id), None)
        others = [run for run in runs if run.run_id != self.run_id]
        return [item for item in missed if not any(_took(run, own, item) for run in others)]

    def _said_in_row(self, item: TranscriptItem) -> _Said:
        row = read_row(item)
        if row is None:
            return _Said((Text(NOTHING_SAID),), "")
        return _Said((Text(self.speakers.says(row.actor_id, row.text)),), row.text)

    def answered(self) -> None:
        """The model has replied to everything said so far."""
        self.unanswered = 0

    def _parts(self, item: SteeringInputItem) -> tuple[Part, ...]:
        actor = item.actor
        if actor is not None and actor.actor_id and actor.actor_name:
            self.speakers = Speakers(self.speakers.group, {**self.speakers.names, actor.actor_id: actor.actor_name})
        return parts_of_input(item.input, actor.actor_id if actor else None, self.speakers)


def _took(run: AgentRun, own: AgentRun | None, item: TranscriptItem) -> bool:
    """Whether another run is for a message: it was begun for it, or, as the oldest one at work, it claimed it."""
    if run.event_id == item.event_id:
        return True
    if own is None or run.id is None or own.id is None or run.id > own.id:
        return False
    # A run that LangBot lost in a restart has no end on record.
    ended = run.finished_at if run.finished_at is not None else run.deadline_at
    return ended is None or (ended > (own.started_at or 0) and ended >= (item.created_at or 0))
