"""A4: whatever a binding holds, it becomes typed settings, and nothing raises."""

import math
import subprocess
import sys
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.choices import AgentReply, Agree, Ask, CallFormat, ModelProfile, NoticeLanguage, ToolMode
from config.fields import FIELDS, Choice, Number, Switch, Template, Text
from config.locales import Locale
from config.settings import Settings
from runner.context.budget import Budget

SYSTEM_ROW = {"role": "system", "content": "You are a helpful assistant."}
DEFAULT_TEMPLATE = "{launcher_type}_{launcher_id}"


def at(settings: Settings, path: str) -> Any:
    return reduce(getattr, path.split("."), settings)


# Field, what the binding stores, where it ends up in the settings, as which value, and whether a note says so.
ODD_BINDINGS: list[tuple[str, Any, str, Any, bool]] = [
    # Names of tools that ask (M1).
    ("ask-before-tools", "Changes", "consent.ask", Ask.CHANGES, True),
    ("ask-before-tools", "sometimes", "consent.ask", Ask.NEVER, True),
    ("ask-before-these-tools", None, "consent.names", (), False),
    ("ask-before-these-tools", ["pay", " pay ", "platform_*", ""], "consent.names", ("pay", "platform_*"), False),
    ("ask-before-these-tools", "pay, send", "consent.names", ("pay", "send"), False),
    ("ask-before-these-tools", ["pay", 7, None, "x" * 129], "consent.names", ("pay",), True),
    ("ask-before-these-tools", {"pay": True}, "consent.names", (), True),
    (
        "ask-before-these-tools",
        [f"t{n}" for n in range(201)],
        "consent.names",
        tuple(f"t{n}" for n in range(200)),
        True,
    ),
    ("who-may-agree", "anyone", "consent.who", Agree.ANYONE, False),
    # Numbers: 0 or less is the default, then a clamp.
    ("retrieval-top-k", None, "knowledge.top_k", 5, False),
    ("retrieval-top-k", 0, "knowledge.top_k", 5, True),
    ("retrieval-top-k", -1, "knowledge.top_k", 5, True),
    ("retrieval-top-k", -0.0, "knowledge.top_k", 5, True),
    ("retrieval-top-k", "", "knowledge.top_k", 5, False),
    ("retrieval-top-k", "  ", "knowledge.top_k", 5, False),
    ("retrieval-top-k", "7", "knowledge.top_k", 7, True),
    ("retrieval-top-k", " 7\n", "knowledge.top_k", 7, True),
    ("retrieval-top-k", "7.9", "knowledge.top_k", 7, True),
    ("retrieval-top-k", 7.0, "knowledge.top_k", 7, False),
    ("retrieval-top-k", 7.9, "knowledge.top_k", 7, True),
    ("retrieval-top-k", 0.4, "knowledge.top_k", 1, True),
    ("retrieval-top-k", 101, "knowledge.top_k", 100, True),
    ("retrieval-top-k", 10**400, "knowledge.top_k", 100, True),
    ("retrieval-top-k", -(10**400), "knowledge.top_k", 5, True),
    ("max-tool-iterations", -5, "tools.max_rounds", 1, True),
    ("max-tool-iterations", 0, "tools.max_rounds", 100, True),
    ("retrieval-top-k", "9" * 39, "knowledge.top_k", 100, True),
    ("retrieval-top-k", "9" * 9999, "knowledge.top_k", 5, True),
    ("retrieval-top-k", 1e308, "knowledge.top_k", 100, True),
    ("retrieval-top-k", math.nan, "knowledge.top_k", 5, True),
    ("retrieval-top-k", math.inf, "knowledge.top_k", 5, True),
    ("retrieval-top-k", -math.inf, "knowledge.top_k", 5, True),
    ("retrieval-top-k", "nan", "knowledge.top_k", 5, True),
    ("retrieval-top-k", "1e999", "knowledge.top_k", 5, True),
    ("retrieval-top-k", "many", "knowledge.top_k", 5, True),
    ("retrieval-top-k", True, "knowledge.top_k", 5, True),
    ("retrieval-top-k", [7], "knowledge.top_k", 5, True),
    ("retrieval-top-k", {"value": 7}, "knowledge.top_k", 5, True),
    ("rerank-top-k", 65, "knowledge.rerank_top_k", 64, True),
    ("max-tool-iterations", 0, "tools.max_rounds", 100, True),
    ("max-tool-iterations", 100000, "tools.max_rounds", 1000, True),
    ("max-tool-result-chars", 1, "tools.max_result_chars", 1000, True),
    ("context-history-fetch-limit", "200", "context.history_limit", 200, True),
    ("context-window-tokens", 8, "context.window_tokens", 1024, True),
    ("context-reserve-tokens", 0, "context.reserve_tokens", 16384, True),
    ("context-keep-recent-tokens", 1, "context.keep_recent_tokens", 256, True),
    ("context-summary-tokens", 10**9, "context.summary_tokens", 32000, True),
    ("max-tools-shown", 0, "small.max_tools_shown", 8, True),
    ("max-steps", "6.0", "small.max_steps", 6, True),
    ("step-timeout", 1, "small.step_timeout", 5, True),
    # `timeout` alone can be off.
    ("timeout", None, "timeout", None, False),
    ("timeout", 0, "timeout", None, False),
    ("timeout", "0", "timeout", None, False),
    ("timeout", -5, "timeout", None, False),
    ("timeout", "", "timeout", 300, False),
    ("timeout", "soon", "timeout", 300, True),
    ("timeout", math.nan, "timeout", 300, True),
    ("timeout", math.inf, "timeout", 300, True),
    ("timeout", False, "timeout", 300, True),
    ("timeout", 0.5, "timeout", 5, True),
    ("timeout", "90", "timeout", 90, True),
    ("timeout", 10**30, "timeout", 86400, True),
    # Switches.
    ("remove-think", None, "remove_think", False, False),
    ("remove-think", "true", "remove_think", True, True),
    ("remove-think", " Yes ", "remove_think", True, True),
    ("remove-think", 1, "remove_think", True, True),
    ("remove-think", 2, "remove_think", False, True),
    ("remove-think", [], "remove_think", False, True),
    ("date-grounding", "false", "date_grounding", False, True),
    ("date-grounding", "OFF", "date_grounding", False, True),
    ("date-grounding", 0.0, "date_grounding", False, True),
    ("date-grounding", "", "date_grounding", True, False),
    ("date-grounding", "perhaps", "date_grounding", True, True),
    ("date-grounding", math.nan, "date_grounding", True, True),
    ("box-enabled", "1", "box.enabled", True, True),
    ("tool-memory", "no", "tools.memory", False, True),
    ("progress-notices", {}, "progress_notices", True, True),
    ("debug-dump", "on", "debug_dump", True, True),
    # Choices.
    ("tool-execution-mode", "serial", "tools.mode", ToolMode.SERIAL, False),
    ("tool-execution-mode", " Serial", "tools.mode", ToolMode.SERIAL, True),
    ("tool-execution-mode", "sequential", "tools.mode", ToolMode.PARALLEL, True),
    ("tool-execution-mode", None, "tools.mode", ToolMode.PARALLEL, False),
    ("tool-execution-mode", ["serial"], "tools.mode", ToolMode.PARALLEL, True),
    ("agent-reply", 3, "agent_reply", AgentReply.AUTO, True),
    ("notice-language", "zh-hant", "notice_language", NoticeLanguage.ZH_HANT, True),
    ("notice-language", "tlh", "notice_language", NoticeLanguage.AUTO, True),
    ("model-profile", "SMALL", "small.profile", ModelProfile.SMALL, True),
    ("tool-call-format", "hermes", "small.call_format", CallFormat.NATIVE, True),
    # Text.
    ("site-instructions", None, "small.site_instructions", "", False),
    ("site-instructions", 7, "small.site_instructions", "", True),
    ("site-instructions", "a" * 8001, "small.site_instructions", "a" * 8000, True),
    ("site-instructions", "a\ud800b\x00c", "small.site_instructions", "abc", True),
    ("box-session-id-template", "", "box.session_template", DEFAULT_TEMPLATE, False),
    ("box-session-id-template", " {global} ", "box.session_template", "{global}", False),
    ("box-session-id-template", "{bot_id}-anything", "box.session_template", "{bot_id}-anything", False),
    ("box-session-id-template", "{run_id}" * 65, "box.session_template", DEFAULT_TEMPLATE, True),
    ("box-session-id-template", "\ud800", "box.session_template", DEFAULT_TEMPLATE, True),
    ("box-session-id-template", ["{global}"], "box.session_template", DEFAULT_TEMPLATE, True),
    # Models.
    ("model", None, "model.order", (), False),
    ("model", "", "model.order", (), False),
    ("model", "m1", "model.primary", "m1", False),
    ("model", "__none__", "model.primary", "", False),
    ("model", ["m1"], "model.order", (), True),
    ("model", 7, "model.order", (), True),
    ("model", {}, "model.order", (), False),
    ("model", {"primary": None}, "model.primary", "", False),
    ("model", {"primary": 7}, "model.primary", "", True),
    ("model", {"primary": " m1 "}, "model.primary", "m1", False),
    ("model", {"primary": "m1\nm2"}, "model.primary", "", True),
    ("model", {"primary": "m" * 300}, "model.primary", "", True),
    ("model", {"primary": "m1", "fallbacks": ["", "m2", "", "m2"]}, "model.fallbacks", ("m2",), False),
    ("model", {"primary": "m1", "fallbacks": ["m1", "m2"]}, "model.order", ("m1", "m2"), False),
    ("model", {"primary": "", "fallbacks": ["m2"]}, "model.order", ("m2",), False),
    ("model", {"primary": "m1", "fallbacks": "m2"}, "model.fallbacks", ("m2",), False),
    ("model", {"primary": "m1", "fallbacks": [None, 7, {}, "m2"]}, "model.fallbacks", ("m2",), True),
    ("model", {"primary": "m1", "fallbacks": {"0": "m2"}}, "model.fallbacks", (), True),
    ("model", {"primary": "m1", "reasoning": {"m1": "high"}}, "model.reasoning", {"m1": "high"}, False),
    ("model", {"primary": "m1", "reasoning": {"m1": "utmost"}}, "model.reasoning", {}, True),
    ("model", {"primary": "m1", "reasoning": {"m1": None, "m2": ""}}, "model.reasoning", {}, False),
    ("model", {"primary": "m1", "reasoning": {"m1": ["high"]}}, "model.reasoning", {}, True),
    ("model", {"primary": "m1", "reasoning": ["high"]}, "model.reasoning", {}, True),
    # Knowledge bases and the rerank model.
    ("knowledge-bases", None, "knowledge.bases", (), False),
    ("knowledge-bases", "kb1", "knowledge.bases", ("kb1",), False),
    ("knowledge-bases", ["kb1", "", "__none__", "kb1", "kb2"], "knowledge.bases", ("kb1", "kb2"), False),
    ("knowledge-bases", ["kb1", 7, ["kb2"]], "knowledge.bases", ("kb1",), True),
    ("knowledge-bases", {"kb1": True}, "knowledge.bases", (), True),
    ("rerank-model", None, "knowledge.rerank_model", "", False),
    ("rerank-model", "__none", "knowledge.rerank_model", "", False),
    ("rerank-model", "r1", "knowledge.rerank_model", "r1", False),
    ("rerank-model", {"primary": "r1"}, "knowledge.rerank_model", "", True),
    # The prompt: rows stay as they are, also malformed ones (B1).
    ("prompt", None, "prompt", (SYSTEM_ROW,), False),
    ("prompt", [], "prompt", (), False),
    ("prompt", "Be brief.", "prompt", ({"role": "system", "content": "Be brief."},), True),
    ("prompt", {"role": "system", "content": "x"}, "prompt", ({"role": "system", "content": "x"},), True),
    ("prompt", 7, "prompt", (SYSTEM_ROW,), True),
    ("prompt", ["hello", None], "prompt", ({"content": "hello"}, {"content": None}), True),
    ("prompt", [{"role": 7, "extra": []}], "prompt", ({"role": 7, "extra": []},), False),
]


@pytest.mark.parametrize(("name", "stored", "path", "value", "noted"), ODD_BINDINGS)
def test_A4_an_odd_value_becomes_a_typed_one_and_a_note_says_so(
    name: str, stored: object, path: str, value: object, noted: bool
) -> None:
    settings, notes = Settings.read({name: stored})
    found = at(settings, path)
    assert found == value
    assert type(found) is type(value)
    assert [note.startswith(f"{name}: ") for note in notes] == [True] * noted


def test_A4_the_table_is_wide_enough_and_touches_every_field_but_the_form_only_one() -> None:
    assert len(ODD_BINDINGS) >= 60
    assert {row[0] for row in ODD_BINDINGS} == {field.name for field in FIELDS if field.at}


def test_A4_an_odd_value_leaves_every_other_setting_alone() -> None:
    defaults, _ = Settings.read({})
    for name, stored, path, _, _ in ODD_BINDINGS:
        settings, _ = Settings.read({name: stored})
        part = path.split(".")[0]
        assert settings.model_dump(exclude={part}) == defaults.model_dump(exclude={part})


def test_A4_a_missing_timeout_is_the_default_while_null_is_no_limit() -> None:
    assert Settings.read({})[0].timeout == 300
    assert Settings.read({"timeout": None})[0].timeout is None


def test_A4_keys_of_the_host_and_of_other_versions_are_ignored_in_silence() -> None:
    foreign = {
        "enable-all-tools": "yes",
        "tools": 7,
        "mcp-resources": [{}],
        "mcp-resource-agent-read-enabled": None,
        "knowledge-base": "kb-old",
        "max-round": 10,
    }
    assert Settings.read(foreign) == Settings.read({})


def test_A4_no_key_and_nothing_but_nulls_mean_the_same_except_for_timeout() -> None:
    settings, notes = Settings.read(dict.fromkeys([field.name for field in FIELDS]))
    assert settings.model_dump(exclude={"timeout"}) == Settings.read({})[0].model_dump(exclude={"timeout"})
    assert notes == ()


def test_A4_every_bound_of_every_number_is_allowed_as_it_stands() -> None:
    for field in (field for field in FIELDS if isinstance(field, Number)):
        assert field.minimum <= field.default <= field.maximum
        for bound in (field.minimum, field.maximum):
            settings, notes = Settings.read({field.name: bound})
            assert (at(settings, field.at), notes) == (bound, ())


def test_A4_every_option_of_every_choice_is_taken_as_it_stands() -> None:
    for field in (field for field in FIELDS if isinstance(field, Choice)):
        for option in field.options:
            settings, notes = Settings.read({field.name: option.value})
            assert (at(settings, field.at), notes) == (option, ())


def test_A3_advanced_settings_shows_fields_and_changes_nothing() -> None:
    assert Settings.read({"advanced-settings": True, "max-steps": 9}) == Settings.read({"max-steps": 9})


SECRET = "sk-live-51H8x" + "Qz" * 500


def test_A4_no_note_quotes_a_value_or_grows_with_it() -> None:
    stored: dict[str, object] = {field.name: SECRET for field in FIELDS}
    stored["model"] = {"primary": SECRET, "fallbacks": [SECRET, 7], "reasoning": {"m1": SECRET}}
    _, notes = Settings.read(stored)
    assert len(notes) > 20
    assert not any("sk-live" in note for note in notes)
    assert max(map(len, notes)) < 120


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
near_values = json_values | st.sampled_from([row[1] for row in ODD_BINDINGS])
bindings = st.dictionaries(st.sampled_from([field.name for field in FIELDS]) | st.text(max_size=9), near_values)


def in_range(field: object, value: object) -> bool:
    match field:
        case Switch():
            return type(value) is bool
        case Number(zero_is_off=True) if value is None:
            return True
        case Number(minimum=low, maximum=high):
            return type(value) is int and low <= value <= high
        case Choice(options=options):
            return value in options
        case Template(maximum=high):
            return type(value) is str and 0 < len(value) <= high
        case Text(maximum=high):
            return type(value) is str and len(value) <= high
        case _:
            return value is not None


@given(bindings)
def test_A4_nothing_a_binding_holds_raises_and_every_setting_is_in_range(config: dict[str, object]) -> None:
    settings, notes = Settings.read(config)
    assert all(in_range(field, at(settings, field.at)) for field in FIELDS if field.at)
    assert all(note.isprintable() for note in notes)


@given(bindings)
def test_A4_what_was_read_reads_back_the_same_and_without_notes(config: dict[str, object]) -> None:
    settings, _ = Settings.read(config)
    stored = {
        field.name: value.model_dump() if field.name == "model" else value
        for field in FIELDS
        if (field.at and (value := at(settings, field.at)) is not None) or field.name == "timeout"
    }
    again, notes = Settings.read(stored)
    assert again == settings
    assert [note for note in notes if not note.startswith("prompt")] == []


@given(bindings)
def test_A4_reading_leaves_the_binding_as_it_was(config: dict[str, object]) -> None:
    before = repr(config)
    Settings.read(config)
    assert repr(config) == before


def budget_of(window: int, reserve: int) -> int:
    settings, _ = Settings.read({"context-window-tokens": window, "context-reserve-tokens": reserve})
    return settings.context.input_budget()


def test_F1_the_budget_is_window_minus_reserve_and_the_reserve_a_quarter_at_most() -> None:
    assert budget_of(200_000, 16_384) == 183_616
    assert budget_of(8_000, 16_384) == 6_000


@given(st.integers(1, 20_000_000), st.integers(1, 2_000_000))
def test_F1_the_budget_of_the_settings_is_that_of_a_run_that_knows_no_more(window: int, reserve: int) -> None:
    limits = Settings.read({"context-window-tokens": window, "context-reserve-tokens": reserve})[0].context
    assert limits.input_budget() == Budget.of(limits.window_tokens, limits.reserve_tokens).input


def test_C1_the_order_holds_each_model_once_and_no_empty_one() -> None:
    settings, _ = Settings.read({"model": {"primary": "a", "fallbacks": ["b", "a", "c", "b", ""]}})
    assert settings.model.order == ("a", "b", "c")


def test_the_notice_locale_is_the_chosen_one_else_that_of_the_newest_text() -> None:
    assert Settings.read({})[0].notice_locale("帮我查一下天气，谢谢") is Locale.ZH_HANS
    assert Settings.read({"notice-language": "ru_RU"})[0].notice_locale("hello") is Locale.RU_RU


def test_the_notice_languages_are_auto_and_the_eight_locales() -> None:
    assert [language.value for language in NoticeLanguage] == ["auto", *(locale.value for locale in Locale)]


def test_settings_cannot_be_changed() -> None:
    settings, _ = Settings.read({})
    with pytest.raises(ValueError, match="frozen"):
        settings.timeout = 1  # type: ignore[misc]


def test_a_running_plugin_needs_neither_the_generator_nor_yaml() -> None:
    script = (
        "import sys, config.settings, config.notices; sys.exit(not {'yaml', 'config.form'}.isdisjoint(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
