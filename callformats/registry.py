"""All formats. Each module of `callformats.formats` lists its own in `FORMATS`; nothing else here names them."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from callformats import formats as _package
from callformats.block import Format
from callformats.thoughts import ANSWER_TAGS, NOISE, RESULT_TOKENS, RESULTS, THOUGHTS


@cache
def all_formats() -> tuple[Format, ...]:
    """Every known format, in the order of their modules' names."""
    names = sorted(module.name for module in pkgutil.iter_modules(_package.__path__))
    modules = [importlib.import_module(f"{_package.__name__}.{name}") for name in names]
    found: tuple[Format, ...] = tuple(one for module in modules for one in getattr(module, "FORMATS", ()))
    return found


@cache
def by_name() -> dict[str, Format]:
    """Formats by id and by the names other projects give them."""
    named: dict[str, Format] = {}
    for one in all_formats():
        for name in (one.id, *one.aliases):
            if name in named:
                raise ValueError(f"two formats are named {name!r}")
            named[name] = one
    return named


def format_named(name: str) -> Format:
    """The format with this id or alias. Raises ValueError with the known names."""
    try:
        return by_name()[name]
    except KeyError:
        raise ValueError(f"no call format named {name!r}; known: {', '.join(sorted(by_name()))}") from None


def known_id(name: str | None) -> str | None:
    """The id of the format named; None for `native`, `auto` and names of others: every format is read anyway (S1)."""
    known = by_name().get(name) if name is not None else None
    return known.id if known is not None else None


@cache
def by_opener() -> dict[str, tuple[Format, ...]]:
    """Which formats may begin at a literal."""
    found: dict[str, list[Format]] = {}
    for one in all_formats():
        for opener in one.opens:
            found.setdefault(opener, []).append(one)
    return {opener: tuple(formats) for opener, formats in found.items()}


def all_closers() -> frozenset[str]:
    """Literals that end a block of some format; a stray one is no text for the user."""
    return frozenset(closer for one in all_formats() for closer in one.closes)


@cache
def all_markers() -> frozenset[str]:
    """Every literal that means something in a reply and is no plain sentence: what a stranger's text must not hold as
    it is (I6). A closer counts where it has a letter: "```" is anybody's; what stands inside of a call, where it has a
    bracket: `call:` is."""
    pairs = [marks for marks in (*THOUGHTS, *RESULTS) if not marks.leads]
    of_turns = (*(marks.opens for marks in pairs), *(marks.closes for marks in pairs), *RESULT_TOKENS, *NOISE)
    of_calls = [literal for one in all_formats() for literal in one.opens]
    inside = [literal for one in all_formats() for literal in one.inner if {"<", "["} & set(literal)]
    closers = [literal for literal in all_closers() if any(map(str.isalpha, literal))]
    return frozenset((*of_turns, *ANSWER_TAGS, *of_calls, *inside, *closers))
