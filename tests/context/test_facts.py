"""L3, L4: facts that people tell of themselves stay in the digest, in eight languages; "ok" and "thanks" do not."""

from __future__ import annotations

import unicodedata

import pytest

from runner.context.digest import digest
from runner.context.facts import says_nothing, states_fact
from runner.context.tokens import Prices
from runner.conversation.units import Unit
from tests.context.conversations import assistant, ruler, user

PRICE = Prices(ruler()).text

FACTS = (
    "My name is Ann",
    "I'm Ann",
    "I’m 34 years old",
    "I live in Oslo",
    "I really like opera",
    "I am allergic to nuts",
    "I work as a nurse",
    "My birthday is in May",
    "my wife's name is Eve",
    "I can't eat gluten",
    "Please call me Annie",
    "I have two cats",
    "我叫李明",
    "我的名字是李明",
    "我今年三十四岁",
    "我住在上海",
    "我很喜欢京剧",
    "我对花生过敏",
    "我是护士",
    "我的生日是五月三号",
    "我在医院工作",
    "叫我小明就好",
    "我對花生過敏",
    "我養了一隻貓",
    "我今年三十四歲",
    "私の名前は田中です",
    "田中と申します",
    "34歳です",
    "大阪に住んでいます",
    "歌舞伎が好きです",
    "ピーナッツアレルギーがあります",
    "看護師として働いています",
    "誕生日は五月三日です",
    "ผมชื่อสมชาย",
    "ชื่อของฉันคือมาลี",
    "ฉันอายุสามสิบสี่ปี",
    "ผมอยู่เชียงใหม่",
    "ฉันชอบดนตรีไทย",
    "ผมแพ้ถั่วลิสง",
    "ฉันเป็นพยาบาล",
    "วันเกิดของผมคือวันที่สามพฤษภาคม",
    "Tôi tên là Lan",
    "Tên tôi là Lan",
    "Tôi 34 tuổi",
    "Tôi sống ở Huế",
    "Mình thích cải lương",
    "Tôi bị dị ứng với đậu phộng",
    "Tôi làm y tá",
    "Sinh nhật của tôi vào tháng năm",
    "Me llamo Lucía",
    "Mi nombre es Lucía",
    "Tengo treinta y cuatro años",
    "Vivo en Sevilla",
    "Me gusta el flamenco",
    "Soy alérgica a las nueces",
    "Trabajo de enfermera",
    "Mi cumpleaños es en mayo",
    "Меня зовут Ольга",
    "Моё имя Ольга",
    "Мне тридцать четыре года",
    "Я живу в Туле",
    "Я люблю балет",
    "У меня аллергия на орехи",
    "Я работаю медсестрой",
    "Мой день рождения в мае",
)

NOTHING = (
    "ok", "Okay!", "OK, thanks.", "Thanks a lot!", "thx", "Got it", "yes please", "Hello!", "👍", "...",
    "好的", "好的，谢谢！", "嗯嗯", "明白了", "謝謝你", "你好", "はい", "ありがとうございます！", "了解です",
    "ครับ", "ขอบคุณครับ", "โอเค", "สวัสดีค่ะ", "Vâng", "Cảm ơn bạn!", "Được rồi", "Ok, cảm ơn",
    "Vale", "Muchas gracias", "Sí, gracias.", "¡Hola!", "Да", "Спасибо большое!", "Хорошо, понятно", "Ок",
)  # fmt: skip

TALK = "Chapter {n}: the river, the orchard and the harbour were quiet; the code of that page is PG-{n:04d}-{n}."


def long_chat(first: str) -> tuple[Unit, ...]:
    """Sixty turns, of which the first says something about its writer and all others name something."""
    units: list[Unit] = [user(first), assistant("Nice to meet you.")]
    for number in range(60):
        units += [user(TALK.format(n=number) * 3), assistant(f"Page {number} it is.")]
    return tuple(units)


@pytest.mark.parametrize("fact", FACTS)
def test_L4_a_plain_fact_that_somebody_told_of_themselves_outlives_sixty_turns_of_codes(fact: str) -> None:
    made = digest(long_chat(f"{fact}. And now?"), previous=None, limit=500, price=PRICE)
    assert fact in made
    # The digest of a later part keeps it too, though it names nothing that cannot be guessed.
    later = digest(long_chat("So?"), previous=made, limit=500, price=PRICE)
    assert fact in later


@pytest.mark.parametrize("fact", FACTS)
def test_L4_a_fact_is_known_in_any_spelling_of_its_accents(fact: str) -> None:
    assert states_fact(unicodedata.normalize("NFD", fact))
    assert not says_nothing(fact)


@pytest.mark.parametrize("text", NOTHING)
def test_L4_ok_and_thanks_stand_in_no_digest(text: str) -> None:
    made = digest((user(text), assistant(text), user("The ship leaves at noon"), assistant(text)),
                  previous=None, limit=300, price=PRICE)  # fmt: skip
    assert made == "Goal:\n- The ship leaves at noon\nDone:\n- asked: The ship leaves at noon"
