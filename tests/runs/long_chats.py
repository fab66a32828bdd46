"""Conversations too long for their window, on the test host: what is said, who summarises, what always holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from random import Random

from runner.context import checkpoint as checkpoints
from runner.context.budget import Budget
from runner.context.checkpoint import Checkpoint, order
from tests.host import ModelRequest, Reply, RunRecord, TestHost

from .scenes import broken_rules

CHAT = "person_1"
SHOWING = 0.08
"""Seconds for which a Host shows each text where its adapter streams: there the late folds come (L1)."""

PART = "<conversation_part name="
OPENING, CLOSING = "<conversation_summary>", "</conversation_summary>"
FACT = re.compile(r"[A-Z]{3}-\d{3,6}-\d+")
"""What must never get lost: every row of a made-up chat holds one of its own."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_WORDS = re.compile(r"About (\d+) words at most")
_VOCABULARY = (
    "river",
    "lantern",
    "quiet",
    "orchard",
    "window",
    "morning",
    "paper",
    "engine",
    "harbour",
    "velvet",
    "candle",
    "silver",
    "meadow",
    "bridge",
)

Answer = Reply | str | Callable[[ModelRequest], Reply | str]


def window(tokens: int, **more: object) -> dict[str, object]:
    """Settings of a binding with a context window of so many tokens."""
    return {"context-window-tokens": tokens, **{name.replace("_", "-"): value for name, value in more.items()}}


def budget_of(tokens: int) -> int:
    """Tokens a request may have in that window with the form's reserve (F1)."""
    return Budget.of(tokens, 16_384).input


def prose(random: Random, words: int) -> str:
    """Sentences about nothing, without a number in them."""
    said = [random.choice(_VOCABULARY) for _ in range(words)]
    return " ".join(" ".join(said[at : at + 9]).capitalize() + "." for at in range(0, words, 9))


def fact(random: Random, number: int) -> str:
    return f"KEY-{random.randint(100, 999_999)}-{number}"


def chinese_prose(random: Random, words: int) -> str:
    """As `prose`, of about as many tokens."""
    return "".join(
        random.choice("山川河流花鸟虫鱼春夏秋冬风雨雷电") + ("。" if n % 9 == 8 else "") for n in range(words)
    )


def chatter(host: TestHost, random: Random, count: int, words: int, *, chinese: bool = False) -> list[str]:
    """Earlier rows, people and assistant in turn, each with a fact of its own; the facts, oldest first."""
    filler = chinese_prose if chinese else prose
    facts = []
    for number in range(count):
        facts.append(fact(random, number))
        role = "assistant" if number % 2 else "user"
        host.remember((role, f"Row {number} is about {facts[-1]}. {filler(random, words)}"))
    return facts


# Who answers, who summarises


def is_summary(request: ModelRequest) -> bool:
    """Whether a request asks for a summary rather than for an answer."""
    return PART in request.last_user


def copied(request: ModelRequest) -> str:
    """A summary that consists of sentences of the request: those with a fact, newest material last, within the number
    of words it asks for; the oldest give way."""
    limit = _WORDS.search(request.system)
    assert limit is not None
    text = re.sub(r"</?conversation_part[^>]*>", "\n", request.last_user)
    chosen = [sentence.strip("- ") for sentence in _SENTENCE.split(text) if FACT.search(sentence)]
    kept: list[str] = []
    left = int(limit[1])
    for sentence in reversed(list(dict.fromkeys(chosen))):
        left -= len(sentence.split())
        if left < 0:
            break
        kept.append(f"- {sentence}")
    return "Facts and identifiers:\n" + "\n".join(reversed(kept))


def model_that(
    answers: Answer = "Noted.", summary: Callable[[ModelRequest], Reply | str] = copied
) -> Callable[[ModelRequest], Reply | str]:
    """A model that reads the request: it answers a person with `answers` and summarises by `summary`."""

    def reply(request: ModelRequest) -> Reply | str:
        if is_summary(request):
            return summary(request)
        return answers(request) if callable(answers) else answers

    return reply


# What came of it


def chats(run: RunRecord) -> list[ModelRequest]:
    """The requests for an answer."""
    return [request for request in run.requests if not is_summary(request)]


def summaries(run: RunRecord) -> list[ModelRequest]:
    """The requests for a summary."""
    return [request for request in run.requests if is_summary(request)]


def waited(run: RunRecord) -> bool:
    """Whether a person waited for a summary before the model was asked."""
    return is_summary(run.requests[0]) and bool(chats(run))


def summary_in(request: ModelRequest) -> str | None:
    """The summary that a request carries, None without one; it stands last in the one system message and is closed."""
    system = request.system
    if OPENING not in system:
        return None
    assert system.count(OPENING) == system.count(CLOSING) == 1
    assert system.endswith(CLOSING)
    return system[system.index(OPENING) + len(OPENING) : -len(CLOSING)]


def stored(host: TestHost, chat: str = CHAT) -> Checkpoint | None:
    """The checkpoint the Host keeps; what is there must be readable."""
    value = host.state.get("conversation", chat, checkpoints.KEY)
    checkpoint = checkpoints.read(value)
    assert (checkpoint is None) == (value is None)
    return checkpoint


def assert_within(run: RunRecord, budget: int) -> None:
    """Every request is legal and within the budget, summary requests too and without tools, and the question stands
    whole in each request for an answer."""
    assert broken_rules(run) == []
    assert [request.tokens for request in run.requests if request.tokens > budget] == []
    assert [request.offered for request in summaries(run) if request.offered] == []
    assert run.incoming.text is not None
    for request in chats(run):
        said = [str(message["content"]) for message in request.messages if message["role"] == "user"]
        assert any(run.incoming.text in text for text in said), "the question is lost"
        summary_in(request)
    assert run.calls.count("state_set") <= 1


def nowhere(host: TestHost, told: Iterable[str], chat: str = CHAT) -> list[str]:
    """Facts of transcript rows that are neither told to a summary, nor in a gap, nor newer than the checkpoint (F6)."""
    checkpoint = stored(host, chat)
    if checkpoint is None or checkpoint.covers_until is None:
        return []
    until, known = order(checkpoint.covers_until), {*told, *FACT.findall(checkpoint.summary)}
    gaps = [(-1 if gap.after is None else order(gap.after), order(gap.before)) for gap in checkpoint.gaps]
    return [
        found
        for row in host.transcript(chat)
        if row.seq <= until and not any(low < row.seq < high for low, high in gaps)
        for found in FACT.findall(row.text)
        if found not in known
    ]
