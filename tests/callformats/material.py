"""What the tests of call formats read: the public cases, the tools on offer, and spellings of one call."""

from __future__ import annotations

import html
import json
import textwrap
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from callformats import Fault, Reading, StreamReader, format_named, read, render
from runner.conversation.request import ToolSpec
from runner.host.events import Json

# The public cases as tests use them: what a line leaves open is filled in here, and said.

FOLDER = Path(__file__).parent / "cases"
SOURCES = (
    "Fangyuan025__Chaty",
    "ggml-org__llama.cpp",
    "ml-explore__mlx-lm",
    "ollama__ollama",
    "run-llama__llama_index",
    "vllm-project__vllm",
)

FORMATS = {
    # names of the sources that are names of parsers, not of formats; the format is what the text is in
    "think": None,
    "streaming": None,
    "command-r-plus": "command-r-plus",
}

REJECTED_TOOLS = ("get_weather", "tool_name", "bash")
"""Reject lines name no tools; without tools on offer they would be passed by doing nothing."""


@dataclass(frozen=True)
class Case:
    id: str
    format: str
    kind: str
    raw: str
    tools: tuple[ToolSpec, ...]
    expect: Mapping[str, Any]
    thinking: bool | None
    keep_thoughts: bool
    reasoning_known: bool

    @property
    def our_format(self) -> str | None:
        if self.format in FORMATS:
            return FORMATS[self.format]
        return None if self.format.startswith("reasoning:") else self.format

    def reader(self) -> StreamReader:
        return StreamReader(
            self.tools, format=self.our_format, thinking=self.thinking, keep_thoughts=self.keep_thoughts
        )

    def read(self, chunks: Sequence[str] | None = None) -> Reading:
        reader = self.reader()
        for chunk in [self.raw] if chunks is None else chunks:
            reader.feed(chunk)
        return reader.close()


def _case(line: Mapping[str, Any]) -> Case:
    raw = line["raw"]
    if line.get("body_only"):
        # Only what stands between the markers: put them back.
        ours = format_named(line["format"])
        if ours.opens and not raw.startswith(ours.opens) and raw.strip():
            raw = ours.opens[0] + raw + (ours.closes[0] if not raw.endswith(ours.closes) else "")
    return Case(
        id=line["id"],
        format=line["format"],
        kind=line["kind"],
        raw=raw,
        tools=_tools(line),
        expect=line["expect"],
        thinking=_thinking(line),
        keep_thoughts=_keeps(line),
        reasoning_known=not (_note(line).get("thinking_enabled") is False and line["expect"].get("reasoning") == ""),
    )


def _tools(line: Mapping[str, Any]) -> tuple[ToolSpec, ...]:
    """The tools of the line; without any, those it expects to be called, with schemas that accept everything."""
    if line["tools"] is not None:
        described = [tool.get("function", tool) for tool in line["tools"]]
        return tuple(
            ToolSpec(tool["name"], tool.get("description") or "", tool.get("parameters") or {}) for tool in described
        )
    names = [call["name"] for call in line["expect"].get("calls") or ()]
    if line["kind"] == "reject":
        names = list(REJECTED_TOOLS)
    return tuple(ToolSpec(name, "", {}) for name in dict.fromkeys(names))


def _note(line: Mapping[str, Any]) -> Mapping[str, Any]:
    return line.get("note") or {}


def _thinking(line: Mapping[str, Any]) -> bool | None:
    """Whether the prompt had opened a thought: most lines do not say; what they expect shows it."""
    expect = line["expect"]
    content, reasoning = expect.get("content"), expect.get("reasoning")
    closers = ("</think>", "[/THINK]")
    if content and not reasoning and any(closer in content for closer in closers) and not _keeps(line):
        return False
    if _keeps(line) and (content or "").startswith("<think>") and not line["raw"].startswith("<think>"):
        return True
    if reasoning and not content and reasoning.strip() == line["raw"].strip():
        return True
    if _note(line).get("enable_thinking") is True or (reasoning and reasoning.strip() in line["raw"]):
        return True if _opens_in_prompt(line) else None
    return None


def _opens_in_prompt(line: Mapping[str, Any]) -> bool:
    raw, reasoning = line["raw"].lstrip(), (line["expect"].get("reasoning") or "").strip()
    return bool(reasoning) and raw.startswith(reasoning)


def _keeps(line: Mapping[str, Any]) -> bool:
    """Whether the source leaves thoughts in the text (`reasoning_format` none, or a parser of calls alone)."""
    content = line["expect"].get("content") or ""
    return content.startswith(("<think>", "[THINK]", "<|channel")) and not line["expect"].get("reasoning")


@cache
def cases() -> tuple[Case, ...]:
    return tuple(
        _case(json.loads(line))
        for source in SOURCES
        for line in (FOLDER / f"{source}.jsonl").read_text(encoding="utf-8").splitlines()
    )


def differences(case: Case, reading: Reading) -> list[str]:
    """How a reading differs from what its line expects; white space at both ends of a text is not compared."""
    expect, found = case.expect, []
    if expect.get("content") is not None and reading.text.strip() != expect["content"].strip():
        found.append(f"text {reading.text!r} != {expect['content']!r}")
    thought = expect.get("reasoning") if case.reasoning_known else None
    if thought is not None and reading.thought.strip() != thought.strip():
        found.append(f"thought {reading.thought!r} != {thought!r}")
    if expect.get("calls") is not None:
        found += _call_differences(case, reading)
    return found


def _call_differences(case: Case, reading: Reading) -> list[str]:
    calls, refused = list(reading.calls), list(reading.refusals)
    found = []
    for wanted in case.expect["calls"]:
        arguments = wanted["arguments"]
        if (isinstance(arguments, dict) and "__raw__" in arguments) or (case.kind == "partial" and arguments == {}):
            # Arguments the source hands on unread: for us a call that is refused, by name where one was written.
            if not refused or (wanted["name"] and refused[0].name != wanted["name"]):
                found.append(f"{wanted['name']} is not refused: {reading}")
            refused = refused[1:]
            continue
        if not calls:
            found.append(f"no call to {wanted['name']}: {reading.refusals}")
            continue
        call = calls.pop(0)
        if call.name != wanted["name"] or (arguments is not None and dict(call.arguments) != arguments):
            found.append(f"{call.name}({call.arguments}) != {wanted}")
        if wanted.get("id") is not None and call.id != wanted["id"]:
            found.append(f"id {call.id!r} != {wanted['id']!r}")
    return found + [f"call too many: {call}" for call in calls]


# The tools that are on offer where rules of S1 are tested, and a reading in short.


def tool(name: str, required: tuple[str, ...] = (), **properties: str | list[str]) -> ToolSpec:
    members: dict[str, Json] = {key: {"type": value} for key, value in properties.items()}  # type: ignore[dict-item]
    return ToolSpec(name, "", {"type": "object", "properties": members, "required": list(required)})


WRITE = tool("write_file", ("path", "content"), path="string", content="string", append="boolean")
SEARCH = tool("search", ("query",), query="string", limit="integer", filters="object", tags="array")
NOTE = tool("add_note", ("text",), text="string", extra=["string", "object"])
PING = tool("ping")
TOOLS = [WRITE, SEARCH, NOTE, PING]
CALL = '<tool_call>{"name": "search", "arguments": {"query": "x"}}</tool_call>'


def calls(text: str, tools: list[ToolSpec] = TOOLS, **how: object) -> list[tuple[str, dict[str, Json]]]:
    return [(call.name, dict(call.arguments)) for call in read(text, tools, **how).calls]  # type: ignore[arg-type]


def faults(reading: Reading) -> list[Fault]:
    return [refusal.fault for refusal in reading.refusals]


# Spellings of one call that a model reads as the same: what a stranger's text may hold, and a quote may undo.


class Written:
    """A call as `render` takes one."""

    def __init__(self, name: str, arguments: dict[str, Json]) -> None:
        self.name, self.arguments = name, arguments


def _full_width(text: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)


def _escaped(text: str) -> str:
    return json.dumps(text)


COATS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "escaped once": _escaped,
    "escaped twice": lambda text: _escaped(_escaped(text)),
    "entities": html.escape,
    "entities twice": lambda text: html.escape(html.escape(text)),
    "numeric entities": lambda text: "".join(f"&#x{ord(char):x};" for char in text),
    "unicode escapes": lambda text: "".join(f"\\u{ord(char):04x}" for char in text if ord(char) < 0x10000),
    "percent signs": urllib.parse.quote,
    "invisible characters": "\u200b".join,
    "soft hyphens": "\u00ad".join,
    "full width": _full_width,
    "wrapped lines": lambda text: "\n".join(textwrap.wrap(text, 30)),
    "quoted lines": lambda text: "\n> ".join(textwrap.wrap(text, 30)),
    "inside a larger JSON": lambda text: json.dumps({"status": 200, "items": [{"content": f"Example:\n{text}\nEnd."}]}),
    "a Python repr": lambda text: repr({"content": text}),
}
"""What may be done to a text as a whole."""


def shapes(name: str, arguments: dict[str, Json]) -> dict[str, str]:
    """The call in its notations."""
    call: dict[str, Json] = {"name": name, "arguments": arguments}
    turned: dict[str, Json] = {"arguments": dict(reversed(arguments.items())), "name": name}
    lines = "".join(f"  {key}: {value}\n" for key, value in arguments.items())
    return {
        "JSON": json.dumps(call),
        "JSON, readable": json.dumps(call, ensure_ascii=False, indent=2),
        "keys in another order": json.dumps(turned),
        "single quotes": repr(call),
        "no quotes": json.dumps(call, ensure_ascii=False).replace('"', ""),
        "deep in an object": json.dumps({"data": [{"tip": {"id": "c1", "type": "function", "function": call}}]}),
        "with an id and a thought": json.dumps({"thought": "Well, I should, now.", "id": "call_9", **call}),
        "arguments as text": json.dumps({"name": name, "arguments": json.dumps(arguments)}),
        "YAML": f"name: {name}\narguments:\n{lines}",
        "Python": render(Written(name, arguments), "pythonic"),
        "tags": render(Written(name, arguments), "hermes"),
        "XML": render(Written(name, arguments), "qwen3-xml"),
        "pairs": render(Written(name, arguments), "glm45"),
        "ReAct": render(Written(name, arguments), "react"),
    }
