"""A fact of turn 3, asked for in the last turn of a chat that outgrew its window, with a real model as summariser."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from random import Random

import httpx

from demo.endpoint import Endpoint, from_environment
from demo.errors import DemoError
from tests.host import Model, ModelRequest, Reason, Reply, RunRecord
from tests.host.script import Json
from tests.host.texts import RequesterError, model_error
from tests.runs.long_chats import chats, is_summary, prose, summaries, summary_in, window
from tests.runs.scenes import host_with

_SECONDS = 900.0
_ANSWER_TOKENS = 120
_SUMMARY_TOKENS = 700
_PLACES = ("boathouse", "observatory", "greenhouse", "archive", "workshop", "cellar")
_THINGS = ("cabinet", "safe", "locker", "chest", "gate")


@dataclass(frozen=True, slots=True)
class Score:
    """One chat. `in_request`: the last request held the fact, in its summary or in words; `answered`: the model named
    it. `by_model` counts summaries that were taken, `refused` those that failed or were none: there the deterministic
    summary stood in, which may hold the fact, too. `seconds_waited`: for all summaries."""

    seed: int
    fact: str
    in_request: bool
    answered: bool
    asked: int
    by_model: int
    refused: int
    seconds_waited: float
    answer: str
    summary: str


class Writer:
    """The real model behind the test host: it writes the summaries and the last answer, a script says the rest."""

    def __init__(self, endpoint: Endpoint, random: Random, words: int) -> None:
        self._endpoint = endpoint
        self._random = random
        self._words = words
        self.last = False
        self.waited = 0.0

    def __call__(self, request: ModelRequest) -> Reply:
        if is_summary(request):
            return Reply(events=self._summary(request))
        if self.last:
            return Reply(events=self._answer(request, _ANSWER_TOKENS))
        return Reply(prose(self._random, self._words))

    async def _summary(self, request: ModelRequest) -> AsyncIterator[Json]:
        start = time.perf_counter()
        try:
            async for event in self._answer(request, _SUMMARY_TOKENS):
                yield event
        finally:
            self.waited += time.perf_counter() - start

    async def _answer(self, request: ModelRequest, tokens: int) -> AsyncIterator[Json]:
        """The model's words as they come, as LangBot passes them on: the SDK waits for the first one, not for all."""
        body = {
            "model": self._endpoint.name,
            "messages": request.messages,
            "max_tokens": tokens,
            "temperature": 0.0,
            "stream": True,
        }
        headers = {"Authorization": f"Bearer {self._endpoint.api_key}"}
        finish = "stop"
        async with (
            httpx.AsyncClient(timeout=_SECONDS) as client,
            client.stream("POST", f"{self._endpoint.base_url}/chat/completions", json=body, headers=headers) as answer,
        ):
            if answer.status_code != 200:
                reason = Reason.CONTEXT_LENGTH if answer.status_code == 400 else Reason.API_ERROR
                raise RequesterError(model_error(reason, "en_US"))
            async for line in answer.aiter_lines():
                if not line.startswith("data: {"):
                    continue
                for choice in json.loads(line.removeprefix("data: "))["choices"]:
                    finish = choice.get("finish_reason") or finish
                    if text := choice["delta"].get("content"):
                        yield _chunk(text)
        yield _chunk(None, is_final=True, provider_specific_fields={"finish_reason": finish})


def _chunk(text: str | None, **more: object) -> Json:
    return {"chunk": {"role": "assistant", "content": text, **more}}


async def score(endpoint: Endpoint, seed: int, turns: int, tokens: int, words: int) -> Score:
    """Play one chat with so many words a message; what is said and the fact depend on the seed alone."""
    random = Random(seed)
    place, thing = random.choice(_PLACES), random.choice(_THINGS)
    code = f"{random.choice('QWXZ')}{random.choice('KJVB')}-{random.randint(1000, 9999)}"
    writer = Writer(endpoint, random, words)
    settings = window(tokens, date_grounding=False, timeout=86_400)
    host = host_with(models=[Model("m1", default=writer)], config=settings)
    async with host:
        for turn in range(1, turns):
            told = f"Please remember: the code of the {thing} in the {place} is {code}. " if turn == 3 else ""
            await host.say(f"{told}{prose(random, words)}")
        writer.last = True
        run = await host.say(f"What is the code of the {thing} in the {place}? Answer with the code.")
    return _score(seed, code, writer, host.runs, run)


def _score(seed: int, code: str, writer: Writer, runs: list[RunRecord], last: RunRecord) -> Score:
    logs = [line for run in runs for line in run.logs]
    asked = sum(len(summaries(run)) for run in runs)
    refused = sum("a summary was refused" in line or "no summary:" in line for line in logs)
    request = chats(last)[-1]
    return Score(
        seed=seed,
        fact=code,
        in_request=code in request.text,
        answered=code in (last.final_text or ""),
        asked=asked,
        by_model=asked - refused,
        refused=refused,
        seconds_waited=round(writer.waited, 1),
        answer=last.final_text or "",
        summary=summary_in(request) or "",
    )


def main(*, seeds: int, turns: int, tokens: int, words: int) -> int:
    """Print a line for each chat, the score, and all as JSON. Exit code 2: no model to ask."""
    try:
        endpoint = from_environment(os.environ)
    except DemoError as error:
        print(error, file=sys.stderr)
        return 2
    if endpoint is None:
        print("set MODEL_BASE_URL (and MODEL_NAME, MODEL_API_KEY) to an OpenAI-compatible endpoint", file=sys.stderr)
        return 2
    scores = []
    for seed in range(1, seeds + 1):
        scores.append(asyncio.run(score(endpoint, seed, turns, tokens, words)))
        print(_line(scores[-1]), flush=True)
    held, named = sum(one.in_request for one in scores), sum(one.answered for one in scores)
    print(f"{endpoint.name}, {turns} turns, {tokens:,} tokens: in the request {held}/{seeds}, answered {named}/{seeds}")
    print(json.dumps([asdict(one) for one in scores], ensure_ascii=False))
    return 0


def _line(one: Score) -> str:
    return (
        f"seed {one.seed}: {one.fact} {'held' if one.in_request else 'LOST'}, "
        f"{'answered' if one.answered else 'not answered'}; {one.by_model} summaries by the model, "
        f"{one.refused} refused, {one.seconds_waited:.0f} s waited; answer: {one.answer[:120]!r}"
    )
