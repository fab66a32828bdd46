"""Whether a request keeps the rules of all providers at once: OpenAI, Anthropic, Gemini, GLM/MiniMax, DeepSeek.

Looks at messages as the provider gets them (`ModelRequest.messages`). The strictest rule of any of them holds, as a
chat may be moved to another provider by a fallback at any turn.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

Rule = Literal[
    "system_first",
    "first_is_user",
    "last_is_not_assistant",
    "known_role",
    "roles_alternate",
    "call_answered",
    "orphan_tool",
    "assistant_not_empty",
    "user_not_empty",
    "system_not_empty",
    "tool_is_text",
    "part_is_whole",
    "arguments_object",
    "call_id",
    "call_id_unique",
    "function_name",
    "private_field",
    "unknown_key",
    "unicode",
    "tools_missing",
    "tools_unique",
]
RULES: tuple[Rule, ...] = get_args(Rule)

_ID_CHARACTERS = 4_096
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_KEYS = frozenset(
    {
        "role",
        "content",
        "tool_calls",
        "tool_call_id",
        "name",
        "provider_specific_fields",
        # The requester's own, moved out of provider_specific_fields for the family that wrote them.
        "reasoning_content",
        "thinking_blocks",
    }
)
_PARTS = frozenset({"text", "image_url", "image_base64"})

Message = Mapping[str, Any]


@dataclass(frozen=True)
class Violation:
    """A broken rule. `index` of the message, None for the request as a whole."""

    rule: Rule
    index: int | None
    text: str

    def __str__(self) -> str:
        return f"[{self.index}] {self.rule}: {self.text}"


def violations(
    messages: Sequence[Message],
    funcs: Sequence[Mapping[str, Any]] | None = None,
    *,
    private: Collection[str] = ("_localagent",),
    ignore: Collection[Rule] = (),
) -> list[Violation]:
    """All broken rules, in the order of the messages.

    `funcs`: the tool schemas of the request; None leaves the rules about them out. `private`: prefixes of keys of
    `provider_specific_fields` that must not reach a provider.
    """
    found: list[Violation] = []
    for index, message in enumerate(messages):
        found += [Violation(rule, index, text) for rule, text in _alone(message, private)]
    found += _system(messages)
    found += _order(messages)
    found += _pairs(messages)
    if funcs is not None:
        found += _tools(messages, funcs)
    found.sort(key=lambda one: -1 if one.index is None else one.index)
    return [one for one in found if one.rule not in ignore]


Finding = tuple[Rule, str]


def _alone(message: Message, private: Collection[str]) -> Iterator[Finding]:
    """Rules that need no other message."""
    for key in message.keys() - _KEYS:
        yield "unknown_key", f"key {key!r}"
    yield from _private(message, private)
    yield from _parts(message.get("content"))
    if not _encodable(message):
        yield "unicode", "a lone surrogate"
    match message.get("role"):
        case "system" | "developer":
            if not has_text(message):
                yield "system_not_empty", "no text"
        case "user":
            if not (has_text(message) or has_image(message)):
                yield "user_not_empty", "neither text nor image"
        case "assistant":
            yield from _assistant(message)
        case "tool":
            if not isinstance(message.get("content"), str) or not has_text(message):
                yield "tool_is_text", "the content is no text or empty"
        case other:
            yield "known_role", f"role {other!r}"


def _assistant(message: Message) -> Iterator[Finding]:
    calls = message.get("tool_calls") or ()
    content = message.get("content")
    if content is None and not calls:
        yield "assistant_not_empty", "neither content nor tool call"
    if content is not None and not has_text(message):
        yield "assistant_not_empty", "an empty text"
    for call in calls:
        yield from _call(call)


def _call(call: Message) -> Iterator[Finding]:
    function = call.get("function") or {}
    an_id = str(call.get("id") or "")
    # A model takes back the ids that it wrote itself, whatever their shape.
    if not (an_id.isprintable() and 0 < len(an_id) <= _ID_CHARACTERS):
        yield "call_id", f"id {call.get('id')!r}"
    if not _NAME.fullmatch(str(function.get("name") or "")):
        yield "function_name", f"name {function.get('name')!r}"
    arguments = function.get("arguments")
    if not isinstance(arguments, str) or not isinstance(_json(arguments), dict):
        yield "arguments_object", f"arguments {str(arguments)[:80]!r}"


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _private(message: Message, private: Collection[str]) -> Iterator[Finding]:
    holders = [message, *(message.get("tool_calls") or ())]
    for holder in holders:
        for key in holder.get("provider_specific_fields") or {}:
            if any(str(key).startswith(prefix) for prefix in private):
                yield "private_field", f"field {key!r}"


def _parts(content: Any) -> Iterator[Finding]:
    if not isinstance(content, list):
        return
    for part in content:
        kind = part.get("type")
        if kind not in _PARTS:
            yield "part_is_whole", f"a part of type {kind!r}"
        elif kind == "text" and not str(part.get("text") or "").strip():
            yield "part_is_whole", "an empty text part"
        elif kind != "text" and not _image(part):
            yield "part_is_whole", "an image without data"
        if "content_redacted" in part:
            yield "unknown_key", "key 'content_redacted' in a part"


def _image(part: Message) -> bool:
    return bool(part.get("image_base64") or (part.get("image_url") or {}).get("url"))


def has_text(message: Message) -> bool:
    """Whether a message has text other than white space."""
    content = message.get("content")
    if isinstance(content, list):
        return any(str(part.get("text") or "").strip() for part in content if part.get("type") == "text")
    return bool(str(content or "").strip())


def has_image(message: Message) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(_image(part) for part in content)


def _encodable(message: Message) -> bool:
    try:
        json.dumps(message, ensure_ascii=False, default=str).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _system(messages: Sequence[Message]) -> Iterator[Violation]:
    for index, message in enumerate(messages):
        if index and message.get("role") in ("system", "developer"):
            yield Violation("system_first", index, "a system message that is not the first message")


def _order(messages: Sequence[Message]) -> Iterator[Violation]:
    """Who speaks after whom. Tool results belong to the assistant turn that asked; a user turn may follow them."""
    spoken = [(index, str(message.get("role"))) for index, message in enumerate(messages)]
    spoken = [(index, role) for index, role in spoken if role in ("user", "assistant", "tool")]
    if not spoken:
        yield Violation("first_is_user", None, "no message but the system's")
        return
    if spoken[0][1] != "user":
        yield Violation("first_is_user", spoken[0][0], f"the first turn is the {spoken[0][1]}'s")
    for (_, before), (index, role) in itertools.pairwise(spoken):
        if before == role != "tool":
            yield Violation("roles_alternate", index, f"two {role} turns in a row")
    if spoken[-1][1] == "assistant":
        yield Violation("last_is_not_assistant", spoken[-1][0], "the request ends with the assistant's turn")


def _pairs(messages: Sequence[Message]) -> Iterator[Violation]:
    """Every call is answered once, by tool messages right behind it; no answer without its call."""
    seen: set[str] = set()
    waiting: dict[str, int] = {}
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            key = str(message.get("tool_call_id"))
            if waiting.pop(key, None) is None:
                yield Violation("orphan_tool", index, f"a result for {key!r}, which is not waiting for one")
            continue
        yield from _unanswered(waiting)
        waiting = {}
        for call in message.get("tool_calls") or ():
            key = str(call.get("id"))
            if key in seen:
                yield Violation("call_id_unique", index, f"id {key!r} was used before")
            seen.add(key)
            waiting[key] = index
    yield from _unanswered(waiting)


def _unanswered(waiting: Mapping[str, int]) -> Iterator[Violation]:
    for key, index in waiting.items():
        yield Violation("call_answered", index, f"call {key!r} has no result right behind it")


def _tools(messages: Sequence[Message], funcs: Sequence[Mapping[str, Any]]) -> Iterator[Violation]:
    names = [str(func.get("name")) for func in funcs]
    for name in names:
        if not _NAME.fullmatch(name):
            yield Violation("function_name", None, f"tool name {name!r}")
    if len(set(names)) != len(names):
        yield Violation("tools_unique", None, "two tools of one name")
    if not funcs and any(message.get("tool_calls") or message.get("role") == "tool" for message in messages):
        yield Violation("tools_missing", None, "tool turns without tools: Anthropic refuses")
