"""What a reply would bring as a summary, once headings, refusals, politeness, echoes and rubbish are taken out (L3).

A reply is not judged by what it looks like but by what is left of it: a refusal, in a frame or not, leaves nothing, and
a summary that tells of a refusal leaves itself. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from runner.context.digest import SECTIONS, sentences_of
from runner.context.refusals import is_polite, refuses
from runner.tools.ranking import words

_FEW_WORDS: Final = 12
"""Words below which repetition says nothing."""

_LONGEST_LABEL, _LONGEST_BLANK = 100, 200
"""Characters of a line that may be a heading, of a sentence that may stand for nothing: longer ones are not looked at,
so that looking takes linear work."""

_LONGEST_OWN_LABEL: Final = 16
"""Characters of a heading in any language."""

_SHORTEST_ECHO: Final = 12
"""Letters of a sentence that may be an echo; shorter ones stand in any text."""

_HEADING = re.compile(
    r"\A\W*([^\W:：][^:：]{0,80})[:：]\W*\Z|\A\s*#{1,6}\s.*\Z|\A\s*\*\*[^*]{1,60}\*\*\W*\Z|\A[\s|:=_-]*\Z"
)
_LABEL = re.compile(r"\A\W*[^\W\d_][^:：]{0,80}[:：]\s*")
_BLANK = re.compile(
    r"(?:\W*|(?:none|n/?a|nil|nothing|empty|unknown|tbd|null|ok|not (?:yet )?(?:specified|mentioned|provided"
    r"|available"
    r"|applicable|stated|given|known)|(?:no|nothing) (?:\w+ ){0,4}?(?:yet|mentioned|provided|specified"
    r"|available|given"
    r"|stated|found|recorded|identified|(?:to (?:report|add|record|note|summari[sz]e|remember)))|no (?:goals?"
    r"|constraints?"
    r"|decisions?|facts?(?: and identifiers)?|open (?:items|questions|tasks)|information|details|updates?|changes?)"
    r"|[暂暫]?[无無]|没有|沒有|未提及|未知|[暂暫][时時]?没有|空|なし|特になし|ありません|不明|未定"
    r"|ไม่มี(?:ข้อมูล)?|ไม่ระบุ|ว่าง"
    r"|không(?: có(?: gì| thông tin)?)?|chưa (?:có|rõ)|trống|ningun[oa]|nada|no hay(?: \w+)?|vacío|sin (?:datos"
    r"|información)"
    r"|no (?:especificad|mencionad)[oa]s?|нет(?: данных| информации)?|отсутству[ею]т|не (?:указан|упомина"
    r"|извест)\w*|пусто)"
    r"|[\[(<{（【][^\])>}]{0,80}[\])>}）】])[\s.。!…]*",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\W*(?:the |a |an |el |la |los |un[ao]? )?(?:users?|assistant|human|person|people|usuari[oa]s?|asistente"
    r"|用[户戶]|使用者|助手|助理"
    r"|ユーザー|アシスタント|ผู้ใช้|ผู้ช่วย|người dùng|trợ lý|пользовател|ассистент)",
    re.IGNORECASE,
)
"""How a sentence begins that tells what somebody said."""

_DATA = re.compile(r"[A-Za-z0-9+/=_-]{40,}|\[\d+ characters of data\]")
"""Base64 and the like, whatever its line length."""


@dataclass(frozen=True, slots=True)
class Substance:
    """`said`: the lines that are left. `refused`: a refusal stood among them, `opened`: at the very beginning.

    `framed`: something is left under one of the headings that were asked for.
    """

    said: str
    refused: bool = False
    opened: bool = False
    framed: bool = False


def substance_of(text: str, *, instructions: str) -> Substance:
    """What a reply says of its own. `instructions`: what the model was told to do, so that an echo can be known."""
    told = _letters(instructions)
    kept: list[str] = []
    refused = opened = framed = False
    section = ""
    first = True
    for line in text.splitlines():
        heading = _HEADING.match(line) if len(line) <= _LONGEST_LABEL else None
        if heading:
            section = (heading[1] or line).strip(" #*_~`").casefold()
            continue
        for sentence in sentences_of(line):
            if refuses(sentence) or (_is_own_label(_label_of(sentence)) and refuses(_unlabelled(sentence))):
                refused, opened = True, opened or first
            elif _says_something(sentence, told):
                kept.append(sentence)
                framed = framed or section in _NAMES or _label_of(sentence) in _NAMES
            first = False
    if not framed and all(map(_asks, kept)):
        kept.clear()
    return Substance(_once("\n".join(kept)), refused, opened, framed)


def names_what_was_told(text: str, told: Sequence[str], *, least: int = 3) -> bool:
    """Whether a text shares words with what it was made from that stand in few of its parts: names, numbers, subjects.

    `told`: the text of each message; what every other message has ("help", "that") tells nothing.
    """
    seen = Counter(word for part in told for word in set(words(part)))
    rare = max(2, len(told) // 10)
    shared = {word for word in words(text) if len(word) > 1 and 0 < seen[word] <= rare}
    return len(shared) >= least


_NAMES: Final = frozenset(section.casefold() for section in SECTIONS)


def _says_something(sentence: str, instructions: str) -> bool:
    bare = _DATA.sub("", sentence)
    if len(bare) <= _LONGEST_BLANK and (_BLANK.fullmatch(bare.strip(" \t-*•")) or _BLANK.fullmatch(_unlabelled(bare))):
        return False
    signs = "".join(bare.split())
    if 4 * sum(map(str.isalpha, signs)) + 4 * sum(map(str.isdigit, signs)) < len(signs):
        return False
    letters = _letters(bare)
    if len(letters) >= _SHORTEST_ECHO and letters in instructions:
        return False
    return not is_polite(sentence)


def _asks(sentence: str) -> bool:
    """Whether a sentence is a question of the model's own, not one that it tells of."""
    return sentence.rstrip(" *\"'”»」").endswith(("?", "？")) and _REPORTED.match(sentence) is None


def _unlabelled(sentence: str) -> str:
    """Without "Goal: " before it."""
    label = _LABEL.match(sentence[:_LONGEST_LABEL])
    return sentence[label.end() :] if label else sentence


def _label_of(sentence: str) -> str:
    label = _LABEL.match(sentence[:_LONGEST_LABEL])
    return label[0].strip(" \t-*•#:：").casefold() if label else ""


def _is_own_label(label: str) -> bool:
    """Whether what stands behind it is said by the writer: "Goal:" is one, "the assistant said:" tells of another."""
    return label in _NAMES or (0 < len(label) <= _LONGEST_OWN_LABEL and _REPORTED.match(label) is None)


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalpha())


def _once(text: str) -> str:
    """The text; of one that says a handful of words, or signs, over and over each word or sign once."""
    said = list(words(text))
    if len(said) >= _FEW_WORDS and len(set(said)) * 8 <= len(said):
        return " ".join(dict.fromkeys(said))
    longest = max(said, key=len, default="")
    return "".join(dict.fromkeys(text)) if len(longest) > 20 and len(set(longest)) <= 4 else text
