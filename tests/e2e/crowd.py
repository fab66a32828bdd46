"""Many people who talk to one bot at the same time, each with a word that nobody else knows.

The model of the crowd uses a tool for every message and puts the person's word into everything it says, so whatever of
one conversation gets into another shows: in a request, in a tool's result, or in an answer.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from aiohttp import web

from demo.errors import one_line
from demo.records import Records
from tests.e2e.onebot import Action, Json, OneBot
from tests.e2e.scripted_model import Reply, Request, say
from tests.e2e.toolbox import call, calls

WINDOW = 3_000
"""Tokens: a conversation outgrows it after a dozen messages."""
CONFIG = {
    "context-window-tokens": WINDOW,
    "context-keep-recent-tokens": 700,
    "advanced-settings": True,
    "notice-language": "en_US",
}
ANSWER_SECONDS = 240.0
_WORD = re.compile(r"word-[0-9a-f]{12}")
_SUMMARY = "<conversation_part name="
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
            self.listener(user)
            self.heard[user].append(action.text)
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
    def sound(self) -> bool:
        """Every message was answered once, by its own answer."""
        wrong = (self.lost, self.failed, self.doubled, self.crossed, self.forgotten)
        return self.answered == self.asked and not any(wrong)


class Crowd:
    """`people` talk to `platform`'s bot; `model` answers them (`ScriptedModel.script(otherwise=crowd.model)`)."""

    def __init__(self, platform: CrowdPlatform, talking: Sequence[Person], pause: float = 0.0) -> None:
        self.tally = Tally()
        self._platform = platform
        self._people = talking
        self._pause = pause
        # The endpoint's thread and the test's both count.
        self._lock = threading.Lock()
        self._open: set[int] = set()
        self._users = {person.word: person.user for person in talking}
        platform.listener = self._told

    # -- the model ------------------------------------------------------------
    def model(self, request: Request) -> Reply:
        """Uses the tool once for every message, then answers; summarises when asked for it."""
        words = set(_WORD.findall(json.dumps(request.body)))
        newest = next(text for role, text in reversed(request.texts) if role == "user")
        with self._lock:
            self.tally.requests += 1
            if len(words) != 1:
                self.tally.crossed.append(f"a request holds {sorted(words)}")
        word = min(words)
        if _SUMMARY in newest:
            return self._summary(word)
        number = int(re.findall(rf"{word} message (\d+)\.", newest)[-1])
        self._began(request, word, number)
        if request.texts[-1][0] == "tool":
            return say(f"{word} answer {number}. {_PAGE}", size=80, chunk_delay=self._pause)
        return calls(call("stamp", f"call_{number}", text=f"{word} stamp {number}"))

    def _summary(self, word: str) -> Reply:
        with self._lock:
            self.tally.summaries += 1
        return say(f"Facts and identifiers:\n- They speak of the tide; the word is {word}.", size=200)

    def _began(self, request: Request, word: str, number: int) -> None:
        with self._lock:
            self._open.add(self._users[word])
            self.tally.at_once = max(self.tally.at_once, len(self._open))
            if number > 1 and request.holds(f"{word} answer {number - 1}.") != 1:
                self.tally.forgotten.append(f"answer {number - 1} of {word}")

    def _told(self, user: int) -> None:
        with self._lock:
            self._open.discard(user)

    # -- the people -----------------------------------------------------------
    async def talk(self, first: int, last: int) -> None:
        """Everybody says messages `first` to `last`, each after the answer to the one before."""
        async with asyncio.TaskGroup() as group:
            for person in self._people:
                group.create_task(self._talk(person, first, last))

    async def _talk(self, person: Person, first: int, last: int) -> None:
        for number in range(first, last + 1):
            heard = self._platform.heard[person.user]
            before = len(heard)
            self.tally.asked += 1
            await asyncio.to_thread(self._platform.private, person.says(number), person.user, f"n{person.user}")
            end = time.monotonic() + ANSWER_SECONDS
            while len(heard) == before and time.monotonic() < end:
                await asyncio.sleep(0.05)
            with self._lock:
                self._judge(person, number, heard[before:])

    def _judge(self, person: Person, number: int, texts: Sequence[str]) -> None:
        for text in texts:
            foreign = set(_WORD.findall(text)) - {person.word}
            if foreign:
                self.tally.crossed.append(f"{person.word} was told {sorted(foreign)}")
        if not texts:
            self.tally.lost.append(f"message {number} of {person.word}")
        elif texts[0].startswith(person.hears(number)):
            self.tally.answered += 1
        else:
            self.tally.failed.append(one_line(texts[0], 120))

    def close(self) -> Tally:
        """The tally, with the answers that came twice."""
        for person in self._people:
            told = Counter(re.findall(rf"{person.word} answer \d+\.", "\n".join(self._platform.heard[person.user])))
            self.tally.doubled += [answer for answer, times in told.items() if times > 1]
        return self.tally


def reasons(records: Records, crowd: Sequence[Person]) -> Counter[str]:
    """What LangBot's ledger (in SQLite) says of the runs of these people that were not completed."""
    runs = [run for person in crowd for run in records.runs(person.conversation)]
    return Counter(f"{run.status}: {one_line(run.reason, 120)}" for run in runs if run.status != "completed")
