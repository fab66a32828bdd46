"""M1-M3: which tools ask, what people read, and what a message or a press means for an open request."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langbot_plugin.api.entities.builtin.runner.input import AgentInput
from langbot_plugin.api.entities.builtin.runner.resources import ToolResource

from config.choices import Agree, Ask
from config.locales import Locale
from config.notices import Notice, say
from runner.consent.need import Need
from runner.consent.request import SECONDS, ConsentRequest, HeldCall
from runner.consent.verdict import Heard, Verdict, heard_in, verdict
from runner.consent.wording import FIELDS, calls_told
from runner.consent.yes import is_yes
from runner.tools.catalogue import Catalogue
from tests.host import Box, Skill, Tool
from tests.host.platform import _EVENT_TOOLS, _PLATFORM_TOOLS
from tests.host.tools import Skills

# What is a yes, which tools ask, and what people read (M1-M3).

YES = {
    Locale.EN_US: ["yes", "Yes!", "YES", "yes please", "ok", "Okay.", "sure, go ahead", "go ahead", "I agree"],
    Locale.ZH_HANS: [
        "好",
        "好的",
        "是",
        "可以",
        "同意",
        "确认",
        "好的，谢谢",
        "行！",
        "确定",
        "好的，请继续",
        "可以，执行吧",
    ],
    Locale.ZH_HANT: ["好", "確認", "沒問題", "執行", "對"],
    Locale.JA_JP: ["はい", "はい。", "お願いします", "はい、お願いします", "ＯＫ", "承認します", "OKです"],
    Locale.TH_TH: ["ตกลง", "ใช่ครับ", "ได้ค่ะ", "โอเค", "ยืนยัน", "อนุมัติ"],
    Locale.VI_VN: ["có", "vâng", "Đồng ý", "đồng ý nhé", "được", "dong y"],
    Locale.ES_ES: ["sí", "Si", "¡Sí!", "sí, por favor", "vale", "De acuerdo"],
    Locale.RU_RU: ["да", "Да.", "ок", "согласен", "да, пожалуйста", "хорошо", "делай"],
}
EMOJI = ["👍", "👍🏽", "✅", "✔️", "👌", "🆗", "👍👍", "yes 👍", "ok✅", "🙆‍♀️", "+1"]
AROUND = ["@bot yes", "@bot @bot yes", "yes @bot", "/yes", "!yes", "#yes", "  yes\n", "\u200byes", "“yes”"]
NO = [
    *("", " ", "no", "nope", "not yes", "yes?", "yes but no", "yes, if it is cheap", "no problem", "ok, what is it?"),
    *("yes to the first", "don't", "maybe", "please", "thanks", "@bot", "@yes", "👎", "❌", "🙏", "yes\nand 5 more"),
    *("> yes", ">да", "| yes", "确定吗", "不确定", "可是", "ann: yes"),
    *(
        "不",
        "不是",
        "不行",
        "好吗？",
        "不可以",
        "别",
        "いいえ",
        "いいです",
        "結構です",
        "だめ",
        "ไม่",
        "ไม่ใช่",
        "ไม่ตกลง",
        "ครับ",
    ),
    *("không", "không đồng ý", "đừng", "no, gracias", "sí pero no", "нет", "да нет", "не надо", "yes " * 30),
]


@pytest.mark.parametrize("text", [text for texts in YES.values() for text in texts] + EMOJI + AROUND)
def test_M3_a_yes_is_one_in_eight_languages(text: str) -> None:
    assert is_yes(text)


@pytest.mark.parametrize("text", NO)
def test_M3_whatever_is_more_or_less_than_a_yes_is_none(text: str) -> None:
    assert not is_yes(text)


@given(st.from_regex(r"[a-zа-я一-龥]{9,20}", fullmatch=True).filter(lambda word: not is_yes(word)))
def test_M3_a_yes_with_another_word_beside_it_is_none(word: str) -> None:
    assert not is_yes(f"yes {word}")
    assert not is_yes(f"{word} yes")


@pytest.mark.parametrize("locale", Locale)
@pytest.mark.parametrize("notice", [Notice.CONSENT_BY_WORDS, Notice.CONSENT_BY_ASKER, Notice.CONSENT_BY_ANYONE])
def test_M2_the_word_that_people_are_told_to_reply_is_a_yes(notice: Notice, locale: Locale) -> None:
    quoted = re.findall(r"[“「«]([^”」»]+)[”」»]", say(notice, locale, minutes=30, name="Ann"))
    assert len(quoted) == 1
    assert is_yes(quoted[0])


def everything() -> Catalogue:
    """All tools of the Host's own, and a plugin's whose names promise much."""
    own = [*Box().tools(), *Skills([Skill("s")]).tools()]
    platform = [Tool(name, type="platform") for name in (*_EVENT_TOOLS, *_PLATFORM_TOOLS)]
    resources = [Tool(name, type="mcp") for name in ("langbot_mcp_list_resources", "langbot_mcp_read_resource")]
    plugin = [Tool(name) for name in ("get_all", "read_mail", "activate_account", "event_get_x", "pay")]
    tools = [tool.resource for tool in (*own, *platform, *resources, *plugin)]
    return Catalogue.build([ToolResource.model_validate(tool) for tool in tools], hide_sandbox=False)


def test_M1_changes_asks_for_all_but_those_known_to_read() -> None:
    need = Need(Ask.CHANGES)
    free = {entry.host_name for entry in everything() if not need.wants(entry)}
    reading = {"read", "glob", "grep", "list_skill_resources", "read_skill_resource"}
    reading |= {"langbot_mcp_list_resources", "langbot_mcp_read_resource", "event_reply", "activate"}
    reading |= {name for name in (*_EVENT_TOOLS, *_PLATFORM_TOOLS) if name.startswith(("event_get_", "platform_get_"))}
    assert free == reading


@pytest.mark.parametrize(
    ("names", "asking"),
    [
        ((), set()),
        (("pay",), {"pay"}),
        (("platform_kick*", "read_mail"), {"platform_kick_member", "read_mail"}),
        (("p[ay",), set()),
    ],
)
def test_M1_listed_asks_for_the_names_alone(names: tuple[str, ...], asking: set[str]) -> None:
    need = Need(Ask.LISTED, names)
    assert {entry.host_name for entry in everything() if need.wants(entry)} == asking


def test_M1_a_star_asks_for_every_tool_but_those_that_never_ask() -> None:
    need = Need(Ask.LISTED, ("*",))
    free = {entry.host_name for entry in everything() if not need.wants(entry)}
    assert free == {"event_reply", "activate"}


def test_M1_never_asks_for_nothing() -> None:
    assert not [entry for entry in everything() if Need(Ask.NEVER, ("*",)).wants(entry)]


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=2_000), max_size=40))
def test_M2_what_is_shown_is_bounded_and_no_line_poses_as_another(values: dict[str, str]) -> None:
    call = HeldCall(
        host_name="pay", kind="plugin", name="pay", label="pay", arguments="{}", values=dict(values), digest="d"
    )
    told = calls_told([call] * 3)
    assert len(told) <= 8_000
    first, *values_told = calls_told([call]).split("\n")
    assert first == "- `pay`"
    assert len(values_told) == min(len(values), FIELDS) + (len(values) > FIELDS)
    assert all(re.fullmatch(r"  - `[^`]*`", line) for line in values_told) or len("".join(values_told)) > 5_000


@pytest.mark.parametrize("value", ["[5](https://evil.example)", "<!-- 5000 -->5", "**5**", "`5`", "~~50~~5", "![](x)5"])
def test_M2_what_a_model_chose_is_shown_letter_by_letter(value: str) -> None:
    call = HeldCall(
        host_name="pay", kind="plugin", name="pay", label="pay", arguments="{}", values={"amount": value}, digest="d"
    )
    assert calls_told([call]) == "- `pay`\n  - `amount: " + value.replace("`", "'") + "`"


# What a message or a press means for an open request (M3). Pure.

CALL = HeldCall(host_name="pay", kind="plugin", name="pay", label="pay", arguments="{}", values={}, digest="d")
ASKED = 1_000
REQUEST = ConsentRequest(calls=[CALL], asker="ann", who="asker", run_id="r", asked_at=ASKED, words=True)
AGREED, REFUSED = Heard("ann", "Ann", agrees=True, at=ASKED + 5), Heard("ann", "Ann", agrees=False, at=ASKED + 5)


def of(heard: Heard, request: ConsentRequest = REQUEST, *, now: float = ASKED + 9, shown_at: float = 0) -> Verdict:
    return verdict(request, heard, Agree.ASKER, now, shown_at)


def test_M3_a_yes_agrees_and_anything_else_refuses() -> None:
    assert (of(AGREED), of(REFUSED)) == (Verdict.AGREED, Verdict.REFUSED)


def test_M3_a_yes_that_was_sent_before_the_request_was_shown_agrees_to_nothing() -> None:
    assert of(AGREED, shown_at=ASKED + 6.2) is Verdict.REFUSED
    assert of(AGREED, shown_at=ASKED + 5.9) is Verdict.AGREED, "the Host counts whole seconds"


def test_M5_a_press_counts_for_its_own_request_alone() -> None:
    pressed = Heard("ann", "Ann", agrees=True, pressed=REQUEST.key)
    other = Heard("ann", "Ann", agrees=True, pressed="runner.consent.other")
    assert (of(pressed), of(other)) == (Verdict.AGREED, Verdict.NOTHING)


def test_M4_where_words_cannot_agree_they_mean_nothing() -> None:
    assert of(AGREED, REQUEST.model_copy(update={"words": False})) is Verdict.NOTHING


def test_M3_what_others_say_means_nothing() -> None:
    assert of(Heard("eve", "Eve", agrees=True)) is Verdict.NOTHING
    assert of(Heard(None, "", agrees=True), REQUEST.model_copy(update={"asker": None})) is Verdict.NOTHING


def test_M2_it_lapses_to_the_second() -> None:
    assert of(AGREED, now=ASKED + SECONDS - 1) is Verdict.AGREED
    assert of(AGREED, now=ASKED + SECONDS) is Verdict.LAPSED


@pytest.mark.parametrize(
    ("said", "agrees"),
    [
        ({"text": "yes", "contents": [{"type": "text", "text": "yes"}]}, True),
        (
            {
                "text": "yes",
                "contents": [{"type": "text", "text": "yes"}, {"type": "image_base64", "image_base64": "x"}],
            },
            False,
        ),
        ({"text": "yes", "attachments": [{"type": "file", "source": "url", "name": "plan.pdf"}]}, False),
        ({"text": "type='Quote' id='1' origin=MessageChain([Plain('no?')])yes"}, True),
        ({"text": "type='Quote' id='1' origin=MessageChain([Plain('yes')])"}, False),
    ],
)
def test_M3_a_message_is_a_yes_by_its_own_words_alone(said: dict[str, object], agrees: bool) -> None:
    assert heard_in(AgentInput.model_validate(said), "ann", "Ann").agrees is agrees
