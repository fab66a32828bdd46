"""Forty tasks: what is said, how a model that can do it goes about it, and how its real effect is recognised."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.small.desk import CORPUS, Desk

Results = Sequence[str]
"""Results of the steps done so far, as the model reads them in its prompt."""


@dataclass(frozen=True, slots=True)
class Do:
    """A call; its arguments may need what earlier results say."""

    tool: str
    arguments: Callable[[Results], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Task:
    """`steps`: the calls in order; `answer`: what is said in the end, from the results; `check`: whether it is done,
    by desk and final text. `history`: what was said in the chat before, user and assistant in turn."""

    id: str
    says: str
    steps: tuple[Do, ...]
    answer: Callable[[Results], str]
    check: Callable[[Desk, str], bool]
    history: tuple[str, ...] = ()


CHATTER: Final = (
    "Good morning!",
    "Good morning! What can I do for you?",
    "Is it Tuesday today?",
    "Yes, it is Tuesday.",
    "Thanks.",
    "You're welcome!",
)


def _do(tool: str, **arguments: Any) -> Do:
    return Do(tool, lambda _: dict(arguments))


def _number(text: str) -> str:
    found = re.findall(r"-?\d+(?:\.\d+)?", text.replace(",", ""))
    return found[-1] if found else "?"


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match[1] if match else "I could not find it"


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().lower()


def _says(*parts: str) -> Callable[[Desk, str], bool]:
    """The answer holds all parts (alternatives by `|`), whatever the case; commas in numbers do not count."""
    return lambda desk, text: (
        desk.untouched()
        and all(re.search(part, re.sub(r"(?<=\d),(?=\d{3})", "", text), re.IGNORECASE) for part in parts)
    )


def _file(name: str, *parts: str) -> Callable[[Desk, str], bool]:
    """A file holds all parts in order; white space and case do not count; no other file was changed."""

    def check(desk: Desk, _: str) -> bool:
        text, at = _flat(desk.file(name) or ""), 0
        for part in map(_flat, parts):
            at = text.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return desk.untouched(name)

    return check


def _reminder(title: str, time: str) -> Callable[[Desk, str], bool]:
    return lambda desk, _: any(
        re.search(title, name, re.IGNORECASE) and re.search(time, when, re.IGNORECASE) for name, when in desk.reminders
    )


def _message(recipient: str, *parts: str) -> Callable[[Desk, str], bool]:
    return lambda desk, _: any(
        recipient.lower() in who.lower() and all(re.search(part, text, re.IGNORECASE) for part in parts)
        for who, text in desk.messages
    )


def _calculation(id: str, says: str, expression: str, value: str, **more: Any) -> Task:
    return Task(
        id,
        says,
        (_do("calculator", expression=expression),),
        lambda seen: f"The result is {_number(seen[0])}.",
        _says(rf"(?<![\d.]){re.escape(value)}(?!\d)"),
        **more,
    )


def _look_up(id: str, says: str, query: str, pattern: str, **more: Any) -> Task:
    """A fact of the corpus, by the group of `pattern`."""
    fact = next(match[1] for match in (re.search(pattern, text) for text in CORPUS.values()) if match)
    return Task(
        id,
        says,
        (_do("search_docs", query=query),),
        lambda seen: f"According to the handbook: {_found(pattern, seen[0])}.",
        _says(re.escape(fact)),
        **more,
    )


def _effect(id: str, says: str, step: Do, check: Callable[[Desk, str], bool], **more: Any) -> Task:
    return Task(id, says, (step,), lambda _: "Done.", check, **more)


def _chat(id: str, says: str, answer: str, sign: str) -> Task:
    def check(desk: Desk, text: str) -> bool:
        quiet = desk.untouched() and len(desk.reminders) == 2 and not desk.messages
        return quiet and len(desk.list_files().splitlines()) == 4 and re.search(sign, text, re.IGNORECASE) is not None

    return Task(id, says, (), lambda _: answer, check)


_CALCULATIONS = (
    _calculation("calc-1", "What is 47 * 89 + 12?", "47 * 89 + 12", "4195"),
    _calculation("calc-2", "Work out 15% of 2480 for me.", "2480 * 15 / 100", "372"),
    _calculation("calc-3", "How much is (1250 - 375) * 1.06?", "(1250 - 375) * 1.06", "927.5"),
    _calculation("calc-4", "三个人平分 258 元，每人多少钱？", "258 / 3", "86"),
    _calculation("calc-5", "帮我算一下 3468 乘以 27 等于多少", "3468 * 27", "93636"),
    _calculation("calc-6", "Please calculate 98765 - 43219.", "98765 - 43219", "55546", history=CHATTER),
    Task(
        "units-1",
        "Convert 26.2 miles to kilometers.",
        (_do("convert_units", value=26.2, from_unit="miles", to_unit="kilometers"),),
        lambda seen: f"That is {_number(seen[0])} kilometers.",
        _says(r"42\.1[56]"),
    ),
    Task(
        "units-2",
        "How many grams are in 3.5 ounces? Use the converter.",
        (_do("convert_units", value=3.5, from_unit="ounces", to_unit="grams"),),
        lambda seen: f"That is {_number(seen[0])} grams.",
        _says(r"99\.2"),
    ),
)
_FILES = (
    _effect(
        "write-1",
        "Create a file todo.md with these lines:\n- buy milk\n- call Anna\n- pay rent",
        _do("write_file", path="todo.md", content="- buy milk\n- call Anna\n- pay rent\n"),
        _file("todo.md", "buy milk", "call Anna", "pay rent"),
    ),
    _effect(
        "write-2",
        "Save this sentence to motto.txt: Roses are \"red\", violets are 'blue'.",
        _do("write_file", path="motto.txt", content="Roses are \"red\", violets are 'blue'."),
        _file("motto.txt", "Roses are \"red\", violets are 'blue'."),
    ),
    _effect(
        "write-3",
        "把下面的购物清单保存到 shopping.txt：1. 牛奶 2. 鸡蛋 3. 面包",
        _do("write_file", path="shopping.txt", content="1. 牛奶\n2. 鸡蛋\n3. 面包\n"),
        _file("shopping.txt", "牛奶", "鸡蛋", "面包"),
    ),
    _effect(
        "write-4",
        "Write a file app.yaml with the three lines name: demo, port: 8080 and debug: false.",
        _do("write_file", path="app.yaml", content="name: demo\nport: 8080\ndebug: false\n"),
        _file("app.yaml", "name: demo", "port: 8080", "debug: false"),
        history=CHATTER,
    ),
    _effect(
        "append-1",
        "Add the line 'Dana: sales' at the end of team.txt.",
        _do("append_file", path="team.txt", content="Dana: sales\n"),
        _file("team.txt", "Anna: design", "Chen: accounts", "Dana: sales"),
    ),
    Task(
        "read-1",
        "Read the file report.txt and tell me to how many euros sales rose.",
        (_do("read_file", path="report.txt"),),
        lambda seen: f"Sales rose to {_found(r'rose to ([0-9,]+)', seen[0])} euros.",
        _says("48200"),
    ),
    Task(
        "read-2",
        "Who does support according to team.txt?",
        (_do("read_file", path="team.txt"),),
        lambda seen: f"{_found('([A-Za-z]+): support', seen[0])} does support.",
        _says(r"\bBo\b"),
    ),
    Task(
        "list-1",
        "Which files are in the folder?",
        (_do("list_files"),),
        lambda seen: "These files: " + ", ".join(seen[0].split()) + ".",
        _says("old-notes", "prices", "report", "team"),
    ),
)
_LOOK_UPS = (
    _look_up(
        "find-1",
        "What is the descaling code of our coffee machine?",
        "coffee machine descaling code",
        r"code is (\d+)\. Desc",
    ),
    _look_up("find-2", "What is the password of the guest network?", "guest network password", r"password is ([\w-]+)"),
    _look_up("find-3", "How high is the daily allowance abroad?", "daily allowance abroad", r"abroad is (\d+)"),
    _look_up("find-4", "When do the backups run?", "backups run", r"run at ([\d:]+)"),
    _look_up("find-5", "产品周会几点开始？", "产品周会", r"每周三 ([\d:]+)"),
    _look_up("find-6", "三楼打印机的共享名称是什么？", "打印机共享名称", r"共享名称是 ([\w-]+)"),
    _look_up(
        "find-7", "At what time does the car park close?", "car park closes", r"closes at ([\d:]+)", history=CHATTER
    ),
)
_REMINDERS = (
    _effect(
        "remind-1",
        "Remind me to call the dentist tomorrow at 9:30.",
        _do("create_reminder", title="call the dentist", time="tomorrow 9:30"),
        _reminder("dentist", r"9[:.]30"),
    ),
    _effect(
        "remind-2",
        "Set a reminder at 21:00 to take my vitamins.",
        _do("create_reminder", title="take vitamins", time="21:00"),
        _reminder("vitamin", "21:00|9 ?pm"),
    ),
    _effect(
        "remind-3",
        "明天下午三点提醒我开会",
        _do("create_reminder", title="开会", time="明天 15:00"),
        _reminder("开会|会议", r"15:00|三点|3 ?pm|3:00"),
    ),
    Task(
        "remind-4",
        "Which reminders are set at the moment?",
        (_do("list_reminders"),),
        lambda seen: "You have: " + "; ".join(seen[0].splitlines()) + ".",
        _says("plants", "standup"),
    ),
    _effect(
        "remind-5",
        "Delete my reminder about the standup.",
        _do("delete_reminder", title="standup"),
        lambda desk, _: [title for title, _ in desk.reminders] == ["water the plants"],
    ),
    _effect(
        "message-1",
        "Send Bob a message: I'll be 10 minutes late.",
        _do("send_message", recipient="Bob", text="I'll be 10 minutes late."),
        _message("Bob", "10 minutes"),
    ),
)
_TWO_STEPS = (
    Task(
        "two-1",
        "Calculate 18.5 * 24 and save the number to total.txt.",
        (
            _do("calculator", expression="18.5 * 24"),
            Do("write_file", lambda seen: {"path": "total.txt", "content": _number(seen[0])}),
        ),
        lambda _: "The number is in total.txt.",
        _file("total.txt", "444"),
    ),
    Task(
        "two-2",
        "Look up how many people room Rowan seats and write that number into rowan.txt.",
        (
            _do("search_docs", query="room Rowan seats"),
            Do("write_file", lambda seen: {"path": "rowan.txt", "content": _found(r"Rowan seats (\d+)", seen[0])}),
        ),
        lambda _: "I wrote it into rowan.txt.",
        _file("rowan.txt", "20"),
    ),
    Task(
        "two-3",
        "Read prices.txt and calculate what two chairs and one desk cost together.",
        (_do("read_file", path="prices.txt"), _do("calculator", expression="2 * 85 + 340")),
        lambda seen: f"Together they cost {_number(seen[1])}.",
        _says(r"(?<!\d)510"),
    ),
    Task(
        "two-4",
        "Find out when the canteen opens and set a reminder named lunch for that time.",
        (
            _do("search_docs", query="canteen opens"),
            Do("create_reminder", lambda seen: {"title": "lunch", "time": _found(r"opens at ([\d:]+)", seen[0])}),
        ),
        lambda _: "The reminder is set.",
        _reminder("lunch", "11:45"),
    ),
    Task(
        "two-5",
        "Look up the visitors' barrier code and send it to Mia.",
        (
            _do("search_docs", query="barrier code visitors"),
            Do(
                "send_message",
                lambda seen: {"recipient": "Mia", "text": f"The code is {_found(r'visitors is ([0-9]+)', seen[0])}."},
            ),
        ),
        lambda _: "I sent it to Mia.",
        _message("Mia", "5512"),
    ),
    Task(
        "two-6",
        "Copy the text of old-notes.txt into a new file notes-2027.txt.",
        (
            _do("read_file", path="old-notes.txt"),
            Do("write_file", lambda seen: {"path": "notes-2027.txt", "content": seen[0]}),
        ),
        lambda _: "It is copied.",
        _file("notes-2027.txt", "call the printer"),
    ),
    Task(
        "two-7",
        "Show me the reminders and then delete the one about the plants.",
        (_do("list_reminders"), _do("delete_reminder", title="water the plants")),
        lambda _: "The reminder about the plants is deleted; the standup stays.",
        lambda desk, _: [title for title, _ in desk.reminders] == ["standup"],
        history=CHATTER,
    ),
)
_CHATS = (
    _chat("chat-1", "Hi there! How are you today?", "Hello! I am fine. How can I help?", r"hello|hi\b|fine|help"),
    _chat(
        "chat-2",
        "Thanks, that was really helpful. Have a nice evening!",
        "You're welcome!",
        "welcome|glad|pleasure|you too",
    ),
    _chat(
        "chat-3",
        "What's the difference between a list and a tuple in Python?",
        "A tuple is immutable, a list is mutable.",
        "mutable",
    ),
    _chat("chat-4", "你好呀，你叫什么名字？", "你好！我是你的助手。", "你好|您好|我叫|我是|助手"),
)
TASKS: Final = (*_CALCULATIONS, *_FILES, *_LOOK_UPS, *_REMINDERS, *_TWO_STEPS, *_CHATS)
"""Forty, and their ids are unique."""
