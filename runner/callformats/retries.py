"""When text that is held back is worth reading again: seldom enough that the work stays linear in the reply."""

from __future__ import annotations

from runner.callformats.tokens import closer_pattern

_ALWAYS = 48  # characters: text this short is tried at every chunk
_GROWTH = 1.25
_EAGER_CLOSERS = 8


class Retries:
    """One block at a time: it is tried again when it has grown by a quarter, and at its first few closers."""

    def __init__(self) -> None:
        self._next = 0
        self._eager = _EAGER_CLOSERS

    def due(self, size: int) -> bool:
        """Whether held text of `size` characters is tried whatever has come."""
        return size >= self._next or size <= _ALWAYS

    def closed(self, text: str, fresh: int) -> bool:
        """Whether a closer stands in the text from `fresh` on that is worth a try."""
        if self._eager == 0 or closer_pattern().search(text, fresh) is None:
            return False
        self._eager -= 1
        return True

    def wait(self, size: int) -> None:
        """A try came to nothing: `size` characters are held."""
        self._next = int(size * _GROWTH)

    def advance(self) -> None:
        """A try begins."""
        self._next = 0

    def renew(self) -> None:
        """A block is done with: the next one starts anew."""
        self._next = 0
        self._eager = _EAGER_CLOSERS
