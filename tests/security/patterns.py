"""Every regular expression of the agent against texts made to blow it up; run as a program of its own, so that one
that never comes back can be ended.

`python -m tests.security.patterns` prints one JSON line for each pattern whose work grows faster than the text.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import callformats
import config
import runner

SHORT, LONG = 3_000, 12_000
GROWTH = 8.0
"""Four times the text may take so many times the work; quadratic work takes 16 times as much."""

FLOOR = 0.02
"""Seconds of CPU below which a long text is read fast enough; quadratic work on it takes half a second and more."""

_MOST_UNITS = 9
_ANCHORED = frozenset({"_DOUBLE_QUOTED", "_SINGLE_QUOTED"})
"""Matched where a quote stands, and a string without an end stops the reading: never looked for again."""

_SEARCHES = ("search", "finditer", "findall", "sub", "subn", "split")


def modules() -> Iterator[Any]:
    for package in (callformats, runner, config):
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(found.name)


def patterns() -> dict[str, re.Pattern[str]]:
    """All compiled patterns of the agent, those in tables included, by where they stand."""
    found: dict[str, re.Pattern[str]] = {}
    seen: set[int] = set()
    for module in modules():
        for name, value in vars(module).items():
            for place, pattern in _inside(value, name):
                if id(pattern) not in seen:
                    seen.add(id(pattern))
                    found[f"{module.__name__}.{place}"] = pattern
    return found


def _inside(value: object, place: str, depth: int = 0) -> Iterator[tuple[str, re.Pattern[str]]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield place, value
    elif depth < 4 and isinstance(value, dict):
        for key, item in value.items():
            yield from _inside(item, f"{place}[{key!r}]", depth + 1)
    elif depth < 4 and isinstance(value, list | tuple | set | frozenset):
        for number, item in enumerate(value):
            yield from _inside(item, f"{place}[{number}]", depth + 1)
    elif depth < 3 and type(value).__module__.startswith(("runner.", "callformats.")) and not isinstance(value, type):
        for name in getattr(type(value), "__dataclass_fields__", ()):
            yield from _inside(getattr(value, name), f"{place}.{name}", depth + 1)


def units(pattern: re.Pattern[str]) -> list[str]:
    """Pieces of what a pattern looks for: its letters, its words, and both after one another."""
    words = list(dict.fromkeys(filter(None, _words(parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)))))
    singles = list(dict.fromkeys(character for word in words for character in word))
    pairs = [one + other for one in words[:6] for other in words[:6] if one != other]
    picked = dict.fromkeys([*words[:10], *singles[:8], " ", "a", "\n", *pairs])
    return list(picked)[:_MOST_UNITS]


def _words(parsed: Iterable[Any]) -> Iterator[str]:
    """Runs of literals, and a character of each class, in their order."""
    word = ""
    for code, value in parsed:
        if code is sre.LITERAL:
            word += chr(value)
            continue
        yield word
        word = ""
        yield from _of(code, value)
    yield word


def _of(code: object, value: Any) -> Iterator[str]:
    if code is sre.IN:
        yield from (_sample(item) for item in value)
    elif code in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        yield from _words(value[2])
    elif code is sre.SUBPATTERN:
        yield from _words(value[3])
    elif code is sre.BRANCH:
        for branch in value[1]:
            yield from _words(branch)
    elif code in (sre.ASSERT, sre.ASSERT_NOT):
        yield from _words(value[1])
    elif code is sre.ATOMIC_GROUP:
        yield from _words(value)


def _sample(item: tuple[object, Any]) -> str:
    code, value = item
    if code is sre.LITERAL:
        return chr(value)
    if code is sre.RANGE:
        return chr(value[0])
    return {sre.CATEGORY_DIGIT: "1", sre.CATEGORY_SPACE: " ", sre.CATEGORY_WORD: "a"}.get(value, "")


def texts(unit: str, size: int) -> list[str]:
    """The unit again and again, as it is, behind a beginning and before an end that fit nothing."""
    body = (unit * (size // len(unit) + 1))[:size]
    return [body, f"\x00{body}\n!\x00"]


def is_searched(place: str) -> bool:
    """Whether a pattern is looked for anywhere in a text, not only where something begins: read from its module. What
    stands in a table is taken to be."""
    module, _, name = place.rpartition(".")
    if name in _ANCHORED:
        return False
    if not name.isidentifier() or module not in sys.modules:
        return True
    source = inspect.getsource(sys.modules[module])
    uses = re.findall(rf"\b{re.escape(name)}\.(\w+)\(", source)
    return not uses or any(use in _SEARCHES for use in uses)


def seconds(pattern: re.Pattern[str], text: str, *, anywhere: bool) -> float:
    """CPU time of finding everything the pattern finds."""
    start = time.process_time()
    for _ in pattern.finditer(text) if anywhere else ():
        pass
    pattern.match(text)
    pattern.fullmatch(text)
    return time.process_time() - start


def grows(pattern: re.Pattern[str], unit: str, *, anywhere: bool) -> float | None:
    """How many times more work four times the text is, where that is too much."""
    for short, long in zip(texts(unit, SHORT), texts(unit, LONG), strict=True):
        slow = seconds(pattern, long, anywhere=anywhere)
        if slow < FLOOR:
            continue
        quick = min(seconds(pattern, short, anywhere=anywhere) for _ in range(2))
        if slow > GROWTH * quick:
            return slow / max(quick, 1e-6)
    return None


def main() -> None:
    for place, pattern in patterns().items():
        anywhere = is_searched(place)
        for unit in units(pattern):
            if (growth := grows(pattern, unit, anywhere=anywhere)) is not None:
                told = {"place": place, "pattern": pattern.pattern[:200], "unit": unit, "growth": round(growth, 1)}
                print(json.dumps(told, ensure_ascii=False), flush=True)  # noqa: T201 - a command
                break


if __name__ == "__main__":
    main()
