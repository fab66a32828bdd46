"""Calls without markers: bare or fenced JSON, bare Python, ReAct, Functionary 3.2.

They count only as the whole reply or its last block, and only for tools on offer; the scanner sees to that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from callformats.block import DECLINED, UNFINISHED, Block, Candidate, Format, GaveUp, Names, Outcome
from callformats.formats.pythonic import NAME, read_calls
from callformats.formats.pythonic import written as written_call
from callformats.json_value import Json
from callformats.loose_json import Parsed, State, parse, parse_before, with_stray_closers
from callformats.scan import skip_space
from callformats.shapes import CALL_KEYS, candidates, dumps, merge_halves, of_value
from callformats.tokens import tokens

_FIRST_KEY = re.compile(
    r"\[?\s{0,40}\{{1,2}\s{0,40}(?:[\"'](?P<quoted>[^\"'\n]{0,128})(?P<end>[\"'])?|(?P<bare>[\w.-]{0,128}))"
)


def _first_key_fits(text: str, at: int, names: Names) -> bool:
    """Whether the first key, as far as it is written, is one that calls begin with."""
    match = _FIRST_KEY.match(text, at)
    if match is None:
        rest = text[at : at + 90].strip()
        return rest in ("[", "{", "{{", "[{", "[{{", "[ {") or (len(text) - at < 90 and rest.strip("[{ \n") == "")
    key = match["quoted"] if match["quoted"] is not None else match["bare"] or ""
    if match["end"] is None and match.end() >= len(text):
        grows = names.may_grow(key) or names.spells(key)
        return grows or not key or any(known.startswith(key) for known in CALL_KEYS)
    return key.rstrip("=>") in CALL_KEYS or names.spells(key)


def _names_fit(found: tuple[Candidate, ...], names: Names) -> bool:
    return all(names.knows(one.name) or (names.whole and _is_shaped(one)) for one in found if one.name)


def _is_shaped(one: Candidate) -> bool:
    """A name and an object of arguments: nothing but a call looks so."""
    return not one.flat and isinstance(one.arguments, dict)


def read_json(text: str, at: int, complete: bool, names: Names) -> Outcome:
    """One JSON value or several in a row; all of them have to be calls."""
    found: list[Candidate] = []
    here = at
    while True:
        if not _first_key_fits(text, here, names):
            return DECLINED
        parsed, end = _value(text, here)
        if parsed.state is State.BROKEN:
            return GaveUp(end)
        more = candidates(parsed, text[here:end])
        if parsed.state is not State.WHOLE and names.whole and not complete:
            return UNFINISHED
        if not _names_fit(more, names):
            return GaveUp(end)
        if parsed.state is not State.WHOLE:
            return _unended((*found, *more), text) if complete else UNFINISHED
        found += more
        if not found:
            return GaveUp(end)
        following = _next_value(text, end, complete)
        if following is None:
            return _all_named(tuple(found), end)
        if following >= len(text):
            return _all_named(tuple(found), end) if complete else UNFINISHED
        here = following


def _value(text: str, at: int) -> tuple[Parsed, int]:
    """The value at `at` and its end, past closers that are one too many."""
    parsed = parse_before(text, at, ("```",))
    end = parsed.end
    while parsed.state is State.WHOLE and end < len(text) and text[end] in "}]":
        end += 1
        parsed = with_stray_closers(parsed)
    return parsed, end


def _all_named(found: tuple[Candidate, ...], end: int) -> Outcome:
    merged = merge_halves(found)
    if any(not one.name or _bare_name(one) for one in merged):
        return GaveUp(end)
    return Block(end, merged)


def _bare_name(one: Candidate) -> bool:
    """{"name": "x"} alone says too little to be a call where nothing else marks it as one."""
    return one.arguments is None and not one.beside


def _unended(found: tuple[Candidate, ...], text: str) -> Outcome:
    """The reply ends inside the value: a call without closers, or one that is cut, if its name is known."""
    if not found or any(not one.name for one in merge_halves(found)):
        return GaveUp(len(text))
    return Block(len(text), merge_halves(found))


def _next_value(text: str, end: int, complete: bool) -> int | None:
    """Where another value of the same block begins: the values stand side by side, or `;` or `,` parts them.

    The end of the text if that is not to be seen yet; None when something else follows.
    """
    here = skip_space(text, end)
    if text[here : here + 1] in (",", ";"):
        here = skip_space(text, here + 1)
    if here >= len(text) or (not complete and tokens().may_grow(text, here)):
        return len(text)
    marker = tokens().pattern.match(text, here)
    return here if text[here] in "{[" and marker is None else None


def _read_bare_json(text: str, at: int, complete: bool, names: Names) -> Outcome:
    if text[at : at + 1] in ("{", "["):
        return read_json(text, at, complete, names)
    return _read_in_angles(text, at, complete, names)


def _read_in_angles(text: str, at: int, complete: bool, names: Names) -> Outcome:
    """`<{…}>`: what becomes of a tag where a template shows tags and doubled braces side by side (Qwen2.5)."""
    if text[at : at + 1] != "<" or text[at + 1 : at + 2] not in ("", "{"):
        return DECLINED
    if at + 1 >= len(text):
        return DECLINED if complete else UNFINISHED
    outcome = read_json(text, at + 1, complete, names)
    if isinstance(outcome, Block):
        end = skip_space(text, outcome.end)
        return replace(outcome, end=end + 1) if text[end : end + 1] == ">" else outcome
    inside = text.rstrip()
    if not isinstance(outcome, GaveUp) or not inside.endswith(">"):
        return outcome
    # The braces do not add up, so the value breaks at the angle: it is the end only if nothing follows.
    if not complete:
        return UNFINISHED
    outcome = read_json(inside[:-1], at + 1, complete, names)
    return replace(outcome, end=len(text)) if isinstance(outcome, Block) else outcome


_FENCE = re.compile(r"(`{3,8})[ \t]{0,4}([\w+-]{0,20})[ \t]{0,4}(?:\n|\Z)")
_FENCED = (
    "",
    "json",
    "jsonc",
    "json5",
    "tool_call",
    "tool_calls",
    "tool_code",
    "tool",
    "text",
    "python",
    "py",
    "xml",
    "plaintext",
)
_FENCE_CHARACTERS = 36


def _read_fence(text: str, at: int, complete: bool, names: Names) -> Outcome:
    if not text.startswith("`", at):
        return DECLINED
    head = _FENCE.match(text, at)
    if head is None or (head.end() >= len(text) and not complete):
        line = text[at : at + _FENCE_CHARACTERS]
        growing = len(line) < _FENCE_CHARACTERS and re.fullmatch(r"`{1,8}[ \t]*[\w+-]*[ \t]*\n?", line) is not None
        return UNFINISHED if growing and not complete else DECLINED
    if head[2].lower() not in _FENCED:
        return DECLINED
    start = skip_space(text, head.end())
    if start >= len(text):
        return DECLINED if complete else UNFINISHED
    if text[start] in "{[" and (text[start] == "{" or _is_object_or_end(text, skip_space(text, start + 1))):
        outcome = read_json(text, start, complete, names)
    else:
        outcome = _read_bare_calls(text, start, complete, names)
    return _with_fence_end(text, outcome, head[1], complete)


def _is_object_or_end(text: str, at: int) -> bool:
    return at >= len(text) or text[at] == "{"


def _with_fence_end(text: str, outcome: Outcome, ticks: str, complete: bool) -> Outcome:
    if not isinstance(outcome, Block):
        return outcome
    end = skip_space(text, outcome.end)
    if text.startswith(ticks, end):
        return Block(end + len(ticks), outcome.candidates)
    if end >= len(text) or ticks.startswith(text[end:]):
        return Block(len(text), outcome.candidates) if complete else UNFINISHED
    return DECLINED


def _read_bare_calls(text: str, at: int, complete: bool, names: Names) -> Outcome:
    start = skip_space(text, at + 1) if text.startswith("[", at) else at
    name = NAME.match(text, start)
    if name is None:
        return UNFINISHED if start >= len(text) and not complete else DECLINED
    if name.end() >= len(text):
        growing = names.may_grow(name[0]) or names.spells(name[0])
        return UNFINISHED if growing and not complete else DECLINED
    if not text.startswith("(", name.end()) or not names.spells(name[0]):
        return DECLINED
    outcome = read_calls(text, at, complete)
    if outcome is DECLINED or (isinstance(outcome, Block) and not _names_fit(outcome.candidates, names)):
        return GaveUp(at + _CHARGE)
    return outcome


_CHARGE = 2000  # what a written call that is none is taken to have cost, in characters

_ACTION = re.compile(r"\**Action\**:\**[ \t]{0,8}(?P<name>[^\n`:]{0,128}?)[ \t]{0,8}(?P<end>\n|\Z)")
_ACTION_FENCE = re.compile(r"Action:[ \t]{0,8}(?=`)")
_INPUT = re.compile(r"\s{0,40}\**Action[ _]Input\**:\**\s{0,40}")
_ACTION_WORD = "Action:"
_INPUT_WORD = "Action Input:"


def _read_react(text: str, at: int, complete: bool, names: Names) -> Outcome:
    word = text[at : at + len(_ACTION_WORD)]
    if word != _ACTION_WORD:
        return (
            UNFINISHED if _ACTION_WORD.startswith(word) and at + len(word) >= len(text) and not complete else DECLINED
        )
    fenced = _ACTION_FENCE.match(text, at)
    if fenced is not None:
        return _action_list(text, fenced.end(), complete, names)
    head = _ACTION.match(text, at)
    if head is None:
        return UNFINISHED if not complete and len(text) - at < 140 and "\n" not in text[at:] else DECLINED
    if head["end"] == "" and not complete:
        return UNFINISHED
    if not head["name"]:
        return _action_list(text, head.end(), complete, names)
    if not names.knows(head["name"]):
        return DECLINED
    given = _INPUT.match(text, head.end())
    if given is None:
        behind = skip_space(text, head.end())
        rest = text[behind : behind + len(_INPUT_WORD)].strip()
        return UNFINISHED if not complete and _INPUT_WORD.startswith(rest) else DECLINED
    return _action_input(text, at, given.end(), complete, head["name"])


def _action_list(text: str, at: int, complete: bool, names: Names) -> Outcome:
    """Cohere: `Action:` and a fenced JSON list."""
    start = skip_space(text, at)
    if start >= len(text):
        return DECLINED if complete else UNFINISHED
    return _read_fence(text, start, complete, names)


def _action_input(text: str, at: int, start: int, complete: bool, name: str) -> Outcome:
    if start >= len(text):
        return Block(start, (Candidate(name, None, text[at:], cut=True),)) if complete else UNFINISHED
    parsed = parse(text, start)
    if parsed.state is State.BROKEN or not isinstance(parsed.value, dict | None):
        return Block(len(text), (Candidate(name, raw=text[at:], broken=True),)) if complete else UNFINISHED
    if parsed.state is not State.WHOLE and not complete:
        return UNFINISHED
    line_end = text.find("\n", parsed.end)
    if line_end < 0 and not complete:
        return UNFINISHED
    end = line_end if line_end >= 0 else len(text)
    return Block(end, (of_value(name, parsed, text[at:end]),))


_PROMPT = ">>>"


def _read_functionary(text: str, at: int, complete: bool, names: Names) -> Outcome:
    """A name on a line of its own, then JSON; `>>>` in front belongs to the prompt as often as to the reply."""
    start = at + len(_PROMPT) if text.startswith(_PROMPT, at) else at
    if start == at and at < len(text) and _PROMPT.startswith(text[at:]):
        return DECLINED if complete else UNFINISHED
    name = NAME.match(text, start)
    if name is None or name.end() >= len(text):
        written = name[0] if name else ""
        growing = start >= len(text) or (name is not None and (names.may_grow(written) or names.spells(written)))
        return UNFINISHED if growing and not complete else DECLINED
    body = name.end() + 1
    if text[name.end()] != "\n" or not names.spells(name[0]):
        return DECLINED
    if body >= len(text):
        return DECLINED if complete else UNFINISHED
    if text[body] != "{":
        return DECLINED
    parsed = parse(text, body)
    if parsed.state is State.BROKEN:
        return GaveUp(parsed.end)
    if parsed.state is not State.WHOLE and not complete:
        return UNFINISHED
    return Block(parsed.end, (of_value(name[0], parsed, text[at : parsed.end]),))


def _write_json(name: str, arguments: Mapping[str, Json]) -> str:
    return dumps({"name": name, "arguments": dict(arguments)})


FORMATS = (
    Format(
        "json",
        write=_write_json,
        plain=_read_bare_json,
        begins="{[<",
        aliases=("bare-json", "json-list", "xlam", "guided", "json-inline"),
    ),
    Format(
        "llama3-json",
        write=lambda name, arguments: dumps({"name": name, "parameters": dict(arguments)}),
        plain=_read_bare_json,
        begins="{[<",
        stops=("<|eot_id|>", "<|eom_id|>"),
    ),
    Format(
        "json-fence",
        write=lambda name, arguments: f"```json\n{_write_json(name, arguments)}\n```",
        plain=_read_fence,
        begins="`",
    ),
    Format(
        "pythonic",
        write=lambda name, arguments: f"[{written_call(name, arguments)}]",
        plain=_read_bare_calls,
        begins="[",
    ),
    Format(
        "react",
        write=lambda name, arguments: f"Action: {name}\nAction Input: {dumps(arguments)}\n",
        plain=_read_react,
        begins="A",
        stops=("\nObservation:",),
    ),
    Format(
        "command-r-plus",
        write=lambda name, arguments: (
            f"Action:\n```json\n{dumps([{'tool_name': name, 'parameters': dict(arguments)}])}\n```"
        ),
        plain=_read_react,
        begins="A",
    ),
    Format(
        "functionary-v32",
        write=lambda name, arguments: f">>>{name}\n{dumps(arguments)}",
        plain=_read_functionary,
        begins=">",
        stops=("<|eot_id|>",),
        aliases=("functionary",),
    ),
)
