"""Texts of a request that were only to be read: a call without markers that stands in one of them is a quote (S1, S7).

What the person wrote who is answered is none of them: quoting their words may be just what they asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from runner.conversation.current import PINNED
from runner.conversation.request import Request
from runner.conversation.units import AssistantTurn, Reference, Text, UserTurn, newest_user

_LABELS = re.compile(r"^[\[⁅][^\[\]\n]{1,2000}\]", re.MULTILINE)
"""Names of people and files: the runner writes them in brackets, at the beginning of a line, and without any inside.
The bracket is inert where it makes a marker of the name (I6)."""


def foreign_texts(request: Request) -> tuple[str, ...]:
    """Results and knowledge; what skills, tools and the summary say of themselves; names; and in a group, or of an
    event, whole turns before the newest."""
    return tuple(_texts(request))


def _texts(request: Request) -> Iterator[str]:
    yield from request.system.added
    yield request.system.summary or ""
    for tool in request.tools:
        yield tool.description
        yield json.dumps(tool.parameters, ensure_ascii=False)
    newest = newest_user(request.units)
    for place, unit in enumerate(request.units):
        if isinstance(unit, AssistantTurn):
            yield from (result.text for result in unit.results)
        else:
            yield from _of_people(unit, whole=place < newest)


def _of_people(turn: UserTurn, *, whole: bool) -> Iterator[str]:
    for part in turn.parts:
        if isinstance(part, Reference):
            yield part.text
        elif isinstance(part, Text) and part.text.startswith(("[", "⁅")):
            yield from [part.text] if whole else _LABELS.findall(part.text)
        elif isinstance(part, Text):
            yield from _LABELS.findall(part.text)
            yield from filter(None, [part.text.partition(PINNED)[2]])
