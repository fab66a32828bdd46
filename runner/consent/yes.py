"""Whether a message is a yes and nothing else, in eight languages (M3). Pure.

A message is cut into words; each has to be part of a phrase that means yes, or a courtesy beside one. So "yes please!"
is a yes, and "yes, but not now", "yes?" and "no" are none. What can mean no in its own language is left out
(Japanese "いいです", Thai "ครับ" alone).
"""

from __future__ import annotations

import re
import unicodedata

MOST_CHARACTERS = 80
"""What is longer is no mere yes."""

_YES = (
    "yes|yep|yeah|yup|y|ok|okay|okey|sure|agreed|agree|i agree|approve|approved|i approve|confirm|confirmed|i confirm|"
    "go ahead|go for it|do it|please do|of course|proceed|accept|i accept|absolutely|certainly|definitely|sounds good|"
    "allow|allow it|run it|go on|+1|"
    "是|是的|好|好的|好啊|好吧|好呀|可以|可以的|行|行的|同意|我同意|确认|確認|没问题|沒問題|对|對|对的|對的|允许|允許|批准|继续|繼續|"
    "执行|執行|当然|當然|嗯|嗯嗯|确定|確定|可|ok的|好嘞|行吧|可以吧|执行吧|執行吧|继续吧|繼續吧|请执行|請執行|请继续|請繼續|同意执行|"
    "同意執行|确认执行|確認執行|可以执行|可以執行|"
    "はい|うん|ええ|オーケー|オッケー|了解|了解です|同意|同意します|承認|承認します|許可|許可します|確認しました|いいよ|いいですよ|お願い|"
    "okです|お願いします|おねがいします|実行して|実行してください|どうぞ|もちろん|"
    "ใช่|ใช่ครับ|ใช่ค่ะ|ได้|ได้ครับ|ได้ค่ะ|ได้เลย|ตกลง|ตกลงครับ|ตกลงค่ะ|โอเค|โอเคครับ|โอเคค่ะ|ยินยอม|อนุญาต|ยืนยัน|เห็นด้วย|"
    "ทำเลย|จัดไป|อนุมัติ|"
    "có|vâng|dạ vâng|dạ có|dạ được|ừ|ừm|được|đồng ý|tôi đồng ý|chấp nhận|xác nhận|cho phép|làm đi|chạy đi|tiếp tục|"
    "tất nhiên|vang|dong y|duoc|co|"
    "sí|si|claro|claro que sí|claro que si|vale|de acuerdo|adelante|dale|hazlo|acepto|confirmo|confirmado|apruebo|"
    "por supuesto|"
    "да|ага|ок|окей|хорошо|ладно|согласен|согласна|давай|давайте|подтверждаю|разрешаю|конечно|одобряю|продолжай|делай|делайте|выполняй|"
    "👍|👌|✅|✔|☑|🆗|🙆|💯"
)
_COURTESIES = (
    "please|thanks|thank you|谢谢|謝謝|请|請|ありがとう|ありがとうございます|ครับ|ค่ะ|คะ|นะ|ขอบคุณ|cảm ơn|nhé|nha|ạ|bạn|"
    "por favor|gracias|пожалуйста|спасибо|🙏|🙂|😊"
)


def _phrases(listed: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(_plain(phrase).split()) for phrase in listed.split("|"))


def is_yes(text: str) -> bool:
    """Whether the text is only a yes; a mention or a command prefix around it does not count as text."""
    if len(text) > MOST_CHARACTERS:
        return False
    plain = _plain(text)
    # A line that quotes somebody agrees to nothing; nor does a question, since its mark is part of a word.
    if plain.startswith((">", "|")):
        return False
    words = tuple(_words(_AROUND.sub(" ", plain)))
    return bool(words) and _says_yes(words)


_AROUND = re.compile(r"^(?:\s*@[^\s@]{1,40}(?=\s))+|(?:\s@[^\s@]{1,40})+\s*$")
_BREAKS = re.compile(r"[\s.,;:!¡…~\-–—_/#>()\[\]{}\"'`«»“”‘’、。・，]+")


def _plain(text: str) -> str:
    """Compatible forms as one, small letters, no invisible characters, no skin colours or sexes; emoji set apart."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    seen = (_seen(character) for character in unicodedata.normalize("NFC", folded))
    return "".join(seen).strip()


def _seen(character: str) -> str:
    if unicodedata.category(character) in ("Cf", "Cc") and not character.isspace():
        return ""
    if character in "\ufe0f♀♂" or "\U0001f3fb" <= character <= "\U0001f3ff":
        return ""
    return f" {character} " if unicodedata.category(character) == "So" else character


def _words(plain: str) -> list[str]:
    return [word for word in _BREAKS.split(plain) if word]


_MEANS_YES = _phrases(_YES)
_COURTEOUS = _phrases(_COURTESIES)
_LONGEST = max(map(len, _MEANS_YES | _COURTEOUS))


def _says_yes(words: tuple[str, ...]) -> bool:
    """Whether the words are phrases of yes and courtesies to their end, with one yes at least."""
    at, agreed = 0, False
    while at < len(words):
        for size in range(_LONGEST, 0, -1):
            phrase = words[at : at + size]
            if len(phrase) == size and phrase in _MEANS_YES | _COURTEOUS:
                agreed = agreed or phrase in _MEANS_YES
                at += size
                break
        else:
            return False
    return agreed
