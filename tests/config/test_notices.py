"""C8: the sentences a person in the chat reads, in eight locales, and which locale is theirs."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.form import load_labels
from config.locales import Locale
from config.notices import MAX_VALUE_CHARS, Notice, say
from config.notices.language import MAX_CHARS, SIMPLIFIED, TRADITIONAL, locale_of
from config.notices.texts import TEXTS

# C8: the sentences a person in the chat reads, in eight locales.

LABELS = load_labels()
ROOT = Path(__file__).parents[2]

SETTINGS_NAMED = {
    Notice.PROMPT_TOO_LARGE: ("prompt", "context-window-tokens"),
    Notice.MESSAGE_TOO_LARGE: ("context-window-tokens",),
    Notice.PICTURES_TOO_LARGE: ("context-window-tokens",),
    Notice.TOOLS_TOO_LARGE: ("context-window-tokens",),
    Notice.KNOWLEDGE_TOO_LARGE: ("retrieval-top-k", "context-window-tokens"),
    Notice.TIME_LIMIT: ("timeout",),
}
AI_TAB = {
    Locale.EN_US: "AI",
    Locale.ZH_HANS: "AI 能力",
    Locale.ZH_HANT: "AI 能力",
    Locale.JA_JP: "AI機能",
    Locale.TH_TH: "AI",
    Locale.VI_VN: "AI",
    Locale.ES_ES: "IA",
    Locale.RU_RU: "ИИ",
}
"""What LangBot calls the tab of a pipeline in which the model is chosen."""

HOLDS = {
    "reason": "the model is gone",
    "tool": "exec",
    "tools": "exec, crawl",
    "files": "plan.pdf, photos.zip",
    "rounds": 100,
    "seconds": 180,
    "steps": 6,
    "minutes": 30,
    "name": "Ann",
}

every_notice = pytest.mark.parametrize("notice", Notice)
every_locale = pytest.mark.parametrize("locale", Locale)


def said(notice: Notice, locale: Locale) -> str:
    return say(notice, locale, **{name: HOLDS[name] for name in notice.placeholders})


def test_there_is_a_text_for_every_notice_and_no_other() -> None:
    assert set(TEXTS) == {notice.value for notice in Notice}


@every_notice
def test_every_notice_exists_in_every_locale_with_the_same_placeholders(notice: Notice) -> None:
    assert set(TEXTS[notice]) == set(Locale)
    for text in TEXTS[notice].values():
        assert text.strip() == text != ""
        assert sorted(re.findall(r"\{(\w+)\}", text)) == sorted(notice.placeholders)
        assert text.count("{") == text.count("}") == len(notice.placeholders)


@every_notice
@pytest.mark.parametrize(("one", "other"), list(combinations(Locale, 2)))
def test_no_notice_is_left_untranslated(notice: Notice, one: Locale, other: Locale) -> None:
    # The two scripts of Chinese may agree where no character differs between them.
    kin = {one, other} == {Locale.ZH_HANS, Locale.ZH_HANT}
    text = TEXTS[notice][one]
    assert text != TEXTS[notice][other] or (kin and (SIMPLIFIED | TRADITIONAL).isdisjoint(text))


@every_notice
def test_each_chinese_script_keeps_to_its_characters(notice: Notice) -> None:
    assert TRADITIONAL.isdisjoint(TEXTS[notice][Locale.ZH_HANS])
    assert SIMPLIFIED.isdisjoint(TEXTS[notice][Locale.ZH_HANT])


@every_locale
@every_notice
def test_a_notice_carries_every_value_it_is_given(notice: Notice, locale: Locale) -> None:
    for name in notice.placeholders:
        assert str(HOLDS[name]) in said(notice, locale)


@every_locale
@pytest.mark.parametrize("notice", SETTINGS_NAMED)
def test_C8_a_setting_to_change_is_called_what_the_form_calls_it(notice: Notice, locale: Locale) -> None:
    for name in SETTINGS_NAMED[notice]:
        assert LABELS[locale][name].label in said(notice, locale)


@every_locale
def test_C8_without_a_model_the_next_step_is_the_tab_in_the_words_of_langbot(locale: Locale) -> None:
    assert re.search(rf"[“「«]{AI_TAB[locale]}[”」»]", said(Notice.NO_MODEL, locale))


@every_locale
def test_a_note_stands_in_brackets_and_nothing_else_does(locale: Locale) -> None:
    for notice in Notice:
        text = said(notice, locale)
        assert (text[0] in "[【［" and text[-1] in "]】］") == notice.name.endswith("_NOTE")


@given(st.text(st.characters(codec=None)), st.sampled_from(Locale))
def test_a_value_is_never_read_as_a_template_and_stays_one_short_line(value: str, locale: Locale) -> None:
    sentence = say(Notice.FAILED, locale, reason=value)
    head, tail = TEXTS[Notice.FAILED][locale].split("{reason}")
    assert sentence.startswith(head)
    assert sentence.endswith(tail)
    filled = sentence[len(head) : len(sentence) - len(tail)]
    assert len(filled) <= MAX_VALUE_CHARS
    assert filled == " ".join(value.split()) or filled.endswith("…")


def test_braces_in_a_value_are_kept_as_they_are() -> None:
    assert say(Notice.FAILED, Locale.EN_US, reason='{reason} {"a": {0}} {}').endswith('{reason} {"a": {0}} {}')


def test_a_missing_value_is_a_fault_of_the_caller() -> None:
    with pytest.raises(KeyError, match="reason"):
        say(Notice.FAILED, Locale.EN_US)


def test_C8_no_sentence_is_kept_that_nobody_says() -> None:
    sources = [path for door in ("runner", "local") for path in (ROOT / door).rglob("*.py")]
    said = {name for path in sources for name in re.findall(r"Notice\.(\w+)", path.read_text(encoding="utf-8"))}
    assert {notice.name for notice in Notice} <= said


# The language of the runner's own sentences follows the newest user text.

EN, HANS, HANT, JA = Locale.EN_US, Locale.ZH_HANS, Locale.ZH_HANT, Locale.JA_JP
TH, VI, ES, RU = Locale.TH_TH, Locale.VI_VN, Locale.ES_ES, Locale.RU_RU

SPOKEN = [
    ("", EN),
    ("12:30 👍", EN),
    ("What's the weather like?", EN),
    ("Wie wird das Wetter morgen?", EN),
    ("날씨 어때?", EN),
    ("I drove from Los Angeles to El Paso and Las Vegas", EN),
    ("Please translate this line into English for me: 你好", EN),
    ("what does привет mean in English, please tell me", EN),
    ("你好", HANS),
    ("这个文件为什么打不开？", HANS),
    ("帮我看看这个报错 TypeError: undefined is not a function at foo", HANS),
    ("看一下\n```python\nfor item in range(10):\n    print(item, end=' ') # and so on and on\n```", HANS),
    ("https://example.com/a/very/long/path/to/some/page 总结一下", HANS),
    ("鲜の每日 这家店怎么样", HANS),
    ("請問這個檔案為什麼打不開？", HANT),
    ("今天天氣如何", HANT),
    ("我想買這台電腦", HANT),
    ("明日の天気は？", JA),
    ("日本の天気", JA),
    ("サーバーが落ちました", JA),
    ("対応方法", JA),
    ("VPNの設定を教えて", JA),
    ("พรุ่งนี้ฝนจะตกไหม", TH),
    ("ช่วยเปิดไฟล์ README ให้หน่อย", TH),
    ("какая завтра погода", RU),
    ("посмотри ошибку TypeError в файле", RU),
    ("Thời tiết ngày mai thế nào?", VI),
    ("giúp tôi với nhé ạ", VI),
    ("gi\u0061\u0302\u0301y", VI),
    ("¿Qué tiempo hará mañana?", ES),
    ("hola", ES),
    ("Gracias", ES),
    ("necesito ayuda con mi pedido", ES),
    ("dime la hora en Madrid", ES),
    ("mañana", ES),
]


@pytest.mark.parametrize(("text", "locale"), SPOKEN)
def test_the_locale_is_that_of_the_people_who_write_so(text: str, locale: Locale) -> None:
    assert locale_of(text) is locale


@given(st.text(st.characters(codec=None)))
def test_any_text_has_a_locale(text: str) -> None:
    assert locale_of(text) in Locale


@given(st.text(st.sampled_from(sorted(TRADITIONAL)), min_size=1))
def test_traditional_characters_alone_are_traditional_chinese(text: str) -> None:
    assert locale_of(text) is HANT


@given(st.text(st.sampled_from(sorted(SIMPLIFIED)), min_size=1))
def test_simplified_characters_alone_are_simplified_chinese(text: str) -> None:
    assert locale_of(text) is HANS


def test_no_character_counts_for_both_scripts() -> None:
    assert SIMPLIFIED.isdisjoint(TRADITIONAL)


def test_only_the_beginning_of_a_long_text_is_looked_at() -> None:
    assert locale_of("hello " * MAX_CHARS + "你好" * MAX_CHARS) is EN
