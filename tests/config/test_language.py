"""The language of the runner's own sentences follows the newest user text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.locales import Locale
from config.notices.language import MAX_CHARS, SIMPLIFIED, TRADITIONAL, locale_of

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
