"""A name, then keys and values in turn: GLM 4.x, LongCat, Ling, Spark, Poolside, Hunyuan 3."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

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
from callformats.formats.tagged_json import Wrapper, read_wrapped
from callformats.json_value import Json
from callformats.loose_json import State, parse_before
from callformats.scan import any_of, next_match, skip_space
from callformats.shapes import dumps, of_value, past_value, put

_NAME = re.compile(r"[^\s<>{}\[\]()\"'`=,;]{1,128}")
_ASSIGNMENT = re.compile(r"[ \t]{1,8}([A-Za-z_][\w-]{0,64})=(\"[^\"\n]{0,2000}\"|'[^'\n]{0,2000}'|[^\s<]{1,2000})")
_KEY = re.compile(r"([^\s<>{}\[\]\"']{1,128})\s{0,8}")
_KEY_GROWS = re.compile(r"[^\s<>{}\[\]\"']{0,128}\s{0,8}(?:<[/\w]{0,20})?")
_KEY_LIMIT = 200
_SEPARATOR = "<tool_sep>"
_FENCE = "```"
_FENCE_LINE = re.compile(r"```(?:json)?\s{0,8}")
_FENCE_WORD = re.compile(r"j|js|jso")


@dataclass(frozen=True, slots=True)
class Pairs:
    """Spelling of one member. All values are texts; the tool's schema types them."""

    opens: tuple[str, ...]
    close: str
    key: str
    key_close: str
    value: str
    value_close: str


def _read(text: str, at: int, complete: bool, pairs: Pairs) -> Outcome:
    opener = literal_at(text, at, pairs.opens)
    if opener is None:
        return DECLINED
    start = skip_space(text, at + len(opener))
    name = _NAME.match(text, start)
    if start >= len(text) or (name is not None and name.end() >= len(text)):
        return DECLINED if complete else UNFINISHED
    if name is None:
        return DECLINED
    after = skip_space(text, name.end())
    if not complete and (after >= len(text) or could_begin(text, after, (pairs.key, pairs.close))):
        return UNFINISHED
    if not complete and could_begin(text, after, (_SEPARATOR, _FENCE, pairs.key_close, *pairs.opens)):
        return UNFINISHED
    candidate = Candidate(name[0], {}, typed=False)
    if text.startswith(pairs.key_close, after):
        # The key's opener is missing, and its name stands right behind that of the tool.
        return _pairs(text, start, start, complete, pairs, replace(candidate, glued=True))
    separated = skip_space(text, after + len(_SEPARATOR)) if text.startswith(_SEPARATOR, after) else after
    if separated >= len(text) or could_begin(text, separated, (pairs.key, pairs.close)):
        return DECLINED if complete else UNFINISHED
    if literal_at(text, separated, (pairs.key, pairs.close)) or _key_at(text, separated, pairs) is not None:
        return _pairs(text, start, separated, complete, pairs, candidate)
    if not complete and separated == after and _key_grows(text, after):
        return UNFINISHED
    outcome = _json_body(text, start, name, after, complete, pairs)
    return _assignments(text, name, complete, pairs) if outcome is DECLINED else outcome


def _json_body(text: str, start: int, name: re.Match[str], after: int, complete: bool, pairs: Pairs) -> Outcome:
    """Hunyuan: the name, perhaps behind `function<tool_sep>`, then JSON, mostly in a fence."""
    if text.startswith(_SEPARATOR, after):
        second = _NAME.match(text, after + len(_SEPARATOR))
        if second is None or second.end() >= len(text):
            return DECLINED if complete else UNFINISHED
        name, after = second, skip_space(text, second.end())
        if not complete and could_begin(text, after, (_FENCE,)):
            return UNFINISHED
    fence = _FENCE_LINE.match(text, after)
    body = fence.end() if fence else after
    if body >= len(text):
        return UNFINISHED if not complete and (fence or after >= len(text)) else DECLINED
    if text[body] != "{":
        growing = fence is not None and text[fence.end() - 1] == "`" and _FENCE_WORD.fullmatch(text, body)
        return UNFINISHED if growing and not complete else DECLINED
    parsed = parse_before(text, body, (_FENCE, pairs.close))
    if parsed.state is State.BROKEN:
        return DECLINED
    if parsed.state is not State.WHOLE and not complete:
        return UNFINISHED
    parsed = past_value(text, parsed)
    end = parsed.end
    end = skip_space(text, end + len(_FENCE)) if text.startswith(_FENCE, end) else end
    closed = text.startswith(pairs.close, end)
    if not closed and not complete and (end >= len(text) or could_begin(text, end, (_FENCE, pairs.close))):
        return UNFINISHED
    candidate = of_value(name[0], parsed, text[start : parsed.end], closed=closed)
    return Block(end + len(pairs.close) if closed else parsed.end, (candidate,))


def _assignments(text: str, name: re.Match[str], complete: bool, pairs: Pairs) -> Outcome:
    """`name a=1 b=2`, all on one line and up to the closer."""
    values: dict[str, Json] = {}
    doubled: str | None = None
    at = name.end()
    while (one := _ASSIGNMENT.match(text, at)) is not None:
        doubled = put(values, one[1], one[2].strip("\"'")) or doubled
        at = one.end()
    end = skip_space(text, at)
    if not values and not (not complete and end >= len(text)):
        return DECLINED
    if text.startswith(pairs.close, end):
        raw = text[name.start() : at]
        candidate = Candidate(name[0], values, raw, typed=False, mended=True, doubled=doubled)
        return Block(end + len(pairs.close), (candidate,))
    growing = end >= len(text) or could_begin(text, end, (pairs.close,)) or "\n" not in text[at:]
    return UNFINISHED if growing and not complete else DECLINED


def _pairs(text: str, start: int, at: int, complete: bool, pairs: Pairs, candidate: Candidate) -> Outcome:
    values: dict[str, Json] = {}
    mended = False
    doubled: str | None = None
    while True:
        at = skip_space(text, at)
        if text.startswith(pairs.close, at):
            end = at + len(pairs.close)
            read = replace(candidate, arguments=values, raw=text[start:at], mended=mended, doubled=doubled)
            return Block(end, (read,))
        key_at = _key_at(text, at, pairs)
        if key_at is None:
            begun = text.startswith(pairs.key, at)
            growing = begun or at >= len(text) or _key_grows(text, at)
            if not complete and (growing or could_begin(text, at, (pairs.key, pairs.close, *pairs.opens))):
                return UNFINISHED
            if begun:
                return Block(len(text), (replace(candidate, arguments=values, raw=text[start:], cut=True),))
            read = replace(candidate, arguments=values, raw=text[start:at], mended=True, doubled=doubled)
            return Block(at, (read,))
        one = _pair(text, key_at.key, key_at.end, complete, pairs)
        if one is None:
            if not complete:
                return UNFINISHED
            return Block(len(text), (replace(candidate, arguments=values, raw=text[start:], cut=True),))
        key, value, at, clean = one
        mended = mended or not clean or not key_at.opened
        doubled = put(values, key, value) or doubled


@dataclass(frozen=True, slots=True)
class _Key:
    key: str
    end: int
    opened: bool = False


def _key_at(text: str, at: int, pairs: Pairs) -> _Key | None:
    """The key at `at`. Its opener may be missing, or that of the block stand in its place; then its closer, or the
    opener of the value, shows that it is one."""
    opener = literal_at(text, at, (pairs.key, *pairs.opens))
    start = skip_space(text, at + len(opener or ""))
    if opener == pairs.key:
        end = text.find(pairs.key_close, start)
        return _Key(text[start:end].strip(), end + len(pairs.key_close), opened=True) if end >= 0 else None
    key = _KEY.match(text, start)
    if key is None:
        return None
    if text.startswith(pairs.key_close, key.end()):
        return _Key(key[1], key.end() + len(pairs.key_close))
    return _Key(key[1], key.end()) if text.startswith(pairs.value, key.end()) else None


def _key_grows(text: str, at: int) -> bool:
    """Whether the text ends inside what may be a key without its opener."""
    return len(text) - at < _KEY_LIMIT and _KEY_GROWS.fullmatch(text, at) is not None


def _pair(text: str, key: str, at: int, complete: bool, pairs: Pairs) -> tuple[str, str, int, bool] | None:
    """Key, value, end, and whether both closers were there; None when the text ends before. `at`: behind the key."""
    start = skip_space(text, at)
    clean = text.startswith(pairs.value, start)
    start += len(pairs.value) if clean else 0
    ends = next_match(any_of((pairs.value_close, pairs.key, pairs.close)), text, start)
    if ends is None:
        return None
    end, marker = ends.start(), ends[0]
    if marker == pairs.value_close:
        return key, text[start:end], end + len(marker), clean
    # A marker that stands inside a value: the value's own closer comes before the next pair opens.
    decides = next_match(any_of((pairs.value_close, pairs.value, pairs.key_close)), text, end)
    if decides is None and not complete:
        return None
    if decides is not None and decides[0] == pairs.value_close:
        return key, text[start : decides.start()], decides.end(), clean
    return key, text[start:end], end, False


def _reader(pairs: Pairs, wrapper: Wrapper | None) -> BlockReader:
    def read(text: str, at: int, complete: bool) -> Outcome:
        outcome = _read(text, at, complete, pairs)
        if outcome is DECLINED and wrapper is not None:
            return read_wrapped(text, at, complete, wrapper)
        return outcome

    return read


def _written(pairs: Pairs, name: str, arguments: Mapping[str, Json]) -> str:
    lines = [f"{pairs.opens[0]}{name}"]
    for key, value in arguments.items():
        text = value if isinstance(value, str) else dumps(value)
        lines.append(f"{pairs.key}{key}{pairs.key_close}")
        lines.append(f"{pairs.value}{text}{pairs.value_close}")
    return "\n".join([*lines, pairs.close])


def _format(format_id: str, pairs: Pairs, aliases: tuple[str, ...], wrapper: Wrapper | None = None) -> Format:
    return Format(
        id=format_id,
        read=_reader(pairs, wrapper),
        write=lambda name, arguments: _written(pairs, name, arguments),
        opens=pairs.opens,
        closes=(pairs.close,),
        stops=(pairs.close,),
        inner=(pairs.key,),
        aliases=aliases,
    )


_LONGCAT = "<longcat_tool_call>"

FORMATS = (
    _format(
        "glm45",
        Pairs(("<tool_call>",), "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
        ("glm4", "glm", "ling3", "spark", "poolside_v1_tool_parser", "hy_v3"),
    ),
    _format(
        "longcat",
        Pairs(
            (_LONGCAT,),
            "</longcat_tool_call>",
            "<longcat_arg_key>",
            "</longcat_arg_key>",
            "<longcat_arg_value>",
            "</longcat_arg_value>",
        ),
        (),
    ),
)
