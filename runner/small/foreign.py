"""Texts of a request that were only to be read: a call that stands in one of them is a quotation (I5, S1, S7).

What the person wrote who is answered is none of them: quoting their words may be just what they asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from callformats import CallKey, ForeignText, call_key, framed
from runner.conversation.current import PINNED
from runner.conversation.request import Request, ToolSpec
from runner.conversation.speakers import GROUP_LINE
from runner.conversation.units import AssistantTurn, Reference, Text, ToolCall, Unit, UserTurn, newest_user
from runner.host.events import Json

_LABELS = re.compile(r"^(?:> )?[\[⁅][^\[\]\n]{1,2000}\]", re.MULTILINE)
"""Names of people and files: the runner writes them in brackets, at the beginning of a line, and without any inside.
The bracket is inert where it makes a marker of the name (I6)."""

_FILE_LABELS = re.compile(r"^\[\w{1,20}: [^\[\]\n]{1,2000}\]$", re.MULTILINE)
"""The same of files alone: in a private chat nobody is named, and other brackets are the person's own words."""

_QUOTED_LINES = re.compile(r"^> [^\n]+(?:\n> [^\n]*)*", re.MULTILINE)


def foreign_texts(request: Request, began: Unit | None = None) -> tuple[ForeignText, ...]:
    """Results and knowledge; what skills, tools and the summary say of themselves; names; the data of an event; and in
    a group whole turns before the newest, and what the newest quotes.

    `began`: the user turn with which this run began. Calls count as the model's own, whatever a text says, where it
    had made them in this run before that text came; for a text of an earlier run, before that (tools echo requests).
    """
    system = (*request.system.added, request.system.summary or "")
    return (
        *map(ForeignText, system),
        *(text for tool in request.tools for text in _of_tool(tool)),
        *_of_units(request, began),
    )


def _of_tool(tool: ToolSpec) -> Iterator[ForeignText]:
    """That a tool's own description says `list_rooms()` does not keep it from being called."""
    own = frozenset({call_key(tool.name, {})})
    yield ForeignText(tool.description, own)
    yield ForeignText(json.dumps(tool.parameters, ensure_ascii=False), own)


def _of_units(request: Request, began: Unit | None) -> Iterator[ForeignText]:
    group, newest = GROUP_LINE in request.system.added, newest_user(request.units)
    made: frozenset[CallKey] = frozenset()
    for place, unit in enumerate(request.units):
        if unit is began:
            made = frozenset()
        if isinstance(unit, AssistantTurn):
            made |= {_key_of(call) for call in unit.calls}
            yield from (ForeignText(result.text, made, goes_on=True) for result in unit.results)
        else:
            said = filter(None, _of_people(unit, group, place < newest))
            yield from (ForeignText(text, made, goes_on=True) for text in said)


def _key_of(call: ToolCall) -> CallKey:
    arguments: Json = json.loads(call.arguments)
    return call_key(call.name, arguments)


def _of_people(turn: UserTurn, group: bool, before_newest: bool) -> Iterator[str]:
    for part in turn.parts:
        if isinstance(part, Reference) or (isinstance(part, Text) and group and before_newest):
            yield part.text
        elif isinstance(part, Text):
            yield from (_LABELS if group else _FILE_LABELS).findall(part.text)
            yield from framed(part.text)
            yield from _QUOTED_LINES.findall(part.text) if group else ()
            yield part.text.partition(PINNED)[2]
