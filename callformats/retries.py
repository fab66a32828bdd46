"""What has come of a reply and was not gone over yet, and when it is worth that: seldom enough that the work stays
linear in the reply."""

from __future__ import annotations

from callformats.scan import next_match
from callformats.tokens import closer_pattern, tokens

_ALWAYS = 48  # characters: text this short is tried at every chunk
_GROWTH = 1.25
_EAGER_CLOSERS = 8


class Retries:
    """One block at a time: it is tried again when it has grown by a quarter, and at its first few closers.

    `looked` counts the characters in which closers were looked for.
    """

    def __init__(self) -> None:
        self._next = 0
        self._eager = _EAGER_CLOSERS
        self._pieces: list[str] = []
        self._size = 0
        self._newest = ""
        self.looked = 0

    def due(self, held: int, chunk: str) -> bool:
        """Whether a try is worth it when `chunk` comes to what waits here and to `held` characters before that."""
        size = held + self._size + len(chunk)
        return size >= self._next or size <= _ALWAYS or self._closes(chunk)

    def add(self, chunk: str) -> None:
        """A chunk came. It waits here until it is taken."""
        if self._closes(chunk):
            self._eager -= 1
        self._pieces.append(chunk)
        self._size += len(chunk)
        self._newest = (self._newest + chunk)[-tokens().longest :]

    def take(self) -> str:
        """All that waits here: a try begins."""
        text = "".join(self._pieces)
        self._pieces.clear()
        self._size = self._next = 0
        return text

    def wait(self, size: int) -> None:
        """A try came to nothing: `size` characters are held."""
        self._next = int(size * _GROWTH)

    def renew(self) -> None:
        """A block is done with: the next one starts anew."""
        self._next = 0
        self._eager = _EAGER_CLOSERS

    def _closes(self, chunk: str) -> bool:
        """Whether a closer ends in the chunk that is worth a try."""
        if self._eager == 0:
            return False
        self.looked += len(self._newest) + len(chunk)
        return next_match(closer_pattern(), self._newest + chunk, 0) is not None
