"""Calls as Python: LFM2, Llama 4, OLMo 3, Gemma 3's tool_code, and bare ones."""

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
from callformats.loose_json import State, parse
from callformats.repairs import Repair, why_not
from callformats.scan import next_match, skip_space
from callformats.shapes import candidates, dumps, put

NAME = re.compile(r"[^\W\d][\w.-]{0,127}")
_TAG_END = re.compile(r"<\|eo[mt]_id\|>")
_PYTHONS = frozenset({Repair.SIGN})
"""What has one reading in Python: a backslash that begins no escape stays."""

_KEYWORD = re.compile(r"\s{0,40}([^\W\d]\w{0,127})\s{0,20}=(?!=)")
_PRINT_GROWS = re.compile(r"\s*(?:print\s*(?:\(\s*)?)?(?:[A-Za-z_]\w{0,40}\s*=?\s*)?(?:[^\W\d][\w.-]{0,127})?")
_LONGEST_LEAD = 200
_PRINT = re.compile(r"\s*(?:print\s*\(\s*)?(?:[A-Za-z_]\w{0,40}\s*=\s*)?(?=[^\W\d][\w.-]{0,127}\()")


def read_calls(text: str, at: int, complete: bool) -> Outcome:
    """Calls in brackets or one under the other, from the first name or bracket on."""
    bracketed = text.startswith("[", at)
    at = skip_space(text, at + 1) if bracketed else at
    found: list[Candidate] = []
    end = at
    while True:
        one = _one_call(text, at, complete)
        if not isinstance(one, tuple):
            return one if not found or one is UNFINISHED else Block(end, tuple(found))
        candidate, end = one
        found.append(candidate)
        if candidate.cut:
            return Block(end, tuple(found))
        at = skip_space(text, end)
        if at < len(text) and text[at] in ",;":
            at = skip_space(text, at + 1)
        if text.startswith("]", at) and bracketed:
            return Block(at + 1, tuple(found))
        if at >= len(text):
            return _ended(found, end, bracketed, complete)
        if NAME.match(text, at) is None:
            return Block(end, _open(found) if bracketed else tuple(found))
        if not bracketed and _no_call_ahead(text, at, complete):
            return Block(end, tuple(found))


def _no_call_ahead(text: str, at: int, complete: bool) -> bool:
    name = NAME.match(text, at)
    if name is None:
        return True
    return not text.startswith("(", name.end()) and (complete or name.end() < len(text))


def _ended(found: list[Candidate], end: int, bracketed: bool, complete: bool) -> Outcome:
    if not complete:
        return UNFINISHED
    return Block(end, _open(found) if bracketed else tuple(found))


def _open(found: list[Candidate]) -> tuple[Candidate, ...]:
    """The closing bracket is missing: the last call was mended."""
    return (*found[:-1], replace(found[-1], mended=True))


def _one_call(text: str, at: int, complete: bool) -> tuple[Candidate, int] | Outcome:
    name = NAME.match(text, at)
    if at >= len(text) or (name is not None and name.end() >= len(text)):
        return DECLINED if complete else UNFINISHED
    if name is None or not text.startswith("(", name.end()):
        return DECLINED
    values: dict[str, Json] = {}
    mended, unsure = False, False
    doubled: str | None = None
    here = name.end() + 1
    while True:
        here = skip_space(text, here)
        if text.startswith(",", here):
            here = skip_space(text, here + 1)
        if text.startswith(")", here):
            raw = text[at : here + 1]
            return Candidate(name[0], values, raw, mended=mended, unsure=unsure, doubled=doubled), here + 1
        keyword = _KEYWORD.match(text, here)
        if keyword is None:
            so_far = Candidate(name[0], values, mended=True, unsure=unsure, doubled=doubled)
            return _no_keyword(text, at, here, complete, so_far)
        parsed = parse(text, keyword.end())
        if parsed.state in (State.CUT, State.OPEN):
            if not complete:
                return UNFINISHED
            return Candidate(name[0], values, text[at:], mended=True, cut=True), len(text)
        if parsed.state is State.BROKEN or not _delimited(text, parsed.end):
            return _single_string(text, at, keyword, complete, name[0]) or DECLINED
        mended, unsure = mended or parsed.mended, unsure or why_not(parsed.repairs - _PYTHONS) is not None
        doubled = put(values, keyword[1], parsed.value) or parsed.doubled or doubled
        here = parsed.end


def _no_keyword(text: str, at: int, here: int, complete: bool, so_far: Candidate) -> tuple[Candidate, int] | Outcome:
    rest = text[here : here + 200]
    if here >= len(text) and complete and so_far.arguments:
        # Every string is closed; the bracket is missing.
        return replace(so_far, raw=text[at:]), len(text)
    growing = re.fullmatch(r"[^\W\d]?[\w.-]*\s*", rest) is not None and here + len(rest) >= len(text)
    if not growing:
        return DECLINED
    if not complete:
        return UNFINISHED
    return replace(so_far, raw=text[at:], cut=True), len(text)


def _delimited(text: str, end: int) -> bool:
    end = skip_space(text, end)
    return end >= len(text) or text[end] in ",)"


_STRING_CALL_END = re.compile(r"([\"'])\s{0,8}\)\s{0,8}(?=\]|<|\Z)")


def _single_string(
    text: str, at: int, keyword: re.Match[str], complete: bool, name: str
) -> tuple[Candidate, int] | Outcome | None:
    """One string with its own quotes unescaped inside: it ends at the last quote before the call does."""
    quote = text[keyword.end() : keyword.end() + 1]
    if quote not in ("'", '"') or text[at : keyword.start()].count("=") > 0:
        return None
    if not complete:
        return UNFINISHED
    closer = text.find("<|", keyword.end())
    limit = closer if closer >= 0 else len(text)
    end = _last_end(text, keyword.end() + 1, limit, quote)
    if end is None:
        return None
    value = text[keyword.end() + 1 : end.start()]
    if "\\" in value:
        value = re.sub(rf"\\({quote}|\\)", r"\1", value)
    return Candidate(name, {keyword[1]: value}, text[at : end.end()], mended=True), end.end()


def _last_end(text: str, at: int, limit: int, quote: str) -> re.Match[str] | None:
    last = None
    while (end := next_match(_STRING_CALL_END, text, at, limit)) is not None:
        last, at = end if end[1] == quote else last, end.end()
    return last


def marked(opens: tuple[str, ...], closes: tuple[str, ...]) -> BlockReader:
    """The reader of calls between markers, printed or given a name perhaps."""

    def read(text: str, at: int, complete: bool) -> Outcome:
        opener = literal_at(text, at, opens)
        if opener is None:
            return DECLINED
        start = skip_space(text, at + len(opener))
        if start >= len(text):
            return DECLINED if complete else UNFINISHED
        if not complete and len(text) - start < _LONGEST_LEAD and _PRINT_GROWS.fullmatch(text, start):
            return UNFINISHED
        printed = _PRINT.match(text, start)
        if printed is not None and text[start] != "[":
            return _closed(text, read_calls(text, printed.end(), complete), closes, complete)
        if text[start] == "[" and text.startswith("{", skip_space(text, start + 1)):
            return _closed(text, _json_list(text, start, complete), closes, complete)
        if text[start] == "[" and skip_space(text, start + 1) >= len(text) and not complete:
            return UNFINISHED
        return _closed(text, read_calls(text, start, complete), closes, complete)

    return read


_TAG = "<|python_tag|>"
_TAG_CLOSES = ("<|eom_id|>", "<|eot_id|>")
_read_tagged_calls = marked((_TAG,), _TAG_CLOSES)


def _read_python_tag(text: str, at: int, complete: bool) -> Outcome:
    """Llama 3: a call, `tool.call(…)`, or else code for a tool named `python`."""
    outcome = _read_tagged_calls(text, at, complete)
    if isinstance(outcome, Block):
        renamed = (replace(one, name=one.name.removesuffix(".call")) for one in outcome.candidates)
        return Block(outcome.end, tuple(renamed))
    start = at + len(_TAG)
    if outcome is not DECLINED or text.startswith(("{", "["), skip_space(text, start)):
        return outcome
    end = next_match(_TAG_END, text, start)
    if end is None and not complete:
        return UNFINISHED
    code = text[start : end.start() if end else len(text)]
    candidate = Candidate("python", {"code": code}, code, cut=end is None and not code.strip())
    return Block(end.end() if end else len(text), (candidate,))


def _json_list(text: str, at: int, complete: bool) -> Outcome:
    """LFM2 also writes JSON between its markers."""
    parsed = parse(text, at)
    if parsed.state in (State.OPEN, State.CUT) and not complete:
        return UNFINISHED
    found = candidates(parsed, text[at : parsed.end])
    return Block(parsed.end, found) if found else DECLINED


def _closed(text: str, outcome: Outcome, closes: tuple[str, ...], complete: bool) -> Outcome:
    """The block with its closer, past brackets that are one too many."""
    if not isinstance(outcome, Block):
        return outcome
    at = skip_space(text, outcome.end)
    while at < len(text) and text[at] in ")]}":
        at = skip_space(text, at + 1)
    closer = literal_at(text, at, closes)
    if closer is not None:
        return Block(at + len(closer), outcome.candidates)
    if not complete and (at >= len(text) or could_begin(text, at, closes)):
        return UNFINISHED
    return outcome


def _literal(value: Json) -> str:
    """The value as Python writes it, strings with the quoting of JSON, which Python reads as well."""
    if isinstance(value, str):
        return dumps(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{dumps(key)}: {_literal(item)}" for key, item in value.items()) + "}"
    return repr(value)


def written(name: str, arguments: Mapping[str, Json]) -> str:
    """`name(key=value, …)`."""
    return f"{name}({', '.join(f'{key}={_literal(value)}' for key, value in arguments.items())})"


def _format(
    format_id: str, opens: tuple[str, ...], closes: tuple[str, ...], aliases: tuple[str, ...], *, bracketed: bool
) -> Format:
    def write(name: str, arguments: Mapping[str, Json]) -> str:
        call = written(name, arguments)
        return f"{opens[0]}{f'[{call}]' if bracketed else call}{closes[0]}"

    return Format(format_id, marked(opens, closes), write, opens, closes, closes[:1], aliases=aliases)


FORMATS = (
    _format(
        "lfm2-pythonic",
        ("<|tool_call_start|>", "<tool_call_start|>", "<|tool_call_start>"),
        ("<|tool_call_end|>", "<tool_call_end|>", "<|tool_call_end>"),
        ("lfm2", "pythonic-tags"),
        bracketed=True,
    ),
    _format("llama4-pythonic", ("<|python_start|>",), ("<|python_end|>",), (), bracketed=True),
    _format("olmo3-pythonic", ("<function_calls>",), ("</function_calls>",), ("olmo3",), bracketed=False),
    _format("tool-code", ("```tool_code\n",), ("\n```", "```"), ("gemma3",), bracketed=False),
    Format(
        "llama3-python-call",
        _read_python_tag,
        lambda name, arguments: f"{_TAG}{written(name, arguments)}{_TAG_CLOSES[0]}",
        (_TAG,),
        _TAG_CLOSES,
        _TAG_CLOSES,
    ),
)
