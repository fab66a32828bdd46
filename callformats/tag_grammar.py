"""Calls as tags with the names inside, read and written by a grammar that says how one family spells them.

An optional wrapper, then `<function=NAME>` or `<invoke name="NAME">`, parameters, closers. A value is the text up to
the closer that is followed by a next part, so markup inside a value stays text.
"""

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
    Outcome,
    could_begin,
    literal_at,
)
from callformats.json_value import Json
from callformats.loose_json import State, parse, parse_before
from callformats.scan import Finder, next_match, skip_space
from callformats.shapes import dumps, of_value, past_value, put

_TAG_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class Grammar:
    """Spelling of one family member. `call` and `parameter` are patterns whose group `name` is the name."""

    wraps: tuple[str, ...]
    wrap_closes: tuple[str, ...]
    calls: tuple[str, ...]
    call: re.Pattern[str]
    call_close: re.Pattern[str]
    parameter: re.Pattern[str]
    parameter_start: re.Pattern[str]
    parameter_close: re.Pattern[str]
    trims_newline: bool = False
    call_template: str = ""
    parameter_template: str = ""
    marks_strings: bool = False
    lead: str = ""
    """What may stand between the wrapper and the call."""


def _tag_may_be_growing(text: str, at: int) -> bool:
    return len(text) - at < _TAG_CHARACTERS and ">" not in text[at:]


def reader_of(grammar: Grammar) -> BlockReader:
    """The block reader for one grammar."""

    def read(text: str, at: int, complete: bool) -> Outcome:
        start = at
        wrap = literal_at(text, at, grammar.wraps)
        if wrap is not None:
            start = skip_space(text, at + len(wrap))
            if grammar.lead and not complete and could_begin(text, start, (grammar.lead,)):
                return UNFINISHED
            if grammar.lead and text.startswith(grammar.lead, start):
                start = skip_space(text, start + len(grammar.lead))
        elif literal_at(text, at, grammar.calls) is None:
            return DECLINED
        return _calls(text, start, complete, grammar, wrapped=wrap is not None)

    return read


def _calls(text: str, start: int, complete: bool, grammar: Grammar, *, wrapped: bool) -> Outcome:
    found: list[Candidate] = []
    closers = Finder(grammar.parameter_close, text)
    at = end = start
    while True:
        at = skip_space(text, at)
        closer = literal_at(text, at, grammar.wrap_closes)
        if closer is not None and (found or wrapped):
            return Block(at + len(closer), tuple(found)) if found else DECLINED
        head = grammar.call.match(text, at)
        if head is None:
            growing = at >= len(text) or could_begin(text, at, (*grammar.calls, *grammar.wrap_closes))
            growing = growing or (literal_at(text, at, grammar.calls) is not None and _tag_may_be_growing(text, at))
            if growing and not complete:
                return UNFINISHED
            return Block(end, tuple(found)) if found else DECLINED
        outcome = _one_call(text, head, complete, grammar, closers)
        if outcome is None:
            return UNFINISHED
        candidate, at = outcome
        end = at
        found.append(candidate)
        if not wrapped and at >= len(text) and complete:
            return Block(end, tuple(found))


def _one_call(
    text: str, head: re.Match[str], complete: bool, grammar: Grammar, closers: Finder
) -> tuple[Candidate, int] | None:
    """The call whose head this is and where it ends; None when more text is needed."""
    values: dict[str, Json] = {}
    broken = mended = False
    doubled: str | None = None
    at = skip_space(text, head.end())
    if at < len(text) and text[at] == "{":
        return _json_body(text, head, at, complete, grammar)
    while True:
        at = skip_space(text, at)
        if at >= len(text):
            if not complete:
                return None
            return replace(_candidate(text, head, at, values, mended=True, broken=broken), doubled=doubled), at
        close = grammar.call_close.match(text, at)
        if close is not None:
            candidate = _candidate(text, head, close.end(), values, mended, broken)
            return replace(candidate, doubled=doubled), close.end()
        parameter = grammar.parameter.match(text, at)
        if parameter is None:
            if not complete and _tag_may_be_growing(text, at):
                return None
            candidate, at = _without_closer(text, head, at, values, grammar, broken)
            return replace(candidate, doubled=doubled), at
        value = _value(text, parameter.end(), complete, grammar, closers)
        if value is None:
            if not complete:
                return None
            cut = _candidate(text, head, len(text), values, mended=True, broken=broken)
            return replace(cut, cut=True), len(text)
        written, at, clean = value
        name = parameter["name"]
        broken = broken or not name
        mended = mended or not clean
        doubled = put(values, name or "", _marked_string(parameter, written, grammar)) or doubled


def _marked_string(parameter: re.Match[str], written: str, grammar: Grammar) -> Json:
    if not grammar.marks_strings or parameter.groupdict().get("string") != "false":
        return written
    parsed = parse(written + "\n")
    return parsed.value if parsed.state is State.WHOLE and parsed.sure else written


def _without_closer(
    text: str, head: re.Match[str], at: int, values: dict[str, Json], grammar: Grammar, broken: bool
) -> tuple[Candidate, int]:
    """Something else where a parameter or the call's end should stand: the call ends here, a closer is missing."""
    foreign = not (grammar.call.match(text, at) or literal_at(text, at, grammar.wrap_closes))
    return _candidate(text, head, at, values, mended=True, broken=broken or (foreign and not values)), at


def _candidate(
    text: str, head: re.Match[str], end: int, values: dict[str, Json], mended: bool, broken: bool
) -> Candidate:
    raw = text[head.start() : end]
    return Candidate(head["name"].strip(), dict(values), raw, typed=False, mended=mended, broken=broken)


def _json_body(
    text: str, head: re.Match[str], at: int, complete: bool, grammar: Grammar
) -> tuple[Candidate, int] | None:
    """`<function=NAME>{…}</function>`, as Functionary 3.1 and Llama write it."""
    parsed = parse_before(text, at, ("</",))
    if parsed.state in (State.OPEN, State.CUT) and not complete:
        return None
    if parsed.state is State.BROKEN:
        return _unreadable_body(text, head, parsed.end, complete, grammar)
    parsed = past_value(text, parsed)
    end = parsed.end
    close = grammar.call_close.match(text, end)
    if close is None and not complete and (end >= len(text) or _tag_may_be_growing(text, end)):
        return None
    end = close.end() if close else parsed.end
    raw = text[head.start() : end]
    return of_value(head["name"].strip(), parsed, raw, closed=close is not None), end


def _unreadable_body(
    text: str, head: re.Match[str], at: int, complete: bool, grammar: Grammar
) -> tuple[Candidate, int] | None:
    """What is no JSON, up to the call's closer or else all the rest: it is no text for the user."""
    close = next_match(grammar.call_close, text, at)
    if close is None and not complete:
        return None
    end = close.end() if close else len(text)
    return Candidate(head["name"].strip(), raw=text[head.start() : end], broken=True), end


def _value(text: str, start: int, complete: bool, grammar: Grammar, closers: Finder) -> tuple[str, int, bool] | None:
    """A parameter's text, where it ends, and whether it had its closer; None when the text ends inside it."""
    if text.startswith("<![CDATA[", start):
        end = text.find("]]>", start)
        close = grammar.parameter_close.match(text, skip_space(text, end + 3)) if end >= 0 else None
        if close is not None:
            return text[start + len("<![CDATA[") : end], close.end(), True
        return None if end < 0 or end + 40 > len(text) else (text[start + 9 : end], end + 3, False)
    at = start
    first: re.Match[str] | None = None
    while True:
        close = closers.next(at)
        ahead = next_match(grammar.parameter_start, text, at, close.start() if close else len(text))
        if first is None and ahead is not None and (close is None or text[ahead.start() - 1] in "\n>"):
            # The closer is missing. Markup in the middle of a line is only text of the value.
            return _trimmed(text[start : ahead.start()], grammar), ahead.start(), False
        if close is None:
            return _without_valid_end(text, start, first, complete, grammar)
        first = first or close
        ends = _is_end(text, close.end(), complete, grammar)
        if ends is None:
            return None
        if ends:
            return _trimmed(text[start : close.start()], grammar), close.end(), True
        at = close.end()


def _is_end(text: str, at: int, complete: bool, grammar: Grammar) -> bool | None:
    """Whether a closer at `at` is followed by what can follow a parameter; None when more text is needed to tell."""
    at = skip_space(text, at)
    if at >= len(text):
        return True if complete else None
    follows = (grammar.parameter, grammar.call_close, grammar.call)
    if any(pattern.match(text, at) for pattern in follows) or literal_at(text, at, grammar.wrap_closes):
        return True
    return None if not complete and text[at] == "<" and _tag_may_be_growing(text, at) else False


def _without_valid_end(
    text: str, start: int, first: re.Match[str] | None, complete: bool, grammar: Grammar
) -> tuple[str, int, bool] | None:
    """No closer is followed by what should follow: the first one counts, else the value ends where the call does."""
    if not complete:
        return None
    if first is not None:
        return _trimmed(text[start : first.start()], grammar), first.end(), False
    close = next_match(grammar.call_close, text, start)
    return (_trimmed(text[start : close.start()], grammar), close.start(), False) if close else None


def _trimmed(value: str, grammar: Grammar) -> str:
    if not grammar.trims_newline:
        return value
    value = value.removeprefix("\r").removeprefix("\n")
    return value.removesuffix("\n").removesuffix("\r")


def written(grammar: Grammar, name: str, arguments: Mapping[str, Json]) -> str:
    """One call as text of this grammar. Strings stand as they are, everything else as JSON."""
    parameters = "".join(
        grammar.parameter_template.format(
            name=key,
            value=value if isinstance(value, str) else dumps(value),
            string="true" if isinstance(value, str) else "false",
        )
        for key, value in arguments.items()
    )
    body = grammar.call_template.format(name=name, parameters=parameters)
    if not grammar.wraps:
        return body
    return f"{grammar.wraps[0]}\n{body}\n{grammar.wrap_closes[0]}"
