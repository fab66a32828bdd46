"""Q5, reading: the share of replies read right, by format, and calls invented; ours beside public readers."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from bench.small.rates import CASES, FILES
from bench.small.report import markdown
from callformats import read
from runner.conversation.request import ToolSpec
from runner.tools import validate_args
from tests.callformats.material import Case, cases

OURS: Final = "ours"
Calls = Sequence[tuple[str, Any]]
_CHILD: Final = Path(__file__).with_name("public_readers.py")
_RAW_FORMS: Final = {"hermes": "hermes", "lfm2": "lfm2-pythonic", "native": "qwen", "inline_json": "inline"}
"""The parser that a server would be given for the Qwen models that wrote the raw replies."""


@dataclass(frozen=True, slots=True)
class Line:
    """One reply with the calls it holds. `anyhow`: only the name of the first call is known."""

    id: str
    group: str
    form: str
    raw: str
    tools: tuple[ToolSpec, ...]
    wanted: Calls
    anyhow: bool = False
    case: Case | None = None

    def ours(self) -> Calls:
        reading = self.case.read() if self.case else read(self.raw, self.tools)
        return [(call.name, dict(call.arguments)) for call in reading.calls]

    def right(self, calls: Calls) -> bool:
        if self.anyhow:
            return bool(calls) and self._fits(*calls[0])
        return len(calls) == len(self.wanted) and all(map(_same, calls, self.wanted))

    def invented(self, calls: Calls) -> int:
        """Calls that stand nowhere in the reply as it is to be understood."""
        if self.anyhow:
            return 0
        left = list(self.wanted)
        for call in calls:
            match = next((each for each in left if _same(call, each)), None)
            if match is not None:
                left.remove(match)
        return len(calls) - (len(self.wanted) - len(left))

    def _fits(self, name: str, arguments: Any) -> bool:
        schema = next((tool.parameters for tool in self.tools if tool.name == name), None)
        wanted = {each for each, _ in self.wanted}
        return schema is not None and name in wanted and not validate_args(schema, arguments)


@dataclass
class Tally:
    """One reader on one group of lines; `lines` are those it has a parser for."""

    lines: int = 0
    right: int = 0
    invented: int = 0

    def add(self, line: Line, calls: Calls) -> None:
        self.lines += 1
        self.right += line.right(calls)
        self.invented += line.invented(calls)


@dataclass
class Scores:
    """Reader → group → tally."""

    by_reader: dict[str, dict[str, Tally]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(Tally)))

    def add(self, reader: str, line: Line, calls: Calls) -> None:
        self.by_reader[reader][line.group].add(line, calls)


def _same(call: tuple[str, Any], wanted: tuple[str, Any]) -> bool:
    return call[0] == wanted[0] and (wanted[1] is None or call[1] == wanted[1])


def public_lines() -> Iterator[Line]:
    """The public cases that say which calls they hold. A call whose arguments are cut off is none."""
    for case in cases():
        calls = case.expect.get("calls")
        if calls is None or case.kind not in ("full", "reject", "partial"):
            continue
        whole = [(call["name"], call["arguments"]) for call in calls if not _is_cut(case, call["arguments"])]
        group = "thoughts" if case.format.startswith("reasoning:") else case.format
        yield Line(case.id, group, case.format, case.raw, case.tools, whole, case=case)


def _is_cut(case: Case, arguments: Any) -> bool:
    return (isinstance(arguments, dict) and "__raw__" in arguments) or (case.kind == "partial" and arguments == {})


def raw_lines() -> Iterator[Line]:
    """Raw replies of the two Qwen models where a call was due and one stands in the text."""
    tools = _small_tools()
    for name in FILES:
        for text in (CASES / name).read_text("utf-8").splitlines():
            row = json.loads(text)
            if "qwen" not in row["model"] or not row["expect"]:
                continue
            size = "1.5B" if "1.5b" in row["model"] else "0.5B"
            offered = tuple(tools[each] for each in row["tools"])
            wanted = [(each, None) for each in row["expect"]]
            group = f"{size} {row['format']}"
            yield Line(row["id"], group, _RAW_FORMS[row["format"]], row["raw"], offered, wanted, anyhow=True)


@cache
def _small_tools() -> Mapping[str, ToolSpec]:
    described = json.loads((CASES / "small_model_tools.json").read_text("utf-8"))
    functions = [each["function"] for each in described]
    return {one["name"]: ToolSpec(one["name"], one["description"], one["parameters"]) for one in functions}


def measure(lines: Sequence[Line], public_python: Path | None = None) -> Scores:
    """Read all lines; `public_python`: an interpreter with `requirements-bench.txt`, for the public readers."""
    scores = Scores()
    for line in lines:
        scores.add(OURS, line, line.ours())
    if public_python is not None:
        for line, calls in zip(lines, _public(lines, public_python), strict=True):
            for reader, found in calls.items():
                if found is not None:
                    scores.add(reader, line, [(name, arguments) for name, arguments in found])
    return scores


def _public(lines: Sequence[Line], python: Path) -> Iterator[dict[str, list[list[Any]] | None]]:
    asked = "\n".join(
        json.dumps(
            {
                "id": line.id,
                "format": line.form,
                "raw": line.raw,
                "tools": [
                    {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
                    for tool in line.tools
                ],
            },
            ensure_ascii=False,
        )
        for line in lines
    )
    done = subprocess.run([python, _CHILD], input=asked, capture_output=True, text=True, check=True, timeout=600)
    return (json.loads(line)["calls"] for line in done.stdout.splitlines())


def table(scores: Scores, *, least: int = 1) -> str:
    """Groups as rows, readers as columns: right of lines, and calls invented; groups below `least` lines as one."""
    readers = list(scores.by_reader)
    ours = scores.by_reader[OURS]
    big = sorted((name for name in ours if ours[name].lines >= least), key=lambda name: -ours[name].lines)
    rest = [name for name in ours if name not in big]
    rows = [
        [name, str(ours[name].lines), *(_cell([scores.by_reader[each].get(name)]) for each in readers)] for name in big
    ]
    if rest:
        cells = (_cell([scores.by_reader[each].get(name) for name in rest]) for each in readers)
        rows.append([f"{len(rest)} others", str(sum(ours[name].lines for name in rest)), *cells])
    rows.append(["all", str(sum(each.lines for each in ours.values()))])
    rows[-1] += [_cell(list(scores.by_reader[each].values())) for each in readers]
    return markdown(["format", "lines", *readers], rows)


def _cell(tallies: Sequence[Tally | None]) -> str:
    there = [each for each in tallies if each is not None]
    lines, right = sum(each.lines for each in there), sum(each.right for each in there)
    invented = sum(each.invented for each in there)
    if not lines:
        return "–"
    return f"{right}/{lines}" + (f", {invented} invented" if invented else "")


def as_dict(scores: Scores) -> dict[str, Any]:
    """For JSON."""
    return {
        reader: {
            group: {"lines": each.lines, "right": each.right, "invented": each.invented}
            for group, each in groups.items()
        }
        for reader, groups in scores.by_reader.items()
    }
