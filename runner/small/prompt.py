"""The lines a weak model gets beside the owner's prompt (S3). Each is counted in a test table (S6)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from callformats import render
from runner.conversation.cut import head
from runner.conversation.request import ToolSpec
from runner.guards import defang
from runner.host.events import Json
from runner.small.forms import WrittenCall
from runner.tools.results import ErrorCode

EXAMPLE_LINE: Final = "For example, a call of {tool} looks like this (with values of your own):"
CODES_LINE: Final = "A failed call reads `Error [code]: …`. What the codes mean:"
SITE_HEADING: Final = "# About this place"
PLACE_LINE: Final = "You are in a chat on {place}."
RESTATED: Final = "[My request was: {request}]\n{line}"
AFTER_FAILURE: Final = "Do the next step for it. If it is done, {answer}, as found above."
ANSWER_BY_TOOL: Final = "call {tool} with the answer to my request"
ANSWER: Final = "answer my request"
AFTER_SUCCESS: Final = (
    "What was done or found for it? {tell} in one sentence, in my language. Only if a part of my request is still "
    "open, do that first."
)
TELL_BY_TOOL: Final = "Call {tool} and tell me"
TELL: Final = "Tell me"
"""A small model takes a result for something the user told it, thanks for it and keeps the facts to itself, unless it
is told where they belong: measured on the 1.5B. Told to do the next step, it finds one where there is none (Sf)."""

CODES: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.INVALID_ARGUMENTS: "the arguments were wrong; correct them and call again",
    ErrorCode.UNKNOWN_TOOL: "there is no such tool; use a name from the list",
    ErrorCode.TIMEOUT: "no answer in time; do not simply repeat it",
    ErrorCode.FAILED: "the tool could not do it; try another way or tell the user",
    ErrorCode.CANCELLED: "it was stopped before it was done",
    ErrorCode.LIMIT: "it was not run, because a limit was reached",
    ErrorCode.WAITING: "it waits until a person agrees; do not call it again",
}
_REQUEST_CHARACTERS = 500
_PLACE_CHARACTERS = 80


def worked_call(tool: ToolSpec, form: str | None) -> str:
    """One call of the tool as the model should write it: arguments alone where the provider writes the rest."""
    arguments = example_arguments(tool.parameters)
    if form is None:
        return f"{tool.name} {json.dumps(arguments, ensure_ascii=False)}"
    return render(WrittenCall(tool.name, arguments), form)


def example_arguments(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Values that the schema accepts, as far as it is simple: what is required, or the first field."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    required = schema.get("required")
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    return {name: _example(name, properties.get(name)) for name in names or list(properties)[:1]}


def _example(name: str, schema: Json) -> Json:
    if not isinstance(schema, dict):
        return f"the {name}"
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    kinds = schema.get("type")
    kind = kinds[0] if isinstance(kinds, list) and kinds else kinds
    minimum = schema.get("minimum")
    match kind:
        case "integer" | "number":
            return minimum if isinstance(minimum, int | float) else 1
        case "boolean":
            return True
        case "array":
            return [_example(name, schema.get("items"))]
        case "object":
            return dict(example_arguments(schema))
        case "null":
            return None
        case _:
            return f"the {name}"


def restated(request: str, *, answer_by: str | None, failed: bool) -> str:
    """The newest request once more, after a step of tools; in the prompt only.

    `answer_by`: the tool for answers. `failed`: something in that step did not work, so nothing is called done (Sf).
    """
    if failed:
        line = AFTER_FAILURE.format(answer=ANSWER if answer_by is None else ANSWER_BY_TOOL.format(tool=answer_by))
    else:
        line = AFTER_SUCCESS.format(tell=TELL if answer_by is None else TELL_BY_TOOL.format(tool=answer_by))
    return defang(RESTATED.format(request=head(" ".join(request.split()), _REQUEST_CHARACTERS), line=line))


def lines(example: str | None, tool: str | None, site: str, place: Sequence[str]) -> tuple[str, ...]:
    """The blocks for the system message; nothing for what does not apply.

    `place` names where the chat is, platform and group, as others wrote it.
    """
    blocks: list[str] = []
    where = ", ".join(filter(None, (_named(name) for name in place)))
    if where:
        blocks.append(defang(PLACE_LINE.format(place=where)))
    if site.strip():
        blocks.append(f"{SITE_HEADING}\n{site.strip()}")
    if example and tool:
        blocks.append(f"{EXAMPLE_LINE.format(tool=tool)}\n{example}")
    return tuple(blocks)


def meaning_of(codes: Collection[ErrorCode]) -> tuple[str, ...]:
    """The block on the error codes in use, none without any. It comes with a failure, so it stands last (L8)."""
    if not codes:
        return ()
    return ("\n".join([CODES_LINE, *(f"- {code.value}: {CODES[code]}" for code in ErrorCode if code in codes)]),)


def _named(name: str) -> str:
    return head(" ".join(name.split()), _PLACE_CHARACTERS)
