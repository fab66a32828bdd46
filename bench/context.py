"""What keeping within the window costs: summaries, tokens and waiting, beside the same chat without a compaction.

`python -m bench.context` measures on the test host, where a summary takes `--summary-seconds`. `--model` plants a fact
in turn 3 of a long chat instead and lets the model of MODEL_BASE_URL write the summaries and the answer of the last
turn: it reports how often the fact still stood in that turn's request, and how often the answer named it.
`--picture FILE` draws who waits over sixty turns as SVG.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

from bench import planted_fact, waits
from bench.table import Row, text_of
from tests.host import Model, ModelRequest, Reply, RunRecord, Tool, ToolCall
from tests.runs.long_chats import chats, copied, is_summary, prose, summaries, window
from tests.runs.scenes import counted, host_with

UNCUT = 10_000_000
"""A window (tokens) in which nothing ever has to be compacted."""

_SUMMARY_SECONDS = 0.5
"""How long the test host's model takes for a summary."""


@dataclass(frozen=True, slots=True)
class Cost:
    """One conversation's cost. Tokens by the test host's count, requests for summaries included; `waited` in seconds:
    from each request for a summary to the request for an answer that it was made for."""

    scenario: str
    window: int
    requests: int
    summaries: int
    tokens_sent: int
    tokens_in_largest_request: int
    seconds_waited_for_compaction: float
    seconds: float
    calls_to_the_host: int
    bytes_out: int


@dataclass(slots=True)
class Watch:
    """A model that answers by `answer` and takes `delay` seconds for a summary; `waited`: how long people waited."""

    answer: Callable[[ModelRequest], Reply]
    delay: float
    waited: float = 0.0
    _since: float | None = field(default=None)

    def __call__(self, request: ModelRequest) -> Reply:
        now = time.perf_counter()
        if is_summary(request):
            self._since = now if self._since is None else self._since
            return Reply(copied(request), delay=self.delay)
        if self._since is not None:
            self.waited += now - self._since
            self._since = None
        return self.answer(request)


async def chat(tokens: int, delay: float, turns: int) -> Cost:
    """A chat of so many turns, about 150 words each."""
    random = Random(1)
    watch = Watch(lambda _: Reply(prose(random, 90)), delay)
    host = host_with(
        models=[Model("m1", default=watch)], config=window(tokens, context_history_fetch_limit=1000, timeout=3600)
    )
    start = time.perf_counter()
    async with host:
        for turn in range(turns):
            await host.say(f"Turn {turn} is about KEY-{random.randint(100, 9999)}-{turn}. {prose(random, 60)}")
    return _cost(f"chat of {turns} turns", tokens, host.runs, watch, time.perf_counter() - start)


async def tools(tokens: int, delay: float, rounds: int, size: int) -> Cost:
    """One question that takes so many rounds of one tool, each with a result of `size` characters."""
    result = prose(Random(2), size // 5)[:size]

    def answer(_: ModelRequest) -> Reply:
        done = len(tool.calls)
        return Reply(tool_calls=[ToolCall("look", {"n": done})]) if done < rounds else Reply("Done.")

    numbered = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tool = Tool("look", takes_dict=True, fn=lambda _: result, parameters=numbered)
    watch = Watch(answer, delay)
    host = host_with(models=[Model("m1", default=watch)], tools=[tool], config=window(tokens, timeout=3600))
    start = time.perf_counter()
    async with host:
        await host.say("Please look everything up for KEY-4711-1.")
    name = f"{rounds} tools of {size:,} characters"
    return _cost(name, tokens, host.runs, watch, time.perf_counter() - start)


def _cost(name: str, tokens: int, runs: Sequence[RunRecord], watch: Watch, seconds: float) -> Cost:
    requests = [request for run in runs for request in run.requests]
    assert all(run.status == "completed" for run in runs)
    return Cost(
        scenario=name,
        window=tokens,
        requests=sum(len(chats(run)) for run in runs),
        summaries=sum(len(summaries(run)) for run in runs),
        tokens_sent=sum(request.tokens for request in requests),
        tokens_in_largest_request=max(request.tokens for request in requests),
        seconds_waited_for_compaction=round(watch.waited, 3),
        seconds=round(seconds, 2),
        calls_to_the_host=sum(map(counted, runs)),
        bytes_out=sum(run.calls.bytes_out for run in runs),
    )


async def measure(delay: float) -> list[Cost]:
    """Each conversation in its windows, and at once behind it the same without a compaction."""
    costs = []
    for tokens in (8_000, UNCUT):
        costs.append(await chat(tokens, delay, 60))
    for tokens in (8_000, 32_000, UNCUT):
        costs.append(await tools(tokens, delay, 100, 2_000))
    return costs


def rows() -> Iterator[Row]:
    """What compaction costs, as rows of the bench. In the place of `bare`: the same chat in a window that holds it."""
    costs = asyncio.run(measure(_SUMMARY_SECONDS))
    uncut = {cost.scenario: cost for cost in costs if cost.window == UNCUT}
    for cost in costs:
        if cost.window == UNCUT:
            continue
        whole, name = uncut[cost.scenario], f"{cost.scenario}, window of {cost.window:,}"
        yield Row("Context", name, "tokens sent", whole.tokens_sent, cost.tokens_sent)
        yield Row("Context", name, "tokens of the largest request", None, cost.tokens_in_largest_request, cost.window)
        yield Row("Context", name, "summaries", whole.summaries, cost.summaries)
        yield Row("Context", name, "waiting for summaries", 0, cost.seconds_waited_for_compaction, None, "s")
        yield Row("Context", name, "calls", whole.calls_to_the_host, cost.calls_to_the_host)
    yield from waits.rows()


def table(costs: Sequence[Cost]) -> str:
    """The costs as lines of text."""
    head = ("conversation", "window", "requests", "summaries", "tokens sent", "largest", "s waited", "calls", "MB out")
    rows = [
        (
            cost.scenario,
            "uncut" if cost.window == UNCUT else f"{cost.window:,}",
            str(cost.requests),
            str(cost.summaries),
            f"{cost.tokens_sent:,}",
            f"{cost.tokens_in_largest_request:,}",
            f"{cost.seconds_waited_for_compaction:.2f}",
            str(cost.calls_to_the_host),
            f"{cost.bytes_out / 1e6:.1f}",
        )
        for cost in costs
    ]
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    return "\n".join(line.rstrip() for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print table and JSON. Exit code 2: no model to ask."""
    parser = argparse.ArgumentParser(prog="bench.context", description=__doc__)
    parser.add_argument(
        "--summary-seconds", type=float, default=_SUMMARY_SECONDS, help="how long the test host takes for a summary"
    )
    parser.add_argument("--model", action="store_true", help="plant a fact and ask the model of MODEL_BASE_URL")
    parser.add_argument("--seeds", type=int, default=1, help="with --model: how many chats")
    parser.add_argument("--turns", type=int, default=60, help="with --model: turns of each chat")
    parser.add_argument("--window", type=int, default=8_000, help="with --model: the window in tokens")
    parser.add_argument("--words", type=int, default=60, help="with --model: words of each message")
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="draw who waits over sixty turns, and nothing else"
    )
    options = parser.parse_args(arguments)
    if options.picture is not None:
        options.picture.write_text(waits.picture(), "utf-8")
        return 0
    if options.model:
        return planted_fact.main(seeds=options.seeds, turns=options.turns, tokens=options.window, words=options.words)
    costs = asyncio.run(measure(options.summary_seconds))
    print(table(costs))
    print(text_of(list(waits.rows())))
    print(json.dumps([asdict(cost) for cost in costs]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
