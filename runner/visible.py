"""The text that the person in the chat sees: one text that only ever grows (C6)."""

from __future__ import annotations

_GAP = "\n\n"


class Visible:
    """All visible text of a run (characters). Text shown before a tool call stays readable above the answer."""

    def __init__(self) -> None:
        self._text = ""
        self._turn_start = 0
        self._gap_due = False
        self._shown = False
        self._turn_shown = False

    @property
    def text(self) -> str:
        return self._text

    @property
    def shown(self) -> bool:
        """Whether anything readable has been said; white space alone is nothing."""
        return self._shown

    @property
    def turn_shown(self) -> bool:
        """Whether the current turn has shown anything: after that no other model may take over (C1)."""
        return self._turn_shown

    def begin_turn(self) -> None:
        """What follows is another model turn: it is set off from what stands above."""
        self._turn_start = len(self._text)
        self._turn_shown = False
        self._gap_due = self._shown

    def add(self, text: str) -> None:
        """Append a fragment exactly as it came."""
        if text and self._gap_due:
            self._text += _GAP[min(len(self._text) - len(self._text.rstrip("\n")), len(_GAP)) :]
            self._turn_start = len(self._text)
            self._gap_due = False
        self._text += text
        if not self._turn_shown and text.strip():
            self._turn_shown = self._shown = True

    def drop_turn(self) -> None:
        """Forget white space that a model left behind before it failed; what was readable stays."""
        if not self._turn_shown:
            self._text = self._text[: self._turn_start]

    def note(self, text: str) -> None:
        """Append a sentence of the runner, set off from the model's words. It is part of the answer."""
        if not self._shown:
            self._text = ""
        self._gap_due = self._shown
        self.add(text)
