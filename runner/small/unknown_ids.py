"""Ids in the arguments of a call that stand nowhere the model could have read them: it made them up (Sg). Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from runner.conversation.request import Request
from runner.conversation.units import AssistantTurn, Part, Text
from runner.guards import defang
from runner.host.events import Json

MOST_ASKED: Final = 3
"""Ids that are asked about in one run: a model that invents another each time is not held up for ever."""
UNKNOWN: Final = (
    "Your call was not run. {tool} got {field} {value}, which stands in no message and no result. Look it up with a "
    "tool or ask me for it. If it is right, call again."
)

_FIELD = re.compile(r"(?i:(?:^|[_-])(?:id|ids|uuid|guid)$)|[a-z](?:Id|ID|Ids|IDs|Uuid|UUID)$")
_SHAPE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[A-Z]{1,6}[-_#]\d{2,12}|[a-z]{2,6}_[A-Za-z0-9]{8,40}"
)
"""A UUID, `PX-204`, `cus_9s6XKzkNRiz8i3`: an id, whatever its field is called."""
_MOST_CHARACTERS = 100


def unknown_id(arguments: Mapping[str, Json], request: Request) -> tuple[str, str] | None:
    """Field and value of the first id in the arguments of a call that stands nowhere in the request; None without one.

    Looked at are the messages, results and schemas (defaults, examples and choices among them), not earlier calls.
    """
    found = list(_ids("", dict(arguments)))
    if not found:
        return None
    text = "\n".join(_read(request)).casefold()
    return next(((field, value) for field, value in found if not _stands_in(value.casefold(), text)), None)


def question_about(tool: str, field: str, value: str) -> str:
    """What the model is asked about such an id."""
    return defang(UNKNOWN.format(tool=tool, field=field, value=value))


def _ids(field: str, value: Json) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _ids(name, inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _ids(field, inner)
    elif isinstance(value, str | int) and not isinstance(value, bool):
        said = str(value).strip()
        if said and len(said) <= _MOST_CHARACTERS and (_FIELD.search(field) or _SHAPE.fullmatch(said)):
            yield field, said


def _stands_in(value: str, text: str) -> bool:
    """Whole, so that 1 does not stand in 10."""
    return re.search(rf"(?<![0-9a-z]){re.escape(value)}(?![0-9a-z])", text) is not None


def _read(request: Request) -> Iterator[str]:
    """All that the model has read, or had said in words."""
    yield from _texts(request.system.parts)
    yield from (*request.system.added, request.system.summary or "")
    for unit in request.units:
        if isinstance(unit, AssistantTurn):
            yield unit.text
            yield from (result.text for result in unit.results)
        else:
            yield from _texts(unit.parts)
    for tool in request.tools:
        yield tool.description
        yield json.dumps(tool.parameters, ensure_ascii=False)


def _texts(parts: Sequence[Part]) -> Iterator[str]:
    return (part.text for part in parts if isinstance(part, Text))
