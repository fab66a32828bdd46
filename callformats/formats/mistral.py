"""Mistral: `[TOOL_CALLS]` with a JSON list, or with a name and `[ARGS]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from callformats.block import DECLINED, UNFINISHED, Block, Candidate, Format, Outcome, could_begin, literal_at
from callformats.formats.tagged_json import Wrapper, read_wrapped, written
from callformats.json_value import Json
from callformats.loose_json import State, parse_before
from callformats.scan import skip_space
from callformats.shapes import candidates, dumps, of_value, past_value

_OPENS = ("[TOOL_CALLS]", "[tool_calls]", "[TOOL_CALL]")
_CLOSES = ("[/TOOL_CALLS]", "[/tool_calls]", "[/TOOL_CALL]")
_LIST = Wrapper(_OPENS, _CLOSES, shape="list")
_NAME = re.compile(r"\s{0,8}([\w./:-]{0,128})")
_ID = re.compile(r"\[CALL_ID\]([\w-]{0,64})")


def _read(text: str, at: int, complete: bool) -> Outcome:
    opener = literal_at(text, at, _OPENS)
    if opener is None:
        return DECLINED
    start = at + len(opener)
    first = skip_space(text, start)
    if text.startswith("[", first) and not text.startswith("[ARGS]", first):
        return _list_or_wait(text, at, start, complete)
    name = _NAME.match(text, start)
    assert name is not None
    here = name.end()
    if here >= len(text) and not complete:
        return UNFINISHED
    own_id = _ID.match(text, here)
    here = own_id.end() if own_id else here
    if not complete and (here >= len(text) or could_begin(text, here, ("[ARGS]", "[CALL_ID]"))):
        return UNFINISHED
    marked = text.startswith("[ARGS]", here)
    here = skip_space(text, here + len("[ARGS]") if marked else here)
    if here >= len(text) or text[here] != "{":
        return _no_arguments(text, name, here, complete, marked)
    return _with_arguments(text, here, complete, name[1], own_id[1] if own_id else None)


def _list_or_wait(text: str, at: int, start: int, complete: bool) -> Outcome:
    if not complete and could_begin(text, skip_space(text, start), ("[ARGS]", *_OPENS)):
        return UNFINISHED
    return read_wrapped(text, at, complete, _LIST)


def _no_arguments(text: str, name: re.Match[str], here: int, complete: bool, marked: bool) -> Outcome:
    if here >= len(text) and not complete:
        return UNFINISHED
    if not name[1] and not marked:
        return DECLINED
    if marked and here < len(text):
        return Block(here, (Candidate(name[1], raw=name[0], broken=True),))
    return Block(name.end() if not marked else here, (Candidate(name[1], {}, name[0]),))


def _with_arguments(text: str, here: int, complete: bool, name: str, own_id: str | None) -> Outcome:
    parsed = parse_before(text, here, (*_OPENS, *_CLOSES, "</s>"))
    if parsed.state in (State.OPEN, State.CUT) and not complete:
        return UNFINISHED
    raw = text[here : parsed.end]
    if parsed.state is State.BROKEN:
        following = text.find(_OPENS[0], here)
        if following < 0 and not complete:
            return UNFINISHED
        end = following if following >= 0 else len(text)
        return Block(end, (Candidate(name, raw=text[here:end], broken=True),))
    if not name and isinstance(parsed.value, dict) and isinstance(parsed.value.get("name"), str):
        end = skip_space(text, parsed.end)
        closer = literal_at(text, end, _CLOSES)
        return Block(end + len(closer) if closer else parsed.end, candidates(parsed, raw))
    whole = past_value(text, parsed, closes=False)
    if whole.end >= len(text) and not complete:
        return UNFINISHED
    end = whole.end if whole.repairs != parsed.repairs else parsed.end
    return Block(end, (replace(of_value(name, whole, raw), id=own_id),))


def _write(name: str, arguments: Mapping[str, Json]) -> str:
    return f"[TOOL_CALLS]{name}[ARGS]{dumps(arguments)}"


FORMATS = (
    Format(
        "mistral-args",
        _read,
        _write,
        _OPENS,
        _CLOSES,
        ("</s>",),
        inner=("[ARGS]",),
        aliases=("mistral-v11", "devstral"),
    ),
    Format("mistral", _read, lambda name, arguments: written(_LIST, name, arguments), _OPENS, _CLOSES, ("</s>",)),
)
