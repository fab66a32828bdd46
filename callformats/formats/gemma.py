"""Gemma 4 and FunctionGemma: `call:name{key:value}` with quotes that are tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

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
from callformats.loose_json import PLAIN_QUOTES, Parsed, Quote, State, parse
from callformats.scan import skip_space
from callformats.shapes import dumps, of_value

_QUOTES = ('<|"|>', "<escape>")
_OPENINGS = 8
"""So many opening quotes may be missing in one call."""

_HEAD = re.compile(r"\s{0,8}(?:call)?:\s{0,8}([^{}<>\n]{1,128})")


def _reader(opens: tuple[str, ...], close: str, quote: str) -> BlockReader:
    quotes = (*(Quote(one, one, False) for one in dict.fromkeys((quote, *_QUOTES))), *PLAIN_QUOTES)

    def read(text: str, at: int, complete: bool) -> Outcome:
        opener = literal_at(text, at, opens)
        if opener is None:
            return DECLINED
        start = at + len(opener)
        head = _HEAD.match(text, start)
        if head is None or head.end() >= len(text):
            growing = len(text) - start < 140 and "\n" not in text[start:].strip()
            return UNFINISHED if growing and not complete else DECLINED
        name = head[1].strip()
        if text[head.end()] != "{":
            return _nameless(text, head, complete, close)
        return _closed(text, head, name, complete, close, quotes)

    return read


def _nameless(text: str, head: re.Match[str], complete: bool, close: str) -> Outcome:
    """A name and no braces: a call without arguments, if the block is closed."""
    if text.startswith(close, head.end()):
        candidate = Candidate(head[1].strip(), {}, head[0], mended=True)
        return Block(head.end() + len(close), (candidate,))
    if not complete and could_begin(text, head.end(), (close,)):
        return UNFINISHED
    return DECLINED


def _closed(
    text: str, head: re.Match[str], name: str, complete: bool, close: str, quotes: tuple[Quote, ...]
) -> Outcome:
    parsed = parse(text, head.end(), quotes)
    if parsed.state in (State.OPEN, State.CUT, State.BROKEN):
        return _open(text, head, name, complete, close, quotes)
    end = skip_space(text, parsed.end)
    if not complete and (end >= len(text) or could_begin(text, end, (close,))):
        return UNFINISHED
    raw = text[head.start() : parsed.end]
    end = end + len(close) if text.startswith(close, end) else parsed.end
    return Block(end, (replace(of_value(name, parsed, raw), exact=True),))


def _open(text: str, head: re.Match[str], name: str, complete: bool, close: str, quotes: tuple[Quote, ...]) -> Outcome:
    """The value did not end by itself: it ends where the block does, or is cut."""
    end = text.find(close, head.end())
    if end < 0:
        if not complete:
            return UNFINISHED
        parsed = parse(text, head.end(), quotes)
        candidate = of_value(name, parsed, text[head.start() :], closed=False)
        return Block(len(text), (replace(candidate, cut=parsed.state is not State.OPEN),))
    body = text[head.end() : end].rstrip()
    parsed = parse(body + "\n", 0, quotes)
    if parsed.state is State.CUT and body.endswith("}") and body.count(quotes[0].opening) % 2:
        # The model closed the call and forgot the quote before its last brace; the string itself is all there.
        parsed = parse(body[:-1] + quotes[0].closing + "}", 0, quotes)
    parsed = _with_openings(body, parsed, quotes)
    candidate = of_value(name, parsed, text[head.start() : end], closed=False)
    return Block(end + len(close), (replace(candidate, broken=parsed.state is State.BROKEN),))


def _with_openings(body: str, parsed: Parsed, quotes: tuple[Quote, ...]) -> Parsed:
    """The value read anew with opening quotes where texts begin without one: `{city:Oslo<|"|>}`."""
    for _ in range(_OPENINGS):
        quote = next((one.opening for one in quotes if one.opening in body[parsed.end :]), None)
        if parsed.state is not State.BROKEN or quote is None:
            break
        body = body[: parsed.end] + quote + body[parsed.end :]
        parsed = parse(body + "\n", 0, quotes)
    return parsed


def _value(value: Json, quote: str) -> str:
    if isinstance(value, str):
        return dumps(value) if quote in value else f"{quote}{value}{quote}"
    if isinstance(value, list):
        return "[" + ",".join(_value(item, quote) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_key(key)}:{_value(item, quote)}" for key, item in value.items()) + "}"
    return dumps(value)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z_][\w.$-]*", key) else dumps(key)


def _format(format_id: str, opens: tuple[str, ...], close: str, quote: str, aliases: tuple[str, ...] = ()) -> Format:
    def write(name: str, arguments: Mapping[str, Json]) -> str:
        return f"{opens[0]}call:{name}{_value(dict(arguments), quote)}{close}"

    return Format(
        format_id, _reader(opens, close, quote), write, opens, (close,), (close,), inner=("call:",), aliases=aliases
    )


FORMATS = (
    _format("gemma4", ("<|tool_call>",), "<tool_call|>", '<|"|>', ("gemma",)),
    _format("functiongemma", ("<start_function_call>",), "<end_function_call>", "<escape>"),
)
