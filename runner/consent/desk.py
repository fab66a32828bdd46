"""Asking for consent in one run, and taking it: the I/O of M2 to M4.

```
calls ─▸ hold ─▸ ask: save ─▸ show ─▸ the run ends: answer, "shown", card
                                        ╎  minutes, restarts
message or press ─▸ hear ─▸ decided: delete the key ─▸ true: the calls, as they were shown
                                                    └▸ anything else: nothing runs
```
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from config.choices import Agree
from config.notices import Notice
from runner.consent.need import Need, cannot_wait, twin_of
from runner.consent.request import (
    SHOWN,
    ConsentRequest,
    HeldCall,
    held,
    open_request,
    stale_keys,
)
from runner.consent.verdict import Heard, Verdict, verdict
from runner.consent.wording import Say, card_of, text_of
from runner.conversation.names import one_line
from runner.host.errors import HostCallFailed
from runner.host.events import CardRequested, Event, StateUpdated
from runner.host.port import Host
from runner.tools.prepare import Ready, Refused
from runner.tools.results import ErrorCode

WAITS: Final = (
    "not run yet: a person has to agree first, and is asked now. What comes of it is told behind a later message. Do "
    "not make this call again meanwhile."
)
"""The result of a call that waits, in this run's request and in the record (B6)."""

OF_THE_EVENT: Final = (
    "not run: a person has to agree to this tool first, and it acts on whoever the event is about, so it cannot wait. "
    "{twin} does the same with ids; where that is not offered, say that the owner can grant it."
)
NOBODY: Final = "not run: a person has to agree to this tool first, and here is nobody who could be asked."
TOO_LARGE: Final = "not run: a person has to agree first, and the arguments are too large to be asked about. Send less."
NOT_SAVED: Final = "not run: a person has to agree first, and the request could not be saved. Say so, and try later."
SAID_MORE: Final = "not run and nobody asked: somebody has said something meanwhile. Call again if it is still wanted."
REFUSED: Final = "[Not agreed to: {tools} was not run and will not be. Answer what was said.]"
GONE: Final = "[The request to run {tools} no longer counts, and nothing was run. If it is still wanted, call again.]"

_TRIES: Final = 2


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run is, as far as consent goes. `asker`: the id of who may agree.

    `asks`: there is a conversation whose state can keep a request. `words`: a message of the same chat can agree;
    `buttons`: the platform shows cards. `sandbox`: names the run's sandbox.
    """

    run_id: str
    asker: str | None
    name: str
    group: bool
    asks: bool
    words: bool
    buttons: bool
    rule: Agree
    sandbox: str
    state: Mapping[str, object]

    @property
    def somebody(self) -> bool:
        """Whether anybody could agree here."""
        known = self.asker is not None or (self.rule is Agree.ANYONE and self.words)
        return self.asks and known and (self.words or self.buttons)


@dataclass(frozen=True, slots=True)
class Decided:
    """What was said of the open request: the calls to run now, or what the model has to be told."""

    calls: Sequence[HeldCall] = ()
    by: str = ""
    sandbox: str = ""
    skills: Sequence[str] = ()
    told: str | None = None


@dataclass(slots=True)
class Counts:
    """For the run's line (C8)."""

    asked: int = 0
    agreed: int = 0
    refused: int = 0


@dataclass(slots=True)
class Desk:
    """Consent in one run. `note` adds a sentence to the visible text; `more_said` tells whether people spoke meanwhile.

    `now`: epoch seconds.
    """

    host: Host
    need: Need
    place: Place
    say: Say
    note: Callable[[str], None]
    warn: Callable[[str], None]
    now: Callable[[], float]
    more_said: Callable[[], Awaitable[bool]] | None = None
    skills: list[str] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    _held: dict[str, Ready] = field(default_factory=dict)
    _open: ConsentRequest | None = None
    _asked: ConsentRequest | None = None
    _shown_at: float = 0.0
    _heard: list[Heard] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._open = open_request(self.place.state)

    @property
    def open(self) -> ConsentRequest | None:
        """The request that waits for an answer."""
        return self._open

    # Asking

    def gate(self, ready: Ready) -> Ready | Refused:
        """The call as it may go on: as it is, held until somebody agrees, or refused."""
        entry = ready.entry
        if not self.need.wants(entry):
            return ready
        if cannot_wait(entry):
            return Refused(ready.call, ErrorCode.LIMIT, OF_THE_EVENT.format(twin=twin_of(entry)), entry)
        if not self.place.somebody:
            return Refused(ready.call, ErrorCode.LIMIT, NOBODY, entry)
        self._held[ready.call.id] = ready
        return Refused(ready.call, ErrorCode.WAITING, WAITS, entry)

    async def ask(self) -> str | None:
        """Ask for what is held, all in one (M4). None: asked; otherwise why not, for the model."""
        calls, self._held = list(self._held.values()), {}
        if self.more_said is not None and await self.more_said():
            return SAID_MORE
        request = self._request(list(map(held, calls)))
        if not request.fits:
            self.note(self.say(Notice.CONSENT_TOO_LARGE_NOTE, tools=request.names))
            return TOO_LARGE
        try:
            await self.host.set_state(request.key, request.stored)
        except HostCallFailed as failure:
            self.warn(f"a request for consent could not be saved: {failure}")
            return NOT_SAVED
        self._open = self._asked = request
        self.counts.asked += len(calls)
        place = self.place
        self.note(text_of(request, self.say, group=place.group, name=place.name, buttons=place.buttons))
        self._shown_at = self.now()
        return None

    @property
    def holds(self) -> bool:
        """Whether calls wait to be asked about."""
        return bool(self._held)

    def last_events(self) -> Iterator[Event]:
        """What follows the answer that shows the request: only then can it be agreed to, and only then is there a card.

        The card comes last: the Host fails a run whose card fails, and by then everything else is done (M2).
        """
        if self._asked is None or self._open is not self._asked:
            return
        yield StateUpdated(SHOWN, self._asked.key)
        if self.place.buttons:
            yield CardRequested(card_of(self._asked, self.say))

    def _request(self, calls: list[HeldCall]) -> ConsentRequest:
        place = self.place
        return ConsentRequest(
            calls=calls,
            asker=place.asker,
            who=place.rule.value,
            run_id=place.run_id,
            asked_at=int(self.now()),
            words=place.words,
            sandbox=place.sandbox,
            skills=list(dict.fromkeys(self.skills)),
        )

    # Being answered

    def hear(self, heard: Heard) -> None:
        """Somebody said something, or pressed a button."""
        self._heard.append(heard)

    async def decided(self) -> Decided | None:
        """What came of the open request since the last look; None: nothing."""
        said, self._heard = self._heard, []
        heard, what = self._decisive(said)
        request = self._open
        if heard is None or request is None:
            return None
        self._open = None
        gone = Decided(told=GONE.format(tools=request.names))
        if what is Verdict.LAPSED:
            await self._forget(request)
            if not heard.agrees:
                return None
            self.note(self.say(Notice.CONSENT_LAPSED))
            return gone
        if what is Verdict.REFUSED:
            self.counts.refused += len(request.calls)
            await self._forget(request)
            return Decided(told=REFUSED.format(tools=request.names))
        return await self._agreed(request, heard) or gone

    def _decisive(self, said: Sequence[Heard]) -> tuple[Heard | None, Verdict]:
        """What decides of what was said at once: a no outweighs a yes beside it, for nothing has run yet."""
        found = [(one, self._verdict(one)) for one in said]
        decisive = [(one, what) for one, what in found if what is not Verdict.NOTHING]
        refused = (each for each in decisive if each[1] is Verdict.REFUSED)
        return next(refused, decisive[0] if decisive else (None, Verdict.NOTHING))

    def _verdict(self, heard: Heard) -> Verdict:
        if self._open is None:
            return Verdict.NOTHING
        return verdict(self._open, heard, self.place.rule, self.now(), self._shown_at)

    async def _agreed(self, request: ConsentRequest, heard: Heard) -> Decided | None:
        """Take the request: only one run can, whatever happens."""
        try:
            taken = await self.host.delete_state(request.key)
        except HostCallFailed as failure:
            self.warn(f"a consent could not be taken, so nothing was run: {failure}")
            self.note(self.say(Notice.CONSENT_UNSURE))
            return None
        if not taken:
            self.note(self.say(Notice.CONSENT_GONE))
            return None
        self.counts.agreed += len(request.calls)
        return Decided(request.calls, one_line(heard.name), request.sandbox, request.skills)

    async def _forget(self, request: ConsentRequest) -> None:
        """Nobody can agree any more: its key goes, or else what says that it was shown."""
        for key in (request.key, SHOWN):
            for _ in range(_TRIES):
                try:
                    await self.host.delete_state(key)
                except HostCallFailed as failure:
                    self.warn(f"a request for consent could not be taken back: {failure}")
                    continue
                return

    async def tidy(self) -> None:
        """After the answer is settled: requests that a newer one replaced are removed. What fails costs room only."""
        if self._asked is None:
            return
        for key in stale_keys(self.place.state, but=self._asked.key):
            try:
                await self.host.delete_state(key)
            except HostCallFailed:
                return
