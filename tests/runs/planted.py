"""Words that nobody but this test can have written, planted wherever text enters a run, and looked for in its log."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.host import RunRecord


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
