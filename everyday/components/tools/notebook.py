"""A notebook of one chat: short notes, a bounded number of them, in the order in which they were made."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from .failing import CannotDo

MOST_NOTES: Final = 100
MOST_CHARACTERS: Final = 500

Notes = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Notebook:
    """`load` gives what was stored last (b"" for nothing), `save` stores."""

    load: Callable[[], Awaitable[bytes]]
    save: Callable[[bytes], Awaitable[None]]

    async def add(self, text: str) -> str:
        """Adds a note and says so; one that is there already is not added again. Raises CannotDo when it is full."""
        note = " ".join(text.split())
        if not note or len(note) > MOST_CHARACTERS:
            raise CannotDo(f"a note has 1 to {MOST_CHARACTERS} characters")
        notes = read(await self.load())
        if note in notes:
            return f"The note is there already: {note}"
        if len(notes) >= MOST_NOTES:
            raise CannotDo(f"the notebook is full: it holds {MOST_NOTES} notes")
        await self.save(json.dumps([*notes, note], ensure_ascii=False).encode())
        return f"Noted: {note}"

    async def list(self) -> str:
        """Every note, numbered from 1."""
        notes = read(await self.load())
        return _numbered(f"There are {len(notes)} notes", notes) if notes else "The notebook is empty."

    async def search(self, words: str) -> str:
        """The notes that hold one of the words, those with the most of them first."""
        wanted = words.casefold().split()
        if not wanted:
            raise CannotDo("give a word to look for")
        notes = read(await self.load())
        hits = [(sum(word in note.casefold() for word in wanted), note) for note in notes]
        found = tuple(note for count, note in sorted(hits, key=lambda hit: -hit[0]) if count)
        if not found:
            return f"None of the {len(notes)} notes holds it."
        return _numbered(f"{len(found)} of {len(notes)} notes", found)


def read(stored: bytes) -> Notes:
    """The notes in what was stored; none where that is damaged."""
    try:
        found = json.loads(stored or b"[]")
    except (ValueError, RecursionError):
        return ()
    return tuple(note for note in found if isinstance(note, str)) if isinstance(found, list) else ()


def _numbered(heading: str, notes: Notes) -> str:
    return "\n".join([f"{heading}:", *(f"{number}. {note}" for number, note in enumerate(notes, 1))])
