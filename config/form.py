"""Writes the form into components/runner/default.yaml: `python -m config.form`.

What stands above `MARKER` in that file is written by hand (names, capabilities, permissions); what stands below is
made here from `config.fields` and `config/labels` and is overwritten.
"""

from collections.abc import Mapping
from pathlib import Path
from string import Template as Words
from typing import Final, assert_never

import yaml
from pydantic import BaseModel, ConfigDict
from pydantic import Field as Key

from config.choices import NoticeLanguage
from config.fields import (
    FIELDS,
    Choice,
    Field,
    KnowledgeBases,
    Models,
    Names,
    Number,
    Prompt,
    RerankModel,
    Switch,
    Template,
    Text,
)
from config.locales import Locale
from config.settings import RESERVE_DIVISOR

COMPONENT: Final = Path(__file__).parent.parent / "components" / "runner" / "default.yaml"
LABELS: Final = Path(__file__).parent / "labels"
MARKER: Final = (
    "  # The form. Written by `python -m config.form` from config/fields.py and config/labels: change it there.\n"
)

LANGUAGE_NAMES: Final[Mapping[str, str]] = {
    NoticeLanguage.EN_US: "English",
    NoticeLanguage.ZH_HANS: "简体中文",
    NoticeLanguage.ZH_HANT: "繁體中文",
    NoticeLanguage.JA_JP: "日本語",
    NoticeLanguage.TH_TH: "ไทย",
    NoticeLanguage.VI_VN: "Tiếng Việt",
    NoticeLanguage.ES_ES: "Español",
    NoticeLanguage.RU_RU: "Русский",
}
"""Each language calls itself so in every locale."""


class Label(BaseModel):
    """The words of one field in one locale."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    label: str
    help: str
    options: Mapping[str, str] = Key(default_factory=dict)


Wording = Mapping[Locale, Mapping[str, Label]]


def load_labels() -> Wording:
    """The words of every field in every locale.

    Raises:
        pydantic.ValidationError: a file has an entry that is not of the shape of `Label`.
    """
    return {locale: _load(LABELS / f"{locale.value}.yaml") for locale in Locale}


def _load(path: Path) -> Mapping[str, Label]:
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {name: Label.model_validate(entry) for name, entry in entries.items()}


def form_items(labels: Wording) -> list[dict[str, object]]:
    """The form as LangBot reads it: one item a field, in their order."""
    return [form_item(field, labels) for field in FIELDS]


def form_item(field: Field, labels: Wording) -> dict[str, object]:
    item: dict[str, object] = {
        "name": field.name,
        "type": field.form_type,
        "required": field.required,
        "label": {locale.value: labels[locale][field.name].label for locale in Locale},
        "description": {locale.value: fill(labels[locale][field.name].help, field) for locale in Locale},
        "default": form_default(field),
    }
    if isinstance(field, Choice | Template):
        names = field.options if isinstance(field, Choice) else field.presets
        item["options"] = [{"name": str(name), "label": option_label(field, str(name), labels)} for name in names]
    if isinstance(field, Template):
        item["allow_custom"] = True
    if field.shown_by:
        item["show_if"] = shown_if(field.shown_by)
    return item


def shown_if(name: str) -> dict[str, object]:
    """LangBot's condition for what field `name` shows: a switch that is on, a choice other than its default."""
    by = next(field for field in FIELDS if field.name == name)
    if isinstance(by, Choice):
        return {"field": name, "operator": "neq", "value": str(by.default)}
    return {"field": name, "operator": "eq", "value": True}


def option_label(field: Choice | Template, option: str, labels: Wording) -> dict[str, str]:
    if isinstance(field.default, NoticeLanguage) and option in LANGUAGE_NAMES:
        return {locale.value: LANGUAGE_NAMES[option] for locale in Locale}
    return {locale.value: labels[locale][field.name].options[option] for locale in Locale}


def form_default(field: Field) -> object:
    """The value that LangBot stores when a binding is made."""
    match field:
        case Switch() | Number() | Template() | Text():
            return field.default
        case Choice():
            return str(field.default)
        case Models():
            return {"primary": "", "fallbacks": [], "reasoning": {}}
        case Prompt():
            return [{"role": "system", "content": field.default}]
        case KnowledgeBases() | Names():
            return []
        case RerankModel():
            return ""
        case _:
            assert_never(field)


def fill(help_text: str, field: Field) -> str:
    """The help text with the numbers of its field in place of `$minimum` and so on.

    Raises:
        KeyError: the text names a number that the field does not have.
    """
    return Words(help_text).substitute(facts(field))


def facts(field: Field) -> dict[str, object]:
    found: dict[str, object] = {"share": 100 // RESERVE_DIVISOR}
    if isinstance(field, Number | Text | Template | Names):
        found["maximum"] = field.maximum
    if isinstance(field, Number):
        found |= {"minimum": field.minimum, "default": field.default}
    return found


class _Plain(yaml.SafeDumper):
    """Without anchors: a value that occurs twice is written twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def render(component: str) -> str:
    """The text of default.yaml with its form made anew.

    Raises:
        ValueError: the marker is missing, so that the hand-written part cannot be told from the form.
    """
    head, marker, _ = component.partition(MARKER)
    if not marker:
        raise ValueError(f"{COMPONENT.name} has lost the line {MARKER.strip()!r}, above which it is written by hand")
    form = yaml.dump(
        {"config": form_items(load_labels())}, Dumper=_Plain, allow_unicode=True, sort_keys=False, width=10_000
    )
    return head + marker + "".join(f"  {line}" for line in form.splitlines(keepends=True))


if __name__ == "__main__":
    COMPONENT.write_text(render(COMPONENT.read_text(encoding="utf-8")), encoding="utf-8")
