"""The messages of a request as the units of the loop; results of earlier calls are made harmless on the way (S7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from local.request import FinishedCall, Message
from runner.conversation.call_ids import CallIds
from runner.conversation.request import ToolSpec
from runner.conversation.units import AssistantTurn, Text, ToolCall, Unit, UserTurn, join_users
from runner.tools.arguments import BROKEN_IN_HISTORY, Broken, read_arguments
from runner.tools.catalogue import Catalogue, Entry, Kind
from runner.tools.execute import Outcome
from runner.tools.legal_names import legal_name
from runner.tools.results import ErrorCode, Rendered, Renderer


@dataclass(frozen=True, slots=True)
class Past:
    """A conversation. `question` is the index of its newest user turn, `asked` what that says."""

    units: tuple[Unit, ...]
    question: int
    asked: str

    @property
    def since_asked(self) -> tuple[AssistantTurn, ...]:
        """The turns made for the newest request already."""
        return tuple(unit for unit in self.units[self.question + 1 :] if isinstance(unit, AssistantTurn))


def read_past(messages: Sequence[Message], catalogue: Catalogue, renderer: Renderer, ids: CallIds) -> Past:
    """The conversation so far. Neighbouring user messages become one turn. Raises ValueError when nobody has asked."""
    units: list[Unit] = []
    question, asked = -1, ""
    for message in messages:
        if message.role == "user":
            said = _said(message, units)
            units.append(said)
            question, asked = len(units) - 1, said.text()
            continue
        outcomes = tuple(_outcome(call, catalogue, renderer, ids) for call in message.calls)
        units.append(
            AssistantTurn(
                message.text,
                tuple(outcome.call for outcome in outcomes),
                tuple(outcome.result for outcome in outcomes),
            )
        )
    if question < 0:
        raise ValueError("the request holds no message of a user: there is nothing to answer")
    return Past(tuple(units), question, asked)


def _said(message: Message, units: list[Unit]) -> UserTurn:
    """The message, joined with the one right before it: roles alternate (B5)."""
    if units and isinstance(before := units[-1], UserTurn):
        units.pop()
        return join_users(before, UserTurn((Text(message.text),)))
    return UserTurn((Text(message.text),))


def _outcome(call: FinishedCall, catalogue: Catalogue, renderer: Renderer, ids: CallIds) -> Outcome:
    entry = catalogue.get(call.name)
    # Spelled as calls of this run are, so that a repetition is seen as one.
    made = ToolCall(ids.claim(None), legal_name(call.name), _arguments(call))
    return Outcome(made, _rendered(call, entry, renderer), entry, ran=True)


def _arguments(call: FinishedCall) -> str:
    read = read_arguments(call.arguments, {})
    return BROKEN_IN_HISTORY if isinstance(read, Broken) else read.text


def _rendered(call: FinishedCall, entry: Entry | None, renderer: Renderer) -> Rendered:
    if call.error is not None:
        return renderer.error(ErrorCode.FAILED, call.error, said_by=legal_name(call.name))
    gone = Entry(ToolSpec(legal_name(call.name), "", {}), call.name, Kind.PLUGIN)
    return renderer.render(entry or gone, call.result)
