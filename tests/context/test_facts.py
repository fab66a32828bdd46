"""L3, L4, F3, F5: facts and identifiers that a summary must not lose."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.context.digest import EARLIER, digest, read_entries
from runner.context.facts import says_nothing, states_fact
from runner.context.identifiers import MOST, SHARE, identifiers, is_short, with_identifiers
from runner.context.tokens import Prices
from runner.conversation.units import Unit
from tests.context.conversations import assistant, conversations, ruler, tool_turn, user

# L3, L4: facts that people tell of themselves stay in the digest, in eight languages; "ok" and "thanks" do not.

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


# F3, F5: what a model's summary forgets of identifiers.

FLUENT = "Goal:\n- talk about the boathouse\nFacts and identifiers:\n- somebody has a safe"
TOLD = (user("Please remember: the code of the safe is QV-2931."), assistant("Noted, QV-2931."), user("Nice weather."))


def kept(summary: str, *told: Unit, previous: str | None = None, limit: int = 2_000, short: bool = False) -> str:
    return with_identifiers(summary, previous=previous, told=told, limit=limit, price=PRICE, short=short)


def test_F3_a_code_that_the_summary_forgot_comes_back_in_the_words_it_was_said_in() -> None:
    assert kept(FLUENT, *TOLD) == f"{EARLIER}:\n- Please remember: the code of the safe is QV-2931.\n{FLUENT}"


@pytest.mark.parametrize("name", ["the safe: QV-2931", "the code (QV-2931)", "“QV-2931”"])
def test_F3_what_the_summary_names_is_not_said_twice(name: str) -> None:
    assert kept(f"Facts and identifiers:\n- {name}", *TOLD) == f"Facts and identifiers:\n- {name}"


def test_F3_what_was_kept_once_is_kept_by_later_summaries_too_and_stands_there_once() -> None:
    summary = kept(FLUENT, *TOLD)
    for number in range(5):
        later = kept(f"Goal:\n- talk about number {number}", user("Nice weather."), previous=summary)
        # A model may copy the section, or a part of it; it is written anew from what is known.
        copied = kept(f"{EARLIER}:\n- something made up QX-0000\nGoal:\n- talk", previous=summary)
        assert later.count("QV-2931") == copied.count("QV-2931") == 1
        assert later.count(EARLIER) == copied.count(EARLIER) == 1
        assert "QX-0000" not in copied
        summary = later


def test_F3_newer_words_win_where_not_all_fit_and_stand_in_their_order() -> None:
    told = [user(f"The key of door number {n} is KEY-{n:04d}-{n}.") for n in range(300)]
    whole = kept(FLUENT, *told)
    lines = [line for line in whole.splitlines() if "KEY-" in line]
    assert 5 < len(lines) < 100
    assert lines[-1].endswith("KEY-0299-299.")
    assert lines == sorted(lines)
    assert PRICE(whole) - PRICE(FLUENT) <= min(MOST, 2_000 // SHARE)


def test_F3_results_of_tools_bring_no_lines() -> None:
    assert kept(FLUENT, tool_turn("row 4711-A, row 4712-B, row 4713-C")) == FLUENT


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("write to anna@example.org, please", {"anna@example.org"}),
        ("see https://example.org/a?b=1.", {"https://example.org/a"}),
        ("订单号QV2931已发货", {"QV2931"}),
        ("in room 12 at 5 pm, e.g. here", set()),
        ("on 2026-11-30 (a Monday)", {"2026-11-30"}),
        ("file src/v2/main.py and 12345678", {"src/v2/main.py", "12345678"}),
    ],
)
def test_F3_identifiers_are_words_nobody_can_guess(text: str, names: set[str]) -> None:
    assert identifiers(text) == names


def test_L3_beside_a_short_summary_stands_what_people_said_newest_and_about_themselves_first() -> None:
    talk = [
        unit for n in range(80) for unit in (user(f"The river is quiet on the day of {WORDS[n]}."), assistant("ok"))
    ]
    whole = kept("Goal:\n- talk about rivers", user("My name is Ann."), *talk, user("thanks"), short=True, limit=1_000)
    lines = whole.splitlines()
    assert lines[0] == f"{EARLIER}:" and "- My name is Ann." in lines
    assert f"- asked: The river is quiet on the day of {WORDS[79]}." in lines
    assert f"the day of {WORDS[0]}" not in whole and "thanks" not in whole
    assert whole.endswith("Goal:\n- talk about rivers")
    assert "Ann" not in kept("Goal:\n- talk about rivers", user("My name is Ann."), *talk), (
        "a long one speaks for itself"
    )


def test_L3_what_stands_beside_a_short_summary_stands_beside_the_next_one_too() -> None:
    summary = kept("Goal:\n- talk", user("My name is Ann."), user("The ship leaves at noon."), short=True)
    for number in range(5):
        summary = kept(f"Goal:\n- talk about number {number}", user("And now?"), previous=summary, short=True)
        assert summary.count("My name is Ann.") == summary.count("The ship leaves at noon.") == 1


@pytest.mark.parametrize(
    ("tokens", "replaced", "short"), [(8, 150, False), (8, 300, True), (140, 9_000, True), (160, 90_000, False)]
)
def test_L3_a_summary_is_short_for_what_it_stands_for(tokens: int, replaced: int, short: bool) -> None:
    assert is_short("word " * tokens, replaced, lambda text: text.count("word")) is short


WORDS = [f"{first}{second}" for first in ("wind", "rain", "snow", "corn") for second in "abcdefghijklmnopqrst"]


@settings(max_examples=60)
@given(
    conversations(),
    st.text(max_size=600),
    st.text(max_size=600),
    st.integers(min_value=40, max_value=4_000),
    st.booleans(),
)
def test_F3_a_summary_loses_nothing_and_stays_within_its_limit(
    units: tuple[Unit, ...], summary: str, previous: str, limit: int, short: bool
) -> None:
    whole = kept(summary, *units, previous=previous, limit=limit, short=short)
    assert PRICE(whole) <= max(limit, PRICE(summary)) + 8
    said = [line for _, line in read_entries(summary)]
    assert EARLIER in summary or [line for _, line in read_entries(whole)][-len(said) :] == said or not said
