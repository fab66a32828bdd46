"""Units and the system message as the SDK's messages, ready for a model call.

Each unit is converted once per run and reused in every later request: a long tool run costs no second conversion (Q2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, cast

from langbot_plugin.api.entities.builtin.provider.message import (
    ContentElement,
    FunctionCall,
    ImageURLContentObject,
    Message,
)
from langbot_plugin.api.entities.builtin.provider.message import ToolCall as WireCall
from langbot_plugin.api.entities.builtin.resource.tool import LLMTool

from runner.conversation.call_ids import CallIds
from runner.conversation.cut import sendable
from runner.conversation.readable import is_readable
from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import AssistantTurn, Image, Part, System, Text, ToolCall, Unit, UserTurn
from runner.host.events import Json

THOUGHTS: Final = "reasoning_content"
"""The provider field with a model's thoughts. The Host gives it to the models that want it and to no others."""

_NO_THOUGHT: Final = " "
"""The least that is a thought: DeepSeek, Kimi and MiMo refuse a call beside which there is none."""


class Wire:
    """Converts requests for one run and remembers what it converted. `model_id` matters for provider fields and for the
    ids of calls (C2, K2); `ids` are those of the run, `thinks` says of a model whether it thinks.
    """

    def __init__(self, ids: CallIds | None = None, thinks: Callable[[str], bool] = lambda _model_id: False) -> None:
        self._ids = ids or CallIds()
        self._thinks = thinks
        # Keyed by identity: units are frozen and live as long as the run; the unit is kept so its id stays taken.
        self._units: dict[tuple[int, bool, bool, tuple[str, ...]], tuple[Unit, tuple[Message, ...]]] = {}
        self._tools: dict[int, tuple[ToolSpec, LLMTool]] = {}

    def messages(self, request: Request, model_id: str) -> list[Message]:
        """The whole request as messages: the system message first, when there is one."""
        return [*system_messages(request.system), *self.unit_messages(request.units, model_id)]

    def unit_messages(self, units: Sequence[Unit], model_id: str) -> list[Message]:
        """The messages of some units, in order."""
        return [message for unit in units for message in self._converted(unit, model_id)]

    def tools(self, specs: Sequence[ToolSpec]) -> list[LLMTool]:
        """Tool schemas as the Host takes them."""
        return [self._tool(spec) for spec in specs]

    def _converted(self, unit: Unit, model_id: str) -> tuple[Message, ...]:
        own, thinks, ids = False, False, tuple[str, ...]()
        if isinstance(unit, AssistantTurn):
            own = unit.author in (None, model_id)
            thinks = bool(unit.calls) and self._thinks(model_id)
            ids = tuple(self._ids.sent(call.id, call.name, unit.author, model_id) for call in unit.calls)
        known = self._units.get((id(unit), own, thinks, ids))
        if known is None:
            known = (unit, _messages_of(unit, own, thinks, ids))
            self._units[(id(unit), own, thinks, ids)] = known
        return known[1]

    def _tool(self, spec: ToolSpec) -> LLMTool:
        known = self._tools.get(id(spec))
        if known is None:
            tool = LLMTool(
                name=spec.name,
                human_desc=spec.description,
                description=spec.description,
                parameters=cast(dict[str, Json], spec.parameters),
                func=_never_called,
            )
            known = (spec, tool)
            self._tools[id(spec)] = known
        return known[1]


def system_messages(system: System) -> list[Message]:
    """No message or one: the owner's parts, what the runner added, and the summary as the last block (B2, F3)."""
    texts = [*system.added, *([system.summary] if system.summary else [])]
    parts = (*system.parts, *(Text(text) for text in texts))
    if not parts:
        return []
    fields = dict(system.provider_fields) if system.provider_fields else None
    return [Message(role="system", name=system.name, content=_content(parts), provider_specific_fields=fields)]


def _messages_of(unit: Unit, own: bool, thinks: bool, ids: Sequence[str]) -> tuple[Message, ...]:
    if isinstance(unit, UserTurn):
        return (Message(role="user", content=_content(unit.parts)),)
    if not is_readable(unit.text) and not unit.calls:
        return ()  # no provider takes a reply of nothing
    fields = {
        **({THOUGHTS: _NO_THOUGHT} if thinks else {}),
        **((unit.provider_fields if own else None) or {}),
    }
    reply = Message(
        role="assistant",
        # None, never "": GLM and MiniMax refuse an empty text beside tool calls.
        content=sendable(unit.text) if is_readable(unit.text) else None,
        tool_calls=[_wire_call(call, own, call_id) for call, call_id in zip(unit.calls, ids, strict=True)] or None,
        provider_specific_fields=fields or None,
    )
    answers = (
        Message(role="tool", content=result.text, tool_call_id=call_id, name=result.name)
        for result, call_id in zip(unit.results, ids, strict=True)
    )
    return (reply, *answers)


def _wire_call(call: ToolCall, own: bool, call_id: str) -> WireCall:
    fields = dict(call.provider_fields) if own and call.provider_fields else None
    function = FunctionCall(name=call.name, arguments=call.arguments)
    return WireCall(id=call_id, type="function", function=function, provider_specific_fields=fields)


def _content(parts: Sequence[Part]) -> str | list[ContentElement]:
    """Plain text where it is only text: not every provider takes a list in every role."""
    if all(isinstance(part, Text) for part in parts):
        return sendable("\n\n".join(part.text for part in parts if isinstance(part, Text)))
    return [_element(part) for part in _texts_joined(parts)]


def _texts_joined(parts: Sequence[Part]) -> list[Part]:
    """Neighbouring texts as one: many a chat template writes the elements of a message without anything between, and
    the end of one must not make a marker of the beginning of the next (I6)."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, Text) and isinstance(last, Text):
            joined[-1] = Text(f"{last.text}\n\n{part.text}")
        else:
            joined.append(part)
    return joined


def _element(part: Part) -> ContentElement:
    if isinstance(part, Text):
        return ContentElement(type="text", text=sendable(part.text))
    if isinstance(part, Image):
        if part.base64 is not None:
            return ContentElement(type="image_base64", image_base64=part.base64)
        return ContentElement(type="image_url", image_url=ImageURLContentObject(url=part.url or ""))
    return part.element


async def _never_called() -> None:
    """The SDK's tool entity wants a function; it never crosses the wire."""
