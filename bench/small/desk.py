"""What the tasks work on: files in a folder of their own, reminders, messages, a small corpus; and the tools for it."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.host import Tool

NOW: Final = "Tuesday, 2027-03-02 10:00"
FILES: Final = {
    "report.txt": "Quarterly report\nSales rose to 48,200 euros.\nThe warehouse in Lund needs a new roof.\n",
    "prices.txt": "lamp 120\nchair 85\ndesk 340\n",
    "team.txt": "Anna: design\nBo: support\nChen: accounts\n",
    "old-notes.txt": "call the printer\n",
}
REMINDERS: Final = (("water the plants", "18:00"), ("standup", "09:15"))
CORPUS: Final = {
    "Coffee machine": "The machine in the kitchen is a Brunnby 400. Its descaling code is 7734. Descale it monthly.",
    "Guest network": "Guests use Lindwurm-Guest. The password is quiet-otter-19 and changes on the first of a month.",
    "Travel rules": "The office books trains. The daily allowance abroad is 43 euros. Receipts go to Chen.",
    "Meeting rooms": "Room Birch seats 12 people, room Alder seats 6, room Rowan seats 20. Rowan has a projector.",
    "Parking": "The car park closes at 22:30. The barrier code for visitors is 5512. Bicycles stand behind the house.",
    "Holidays": "Everybody has 28 days of leave. Requests go to Anna. Unused days lapse at the end of March.",
    "Backup": "Backups run at 02:40 every night and are kept for 35 days. The person on duty is Bo.",
    "Lunch": "The canteen Kornblume opens at 11:45. On Thursdays there are dumplings. A meal costs 8.50 euros.",
    "打印机": "三楼的打印机型号是 松鹤 300，共享名称是 pine-3。换墨请联系陈伟。",
    "会议时间": "产品周会在每周三 14:20 举行，地点是桦树会议室，主持人是李敏。",
    "Handbook": "This handbook is long. "
    + "It describes how desks are ordered, how lamps are replaced and who waters the plants. " * 24
    + "The emergency number is 4417.",
}

_OPERATORS: Final[dict[type[ast.AST], Callable[..., Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_FACTORS: Final = {
    ("miles", "kilometers"): 1.609344,
    ("kilometers", "miles"): 0.621371,
    ("ounces", "grams"): 28.349523,
    ("grams", "ounces"): 0.035274,
    ("inches", "centimeters"): 2.54,
}


@dataclass
class Desk:
    """The state of one task. `root` is an empty folder that nothing else uses."""

    root: Path
    reminders: list[tuple[str, str]] = field(default_factory=lambda: list(REMINDERS))
    messages: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name, text in FILES.items():
            (self.root / name).write_text(text, "utf-8")

    def file(self, name: str) -> str | None:
        """The text of a file; None without one."""
        path = self.root / name
        return path.read_text("utf-8") if path.is_file() else None

    def untouched(self, *but: str) -> bool:
        """Whether the files of the beginning are as they were, those named apart."""
        return all(self.file(name) == text for name, text in FILES.items() if name not in but)

    # What the tools do; each raises ValueError or OSError with a text for the model.

    def write_file(self, path: str, content: str) -> str:
        target = self._path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, "utf-8")
        return f"Wrote {len(content)} characters to {path}."

    def append_file(self, path: str, content: str) -> str:
        before = self.file(path) or ""
        glue = "" if not before or before.endswith("\n") else "\n"
        return self.write_file(path, f"{before}{glue}{content}")

    def read_file(self, path: str) -> str:
        return self._path(path).read_text("utf-8")

    def list_files(self) -> str:
        return "\n".join(sorted(str(each.relative_to(self.root)) for each in self.root.rglob("*") if each.is_file()))

    def create_reminder(self, title: str, time: str) -> str:
        self.reminders.append((title, time))
        return f"Reminder set: {title}, {time}."

    def list_reminders(self) -> str:
        return "\n".join(f"{title} at {time}" for title, time in self.reminders) or "No reminders."

    def delete_reminder(self, title: str) -> str:
        kept = [each for each in self.reminders if title.lower() not in each[0].lower()]
        if len(kept) == len(self.reminders):
            raise ValueError(f"there is no reminder named {title}")
        self.reminders[:] = kept
        return f"Deleted {title}."

    def send_message(self, recipient: str, text: str) -> str:
        self.messages.append((recipient, text))
        return f"Sent to {recipient}."

    def _path(self, path: str) -> Path:
        target = (self.root / path).resolve()
        if not target.is_relative_to(self.root.resolve()):
            raise ValueError("only files of this folder")
        return target


def calculate(expression: str) -> str:
    """The value of an arithmetic expression. Raises ValueError for anything else."""
    try:
        return f"{round(_value(ast.parse(expression.strip(), mode='eval').body), 6):g}"
    except (SyntaxError, ZeroDivisionError, RecursionError) as error:
        raise ValueError(f"cannot calculate {expression!r}: {error}") from error


def _value(node: ast.AST) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.BinOp(left, operation, right) if type(operation) in _OPERATORS:
            return float(_OPERATORS[type(operation)](_value(left), _value(right)))
        case ast.UnaryOp(operation, operand) if type(operation) in _OPERATORS:
            return float(_OPERATORS[type(operation)](_value(operand)))
        case _:
            raise ValueError("only numbers and + - * / % ( )")


def search(query: str) -> str:
    """The documents with most words of the query; for Chinese, pairs of characters."""
    wanted = _words(query)
    ranked = sorted(CORPUS.items(), key=lambda each: -len(wanted & _words(f"{each[0]} {each[1]}")))
    found = [f"{title}: {text}" for title, text in ranked[:2] if wanted & _words(f"{title} {text}")]
    return "\n\n".join(found) or "Nothing found."


def _words(text: str) -> set[str]:
    words = {word for word in re.findall(r"[a-z0-9]+", text.lower()) if len(word) > 2}
    chinese = "".join(re.findall(r"[\u4e00-\u9fff]", text))
    return words | {chinese[at : at + 2] for at in range(len(chinese) - 1)}


def convert(value: float, from_unit: str, to_unit: str) -> str:
    """A length or weight in another unit. Raises ValueError for units it does not know."""
    factor = _FACTORS.get((from_unit.lower(), to_unit.lower()))
    if factor is None:
        raise ValueError(f"cannot convert {from_unit} to {to_unit}")
    return f"{value} {from_unit} = {round(value * factor, 3):g} {to_unit}"


def tools_for(desk: Desk) -> list[Tool]:
    """Twelve tools, as an MCP server would offer them."""
    text = {"type": "string"}
    return [
        _tool("get_time", "Tells the date and time.", lambda: NOW),
        _tool("send_message", "Sends a message to a person.", desk.send_message, recipient=text, text=text),
        _tool("write_file", "Writes a text file; replaces what it held.", desk.write_file, path=text, content=text),
        _tool("append_file", "Adds text at the end of a file.", desk.append_file, path=text, content=text),
        _tool("read_file", "Reads a text file.", desk.read_file, path=text),
        _tool("list_files", "Lists the files in the folder.", desk.list_files),
        _tool("calculator", "Calculates an arithmetic expression.", calculate, expression=text),
        _tool(
            "convert_units",
            "Converts a length or weight into another unit.",
            convert,
            value={"type": "number"},
            from_unit=text,
            to_unit=text,
        ),
        _tool("search_docs", "Searches the office handbook for rules, codes and places.", search, query=text),
        _tool("create_reminder", "Sets a reminder.", desk.create_reminder, title=text, time=text),
        _tool("list_reminders", "Lists the reminders that are set.", desk.list_reminders),
        _tool("delete_reminder", "Deletes a reminder by its title.", desk.delete_reminder, title=text),
    ]


def _tool(name: str, description: str, do: Callable[..., str], /, **properties: dict[str, Any]) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(name, fn=do, type="mcp", description=description, parameters=schema)
