"""The Runner of this plugin on the test host, and what holds at the end of every run, whatever happened in it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from components.runner.default import DefaultRunner
from runner.channel.outbox import FRAME_BUDGET
from tests.host import ModelRequest, Reply, RunRecord, TestHost, Tool, ToolCall, Violation, full_manifest

TERMINAL = ("run.completed", "run.failed")
PRIVATE = ("_localagent", "localagent")
"""Prefixes of the keys that never reach a provider (B6)."""

IN_WORDS = "[look was called with"
"""How a call begins that a model without tools is told in words."""

NUMBERED = {"type": "object", "properties": {"n": {"type": "integer"}}}
"""Schema of a tool whose calls differ: the same call with the same result, again and again, ends a run (K9)."""

LOOK = Reply(tool_calls=[ToolCall("look")])
LOOKING = Reply("Looking.", tool_calls=[ToolCall("look")])
"""A call of the tool `look`, alone and behind a word."""


def host_with(**given: Any) -> TestHost:
    """A Host around this plugin's own Runner, with every capability declared."""
    return TestHost(runner=DefaultRunner(), manifest=full_manifest(), **given)


def counted(run: RunRecord) -> int:
    """Calls to the Host as Q1 counts them: polls belong to waiting."""
    return len(run.calls.but("run_get"))


def words(text: str = "The whole text.") -> Tool:
    """A tool without arguments that returns a text."""
    return Tool("look", result=text)


def rounds_of(request: ModelRequest) -> int:
    """How many tool rounds stand behind the newest words of the person."""
    newest = max(index for index, role in enumerate(request.roles) if role == "user")
    return sum(1 for message in request.messages[newest:] if message.get("tool_calls"))


def looks(name: str, rounds: int = 2) -> Callable[[ModelRequest], Reply]:
    """A model that looks `rounds` times and then answers `Now <name> knows`. It reads the request, not a script, so it
    can take over at any turn."""

    def reply(request: ModelRequest) -> Reply:
        done = sum(1 for message in request.messages if message.get("tool_calls")) + request.text.count(IN_WORDS)
        if done < rounds:
            return Reply(f"{name} looks {done + 1}. ", tool_calls=[ToolCall("look")])
        return Reply(f"Now {name} knows", chunks=3)

    return reply


def broken_rules(run: RunRecord) -> list[Violation]:
    """What is wrong with the requests of a run, for any provider."""
    return [broken for request in run.requests for broken in request.violations(private=PRIVATE)]


def lost_steering(run: RunRecord) -> list[str]:
    """Ids of the follow-ups that this run claimed and never read."""
    return [event for event, word in run.steering if word == "dropped"]


async def assert_sound(host: TestHost, run: RunRecord) -> None:
    """`assert_ended`, and nothing of this run or an earlier one lives on: no task, no open call."""
    assert_ended(run)
    async with asyncio.timeout(10):
        await host.idle()
    assert await orphans(host) == []
    assert run.calls.still_open == []


def assert_ended(run: RunRecord, *, ended: bool = True) -> None:
    """One terminal event with nothing behind it, one completed message that is what the card shows, legal requests, no
    follow-up lost. `ended` False: the Host closed the run before its own end."""
    terminals = [place for place, kind in enumerate(run.types) if kind in TERMINAL]
    assert len(terminals) == (1 if ended else 0), run.types
    assert not terminals or terminals[0] == len(run.types) - 1, run.types
    assert run.dropped == []
    assert len(run.completed) <= 1
    if run.completed and run.deltas:
        assert run.final_text is not None
        assert run.final_text.startswith(run.deltas[-1])
        # A snapshot carries its text twice, so beyond half a frame there are none any more (C6).
        too_long = 2 * len(json.dumps(run.final_text)) > FRAME_BUDGET
        # A stopped run is closed at its first result: no snapshot may come before its answer (G2).
        assert run.final_text == run.deltas[-1] or too_long or run.status == "cancelled"
    assert all(late.startswith(early) for early, late in _grown(run)), run.deltas
    assert broken_rules(run) == []
    assert lost_steering(run) == []


async def orphans(host: TestHost) -> list[str]:
    """Tasks of the plugin that outlive their run. Calls that the Host itself never answers are the Host's."""
    return [str(task) for task in await host.orphans() if "Handler._handle_action" not in str(task)]


def _grown(run: RunRecord) -> list[tuple[str, str]]:
    """Neighbouring snapshots whose text is an answer's: notices that pass are none."""
    texts = [text for text in run.deltas if not text.rstrip().endswith("…")]
    return list(itertools.pairwise(texts))


def rows(host: TestHost) -> list[tuple[str, str | None]]:
    """The transcript of the private chat as `(role, text)`."""
    return [(row.role, row.text) for row in host.transcript("person_1")]


def results(run: RunRecord, request: int = -1) -> list[str]:
    """Texts of the tool messages of one request."""
    return [str(one["content"]) for one in run.requests[request].messages if one["role"] == "tool"]


def calls(*names: str, ids: bool = True) -> Reply:
    return Reply(tool_calls=[ToolCall(name, id=f"c{at}" if ids else None) for at, name in enumerate(names)])


async def one_call(tool: Tool, **given: Any) -> tuple[TestHost, RunRecord]:
    """A run with one call of `tool`, checked."""
    reply = Reply(tool_calls=[ToolCall(tool.name, {})])
    host = host_with(replies=[reply, "Done."], tools=[tool], **given)
    run = await host.say("go")
    assert run.final_text == "Done."
    await assert_sound(host, run)
    return host, run


# Words that nobody but this test can have written, planted wherever text enters a run, and looked for in its log.


@dataclass
class Plants:
    """Makes words by kind (`message`, `argument`, `result`, …) and remembers them."""

    random: Random
    words: dict[str, str] = field(default_factory=dict)

    def word(self, kind: str) -> str:
        """A new word; its first ten letters are like no other's."""
        core = f"zq{self.random.getrandbits(32):08x}"
        self.words[core] = kind
        return f"{core}{kind}"

    def key(self) -> str:
        """A new word that looks like a key of a provider."""
        core = f"{self.random.getrandbits(64):016x}"
        self.words[core] = "key"
        return f"sk-{core}"

    def failure(self) -> str:
        """What a Host might say about a failed call, with keys where clients put them."""
        forms = (
            "401 from https://bot:{0}@proxy.example/v1",
            "request headers: {{'Authorization': 'Bearer {0}'}}",
            "Incorrect API key provided: {0}.",
            "GET /v1/models?api_key={0}&limit=1 failed",
            '{{"error": {{"token": "{0}"}}}}',
            "password={0}\nrun: answered in 0.1 s",
        )
        return self.random.choice(forms).format(self.key())

    def reply(self) -> dict[str, Any]:
        """A reply that has the names of the protocol and words where anything else is expected."""
        word = self.word("malformed")
        shapes: list[Any] = [word, [word], {"text": word}, [{"content": word, "text": word}], 7, None]
        names = ("items", "prompt", "tokens", "result", "results", "value", "status", "chunk", "files", "id", "event")
        return {name: self.random.choice(shapes) for name in names}

    def found(self, texts: Iterable[str], but: Collection[str] = ()) -> list[str]:
        """Kind and line of every planted word in these texts; kinds in `but` may stand there."""
        lines = list(texts)
        return [
            f"{kind}: {line}" for core, kind in self.words.items() if kind not in but for line in lines if core in line
        ]


def lines_of(run: RunRecord) -> list[str]:
    """All that the owner reads about a run: its log lines, and the reason of a failure."""
    return [*run.logs, *filter(None, (run.error, run.status_reason))]
