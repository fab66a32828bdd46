"""The text a user may see, piece by piece, with the white space that markup leaves behind taken care of."""

from __future__ import annotations


class Visible:
    """Collects visible text.

    White space at the end is held until more text comes: in front of markup it is dropped if the reply ends there,
    and so is white space at the beginning behind markup. Texts on both sides of a call never run into each other. A
    code fence that held nothing but a call goes with it.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._taken = 0
        self._space: list[str] = []
        self._fence: str | None = None
        self._space_before_fence = ""
        self._swallow = False
        self._hidden = False
        self._parted = False
        self.begun = False
        self.answer_tag = False
        self.withdrawn = False

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def take(self) -> str:
        """What was added since the last call."""
        new = "".join(self._pieces[self._taken :])
        self._taken = len(self._pieces)
        return new

    def show(self, text: str) -> None:
        """Adds text."""
        body = text.rstrip()
        if not body:
            self._space.append(text)
            return
        self._flush_fence()
        self._add(self._take_space() + body)
        self._space.append(text[len(body) :])

    def _take_space(self) -> str:
        """The white space that was held; none is held any more."""
        held = "".join(self._space)
        self._space.clear()
        return held

    def _add(self, text: str) -> None:
        if not self.begun and self._hidden:
            text = text.lstrip()
        elif self._parted and self.begun and not text[:1].isspace():
            text = "\n\n" + text
        self._parted = False
        self.begun = True
        self._pieces.append(text)

    def hide(self, *, block: bool = False) -> None:
        """Says that markup stood here; `block`: a call."""
        self._hidden = True
        self._parted = self._parted or block
        if block and self._fence is not None:
            self._fence = None
            self._space.insert(0, self._space_before_fence)
            self._swallow = True

    def open_fence(self, line: str) -> None:
        """A fence's first line, shown once something stands in it."""
        self._fence = line
        self._space_before_fence = self._take_space()
        self._swallow = False

    def close_fence(self) -> bool:
        """Whether the closing line is to be dropped, its block having held only a call."""
        swallow, self._swallow = self._swallow, False
        return swallow

    def _flush_fence(self) -> None:
        if self._fence is None:
            self._swallow = False
            return
        line, self._fence = self._fence, None
        body = line.rstrip()
        self._add(self._space_before_fence + body)
        self._space.insert(0, line[len(body) :])

    def withdraw(self) -> str:
        """Takes back all text: it was none."""
        self._flush_fence()
        text = self.text + self._take_space()
        self.withdrawn = self._taken > 0
        self._pieces = []
        self._taken = 0
        self.begun = False
        return text

    def end(self) -> None:
        """The reply is over: white space at its end stays if no markup was taken out."""
        self._flush_fence()
        space = self._take_space()
        if not self._hidden and space:
            self._pieces.append(space)
