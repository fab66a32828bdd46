"""One simulated chat, in which faults strike, and what has to hold after each of its runs (Q4)."""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from runner.run import interrupt
from tests.host import Attachment, Fault, Reason, RunRecord, TestHost
from tests.runs.scenes import TERMINAL, Plants, broken_rules, lines_of, lost_steering, orphans

from .world import CALM, Mind, world_of

# What has to hold after a run, whatever happened in it (Q4): each breach as a sentence.

MAY_FAIL_WITH = frozenset({"runner.models_failed", "runner.token_count_unavailable", "runner.prompt_malformed"})
QUIET_SECONDS = 10.0


def breaches(host: TestHost, run: RunRecord, plants: Plants, *, cut_off: bool) -> Iterator[str]:
    """What is wrong with a run that has ended. `cut_off`: its connection was closed on purpose."""
    yield from _ending(run, cut_off=cut_off)
    yield from _answer(host, run)
    yield from (f"illegal request: {broken}" for broken in broken_rules(run))
    # Where the Host answers no pull at all, they are named in the log; so are those read elsewhere, too late to answer.
    named = any("could not be asked for" in line or "taken and not answered" in line for line in run.logs)
    # Nor can anybody know of a message where the Host's reply reads as an empty queue.
    named = named or any(call.fault and call.fault.kind == "malformed" for call in run.calls.of("steering_pull"))
    if run.finish_reason is not None and lost_steering(run) and not named:
        yield f"lost follow-ups: {lost_steering(run)}"
    but = ("answer", "thought") if run.incoming.event_type != "message.received" else ()
    yield from (f"in the log: {found}" for found in plants.found(lines_of(run), but))


def _ending(run: RunRecord, *, cut_off: bool) -> Iterator[str]:
    terminals = [place for place, kind in enumerate(run.types) if kind in TERMINAL]
    heard = run.status != "cancelled" and not cut_off
    if len(terminals) > 1 or (heard and len(terminals) != 1):
        yield f"{len(terminals)} terminal events: {run.types}"
    if terminals and terminals[0] != len(run.types) - 1:
        yield f"events behind the terminal one: {run.types}"
    if run.dropped:
        yield f"results the Host does not take: {run.dropped}"
    if run.status not in ("completed", "failed", "cancelled"):
        yield f"the run ended as {run.status}"
    if run.status == "failed" and not cut_off and run.code not in MAY_FAIL_WITH:
        yield f"failed with {run.code}: {run.error}"
    if internal := [line for line in run.logs if "runner.internal" in line]:
        yield f"an accident: {internal}"


def _answer(host: TestHost, run: RunRecord) -> Iterator[str]:
    if len(run.completed) > 1:
        yield f"{len(run.completed)} completed messages"
    if run.status != "completed" or run.final_text is None or host.world.mode != "pipeline":
        return
    if run.answer != run.final_text:
        yield f"the card shows {run.answer!r}, the message is {run.final_text!r}"
    conversation = str(run.incoming.conversation)
    kept = [row.text for row in host.transcript(conversation) if row.metadata.get("run_id") == run.run_id]
    if kept != [run.final_text]:
        yield f"the history holds {kept!r} of the answer {run.final_text!r}"


async def leftovers(host: TestHost, seconds: float = QUIET_SECONDS) -> list[str]:
    """What the runs so far have left behind: tasks and open calls. The Host may work on for so long."""
    try:
        async with asyncio.timeout(seconds):
            await host.idle()
    except TimeoutError:
        return ["the Host still works for a run that is over"]
    if await orphans(host):
        # Where the SDK lost that the reader is gone (3.11), the run learns it by its next look at the Host's flag (I4).
        await asyncio.sleep(interrupt.INTERVAL + 0.5)
    found = [f"a task lives on: {task}" for task in await orphans(host)]
    return found + [f"a call is open: {call}" for run in host.runs for call in run.calls.still_open]


def unaffected(host: TestHost, run: RunRecord) -> Iterator[str]:
    """What is wrong with a run without a fault, after runs with many."""
    if run.status != "completed":
        yield f"the run after it ended as {run.status}: {run.error}"
    if not any(CALM in request_answer for request_answer in (run.final_text or "", *_sent(host))):
        yield f"the run after it said {run.final_text!r}"


def _sent(host: TestHost) -> list[str]:
    return [str(text) for text in host.world.platform.replies[-1:]]


# One simulated chat: people write, faults strike, and every run is looked at.

STUCK = 90.0
"""Seconds after which a run is given up: the binding allows 60, the Host some more."""

ACTIONS = (
    "get_prompt",
    "history_page",
    "count_tokens",
    "count_tokens",
    "invoke_llm_stream",
    "invoke_llm_stream",
    "invoke_llm",
    "call_tool",
    "call_tool",
    "steering_pull",
    "run_get",
    "run_events_page",
    "retrieve_knowledge",
    "invoke_rerank",
    "get_box_status",
    "acquire_box",
    "bind_box",
    "import_attachments",
    "export_box_files",
    "state_get",
    "state_set",
    "reply_stream",
    "reply_files",
    "run_list",
    "get_langbot_version",
)


@dataclass
class Report:
    """What came of one chat or of many: `faults` that struck, by kind, and `findings`, which name the seed."""

    chats: int = 0
    runs: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def add(self, other: Report) -> None:
        self.chats += other.chats
        self.runs += other.runs
        self.faults.update(other.faults)
        self.endings.update(other.endings)
        self.findings += other.findings

    @property
    def text(self) -> str:
        endings = ", ".join(f"{count} {name}" for name, count in self.endings.most_common())
        faults = ", ".join(f"{count} {name}" for name, count in self.faults.most_common())
        head = f"{self.chats} chats, {self.runs} runs ({endings}); faults: {faults or 'none'}"
        return "\n".join([head, *(f"  {finding[:2_000]}" for finding in self.findings)])


class Chat:
    """One chat from its seed: the same seed gives the same chat, as far as tasks take turns alike."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random = Random(seed)
        self._plants = Plants(Random(f"words of {seed}"))
        self._host: TestHost
        self._minds: list[Mind]
        self._host, self._minds = world_of(self._random, self._plants, str(seed))
        self._group = self._random.random() < 0.3
        self._report = Report(chats=1)

    async def play(self) -> Report:
        """A few messages with faults, and after each one without."""
        async with self._host as host:
            for role in ("user", "assistant") * self._random.randint(0, 6):
                words = f"{self._plants.word('history')} and what was said " * self._random.choice((1, 1, 200))
                host.remember((role, words), conversation=self._conversation)
            for number in range(self._random.randint(1, 4)):
                await self._message(host, number)
        return self._report

    @property
    def _conversation(self) -> str:
        return "group_9" if self._group else "person_1"

    async def _message(self, host: TestHost, number: int) -> None:
        cut_off = self._plan_faults(host)
        run = await self._ended(self._start(host))
        if run is not None:
            self._note(number, breaches(host, run, self._plants, cut_off=cut_off))
        host.faults.clear()
        host.hooks.clear()
        await self._calm(host, number)

    def _start(self, host: TestHost) -> RunRecord:
        random, plants = self._random, self._plants
        text = f"{plants.word('message')} " + "and some more words " * random.choice((0, 3, 3, 400))
        files = []
        if random.random() < 0.15:
            body = base64.b64encode(plants.word("file").encode()).decode()
            files = [Attachment(f"{plants.word('file')}.txt", body)]
        sender = random.choice(("u1", "u2"))
        return host.start(
            text,
            sender=sender,
            sender_name=plants.word("person"),
            conversation=self._conversation,
            images=["aGk="] if random.random() < 0.1 else (),
            attachments=files,
        )

    async def _ended(self, run: RunRecord) -> RunRecord | None:
        """The run once it is over; None, and a finding, when it never is."""
        assert run.task is not None
        try:
            async with asyncio.timeout(STUCK):
                # Not `run.wait()`: the SDK may leave a Runner unclosed whose run the Host has stopped.
                await asyncio.shield(run.task)
        except TimeoutError:
            self._report.findings.append(f"chat {self._seed}: a run never ended")
            return None
        self._report.runs += 1
        self._report.faults.update(call.fault.kind for call in run.calls if call.fault)
        self._report.endings[f"{run.status} {run.finish_reason or run.code or ''}".strip()] += 1
        return run

    async def _calm(self, host: TestHost, number: int) -> None:
        for mind in self._minds:
            mind.calm = True
        run = await self._ended(host.start("And now?", conversation=self._conversation))
        if run is not None:
            self._note(number, breaches(host, run, self._plants, cut_off=False))
            self._note(number, unaffected(host, run))
        self._note(number, await leftovers(host))
        for mind in self._minds:
            mind.calm = False

    def _note(self, number: int, found: object) -> None:
        assert hasattr(found, "__iter__")
        self._report.findings += [f"chat {self._seed}, message {number}: {one}" for one in found]

    # Faults

    def _plan_faults(self, host: TestHost) -> bool:
        """Plans what goes wrong with the next message; whether the connection will be closed."""
        random = self._random
        cut_off = False
        for _ in range(random.choice((0, 1, 2, 4, 8))):
            action, fault = random.choice(ACTIONS), self._fault()
            host.fail(action, fault, random.choice((1, 1, 1, 2, 3)), random.choice((1, 1, 2, None)))
            cut_off = cut_off or fault.kind == "disconnect"
        for _ in range(random.choice((0, 0, 1, 2))):
            said = f"{self._plants.word('message')} too"
            action = random.choice(("call_tool", "invoke_llm_stream", "count_tokens", "steering_pull"))
            host.when(action, lambda said=said: self._steer(host, said), random.choice((1, 1, 2)))  # type: ignore[misc]
        return cut_off

    def _steer(self, host: TestHost, text: str) -> None:
        host.steer(text, sender="u2", sender_name=self._plants.word("person"), conversation=self._conversation)

    def _fault(self) -> Fault:
        random, plants = self._random, self._plants
        after = random.choice((0, 0, 1, 2))
        return random.choice(
            (
                Fault.error(plants.failure(), after=after),
                Fault.model(random.choice(list(Reason)), after=after),
                Fault.timeout(after=after),
                Fault.hang(random.choice((0.03, None)), after=after),
                Fault.drop(after=after),
                Fault.lost(),
                Fault.malformed(after=after),
                Fault.malformed(plants.reply(), after=after),
                Fault.slow(random.choice((0.02, 0.02, 7.0))),
                Fault.wrong_type(random.choice((0, 1, 2))),
                Fault.doubled(),
                Fault.huge() if random.random() < 0.1 else Fault.slow(0.02),
                Fault.cancel(after=after),
                Fault.disconnect(after=after) if random.random() < 0.3 else Fault.slow(0.05),
            )
        )
