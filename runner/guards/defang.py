"""Makes control markers in untrusted text inert, and turns them back (S7).

One character of a marker is exchanged for one that looks alike (`<tool_call>` becomes `‹tool_call>`), so lengths stay,
people can read it, no tokenizer takes it for a special token, and no reader of call formats for a call. Linear time.

What is put together of several texts goes through `defang` once more when it is whole (I6): a name alone is harmless,
and so are the brackets around it, but a person called INST makes `[INST]` of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from callformats import INERT, all_markers
from runner.guards.frame_lines import with_frame_lines
from runner.guards.literals import shapes_of
from runner.guards.markers import SHAPES, Shape
from runner.guards.strings import in_strings
from runner.host.events import Json

_LIVE = {inert: live for live, inert in INERT.items()}


def defang(text: str) -> str:
    """The same text with every control marker inert; as long as before (characters), and idempotent (S7)."""
    return _patterns(all_markers())[0].sub(lambda match: INERT[match[0]], text)


def restore(text: str) -> str:
    """Turns inert markers back: `restore(defang(text)) == text` unless `text` held inert forms of its own (S7). Lines
    that `frame` changed come back with them."""
    return with_frame_lines(_patterns(all_markers())[1].sub(lambda match: _LIVE[match[0]], text))


def restore_value(value: Json) -> Json:
    """`restore` for every string in a call's arguments, keys included, so that an `edit` matches its file (S7)."""
    return in_strings(value, restore)


@lru_cache(maxsize=4)
def _patterns(literals: frozenset[str]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What finds live markers, and what finds inert ones: the shapes of `guards.markers`, and those of the call formats
    that they do not cover."""
    known = _pattern(SHAPES, {})
    shapes = (*SHAPES, *(shape for literal in literals if not known.search(literal) for shape in shapes_of([literal])))
    return _pattern(shapes, {}), _pattern(shapes, INERT)


def _pattern(shapes: Iterable[Shape], spelling: Mapping[str, str]) -> re.Pattern[str]:
    """Finds the characters to exchange; `spelling` says how each is written now.

    The characters stand first and alone, so that text without any of them is passed over quickly.
    """
    kinds: dict[str, list[Shape]] = {}
    for shape in shapes:
        kinds.setdefault(spelling.get(shape.char, shape.char), []).append(shape)
    heads = "".join(map(re.escape, kinds))
    return re.compile(f"[{heads}](?:{'|'.join(_kind(head, of) for head, of in kinds.items())})")


def _kind(head: str, shapes: list[Shape]) -> str:
    head = re.escape(head)
    return f"(?<={head})(?:{'|'.join(_around(head, shape) for shape in shapes)})"


def _around(head: str, shape: Shape) -> str:
    # A look-behind counts the character too, since that is behind us.
    before = f"(?<={shape.behind}{head})" if shape.behind else ""
    return f"{before}(?={shape.ahead})" if shape.ahead else before


_patterns(all_markers())  # when the worker starts, so that no run waits for it
