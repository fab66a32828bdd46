"""Many people who talk to one bot at the same time, each with a word that nobody else knows.

The model of the crowd uses a tool for every message and puts the person's word into everything it says, so whatever of
one conversation gets into another shows: in a request, in a tool's result, or in an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from aiohttp import web

from tests.e2e.onebot import Action, Json, OneBot
from tests.e2e.scripted_model import Reply, Request, say
from tests.e2e.toolbox import call, calls
from weights.errors import one_line

CONFIG = {
    # Tokens: a conversation outgrows this after three or four messages.
    "context-window-tokens": 1_400,
    "context-keep-recent-tokens": 300,
    "advanced-settings": True,
    "notice-language": "en_US",
}
ROOM: Final = {
    "SYSTEM__BLOCKING_EXECUTOR__MAX_WORKERS": "64",
    "SYSTEM__BLOCKING_EXECUTOR__MAX_INFLIGHT_PER_SCOPE": "32",
}
"""Settings of LangBot for many messages at once.

As it comes, it does four jobs of a workspace in threads at a time (its word filters, the frames of the web chat) and
refuses the next one, and with it the message: BlockingWorkCapacityError.
"""
PATIENCE = 30.0
"""Seconds between looks at whether LangBot still has work: only a message that it has put aside counts as lost."""
_WORD = re.compile(r"word-[0-9a-f]{12}")
_SAID = re.compile(r"(word-[0-9a-f]{12}) message (\d+)\.")
_SUMMARY = "<conversation_part name="
_BEGUN = re.compile(r"begun as (summary-\d+)")
_PAGE = "The tide came in over the flats, and the birds went up and settled again further along the shore. " * 3
_users = count(70_001)


@dataclass(frozen=True, slots=True)
class Person:
    """`user` is the platform's number of the account; nobody has the same twice."""

    user: int
    word: str

    @property
    def conversation(self) -> str:
        """LangBot's id of the private conversation."""
        return f"person_{self.user}"

    def says(self, number: int) -> str:
        return f"{self.word} message {number}. {_PAGE}"

    def hears(self, number: int) -> str:
        """How the right answer begins."""
        return f"{self.word} answer {number}."


def people(number: int) -> list[Person]:
    return [Person(next(_users), f"word-{secrets.token_hex(6)}") for _ in range(number)]


class CrowdPlatform(OneBot):
    """A platform that keeps what each account was told, and says so to `listener` before LangBot goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: defaultdict[int, list[str]] = defaultdict(list)
        self.listener: Callable[[int], None] = lambda user: None

    async def _answer(self, socket: web.WebSocketResponse, frame: Json) -> None:
        action = Action(str(frame["action"]), dict(frame.get("params") or {}))
        if action.name.startswith("send_"):
            user = int(action.params["user_id"])
            self.heard[user].append(action.text)
            self.listener(user)
        await super()._answer(socket, frame)


@dataclass(slots=True)
class Tally:
    """What became of a crowd's messages. `failed` holds what people were told instead of their answer."""

    asked: int = 0
    answered: int = 0
    lost: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    crossed: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    requests: int = 0
    summaries: int = 0
    at_once: int = 0

    @property
    def mixed_up(self) -> list[str]:
        """What must not happen whatever fails: texts of others, answers twice, and what a request should hold."""
        return [*self.crossed, *self.doubled, *self.forgotten]

    @property
    def sound(self) -> bool:
        """Every message was answered once, by its own answer."""
        return self.answered == self.asked and not (self.lost or self.failed or self.mixed_up)


class Crowd:
    """People who talk to the bot of `platform`, and the model that answers them.

    `ScriptedModel.script(otherwise=crowd.model)` puts it behind the endpoint; `idle` says whether LangBot has no work.
    """

    def __init__(self, platform: CrowdPlatform, talking: Sequence[Person], idle: Callable[[], bool]) -> None:
        self.tally = Tally()
        self._idle = idle
        self._platform = platform
        self._people = talking
        # The endpoint's thread and the test's both count.
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop
        self._open: set[int] = set()
        self._summaries: dict[str, str] = {}
        self._heard: dict[str, int] = {}
        self.held = 0
        self._users = {person.word: person.user for person in talking}
        self._news = {person.user: asyncio.Event() for person in talking}

    # -- the model ------------------------------------------------------------
    def model(self, request: Request) -> Reply:
        """Uses the tool once for every message, then answers; summarises when asked for it."""
        words = set(_WORD.findall(json.dumps(request.body)))
        newest = next(text for role, text in reversed(request.texts) if role == "user")
        with self._lock:
            self.tally.requests += 1
            if len(words) != 1:
                self.tally.crossed.append(f"a request holds {sorted(words)}")
        if _SUMMARY in newest:
            return self._summary(request, min(words))
        word, said = _SAID.findall(newest)[-1]
        number = int(said)
        self._began(request, word, number)
        if request.texts[-1][0] == "tool":
            return say(f"{word} answer {number}. {_PAGE}", size=80)
        return calls(call("stamp", f"call_{number}", text=f"{word} stamp {number}"))

    def holding(self, request: Request) -> Reply:
        """A model that takes the request and never answers; `held` counts those."""
        self.held += 1
        return Reply(hang=True)

    def _summary(self, request: Request, word: str) -> Reply:
        """A summary says which one it goes back to, so a checkpoint that got lost shows."""
        with self._lock:
            self.tally.summaries += 1
            begun = _BEGUN.findall(json.dumps(request.body)) or [f"summary-{self.tally.summaries}"]
        fact = f"They speak of the tide; the word is {word}; begun as {begun[0]}."
        return say(f"Facts and identifiers:\n- {fact}", size=200)

    def _began(self, request: Request, word: str, number: int) -> None:
        with self._lock:
            self._open.add(self._users[word])
            self.tally.at_once = max(self.tally.at_once, len(self._open))
            begun = _BEGUN.findall(json.dumps(request.body))
            heard = self._heard.get(word)
            if heard is not None and not begun and request.holds(f"{word} answer {heard}.") != 1:
                self.tally.forgotten.append(f"answer {heard} of {word}")
            for name in begun:
                if self._summaries.setdefault(word, name) != name:
                    self.tally.forgotten.append(f"{self._summaries[word]} of {word}")

    def _told(self, user: int) -> None:
        with self._lock:
            self._open.discard(user)
        self._loop.call_soon_threadsafe(self._news[user].set)

    # -- the people -----------------------------------------------------------
    async def talk(self, first: int, last: int) -> None:
        """Everybody says messages `first` to `last`, each after the answer to the one before."""
        self._loop = asyncio.get_running_loop()
        self._platform.listener = self._told
        async with asyncio.TaskGroup() as group:
            for person in self._people:
                group.create_task(self._talk(person, first, last))

    async def _talk(self, person: Person, first: int, last: int) -> None:
        for number in range(first, last + 1):
            heard = self._platform.heard[person.user]
            before = len(heard)
            self.tally.asked += 1
            self._news[person.user].clear()
            await asyncio.to_thread(self._platform.private, person.says(number), person.user, f"n{person.user}")
            await self._answered(self._news[person.user])
            with self._lock:
                self.judge(person, number, heard[before:])

    async def _answered(self, news: asyncio.Event) -> None:
        """Returns with the answer, or when LangBot has nothing left to do."""
        while not news.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await news.wait()
            if not news.is_set() and await asyncio.to_thread(self._idle):
                return

    def judge(self, person: Person, number: int, texts: Sequence[str]) -> None:
        """Counts what a person was told after message `number`."""
        for text in texts:
            foreign = set(_WORD.findall(text)) - {person.word}
            if foreign:
                self.tally.crossed.append(f"{person.word} was told {sorted(foreign)}")
        if not texts:
            self.tally.lost.append(f"message {number} of {person.word}")
        elif texts[0].startswith(person.hears(number)):
            self.tally.answered += 1
            self._heard[person.word] = number
        else:
            self.tally.failed.append(one_line(texts[0], 120))

    def close(self) -> Tally:
        """The tally, with the answers that came twice."""
        for person in self._people:
            told = Counter(re.findall(rf"{person.word} answer \d+\.", "\n".join(self._platform.heard[person.user])))
            self.tally.doubled += [answer for answer, times in told.items() if times > 1]
        return self.tally
