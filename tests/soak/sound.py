"""What has to hold after a run, whatever happened in it (Q4): each breach as a sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from runner.run import interrupt
from tests.host import RunRecord, TestHost
from tests.runs.planted import Plants, lines_of
from tests.runs.scenes import TERMINAL, broken_rules, lost_steering, orphans

from .mind import CALM

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
