"""The tools a run may offer, under names every provider takes (D1)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from langbot_plugin.api.entities.builtin.runner.resources import ToolResource

from runner.conversation.cut import clip, sendable
from runner.conversation.names import one_line
from runner.conversation.request import ToolSpec
from runner.guards import defang
from runner.host.events import Json
from runner.tools.legal_names import TOOL_NAME_CHARACTERS, is_tool_name, stem, with_digest
from runner.tools.offering import SEEN, Offer, Unofferable

ACTIVATE = "activate"
"""The Host's tool that loads a skill."""

SANDBOX_TOOLS = frozenset({"exec", "read", "write", "edit", "glob", "grep"})
"""Builtin tools that need a bound Box."""

DESCRIPTION_CHARACTERS = 4_000
_NEAR_NAMES = 3
_NOTED = 8
"""So many tools of one kind are named in the log; the others are counted."""
_READING_NAMES = re.compile(r"(?:get|list|read|search|event_get|platform_get)_")
_READING_BUILTINS = frozenset({"read", "glob", "grep"})
_SENDING_TOOLS = frozenset({"event_reply", "platform_send_message"})


class Kind(StrEnum):
    """Where a tool comes from; decides how its result is read."""

    BUILTIN = "builtin"
    SKILL = "skill"
    PLUGIN = "plugin"
    MCP = "mcp"
    PLATFORM = "platform"


_READING_PLATFORM = ("event_get_", "platform_get_")
_KNOWN_TO_READ = {
    Kind.BUILTIN: _READING_BUILTINS,
    Kind.SKILL: frozenset({"list_skill_resources", "read_skill_resource"}),
    Kind.MCP: frozenset({"langbot_mcp_list_resources", "langbot_mcp_read_resource"}),
}
"""The Host's own tools, beside those of `_READING_PLATFORM`, that change nothing."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool on offer. `spec.name` is what the model calls it, `host_name` what the Host calls it.

    `read_only` is a hint from the name (S3), `known_to_read` is sure: the Host's own tools of a closed list (K9, M1).
    `changes_things` marks the platform tools of J3: strict arguments, no
    repair, once for a call. `lane`: calls of one lane never run beside each other (`activate`, platform tools). `own`:
    a tool of the loop itself, which the Host does not know. `untold`: the Host gave no schema, so the tool may take
    more than anybody was told. `own_schema` is what arguments are checked against where the offered one says less, and
    `fields` maps offered names of fields to the tool's own ones (K3).
    """

    spec: ToolSpec
    host_name: str
    kind: Kind
    read_only: bool = False
    known_to_read: bool = False
    changes_things: bool = False
    lane: str | None = None
    own: bool = False
    untold: bool = False
    own_schema: Mapping[str, Json] | None = None
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def acts_once(self) -> bool:
        """Whether it does something on the platform, be it only sending: what is wished once is done once (J3, K4)."""
        return self.kind is Kind.PLATFORM and not self.read_only

    @property
    def label(self) -> str:
        """The name for people: the tool's own one where that cannot be sent to a model (D1). One line, harmless."""
        return self.name if is_tool_name(self.host_name) else one_line(self.host_name) or self.name

    @property
    def named(self) -> str:
        """The name for models, who also read the tool's own one in prompts (D1)."""
        return self.name if self.label == self.name else f"{self.name} ({self.label})"

    @property
    def accepts(self) -> Mapping[str, Json]:
        """The schema that arguments are checked against."""
        return self.spec.parameters if self.own_schema is None else self.own_schema

    @property
    def is_sandbox(self) -> bool:
        return self.kind is Kind.BUILTIN and self.host_name in SANDBOX_TOOLS


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The tools of a run in the Host's order; `notes` are lines for the log about what was left out or changed."""

    entries: tuple[Entry, ...] = ()
    notes: tuple[str, ...] = ()
    _by_name: Mapping[str, Entry] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        named = {entry.host_name: entry for entry in self.entries if not is_tool_name(entry.host_name)}
        object.__setattr__(self, "_by_name", named | {entry.name: entry for entry in self.entries})

    @classmethod
    def build(cls, resources: Sequence[ToolResource], *, hide_sandbox: bool, reserved: Iterable[str] = ()) -> Self:
        """Only tools granted for `call` (no operations listed = all of them); see `Entry` for what is derived.

        `hide_sandbox` leaves out the builtin sandbox tools (H1). `reserved` names are never given to a tool: the
        loop's own pseudo-tools. Deterministic: the same resources give the same names. Takes a millisecond for each new
        tool: call it in a thread where there may be many (L12).
        """
        notes = _Notes()
        granted = list(_callable(resources, hide_sandbox, notes))
        names = _Names(reserved, (tool.tool_name for tool in granted))
        entries = (_entry(tool, names, notes) for tool in granted)
        return cls(tuple(entry for entry in entries if entry is not None), notes.lines())

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def get(self, name: str) -> Entry | None:
        """The tool of that name as the model knows it, or its own name where that cannot be sent."""
        return self._by_name.get(name)

    def label(self, name: str) -> str:
        """The name for people of the tool that a model calls so (D1); what a model made up stays."""
        entry = self.get(name)
        return entry.label if entry else name

    def has_host_tool(self, host_name: str) -> bool:
        """Whether the Host's tool of that name is on offer (for example `activate`)."""
        return any(entry.host_name == host_name for entry in self.entries)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(entry.spec for entry in self.entries)

    def near(self, name: str) -> tuple[str, ...]:
        """The names most like one that does not exist, best first."""
        known = [entry.name for entry in self.entries]
        near = difflib.get_close_matches(name[:TOOL_NAME_CHARACTERS].lower(), known, n=_NEAR_NAMES, cutoff=0.5)
        return tuple(near)

    def with_own(self, entry: Entry) -> Catalogue:
        """The same catalogue with a tool of the loop itself; its name must have been reserved."""
        return Catalogue((*self.entries, entry), self.notes)

    def only(self, keep: Callable[[Entry], bool]) -> Catalogue:
        """The same catalogue with some tools gone (a failed sandbox, `event_reply` under J2)."""
        return Catalogue(tuple(entry for entry in self.entries if keep(entry)), self.notes)


def sandbox_tools_of(resources: Sequence[ToolResource]) -> frozenset[str]:
    """The Host's names of the sandbox tools that may be called."""
    return frozenset(tool.tool_name for tool in resources if _is_sandbox(tool) and may_be_called(tool))


def may_be_called(tool: ToolResource) -> bool:
    """Whether the Host lets this run call a tool; no operations listed = all of them."""
    return not tool.operations or "call" in tool.operations


def _is_sandbox(tool: ToolResource) -> bool:
    return tool.tool_type == Kind.BUILTIN and tool.tool_name in SANDBOX_TOOLS


def _callable(resources: Sequence[ToolResource], hide_sandbox: bool, notes: _Notes) -> Iterator[ToolResource]:
    seen: dict[str, list[ToolResource]] = {}
    for tool in resources:
        if not may_be_called(tool):
            continue
        if not tool.tool_name:
            notes.add("left out", "a tool without a name")
            continue
        if hide_sandbox and _is_sandbox(tool):
            continue
        twins = seen.setdefault(tool.tool_name, [])
        if tool in twins:
            continue
        if twins:
            notes.add("offered by two sources", _loggable(tool.tool_name))
        twins.append(tool)
        yield tool


def _entry(tool: ToolResource, names: _Names, notes: _Notes) -> Entry | None:
    offer = SEEN.offer(tool.parameters)
    if isinstance(offer, Unofferable):
        notes.add("left out", f"{_loggable(tool.tool_name)}: {offer.why}")
        return None
    kind = Kind(tool.tool_type) if tool.tool_type in set(Kind) else Kind.PLUGIN
    name = names.give(tool.tool_name, kind)
    if offer.note:
        notes.add("changed", f"{name}: {offer.note}")
    if name != tool.tool_name:
        notes.add("renamed", f"{_loggable(tool.tool_name)} is offered as {name}")
    own_name = "" if is_tool_name(tool.tool_name) else one_line(tool.tool_name)
    return Entry(
        spec=ToolSpec(
            name,
            _description(own_name, tool.description or "", offer),
            offer.schema,
            altered=offer.altered,
        ),
        host_name=tool.tool_name,
        kind=kind,
        read_only=_reads(tool.tool_name, kind),
        known_to_read=_known_to_read(tool.tool_name, kind),
        changes_things=_changes_things(tool.tool_name, kind),
        lane=_lane(tool.tool_name, kind),
        own_schema=None if offer.schema is offer.own else offer.own,
        fields=offer.fields,
        untold=tool.parameters is None,
    )


def _description(own_name: str, description: str, offer: Offer) -> str:
    """The tool's own name where it cannot be sent, its description, and what the offered schema has no word for."""
    beginning = ": ".join(filter(None, [own_name, description]))
    room = DESCRIPTION_CHARACTERS - len(offer.told) - 1
    return defang(sendable("\n".join(filter(None, [clip(beginning, room).text, offer.told]))))


def _reads(host_name: str, kind: Kind) -> bool:
    if kind is Kind.BUILTIN:
        return host_name in _READING_BUILTINS
    return _READING_NAMES.match(host_name) is not None


def _known_to_read(host_name: str, kind: Kind) -> bool:
    """The Host tells of no tool what it does, and a name is only a name: a plugin's `get_all` may well delete."""
    return host_name in _KNOWN_TO_READ.get(kind, ()) or (
        kind is Kind.PLATFORM and host_name.startswith(_READING_PLATFORM)
    )


def _changes_things(host_name: str, kind: Kind) -> bool:
    """Every platform tool but reading and sending ones, so that a new tool of a later Host is on the safe side (J3)."""
    return kind is Kind.PLATFORM and not _reads(host_name, kind) and host_name not in _SENDING_TOOLS


def _lane(host_name: str, kind: Kind) -> str | None:
    if kind is Kind.SKILL and host_name == "activate":
        return "activate"
    if kind is Kind.PLATFORM and not _reads(host_name, kind):
        return "platform"  # sending ones too: two replies must not change places
    return None


def _loggable(name: str) -> str:
    return repr(sendable(name[:80]))


class _Notes:
    """What was done to the tools, by kind: one line for each, however many tools there are (D1)."""

    def __init__(self) -> None:
        self._told: dict[str, list[str]] = {}

    def add(self, kind: str, what: str) -> None:
        self._told.setdefault(kind, []).append(what)

    def lines(self) -> tuple[str, ...]:
        return tuple(f"tools {kind}: {_some(told)}" for kind, told in self._told.items())


def _some(told: Sequence[str]) -> str:
    more = len(told) - _NOTED
    return ", ".join([*told[:_NOTED], *([f"and {more} more"] if more > 0 else [])])


class _Names:
    """Gives each tool a unique name that providers take.

    A name that is legal as it stands is kept by its first owner, wherever a sanitised one would come out the same. A
    changed name ends with a hash of the original where letters were lost to it, so it does not depend on the order.
    """

    def __init__(self, reserved: Iterable[str], host_names: Iterable[str]) -> None:
        self._used = set(reserved)
        self._kept = {name for name in host_names if is_tool_name(name)}

    def give(self, host_name: str, kind: Kind) -> str:
        for name in self._wishes(host_name, kind):
            if name not in self._used and (name == host_name or name not in self._kept):
                self._used.add(name)
                return name
        raise AssertionError("the wishes never end")

    def _wishes(self, host_name: str, kind: Kind) -> Iterator[str]:
        if host_name in self._kept:
            yield host_name
            wish = f"{host_name}_{kind.value}"[:TOOL_NAME_CHARACTERS]
        else:
            legal = stem(host_name, "tool")
            if legal and len(legal) <= TOOL_NAME_CHARACTERS and host_name.isascii():
                yield legal
            wish = with_digest(host_name, "tool")
        yield wish
        number = 2
        while True:
            ending = f"_{number}"
            yield wish[: TOOL_NAME_CHARACTERS - len(ending)] + ending
            number += 1
