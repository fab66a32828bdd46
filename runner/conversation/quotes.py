"""Quoted messages outside a pipeline, which the Host shows as Python does (B4).

LangBot 4.11.2 makes the text of an event from its message chain, and a quote has no words of its own there. So the
text begins `type='Quote' id='1' … origin=MessageChain([Plain('At nine.'), Image(…, base64='…')])`, bytes and all.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from runner.conversation.names import one_line
from runner.guards import defang

_HEAD = re.compile(r"type='Quote' id=[^\n]{0,1000}?origin=MessageChain\(\[")
_LITERAL = r"'[^'\\]*(?:\\.[^'\\]*)*'" + "|" + r'"[^"\\]*(?:\\.[^"\\]*)*"'
_TOKEN = re.compile(rf"(?P<string>{_LITERAL})|(?:\b(?P<name>\w++))?(?P<open>[(\[{{])|(?P<close>[)\]}}])", re.DOTALL)
_NAME = re.compile(rf"\bname=({_LITERAL})", re.DOTALL)
_WORDS = {"Image": "[image]", "Voice": "[voice message]", "Forward": "[chat history]"}


@dataclass(frozen=True, slots=True)
class _Component:
    """One component of the quoted chain: its class, and its arguments as they are written."""

    kind: str
    arguments: str


def in_words(text: str) -> str:
    """The text with each quoted message as lines that begin with `> `, as people write them, and inert (S7).

    What only begins like a quote stays as it is.
    """
    done, start = "", 0
    while head := _HEAD.search(text, start):
        components, end = _components(text, head.end())
        if end is None:
            break
        quoted = defang("\n".join(filter(None, map(_in_words, components))) or "[quoted message]")
        lines = "".join(f"> {line}\n" for line in quoted.splitlines())
        before = text[start : head.start()]
        done += before + ("\n" if before and not before.endswith("\n") else "") + lines
        start = end
    return done + text[start:]


def _components(text: str, start: int) -> tuple[list[_Component], int | None]:
    """The components from `start` inside of `MessageChain([`, and where its `)` ends; None when it has no end."""
    found: list[_Component] = []
    depth, kind, begun = 2, "", start
    for token in _TOKEN.finditer(text, start):
        if token["open"]:
            if depth == 2:
                kind, begun = token["name"] or "", token.end()
            depth += 1
        elif token["close"]:
            depth -= 1
            if depth == 2:
                found.append(_Component(kind, text[begun : token.start()]))
            if depth == 0:
                return found, token.end()
    return found, None


def _in_words(component: _Component) -> str:
    if component.kind == "Plain":
        return _string(component.arguments)
    if component.kind == "File":
        name = next(_names(component.arguments), "")
        return f"[file: {name}]" if name else "[file]"
    return _WORDS.get(component.kind, "")


def _names(arguments: str) -> Iterator[str]:
    return (one_line(_string(found[1])) for found in _NAME.finditer(arguments))


def _string(literal: str) -> str:
    """What a Python string literal says; nothing where it is none."""
    try:
        value = ast.literal_eval(literal)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ""
    return value if isinstance(value, str) else ""
