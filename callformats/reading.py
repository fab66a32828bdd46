"""What a reply turns out to be: visible text, thought, calls, and why something was no call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from callformats.json_value import Json


@dataclass(frozen=True, slots=True)
class Call:
    """A call that may run. `format` is the id of the format it was written in.

    `repaired` says that the text had to be mended; then the tool's schema has accepted the arguments, and tools that
    change or remove things for other people must not run on it (S1, J3). Nor must they on one that is not `exact`: not
    JSON to the letter where it was to be JSON. `id` is the model's own, if it wrote one. `echo`: it stands right behind
    the same call, as small models write it without meaning a second one (Sc).
    """

    name: str
    arguments: Mapping[str, Json]
    format: str
    id: str | None = None
    repaired: bool = False
    exact: bool = True
    echo: bool = False


class Fault(StrEnum):
    """Why a candidate was no call, or a reply is at fault (S1)."""

    UNKNOWN_TOOL = "unknown_tool"  # its name is no tool on offer, nor near exactly one
    CUT_OFF = "cut_off"  # the text ends inside a string or value
    DOUBLED = "doubled"  # one key stands twice in its arguments, with different values
    UNREADABLE = "unreadable"  # call markup whose content makes no sense
    NOT_ACCEPTED = "not_accepted"  # it had to be repaired, and the tool's schema refuses the result
    SCHEMA_ECHO = "schema_echo"  # the tool's description instead of arguments
    QUOTED = "quoted"  # the same text stands in an untrusted text of this run
    MADE_UP_RESULT = "made_up_result"  # the model wrote a tool result itself


_WORDS = {
    Fault.UNKNOWN_TOOL: "there is no tool named {name!r}",
    Fault.CUT_OFF: "the call to {name!r} stops in the middle",
    Fault.DOUBLED: 'the call to {name!r} gives "{key}" twice with different values',
    Fault.UNREADABLE: "a tool call cannot be read",
    Fault.NOT_ACCEPTED: "the call to {name!r} is broken and its arguments do not fit the tool",
    Fault.SCHEMA_ECHO: "the call to {name!r} repeats the tool's description instead of giving arguments",
    Fault.QUOTED: "the call to {name!r} is quoted from a text that was only to be read",
    Fault.MADE_UP_RESULT: "the reply makes up the result of a tool",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """One candidate that is no call. `name` is as written (may be empty), `raw` the text it stood in, `key` the one
    that is at fault if it is one."""

    fault: Fault
    name: str = ""
    raw: str = ""
    key: str = ""

    def __str__(self) -> str:
        return _WORDS[self.fault].format(name=self.name[:80], key=self.key[:80])


@dataclass(frozen=True, slots=True)
class Reading:
    """One reply, read. `text` is what the user may see; call markup never stands in it (S1)."""

    text: str
    thought: str = ""
    calls: tuple[Call, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    @property
    def problem(self) -> str | None:
        """Why a call was refused, in plain words for the model; None when nothing was."""
        return str(self.refusals[0]) if self.refusals else None
