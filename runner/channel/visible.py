"""The text that the person in the chat sees: one text that only ever grows (C6), and says a lead-in once (K9)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from runner.conversation.readable import is_readable, whole_characters

_GAP = "\n\n"
_FIRST_HALF = re.compile("[\ud800-\udbff]\\Z")
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")

_SENTENCE = re.compile(r"[^\n]+?(?:(?<=[.!?:…])(?=\s|\Z)|(?<=[。！？：])(?![。！？：])|(?=\n)|\Z)")
_WHOLE_SENTENCE = re.compile(r"[^\W_][^`|\n]*[.!?:…。！？：]")
_LEAST_SENTENCE = 8
"""Bytes of a sentence that is left out where it comes again: "Yes." may mean something each time."""


class Visible:
    """All visible text of a run (characters). Text shown before a tool call stays readable above the answer."""

    def __init__(self) -> None:
        self._text = ""
        self._turn_start = 0
        self._gap_due = False
        self._shown = False
        self._turn_shown = False
        self._half = False
        self._veiled = False

    @property
    def text(self) -> str:
        """As it may be sent: an emoji that came in two halves is whole, a half alone and NUL are gone. What a turn has
        said is no text while nobody could see anything of it but white space (I8).
        """
        if self._veiled:
            return self._text[: self._turn_start]
        return self._text[:-1] if self._half else self._text

    @property
    def shown(self) -> bool:
        """Whether anything readable has been said; white space and invisible characters alone are nothing."""
        return self._shown

    @property
    def turn_shown(self) -> bool:
        """Whether the current turn has shown anything: after that no other model may take over (C1)."""
        return self._turn_shown

    @property
    def turn_text(self) -> str:
        """What the current turn has shown."""
        return whole_characters(self._text[self._turn_start :])

    def begin_turn(self) -> None:
        """What follows is another model turn: it is set off from what stands above."""
        self._text, self._half, self._veiled = self.text, False, False
        self._turn_start = len(self._text)
        self._turn_shown = False
        self._gap_due = self._shown

    def add(self, text: str) -> None:
        """Append a fragment exactly as it came."""
        if text and self._gap_due:
            self._text += _GAP[min(len(self._text) - len(self._text.rstrip("\n")), len(_GAP)) :]
            self._turn_start = len(self._text)
            self._gap_due = False
        if self._half or _UNSENDABLE.search(text):
            text = self._mended(text)
        self._text += text
        if not self._turn_shown:
            self._look(text)

    def _look(self, newest: str) -> None:
        """What came last shows whether there is anything to see by now."""
        if is_readable(newest):
            self._turn_shown = self._shown = True
            self._veiled = False
        else:
            self._veiled = self._veiled or bool(newest.strip())

    def _mended(self, text: str) -> str:
        """The fragment made sendable, with the first half before it; one at its end may still get its second (Q2)."""
        if self._half:
            text = self._text[-1] + text
            self._text = self._text[:-1]
        self._half = bool(_FIRST_HALF.search(text))
        end = text[-1:] if self._half else ""
        return whole_characters(text[: len(text) - len(end)]) + end

    def drop_turn(self) -> None:
        """Forget white space that a model left behind before it failed; what was readable stays."""
        if not self._turn_shown:
            self._text, self._half, self._veiled = self._text[: self._turn_start], False, False

    def note(self, text: str) -> None:
        """Append a sentence of the runner, set off from the model's words. It is part of the answer."""
        self._text, self._veiled = ("" if not self._shown else self.text), False
        self._half = False
        self._gap_due = self._shown
        self.add(text)


class LeadIns:
    """What a model says before its calls. Some say it again with each of them, word for word; it is shown once (K9).

    What was shown stays, so a turn that begins like an earlier lead-in waits until it goes on in another way. Only its
    beginning ever waits, and only behind calls. Feed it what a turn would show; it gives back what may be shown.
    """

    def __init__(self) -> None:
        self._sentences: set[str] = set()
        self._turns: set[str] = set()
        self._said: list[str] = []
        self._waits = False

    def begin(self) -> None:
        """Another turn, or the same one anew."""
        self._said = []
        self._waits = bool(self._turns)

    def feed(self, text: str) -> str:
        """The fragment, with what was held before it; nothing while it may be a repetition."""
        self._said.append(text)
        if not self._waits:
            return text
        held = "".join(self._said)
        rest = self._without_known(held)
        if _begins_one(held, self._turns) or _begins_one(rest, self._sentences):
            return ""
        self._waits = False
        return rest

    def end(self, *, calls: bool) -> str:
        """What may still be shown of the turn. `calls`: it was a lead-in."""
        said = "".join(self._said)
        rest = self._without_known(said) if self._waits and said.strip() not in self._turns else ""
        if calls and said.strip():
            self._turns.add(said.strip())
            sentences = (found.group().strip() for found in _SENTENCE.finditer(said))
            self._sentences.update(filter(_is_lead_in, sentences))
        return rest

    def forget(self) -> None:
        """Somebody said something new: what was said before may be an answer to it."""
        self._turns.clear()
        self._sentences.clear()

    def _without_known(self, text: str) -> str:
        """The text without the sentences at its beginning that were said before."""
        while (known := next(filter(text.lstrip().startswith, self._sentences), None)) is not None:
            rest = text.lstrip()[len(known) :]
            if rest and not (rest[0].isspace() or known[-1] in "。！？："):
                break
            text = rest.lstrip()
        return text


def _begins_one(text: str, known: Iterable[str]) -> bool:
    return any(each.startswith(text.strip()) for each in known)


def _is_lead_in(sentence: str) -> bool:
    return (
        len(sentence.encode("utf-8", "surrogatepass")) >= _LEAST_SENTENCE
        and _WHOLE_SENTENCE.fullmatch(sentence) is not None
    )
