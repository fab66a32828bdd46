"""How much of what is sent a provider's prefix cache can serve (L8): `python -m bench.prefix`.

A cache serves what is byte for byte as in an earlier request. Of each request but the first of a chat, the longest
common prefix with any earlier one of that chat to that model is counted, summary requests included, in tokens of the
local vocabulary. Tools stand first, as most providers and chat templates put them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import lzma
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

from bench.table import Row
from runner.context.tokens import Tokenizer
from tests.context.conversations import SESSION, tokenizer
from tests.host import Model, ModelRequest, Reply, RunRecord, TestHost, Tool, ToolCall
from tests.runs.long_chats import copied, is_summary, prose, window
from tests.runs.scenes import host_with

WINDOWS: Final = {8_000: 78, 24_000: 92, 64_000: 96, 200_000: 98}
"""Window (tokens) → the least share of the recorded session, in per cent."""

SMALL: Final = 80
"""The same for the small profile."""


@dataclass
class _Seen:
    """What stood at one place of earlier requests: each text, and what came behind it."""

    next: dict[str, _Seen] = field(default_factory=dict)


@dataclass
class Shares:
    """Requests, in the order in which a provider gets them. `prompt` and `cached` are tokens of all but the first.

    `breaks`: tokens that were sent anew although something else stood at their place, by what that place is.
    """

    ruler: Tokenizer
    prompt: int = 0
    cached: int = 0
    breaks: Counter[str] = field(default_factory=Counter)
    _seen: _Seen = field(default_factory=_Seen)
    _any: bool = False

    @property
    def percent(self) -> float:
        return 100 * self.cached / self.prompt if self.prompt else 0.0

    def add(self, request: ModelRequest) -> int:
        """Count one request; the tokens of it that an earlier one began with."""
        places = list(_places(request))
        served = self._served(places)
        if self._any:
            self.prompt += sum(self.ruler.estimate(text) for _, text in places)
            self.cached += served
        self._any = True
        here = self._seen
        for _, text in places:
            here = here.next.setdefault(text, _Seen())
        return served

    def _served(self, places: Sequence[tuple[str, str]]) -> int:
        served, here = 0, self._seen
        for at, (name, text) in enumerate(places):
            if text in here.next:
                served += self.ruler.estimate(text)
                here = here.next[text]
                continue
            shared = max((_alike(text, other) for other in here.next), default=0)
            if here.next:
                self.breaks[name] += sum(self.ruler.estimate(rest) for _, rest in places[at:])
            return served + self.ruler.estimate(text[:shared])
        return served


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _places(request: ModelRequest) -> Iterator[tuple[str, str]]:
    """The request as texts, in the order in which a cache reads them, each with the name of its place."""
    summary = "summary: " if is_summary(request) else ""
    if request.funcs:
        yield f"{summary}tools", _written(request.funcs)
    for message in request.messages:
        yield f"{summary}{message['role']}", _written(message)


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def shares_of(runs: Iterable[RunRecord]) -> Shares:
    """The shares of one chat, its models apart."""
    models: defaultdict[str, Shares] = defaultdict(lambda: Shares(tokenizer()))
    for run in runs:
        for request in run.requests:
            models[request.model].add(request)
    total = Shares(tokenizer())
    for one in models.values():
        total.prompt, total.cached = total.prompt + one.prompt, total.cached + one.cached
        total.breaks += one.breaks
    return total


# --- the recorded session ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a person, the replies to it, and what the calls of them returned."""

    text: str
    replies: tuple[Reply, ...]
    results: Mapping[str, str]


def session() -> Iterator[Said]:
    """The recorded session, message by message; what nobody replied to is said with the next message."""
    with lzma.open(SESSION, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    results = {row["tool_call_id"]: str(row["content"]) for row in rows if row["role"] == "tool"}
    text, replies = "", list[Reply]()
    for row in rows:
        if row["role"] == "user":
            if replies:
                yield Said(text, tuple(replies), results)
                text, replies = "", []
            text = "\n\n".join(filter(None, (text, str(row["content"]))))
        elif row["role"] == "assistant" and (row["content"] or row.get("tool_calls")):
            replies.append(_reply(row))
    if replies:
        yield Said(text, tuple(replies), results)


def _reply(row: Mapping[str, Any]) -> Reply:
    calls = [
        ToolCall(one["function"]["name"], one["function"]["arguments"], one["id"]) for one in row.get("tool_calls", ())
    ]
    return Reply(str(row["content"]), tool_calls=calls)


_CODING: Final = {
    "read": {"path": {"type": "string"}, "offset": {"type": "number"}, "limit": {"type": "number"}},
    "bash": {"command": {"type": "string"}, "timeout": {"type": "number"}},
    "edit": {"path": {"type": "string"}, "oldText": {"type": "string"}, "newText": {"type": "string"}},
    "write": {"path": {"type": "string"}, "content": {"type": "string"}},
}


class _Playing:
    """A model that says what was recorded, and tools that return what was recorded."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.results: list[str] = []

    def take(self, said: Said) -> None:
        self.replies = list(said.replies)
        if self.replies[-1].tool_calls:
            self.replies.append(Reply("Done."))
        self.results = [
            said.results.get(call.id or "", "aborted") for reply in said.replies for call in reply.tool_calls
        ]

    def answer(self, request: ModelRequest) -> Reply:
        if is_summary(request):
            return Reply(_summarised(request))
        return self.replies.pop(0) if self.replies else Reply("Done.")

    def tools(self) -> list[Tool]:
        return [
            Tool(
                name,
                description=f"The tool to {name} files of the project.",
                parameters={"type": "object", "properties": fields},
                takes_dict=True,
                fn=lambda _: self.results.pop(0) if self.results else "aborted",
            )
            for name, fields in _CODING.items()
        ]


def _summarised(request: ModelRequest) -> str:
    """A summary such as a good model writes: a line for each of the newest words, within a bound."""
    words = [line[:160] for line in request.last_user.splitlines() if line.startswith(("User: ", "- "))]
    return "## Goal\nPort the selectors.\n## Facts\n" + "\n".join(f"- {line.strip('- ')}" for line in words[-12:])


async def recorded(tokens: int, *, messages: int | None = None, **settings: object) -> TestHost:
    """The recorded session as a chat in a window of so many tokens."""
    playing = _Playing()
    config = window(
        tokens,
        max_tool_iterations=200,
        tool_execution_mode="serial",
        timeout=3600,
        context_history_fetch_limit=1_000,
        **settings,
    )
    host = host_with(models=[Model("m1", default=playing.answer)], tools=playing.tools(), config=config)
    async with host:
        for said in list(session())[:messages]:
            playing.take(said)
            await host.say(said.text)
    return host


# --- chats with tools ----------------------------------------------------------------------------------------------


_WORK: Final = {
    "search_web": "Searches the web and returns the pages that fit a query best, with their addresses.",
    "read_page": "Reads one page by its address and returns its text without navigation.",
    "list_files": "Lists files below a folder, with size and date of each.",
    "send_mail": "Sends a mail to one address and returns its number.",
    "look_up_order": "Looks up an order by its number and tells state and date of delivery.",
    "check_stock": "Tells how many pieces of an article are in the warehouse.",
    "plan_route": "Plans a journey between two places by train, car or bicycle.",
    "convert_units": "Converts a quantity from one unit to another.",
    "get_weather": "Tells the weather of a city for today and tomorrow.",
    "add_reminder": "Adds a reminder for a point in time.",
    "play_music": "Plays a song or an artist in a room.",
    "translate": "Translates a sentence into another language.",
}


def many_tools(random: Random, count: int) -> list[Tool]:
    """The first tools of the list, with results of 60 to 250 words."""

    def found(_: object) -> str:
        return prose(random, random.randint(60, 250))

    fields = {"query": {"type": "string"}, "count": {"type": "integer", "default": 5}}
    schema = {"type": "object", "properties": fields, "required": ["query"]}
    return [
        Tool(name, description=told, parameters=schema, takes_dict=True, fn=found)
        for name, told in list(_WORK.items())[:count]
    ]


async def talk(tokens: int, *, turns: int = 30, count: int = 12, seed: int = 1, **settings: object) -> TestHost:
    """A chat of so many turns, two rounds of tools in two of three, a failure now and then."""
    random = Random(seed)
    tools = many_tools(random, count)
    left = [0]

    def answer(request: ModelRequest) -> Reply | str:
        if is_summary(request):
            return Reply(copied(request))
        if left[0] > 0:
            left[0] -= 1
            arguments = {"query": prose(random, 3)} if random.random() > 0.15 else {}
            return Reply(tool_calls=[ToolCall(random.choice(tools[:7]).name, arguments)])
        return Reply(f"It is KEY-{random.randint(100, 9999)}-{len(request.messages)}. {prose(random, 60)}")

    config = window(tokens, timeout=3600, **settings)
    host = host_with(models=[Model("m1", default=answer)], tools=tools, config=config)
    async with host:
        for turn in range(turns):
            left[0] = random.choice((0, 2, 2))
            about = random.choice(("the web", "a page", "my files", "an order", "the stock", "a route"))
            await host.say(
                f"Turn {turn}, look for {about}: KEY-{random.randint(100, 9999)}-{turn}. {prose(random, 30)}"
            )
    return host


@dataclass(frozen=True, slots=True)
class Scene:
    """One chat and its least share in per cent. `chat` plays it and gives the Host."""

    name: str
    chat: Callable[[], Coroutine[Any, Any, TestHost]]
    least: int


def scenes() -> Iterator[Scene]:
    """The chats that are measured."""
    for tokens, least in WINDOWS.items():
        yield Scene(f"recorded session, {tokens:,}", partial(recorded, tokens), least)
    for tokens, least in WINDOWS.items():
        yield Scene(f"30 turns with tools, {tokens:,}", partial(talk, tokens), least)
    small = partial(talk, 8_000, model_profile="small")
    yield Scene("30 turns, small profile, 7 tools", partial(small, count=7), SMALL)
    yield Scene("30 turns, small profile, 12 tools", small, SMALL)
    yield Scene("30 turns, small profile, tools in words", partial(small, tool_call_format="tags"), SMALL)


def rows() -> Iterator[Row]:
    """The shares as rows of the bench: what is sent anew, in per cent, so that less is better."""
    for scene in scenes():
        shares = shares_of(asyncio.run(scene.chat()).runs)
        anew = round(100 - shares.percent, 1)
        yield Row("L8", scene.name, "of the prompt not in a prefix cache", None, anew, 100 - scene.least, "%")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.prefix", description=__doc__)
    parser.add_argument("--only", default="", help="scenes whose name holds this")
    options = parser.parse_args(arguments)
    for scene in scenes():
        if options.only not in scene.name:
            continue
        runs = asyncio.run(scene.chat()).runs
        shares = shares_of(runs)
        lost = ", ".join(f"{where} {tokens:,}" for where, tokens in shares.breaks.most_common(4))
        count = sum(len(run.requests) for run in runs)
        print(
            f"{scene.name:40} {shares.percent:5.1f} % (at least {scene.least} %) of {shares.prompt:,} tokens, "
            f"{count} requests; changed: {lost}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
