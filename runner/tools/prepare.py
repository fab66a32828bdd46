"""Deciding, before anything runs, whether a call may run (D1, D3, J3). Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from callformats import without_channel
from runner.conversation.cut import clip
from runner.conversation.units import ToolCall
from runner.host.events import Json
from runner.tools.arguments import BROKEN_IN_HISTORY, Arguments, Broken, Strays, read_arguments
from runner.tools.catalogue import Catalogue, Entry
from runner.tools.compact import compact_schema
from runner.tools.legal_names import legal_name
from runner.tools.results import ErrorCode

_SCHEMA_CHARACTERS = 2_000
_NAME_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class WantedCall:
    """A call as the model made it. `id` is unique in the run (`CallIds`); `arguments` is JSON text or an object.

    `certain` False: the name was mended, the arguments were repaired by the reader, or the call stood in a thought;
    such a call never reaches a tool that changes things (J3).
    """

    id: str
    name: str
    arguments: str | Mapping[str, object] | None
    provider_fields: Mapping[str, Json] | None = None
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Ready:
    """A call that may run. `values` go to the tool, `call` into the history, `notes` into the log, once a run.

    `mended`: it took more than parsing.
    """

    call: ToolCall
    entry: Entry
    values: dict[str, Json]
    notes: tuple[str, ...] = ()
    mended: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that never runs; `text` tells the model why and what would be right."""

    call: ToolCall
    code: ErrorCode
    text: str
    entry: Entry | None = None


def prepare(wanted: WantedCall, catalogue: Catalogue) -> Ready | Refused:
    """Reads one call and checks it against the tool's schema, where that can be evaluated."""
    wanted = replace(wanted, name=without_channel(wanted.name))
    entry = catalogue.get(wanted.name)
    if entry is None:
        return _unknown(wanted, catalogue)
    if entry.changes_things and not wanted.certain:
        return _refused(wanted, entry, "this tool changes things, so its call must be written plainly and exactly")
    wanted = replace(wanted, name=entry.name)
    drop = Strays.MARKED if entry.acts_once or entry.untold else Strays.ANY
    read = read_arguments(wanted.arguments, entry.accepts, strict=entry.changes_things, drop=drop, fields=entry.fields)
    if isinstance(read, Broken):
        return _refused(wanted, entry, read.problem)
    if read.problems:
        return _refused(wanted, entry, "; ".join(read.problems), read)
    if read.unchecked and not wanted.certain:
        return _refused(wanted, entry, "the call had to be mended, and the tool's schema cannot confirm it")
    return Ready(_call(wanted, read.text), entry, read.values, tuple(_notes(entry, read)), read.mended)


def _notes(entry: Entry, read: Arguments) -> Iterator[str]:
    if read.unchecked:
        yield f"tool {entry.label}: its arguments were not validated: {read.unchecked}"
    if read.stray:
        yield f"tool {entry.label} takes no arguments: those that the model gave it were dropped"


def _call(wanted: WantedCall, arguments: str) -> ToolCall:
    return ToolCall(wanted.id, wanted.name, arguments, wanted.provider_fields)


def _unknown(wanted: WantedCall, catalogue: Catalogue) -> Refused:
    near = catalogue.near(wanted.name)
    hint = f"Did you mean {' or '.join(near)}?" if near else "Use only the tools that are offered."
    name = clip(wanted.name, _NAME_CHARACTERS, lambda _: "…").text
    text = f'there is no tool named "{name}", so nothing was run. {hint}'
    read = read_arguments(wanted.arguments, {})
    arguments = read.text if isinstance(read, Arguments) else BROKEN_IN_HISTORY
    call = replace(_call(wanted, arguments), name=legal_name(wanted.name))
    return Refused(call, ErrorCode.UNKNOWN_TOOL, text)


def _refused(wanted: WantedCall, entry: Entry, problem: str, read: Arguments | None = None) -> Refused:
    expected = json.dumps(compact_schema(entry.spec.parameters), ensure_ascii=False, separators=(",", ":"))
    text = (
        f"the arguments of {entry.named} cannot be used: {problem}. Nothing was run. "
        f"Expected is an object of this schema: {clip(expected, _SCHEMA_CHARACTERS).text}"
    )
    return Refused(_call(wanted, read.text if read else BROKEN_IN_HISTORY), ErrorCode.INVALID_ARGUMENTS, text, entry)
