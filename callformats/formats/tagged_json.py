"""JSON between markers: Hermes and Qwen, Granite, Jamba, Hunyuan, Cohere, InternLM2, Phi-4, Llama and their kin."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from callformats.block import (
    DECLINED,
    UNFINISHED,
    Block,
    BlockReader,
    Candidate,
    Format,
    Outcome,
    could_begin,
    literal_at,
)
from callformats.json_value import Json
from callformats.loose_json import State, parse_before, with_stray_closers
from callformats.scan import any_of, next_match, skip_space
from callformats.shapes import candidates, dumps, goes_on, merge_halves

_FENCE = "```"


@dataclass(frozen=True, slots=True)
class Wrapper:
    """`opens` → JSON value(s) → `closes`. `lead`: what may stand between the opener and the value."""

    opens: tuple[str, ...]
    closes: tuple[str, ...] = ()
    lead: str = r"\s*"
    shape: Literal["object", "list", "named"] = "object"
    name_key: str = "name"
    arguments_key: str = "arguments"
    last_character_opens: bool = False
    """The opener's last character is the first of the value (`functools[`)."""


def read_wrapped(text: str, at: int, complete: bool, wrapper: Wrapper) -> Outcome:
    """One block of a wrapper: any number of values up to the closer, or up to what is no JSON."""
    opener = literal_at(text, at, wrapper.opens)
    if opener is None:
        return DECLINED
    start = at + len(opener) - wrapper.last_character_opens
    lead = re.compile(wrapper.lead).match(text, start)
    start = skip_space(text, lead.end() if lead else start)
    again = literal_at(text, start, wrapper.opens)
    if again is not None and not wrapper.last_character_opens:
        start = skip_space(text, start + len(again))
    if start >= len(text) or could_begin(text, start, wrapper.opens):
        nothing = Block(len(text), (Candidate("", raw=text[at:], cut=True, broken=True),))
        return (nothing if start >= len(text) else DECLINED) if complete else UNFINISHED
    if text[start] not in "{[":
        return DECLINED
    return _values(text, start, complete, wrapper)


def _values(text: str, start: int, complete: bool, wrapper: Wrapper) -> Outcome:
    found: list[Candidate] = []
    at = start
    while True:
        parsed = parse_before(text, at, (*wrapper.closes, _FENCE))
        if parsed.state in (State.OPEN, State.CUT):
            if not complete:
                return UNFINISHED
            found += candidates(parsed, text[at:]) or [Candidate("", raw=text[at:], cut=True)]
            return Block(len(text), merge_halves(tuple(found)))
        if parsed.state is State.BROKEN:
            return _unreadable(text, at, complete, wrapper, found)
        end, stray = _past_stray_closers(text, parsed.end)
        found += candidates(with_stray_closers(parsed) if stray else parsed, text[at:end])
        at = _past_fence(text, end)
        closer = literal_at(text, at, wrapper.closes)
        if closer is not None:
            return Block(at + len(closer), merge_halves(tuple(found)))
        if not complete and (at >= len(text) or could_begin(text, at, (*wrapper.closes, _FENCE))):
            return UNFINISHED
        if at < len(text) and text[at] in ",;":
            following = skip_space(text, at + 1)
            if following >= len(text) and not complete:
                return UNFINISHED
            at = following if text[following : following + 1] in ("{", "[") else at
        if at >= len(text) or text[at] not in "{[":
            return Block(end, merge_halves(_with_rest(found, text, end)))


def _with_rest(found: list[Candidate], text: str, end: int) -> tuple[Candidate, ...]:
    if not found or not goes_on(text, end, closes=False):
        return tuple(found)
    return (*found[:-1], replace(found[-1], unsure=True))


def _past_stray_closers(text: str, end: int) -> tuple[int, bool]:
    """Behind a value: closers too many, as in {"name": …}}}."""
    at = end
    while at < len(text) and text[at] in "}]":
        at += 1
    return at, at > end


def _past_fence(text: str, end: int) -> int:
    """Behind white space, and behind the end of a code fence that was put between the markers."""
    at = skip_space(text, end)
    return skip_space(text, at + len(_FENCE)) if text.startswith(_FENCE, at) else at


def _unreadable(text: str, at: int, complete: bool, wrapper: Wrapper, found: list[Candidate]) -> Outcome:
    """Markup up to its closer, or all the rest: it is no text for the user, and no call."""
    closer = next_match(any_of(wrapper.closes), text, at) if wrapper.closes else None
    if closer is not None:
        return Block(closer.end(), (*found, Candidate("", raw=text[at : closer.start()], broken=True)))
    if not complete:
        return UNFINISHED
    return Block(len(text), (*found, Candidate("", raw=text[at:], broken=True)))


def _reader(wrapper: Wrapper) -> BlockReader:
    return lambda text, at, complete: read_wrapped(text, at, complete, wrapper)


def written(wrapper: Wrapper, name: str, arguments: Mapping[str, Json]) -> str:
    """One call as text of this wrapper."""
    call: dict[str, Json] = {wrapper.name_key: name, wrapper.arguments_key: dict(arguments)}
    if wrapper.shape == "named":
        call = {name: dict(arguments)}
    body = dumps(call) if wrapper.shape == "object" else dumps([call])
    opener = wrapper.opens[0]
    if wrapper.last_character_opens:
        return opener + body[1:]
    gap = "\n" if opener == "<tool_call>" else ""
    return f"{opener}{gap}{body}{gap}{wrapper.closes[0] if wrapper.closes else ''}"


def _outer(read: BlockReader, opener: str, inner: str) -> BlockReader:
    """The reader, and `opener` alone where it only stands around blocks of another format that `inner` opens."""

    def read_outer(text: str, at: int, complete: bool) -> Outcome:
        start = skip_space(text, at + len(opener))
        if text.startswith(opener, at) and start < len(text) and text[start] == "<":
            if text.startswith(inner, start):
                return Block(start)
            if not complete and could_begin(text, start, (inner,)):
                return UNFINISHED
        return read(text, at, complete)

    return read_outer


def _format(
    format_id: str,
    wrapper: Wrapper,
    aliases: tuple[str, ...] = (),
    stops: tuple[str, ...] | None = None,
    reader: BlockReader | None = None,
) -> Format:
    return Format(
        id=format_id,
        read=reader or _reader(wrapper),
        write=lambda name, arguments: written(wrapper, name, arguments),
        opens=wrapper.opens,
        closes=wrapper.closes,
        stops=wrapper.closes[:1] if stops is None else stops,
        aliases=aliases,
    )


_JAMBA = Wrapper(("<tool_calls>",), ("</tool_calls>",), shape="list")

FORMATS = (
    _format(
        "hermes",
        Wrapper(("<tool_call>",), ("</tool_call>", "</tool_calls>"), lead=r"\s*(?:```(?:json)?)?"),
        ("tags", "json-tags", "qwen", "qwen2", "ernie45", "parser_engine", "bielik"),
    ),
    _format("qwen-tools", Wrapper(("<tools>",), ("</tools>",))),
    _format("granite", Wrapper(("<|tool_call|>",), ("<|/tool_call|>",), shape="list"), stops=("<|end_of_text|>",)),
    _format("granite-20b", Wrapper(("<function_call>",), ("</function_call>",))),
    _format("nemotron-json", Wrapper(("<TOOLCALL>",), ("</TOOLCALL>",), shape="list"), ("nemotron",)),
    _format("jamba", _JAMBA, ("hunyuan", "apriel"), reader=_outer(_reader(_JAMBA), "<tool_calls>", "<tool_call>")),
    _format("gigachat3", Wrapper(("<|function_call|>",), ("</s>",)), ("gigachat",)),
    _format(
        "gigachat3-turns",
        Wrapper(("<|message_sep|>\n\nfunction call<|role_sep|>\n", "function call<|role_sep|>"), ("</s>",)),
    ),
    _format(
        "internlm2",
        Wrapper(("<|action_start|><|plugin|>", "<|action_start|>"), ("<|action_end|>",), arguments_key="parameters"),
        ("internlm",),
    ),
    _format(
        "phi4",
        Wrapper(("functools[",), last_character_opens=True, shape="list"),
        ("phi-4", "firefunction"),
        ("<|end|>",),
    ),
    _format("apertus", Wrapper(("<|tools_prefix|>",), ("<|tools_suffix|>",), shape="named")),
    _format(
        "command-r7b",
        Wrapper(
            ("<|START_ACTION|>",), ("<|END_ACTION|>",), shape="list", name_key="tool_name", arguments_key="parameters"
        ),
        ("command", "cohere"),
    ),
    _format("longcat-json", Wrapper(("<longcat_tool_call>",), ("</longcat_tool_call>",))),
    _format("lm-studio", Wrapper(("[TOOL_REQUEST]",), ("[END_TOOL_REQUEST]",))),
    _format(
        "llama3-python-tag",
        Wrapper(("<|python_tag|>",), ("<|eom_id|>", "<|eot_id|>"), arguments_key="parameters"),
        stops=("<|eom_id|>", "<|eot_id|>"),
    ),
    _format("tool-code-json", Wrapper(("<tool_code>",), ("</tool_code>",))),
)
