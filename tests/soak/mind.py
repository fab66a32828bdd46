"""A model that does whatever models do: it answers, calls tools well and badly, thinks, stalls, stops half-way."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from callformats import render
from callformats.registry import all_formats
from tests.host import ModelRequest, Reason, Reply, ToolCall
from tests.runs.long_chats import is_summary
from tests.runs.planted import Plants

WORDS = (
    "the tide comes in at noon",
    "harbour",
    "今天的天气很好",
    "明日は雨です",
    "погода хорошая",
    "el barco zarpa",
    "<|im_end|>",
    "[/INST]",
    "</tool_call>",
    "```json",
    "🦜👩‍👩‍👧",
    "\n\n",
    "a < b && c > d",
)
SUMMARY = "## Goal\nTalk about tides.\n## Facts\nThe boat leaves at noon, and {0} was said.\n## Open\nNothing."
CALM = "Still here."


@dataclass
class Mind:
    """One model of one chat. `calm`: it only answers `CALM` from now on. `rounds`: how often it may call tools for one
    message, so that chats end."""

    seed: str
    plants: Plants
    rounds: int
    calm: bool = False
    asked: int = field(default=0, init=False)

    def __call__(self, request: ModelRequest) -> Reply:
        self.asked += 1
        if self.calm:
            return Reply(CALM)
        random = Random(f"{self.seed}:{self.asked}")
        if is_summary(request):
            return self._summary(random)
        begun = sum(1 for message in request.messages if message["role"] == "tool")
        kinds: list[tuple[Callable[[Random, ModelRequest], Reply], int]] = [(self._answers, 6), (self._odd, 2)]
        if request.tool_names and begun < self.rounds * 3:
            kinds.append((self._calls, 7))
        (make,) = random.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])
        return make(random, request)

    def _text(self, random: Random, most: int = 12) -> str:
        words = random.choices(WORDS, k=random.randint(1, most))
        return " ".join([*words, self.plants.word("answer")])

    def _answers(self, random: Random, _request: ModelRequest) -> Reply:
        text = self._text(random)
        if random.random() < 0.05:
            text += " more words of a long answer" * random.choice((200, 4_000))
        thought = self._text(random, 3) if random.random() < 0.3 else ""
        return Reply(text, chunks=random.randint(1, 9), reasoning=thought)

    def _calls(self, random: Random, request: ModelRequest) -> Reply:
        names = [*request.tool_names, "not_a_tool"]
        calls = [self._call(random, random.choice(names), place) for place in range(random.choice((1, 1, 1, 2, 3, 8)))]
        return Reply(
            self._text(random, 3) if random.random() < 0.4 else "",
            tool_calls=calls,
            finish_reason="length" if random.random() < 0.05 else None,
            interleaved=random.random() < 0.3,
        )

    def _call(self, random: Random, name: str, place: int) -> ToolCall:
        word = self.plants.word("argument")
        arguments = random.choice(
            (
                {"text": word},
                {"text": word, "count": random.randint(-3, 10**6)},
                {"path": f"/workspace/outbox/{word}.txt", "content": word, "command": word, "text": word},
                {},
                json.dumps({"text": word})[:-1],
                f"text={word}",
                "",
                "[1]",
            )
        )
        call_id = random.choice((None, f"call_{place}", f"call_{place}", f"id-{random.random()}", "", "調用"))
        return ToolCall(name, arguments, call_id, pieces=random.randint(1, 5))

    def _odd(self, random: Random, request: ModelRequest) -> Reply:
        text = self._text(random, 4)
        return random.choice(
            (
                Reply(""),
                Reply(" \n "),
                Reply("", reasoning=text),
                Reply(error=random.choice(list(Reason))),
                Reply(text, chunks=3, error=random.choice(list(Reason)), error_after=random.randint(1, 2)),
                Reply(text, finish_reason="length"),
                Reply(text, finish_reason="content_filter", usage={}),
                Reply(text, late_text=" and more"),
                Reply(text, delay=0.02, chunk_delay=0.01, chunks=3),
                Reply(events=[{"chunk": {"role": 7}}]),
                Reply(self._written(random, request)),
                Reply("word " * 2_000, chunks=20),
            )
        )

    def _written(self, random: Random, request: ModelRequest) -> str:
        """A call as text, in some format or other."""
        name = random.choice(request.tool_names or ["look"])
        form = random.choice(all_formats()).id
        return render(ToolCall(name, {"text": self.plants.word("argument")}), form)

    def _summary(self, random: Random) -> Reply:
        good = Reply(SUMMARY.format(self.plants.word("answer")))
        bad = (Reply(""), Reply(tool_calls=[ToolCall("look")]), Reply(error=Reason.CONNECTION), Reply("Sorry, no."))
        return good if random.random() < 0.7 else random.choice(bad)
