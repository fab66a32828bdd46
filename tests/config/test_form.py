"""A3: the form on disk is the one declared in config, complete in eight locales."""

import re
from itertools import combinations
from typing import Any

import pytest
import yaml
from langbot_plugin.api.entities.builtin.runner.manifest import DynamicFormItemSchema

from config.choices import NoticeLanguage
from config.fields import ADVANCED, ASK, FIELDS, Choice, Field, Models, Names, Number, Template, Text
from config.form import COMPONENT, MARKER, Label, fill, form_default, form_items, load_labels, render
from config.locales import Locale
from config.notices.language import SIMPLIFIED, TRADITIONAL
from config.settings import Settings

LABELS = load_labels()
ITEMS: list[dict[str, Any]] = form_items(LABELS)
NAMES = [field.name for field in FIELDS]

SPEC_TABLE = {
    "model": ("model-fallback-selector", {"primary": "", "fallbacks": [], "reasoning": {}}),
    "prompt": ("prompt-editor", [{"role": "system", "content": "You are a helpful assistant."}]),
    "remove-think": ("boolean", False),
    "knowledge-bases": ("knowledge-base-multi-selector", []),
    "box-enabled": ("boolean", False),
    "box-session-id-template": ("select", "{launcher_type}_{launcher_id}"),
    "ask-before-tools": ("select", "never"),
    "ask-before-these-tools": ("array[string]", []),
    "who-may-agree": ("select", "asker"),
    "advanced-settings": ("boolean", False),
    "date-grounding": ("boolean", True),
    "timeout": ("integer", 300),
    "retrieval-top-k": ("integer", 5),
    "rerank-model": ("rerank-model-selector", ""),
    "rerank-top-k": ("integer", 5),
    "max-tool-iterations": ("integer", 100),
    "tool-execution-mode": ("select", "parallel"),
    "max-tool-result-chars": ("integer", 20000),
    "context-history-fetch-limit": ("integer", 50),
    "context-window-tokens": ("integer", 200000),
    "context-reserve-tokens": ("integer", 16384),
    "context-keep-recent-tokens": ("integer", 20000),
    "context-summary-tokens": ("integer", 8000),
    "tool-memory": ("boolean", True),
    "agent-reply": ("select", "auto"),
    "progress-notices": ("boolean", True),
    "notice-language": ("select", "auto"),
    "debug-dump": ("boolean", False),
    "model-profile": ("select", "standard"),
    "tool-call-format": ("select", "native"),
    "max-tools-shown": ("integer", 8),
    "max-steps": ("integer", 6),
    "step-timeout": ("integer", 180),
    "site-instructions": ("text", ""),
}


def words(locale: Locale) -> dict[str, str]:
    """Every text of the form in one locale, by where it stands."""
    found: dict[str, str] = {}
    for name, label in LABELS[locale].items():
        found |= {f"{name}.label": label.label, f"{name}.help": label.help}
        found |= {f"{name}.options.{option}": text for option, text in label.options.items()}
    return found


def test_A3_the_form_on_disk_is_the_one_that_config_declares() -> None:
    on_disk = COMPONENT.read_text(encoding="utf-8")
    assert render(on_disk) == on_disk, "run `python -m config.form`"


def test_the_generator_refuses_a_component_without_its_marker() -> None:
    with pytest.raises(ValueError, match="has lost the line"):
        render(COMPONENT.read_text(encoding="utf-8").replace(MARKER, ""))


def test_the_generator_keeps_the_part_written_by_hand() -> None:
    edited = COMPONENT.read_text(encoding="utf-8").replace("streaming: true", "streaming: false  # for now")
    assert "streaming: false  # for now" in render(edited)


def test_A3_the_table_of_the_spec_is_the_form() -> None:
    assert {item["name"]: (item["type"], item["default"]) for item in ITEMS} == SPEC_TABLE


def test_A4_the_defaults_of_the_form_read_back_as_the_default_settings() -> None:
    stored = {item["name"]: item["default"] for item in yaml.safe_load(COMPONENT.read_text("utf-8"))["spec"]["config"]}
    assert Settings.read(stored) == Settings.read({})


@pytest.mark.parametrize("item", ITEMS, ids=NAMES)
def test_A3_every_item_is_one_the_host_understands(item: dict[str, Any]) -> None:
    assert DynamicFormItemSchema.model_validate(item).name == item["name"]
    assert set(item) <= {
        *("name", "type", "required", "label", "description", "default", "options", "allow_custom", "show_if")
    }


OF_SMALL_MODELS = ["max-tools-shown", "max-steps", "step-timeout", "site-instructions"]


def test_A3_what_stands_below_advanced_settings_is_shown_by_it_and_nothing_else_is() -> None:
    shown_if = {"field": ADVANCED, "operator": "eq", "value": True}
    below = [item["name"] for item in ITEMS[NAMES.index(ADVANCED) + 1 :] if item["name"] not in OF_SMALL_MODELS]
    assert [item["name"] for item in ITEMS if item.get("show_if") == shown_if] == below


def test_S6_what_only_small_models_use_is_hidden_while_the_kind_of_model_is_the_default() -> None:
    shown_if = {"field": "model-profile", "operator": "neq", "value": "standard"}
    assert [item["name"] for item in ITEMS if item.get("show_if") == shown_if] == OF_SMALL_MODELS


def test_M1_what_consent_needs_is_hidden_until_tools_ask() -> None:
    shown_if = {"field": ASK, "operator": "neq", "value": "never"}
    hidden = [item["name"] for item in ITEMS if item.get("show_if") == shown_if]
    assert hidden == ["ask-before-these-tools", "who-may-agree"]


def test_A3_model_and_prompt_are_required_and_nothing_else_is() -> None:
    assert [item["name"] for item in ITEMS if item["required"]] == ["model", "prompt"]


def test_A5_no_item_has_a_name_that_the_host_keeps_for_itself() -> None:
    host_owned = {"tools", "enable-all-tools", "mcp-resources", "mcp-resource-agent-read-enabled", "knowledge-base"}
    assert host_owned.isdisjoint(NAMES)
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("locale", Locale)
def test_A3_every_locale_has_every_field_and_option_and_no_other(locale: Locale) -> None:
    assert set(LABELS[locale]) == set(NAMES)
    assert set(words(locale)) == set(words(Locale.EN_US))
    assert all(text.strip() == text != "" for text in words(locale).values())


@pytest.mark.parametrize("field", [f for f in FIELDS if isinstance(f, Choice | Template)], ids=lambda f: f.name)
def test_A3_every_option_is_labelled_and_no_label_is_left_over(field: Choice | Template) -> None:
    options = field.options if isinstance(field, Choice) else field.presets
    labelled = set(LABELS[Locale.EN_US][field.name].options)
    assert {str(option) for option in options} - labelled <= set(NoticeLanguage) - {NoticeLanguage.AUTO}
    assert labelled <= {str(option) for option in options}


def may_be_equal(text: str, one: Locale, other: Locale) -> bool:
    """Chinese in its two scripts, and short words of it in Japanese, can be written with the very same characters."""
    if {one, other} == {Locale.ZH_HANS, Locale.ZH_HANT}:
        return (SIMPLIFIED | TRADITIONAL).isdisjoint(text)
    return {one, other} == {Locale.ZH_HANT, Locale.JA_JP} and re.fullmatch(r"[\u4e00-\u9fff]{2,3}", text) is not None


@pytest.mark.parametrize(("one", "other"), list(combinations(Locale, 2)))
def test_A3_no_text_of_one_locale_stands_in_another(one: Locale, other: Locale) -> None:
    same = [where for where, text in words(one).items() if words(other)[where] == text]
    assert [where for where in same if not may_be_equal(words(one)[where], one, other)] == []


def test_A3_each_chinese_script_keeps_to_its_characters() -> None:
    assert TRADITIONAL.isdisjoint("".join(words(Locale.ZH_HANS).values()))
    assert SIMPLIFIED.isdisjoint("".join(words(Locale.ZH_HANT).values()))


PLACEHOLDER = re.compile(r"\$\w+|\{\w+\}|/workspace|LangBot")


@pytest.mark.parametrize("locale", Locale)
def test_A3_placeholders_and_names_are_the_same_in_every_locale(locale: Locale) -> None:
    english = words(Locale.EN_US)
    for where, text in words(locale).items():
        assert set(PLACEHOLDER.findall(text)) == set(PLACEHOLDER.findall(english[where])), where


@pytest.mark.parametrize("field", [f for f in FIELDS if isinstance(f, Number)], ids=lambda f: f.name)
def test_A4_the_help_of_every_number_states_its_range(field: Number) -> None:
    for locale in Locale:
        text = fill(LABELS[locale][field.name].help, field)
        assert {str(field.minimum), str(field.maximum)} <= set(re.findall(r"\d+", text))


@pytest.mark.parametrize("field", [f for f in FIELDS if isinstance(f, Text | Template | Names)], ids=lambda f: f.name)
def test_A4_the_help_of_every_text_states_how_long_it_may_be(field: Text | Template | Names) -> None:
    assert all(str(field.maximum) in fill(LABELS[locale][field.name].help, field) for locale in Locale)


def test_F1_the_help_of_the_reserve_states_its_share_of_the_window() -> None:
    field = next(field for field in FIELDS if field.name == "context-reserve-tokens")
    limits = Settings.read({field.name: 1_000_000})[0].context
    share = 100 - 100 * limits.input_budget() // limits.window_tokens
    assert all(f"{share} %" in fill(LABELS[locale][field.name].help, field) for locale in Locale)


def test_a_help_that_names_a_number_its_field_has_not_is_refused() -> None:
    with pytest.raises(KeyError, match="minimum"):
        fill("from $minimum", Models(name="model", at="model"))


FUNCTION_CALL = {
    Locale.EN_US: "Function Call",
    Locale.ZH_HANS: "函数调用",
    Locale.ZH_HANT: "函數呼叫",
    Locale.JA_JP: "関数呼び出し",
    Locale.TH_TH: "การเรียกฟังก์ชัน",
    Locale.VI_VN: "Gọi hàm",
    Locale.ES_ES: "Llamada a funciones",
    Locale.RU_RU: "Вызов функций",
}
"""What LangBot's model settings call the ability without which it offers a model no tools."""


@pytest.mark.parametrize("locale", Locale)
@pytest.mark.parametrize("name", ["model", "tool-call-format"])
def test_the_help_says_to_tick_function_calling_in_the_words_of_langbot(name: str, locale: Locale) -> None:
    assert FUNCTION_CALL[locale] in LABELS[locale][name].help


@pytest.mark.parametrize("locale", Locale)
def test_an_option_named_in_a_help_is_named_as_its_label(locale: Locale) -> None:
    quoted = re.compile(r"[“「«]([^”」»]+)[”」»]")
    options = {text.casefold() for label in LABELS[locale].values() for text in label.options.values()}
    known = {FUNCTION_CALL[locale].casefold(), *options}
    for name, label in LABELS[locale].items():
        for words_said in quoted.findall(label.help):
            said = words_said.casefold()
            assert any(said in text or text in said for text in known), (name, words_said)


def test_every_default_of_the_form_is_of_the_kind_its_type_stores() -> None:
    kinds: dict[str, type] = {"boolean": bool, "integer": int, "select": str, "text": str, "prompt-editor": list}

    def fits(field: Field) -> bool:
        return type(form_default(field)) is kinds.get(field.form_type, type(form_default(field)))

    assert [field.name for field in FIELDS if not fits(field)] == []


def test_a_label_file_with_a_stray_key_is_refused() -> None:
    with pytest.raises(ValueError, match="hint"):
        Label.model_validate({"label": "a", "help": "b", "hint": "c"})
