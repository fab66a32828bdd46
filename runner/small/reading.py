"""Reading a reply as it arrives: as it is, or with the calls that stand in its text (S1, S8)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from callformats import Call, Fault, Quotations, StreamReader, read
from callformats import Reading as Read
from runner.conversation.call_ids import is_numbered
from runner.conversation.request import ToolSpec
from runner.models.calls import RawCall
from runner.models.reply import Reply
from runner.models.runaway import Runaway, Watch
from runner.small.reply_tool import REPLY, REPLY_SPEC, ReplyDecoder
from runner.tools.arguments import Broken, read_arguments

_MAY_END_A_CALL = re.compile(r"[>\])}`]")
_ALL_TEXTS = 1_000_000
"""What asking for the first time whether a call is a quotation is taken to cost: all texts of the request."""


@dataclass(frozen=True, slots=True)
class Ways:
    """How one reply is read. `form`: the call format asked for; `hold`: show nothing before the checks.

    `replies`: the reply tool is on offer; `live`: its text may be shown as it is written; `guard`: chants and endless
    white space end the reply; `calls`: calls are read out of text.
    """

    form: str | None
    hold: bool
    replies: bool
    live: bool
    guard: bool
    calls: bool = True


class _Unread:
    """In the place of a reader: all text is words."""

    ended_in_thought = False

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def feed(self, fragment: str) -> str:
        self._pieces.append(fragment)
        return fragment

    def effort(self, fragment: str) -> int:
        return len(fragment)

    def close(self) -> Read:
        return Read("".join(self._pieces))


class Lenient:
    """Reads calls in every known format; their markup is never shown."""

    def __init__(self, tools: Sequence[ToolSpec], foreign: Quotations, ways: Ways) -> None:
        self._reader = StreamReader(tools, format=ways.form, untrusted=foreign) if ways.calls else _Unread()
        self._tools = tools
        self._foreign = foreign
        self._decoder = ReplyDecoder() if ways.replies and ways.live and ways.calls else None
        # Models write calls into the text of a reply, too: nobody is to see those either.
        self._answer = StreamReader(tools, untrusted=foreign)
        self._ways = ways
        self._watch = Watch() if ways.guard else None
        self._shown: list[str] = []
        self._length = 0

    @property
    def over(self) -> bool:
        return self._watch is not None and self._watch.runaway is not None

    def effort(self, fragment: str | None) -> int:
        if fragment is None:
            return self._length
        if not self._foreign.asked and _MAY_END_A_CALL.search(fragment) is not None:
            return _ALL_TEXTS
        return max(self._reader.effort(fragment), self._answer.effort(fragment) if self._decoder is not None else 0)

    def feed(self, fragment: str) -> str:
        self._length += len(fragment)
        if self._watch is not None:
            self._watch.feed(fragment)
        new = self._reader.feed(fragment)
        if self._decoder is not None and (written := self._decoder.feed(fragment)):
            visible = self._answer.feed(written)
            self._shown.append(visible)
            return visible
        if self._ways.hold:
            return ""
        self._shown.append(new)
        return new

    def close(self, reply: Reply) -> Reply:
        reading = self._reader.close()
        certain = not self._reader.ended_in_thought
        written = tuple(_raw_call(call, certain) for call in reading.calls if not call.echo) if not reply.calls else ()
        # What was only quoted is no slip of the model: nobody asks it to write that better (I5).
        refused = tuple(one for one in reading.refusals if one.fault is not Fault.QUOTED)
        understood = replace(
            reply,
            raw=reply.text,
            text=reading.text,
            calls=reply.calls or written,
            faults=tuple(dict.fromkeys(one.fault.value for one in refused)) if not reply.calls else (),
            problem=str(refused[0]) if refused and not reply.calls else None,
            refused=next((one.name for one in refused if one.name), ""),
            wrote=reading.calls[0].format if written else None,
        )
        if self._watch is not None and self.over and self._watch.look() is Runaway.CHANT:
            understood = replace(understood, chanted=True)
        return self._with_held(self._answered(understood) if self._ways.replies else understood)

    def _answered(self, reply: Reply) -> Reply:
        """The reply with a call of the reply tool as its text: nobody ever sees it as a call (S8)."""
        texts = [text for call in reply.calls if call.name == REPLY and (text := _reply_text(call)) is not None]
        others = tuple(call for call in reply.calls if call.name != REPLY or _reply_text(call) is None)
        if texts:
            before = "" if self._ways.hold else reply.text
            said = read("\n\n".join(texts), self._tools, untrusted=self._foreign)
            nested = tuple(
                _raw_call(call, certain=False) for call in said.calls if call.name != REPLY and not call.echo
            )
            text = "\n\n".join(filter(None, [before, said.text]))
            return replace(reply, text=text, calls=others or nested, answered=True)
        if self._decoder is not None and self._decoder.text and not reply.calls:
            # Cut off while it was written: what the person has read is the answer.
            return replace(reply, text=self._answer.close().text, answered=True, faults=(), problem=None)
        return reply

    def _with_held(self, reply: Reply) -> Reply:
        shown = "".join(self._shown)
        if not reply.text.startswith(shown):
            return replace(reply, text=shown, held="")
        return replace(reply, held=reply.text[len(shown) :])


def _raw_call(call: Call, certain: bool) -> RawCall:
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    # No server gave an id that stands in a text, so none need take it; only models that number theirs mean it (K2).
    own = call.id if call.id and is_numbered(call.id) else ""
    return RawCall(own, call.name, arguments, certain=certain and call.exact and not call.repaired)


def _reply_text(call: RawCall) -> str | None:
    given = read_arguments(call.arguments, REPLY_SPEC.parameters)
    if isinstance(given, Broken) or given.problems:
        return None
    text = given.values.get("text")
    return text if isinstance(text, str) else None
