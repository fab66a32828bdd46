"""Whether a plain reply may stand: what it ignores, passes on to the user, only repeats, or leaves open (S3).

Pure, and careful: each check sends a reply back once at most, then it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from runner.conversation.cut import head
from runner.host.events import Json
from runner.tools.jobs import JOB_OUTPUT

GIST_CHARACTERS: Final = 300
AWAITED: Final = (
    "Your reply was not sent yet: {tool} goes on as {job}, and you have not seen its result. Call {tool_name} for "
    "{job} to wait for it. If it need not end, answer once more and say that it may go on."
)
_ECHO_LEAST = 200
_LOOKED_AT = 10_000
_REPEAT_LEAST = 20
_ADMITS = re.compile(
    r"error|fail|unable|not able|sorry|unfortunately|problem|\bnot\b|n['’]t\b|\bcannot\b|could\s?no|did\s?no"
    r"|was\s?no|\b(?:no longer|unavailable|already|denied|missing|refused|rejected|blocked|impossible|instead"
    r"|expired)\b"
    r"|失败|失敗|错误|錯誤|[无無]法|抱歉|[没沒未]|不(?!客[气氣]|用|[错錯])|拒[绝絕]|"
    r"エラー|でき(?:ず|な)|ません|ない|なかった|申し訳|[既す](?:に|でに)|"
    r"ошибк|\bне\b|\bнет\b|нельзя|невозможно|\bуже\b|отказ|сожалени|"
    r"\bno\b|\bya\b|fall[óo]|lo siento|imposible|rechaz|deneg|"
    r"không|chưa|lỗi|thất bại|từ chối|"
    r"ไม่|ผิดพลาด|ล้มเหลว|ขออภัย|ปฏิเสธ",
    re.IGNORECASE,
)
"""How an answer admits that something did not work, in the eight languages (Sa). A word too many lets a claim stand;
one too few sends honest answers back, which is worse."""

_CUE = re.compile(
    r"\b(?:use|using|click|press|run|call|try|invoke|execute|open"
    r"|usa|usar|usando|utilic\w+|utiliza\w*|pulsa\w*|pulse|haz clic|haga clic|llam[ae]\w*|ejecut[ae]\w*"
    r"|abr[ae]|prueb[ae]"
    r"|sử dụng|dùng|gọi|bấm|nhấn|nhấp|chạy|mở|thử"
    r"|использу\w+|воспользу\w+|нажм\w+|вызов\w+|запуст\w+|откро\w+|примен\w+|попробу\w+)\b"
    r"|使用|[用按]|[调調]用|[点點][击擊]|[运運]行|[执執]行|打[开開]|呼び出|クリック|実行"
    r"|ใช้|คลิก|กด|เรียก|เปิด|ลอง",
    re.IGNORECASE,
)
_CUE_BEHIND = re.compile(
    r"\W{0,3}(?:ツール|ボタン|機能)?(?:を|で)\W{0,3}(?:使|ご利用|利用|押|クリック|実行|呼び|開|試)"
)
"""Japanese says it behind the name."""

_WORD = re.compile(r"\w+")
_NAME = re.compile(r"(?<![.!?:。\n] )(?<!^)\b[A-ZА-ЯЁ][\w'’-]{2,}")
_FRAME = "--- data block "
_WRITES = re.compile(r"(?:^|_)(?:write|edit|create_file|save|patch|update_file)(?:$|_)")
_OPEN_STATES = frozenset({"pending", "in_progress", "open", "todo", "doing", "not_started"})


@dataclass(frozen=True, slots=True)
class Done:
    """One finished call of this run. `body` is its result without the frame; `code` that of a failure; `reads` by the
    tool's name."""

    name: str
    arguments: str
    body: str
    code: str | None = None
    reads: bool = False

    @property
    def failed(self) -> bool:
        return self.code is not None


def _squeezed(text: str) -> str:
    """The text without white space, for comparing what was said with what was read."""
    return "".join(text.split())


def ignores_failure(text: str, done: Sequence[Done]) -> str | None:
    """What to say to a reply that passes over the last call, which failed; None when it may stand."""
    if not done or not done[-1].failed or _ADMITS.search(text) or _tells_of(text, done[-1].body):
        return None
    last = done[-1]
    return (
        f"Your reply was not sent. The last call, {last.name}, failed: {head(last.body, GIST_CHARACTERS)}\n"
        "Don't say it worked. Try another way, or tell the user plainly that it failed."
    )


def _tells_of(text: str, failure: str) -> bool:
    """Whether an answer shares an id, a name or a number with the words of a failure: then it tells of it (Sa)."""
    failure = failure[:_LOOKED_AT]
    return not _marks_of(text).isdisjoint(_marks_of(failure)) or any(name in text for name in _NAME.findall(failure))


def _marks_of(text: str) -> set[str]:
    """Ids, and numbers of two digits or more."""
    words = (word.lstrip("0").casefold() for word in _WORD.findall(text))
    return {word for word in words if len(word) > 1 and any(map(str.isdigit, word))}


def passes_work_on(text: str, tools: Collection[str], called: Collection[str]) -> str | None:
    """What to say to a reply that tells the user to use a tool which is right here; None when it may stand."""
    for tool in tools:
        if tool in called or len(tool) < 4:
            continue
        spoken = re.escape(tool).replace("_", r"[\s_-]")
        # Chinese, Japanese and Thai have no blanks around it.
        found = re.search(rf"(?<![A-Za-z0-9_]){spoken}(?![A-Za-z0-9_])", text, re.IGNORECASE)
        if found and _tells_to_use(text, found):
            return f"Your reply was not sent. The user cannot use {tool}; you can. You do it: call {tool} now."
    return None


def _tells_to_use(text: str, tool: re.Match[str]) -> bool:
    before = _CUE.search(text, max(0, tool.start() - 40), tool.start())
    return before is not None or _CUE_BEHIND.match(text, tool.end()) is not None


def ends_of(text: str) -> str:
    """As much of a reply as is looked at: of a very long one its beginning and its end, where such things are said."""
    return text if len(text) <= 2 * _LOOKED_AT else f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"


def echoes(text: str, done: Sequence[Done]) -> bool:
    """Whether a reply only repeats a result of this run."""
    if _FRAME in text:
        return True
    if len(text) > 2 * max((len(each.body) for each in done), default=0):
        return False  # longer than any of them, and long texts take long to compare (Sm)
    said = _squeezed(text)
    return len(said) >= _ECHO_LEAST and any(said in _squeezed(each.body) for each in done)


def repeats(text: str, correction: str) -> bool:
    """Whether a reply says back to the user what only the model was told."""
    said = _squeezed(text[: 2 * len(correction)])
    return len(text) < 2 * len(correction) and len(said) >= _REPEAT_LEAST and said in _squeezed(correction)


def gist(done: Sequence[Done]) -> str:
    """The beginning of the last result in one paragraph; empty without one."""
    body = done[-1].body if done else ""
    line = " ".join(body.split())
    return line if len(line) <= GIST_CHARACTERS else f"{head(line, GIST_CHARACTERS)} …"


def leaves_open(done: Sequence[Done], *, can_read: bool) -> str | None:
    """What to say when work seems open at the end; None when nothing does. `can_read`: a reading tool is granted."""
    items = next((found for each in reversed(done) if (found := _open_items(each)) is not None), ())
    if items:
        return (
            f"Your reply was not sent yet: the todo list still has open items ({', '.join(items[:3])}). "
            "Do them now, or say why they stay open."
        )
    written = [place for place, each in enumerate(done) if writes(each)]
    if can_read and written and not any(each.reads for each in done[written[-1] + 1 :]):
        return (
            "Your reply was not sent yet: nothing has looked at what you wrote. Read it once and check it, then answer."
        )
    return None


def writes(done: Done) -> bool:
    """Whether a call wrote or changed something that can be looked at."""
    return not done.failed and _WRITES.search(done.name) is not None


def leaves_jobs(awaited: Mapping[str, str]) -> str | None:
    """What to say at the end while the result of a job was not seen; None without one. `awaited`: tools by job (S4)."""
    if not awaited:
        return None
    job, tool = next(iter(awaited.items()))
    return AWAITED.format(tool=tool, job=job, tool_name=JOB_OUTPUT)


def _open_items(done: Done) -> tuple[str, ...] | None:
    """The open items of a todo list as a tool keeps it; None when the call was about none."""
    if "todo" not in done.name.lower():
        return None
    for text in (done.body, done.arguments):
        try:
            value: Json = json.loads(text)
        except (ValueError, RecursionError):
            continue
        items = list(_items(value, 0))
        if items:
            return tuple(name for name, is_open in items if is_open)
    return None


def _items(value: Json, depth: int) -> Iterator[tuple[str, bool]]:
    if depth > 8:
        return
    if isinstance(value, list):
        for each in value:
            yield from _items(each, depth + 1)
        return
    if not isinstance(value, dict):
        return
    state = value.get("status", value.get("state"))
    finished = value.get("done", value.get("completed"))
    if isinstance(state, str) or isinstance(finished, bool):
        name = next(
            (str(value[key]) for key in ("content", "title", "text", "task", "name") if key in value), "an item"
        )
        is_open = state.lower() in _OPEN_STATES if isinstance(state, str) else not finished
        yield head(name, 60), is_open
        return
    for each in value.values():
        yield from _items(each, depth + 1)
