"""The table of the form in the owners' pages, from the same source as the form: `python -m tests.docs.tables`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from config.fields import FIELDS, Choice, Field, Number, Prompt, Switch, Template, Text
from config.form import fill, load_labels
from config.locales import Locale

ROOT: Final = Path(__file__).resolve().parents[2]
BEGIN: Final = "<!-- form: written by `python -m tests.docs.tables` -->"
END: Final = "<!-- /form -->"

READMES: Final[Mapping[Locale, Path]] = {
    locale: ROOT / ("README.md" if locale is Locale.EN_US else f"readme/README_{locale}.md") for locale in Locale
}

OWNERS: Final[Mapping[Locale, Path]] = {locale: ROOT / "docs" / "owners" / str(locale) for locale in Locale}
"""The pages for owners of bots: settings, limits, load, migration, trouble, demo."""

HEADS: Final[Mapping[Locale, tuple[str, str, str, str]]] = {
    Locale.EN_US: ("Field", "Default", "Allowed", "Meaning"),
    Locale.ZH_HANS: ("字段", "默认值", "可取值", "说明"),
    Locale.ZH_HANT: ("欄位", "預設值", "可用值", "說明"),
    Locale.JA_JP: ("項目", "既定値", "指定できる値", "説明"),
    Locale.TH_TH: ("ช่อง", "ค่าเริ่มต้น", "ค่าที่ใช้ได้", "ความหมาย"),
    Locale.VI_VN: ("Trường", "Mặc định", "Giá trị cho phép", "Ý nghĩa"),
    Locale.ES_ES: ("Campo", "Valor inicial", "Valores", "Significado"),
    Locale.RU_RU: ("Поле", "По умолчанию", "Допустимо", "Значение"),
}

UNBUILT: Final[Mapping[Locale, str]] = {
    Locale.EN_US: "Not built yet: has no effect in this version.",
    Locale.ZH_HANS: "尚未实现：在此版本中不起作用。",
    Locale.ZH_HANT: "尚未實作：在此版本中沒有作用。",
    Locale.JA_JP: "未実装：このバージョンでは効果がありません。",
    Locale.TH_TH: "ยังไม่พร้อมใช้งาน: ไม่มีผลในรุ่นนี้",
    Locale.VI_VN: "Chưa có: không có tác dụng trong phiên bản này.",
    Locale.ES_ES: "Aún no disponible: no tiene efecto en esta versión.",
    Locale.RU_RU: "Пока не реализовано: в этой версии ни на что не влияет.",
}
"""How the help of a field begins whose setting nothing reads yet."""


def table(locale: Locale) -> str:
    """The whole form as a Markdown table in one locale."""
    labels = load_labels()[locale]
    lines = [HEADS[locale], ("---",) * 4]
    for field in FIELDS:
        label = labels[field.name]
        lines.append((f"{label.label}<br>`{field.name}`", _default(field), _allowed(field), fill(label.help, field)))
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


def written(text: str, locale: Locale) -> str:
    """The page of settings with the table between its marks made anew.

    Raises:
        ValueError: a mark is missing, so nobody can tell where the table belongs.
    """
    head, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"settings.md ({locale}) has lost {BEGIN} or {END}")
    return f"{head}{begin}{table(locale)}\n{END}{tail}"


def _default(field: Field) -> str:
    match field:
        case Switch():
            return f"`{str(field.default).lower()}`"
        case Number():
            return str(field.default)
        case Choice() | Template() | Prompt():
            return f"`{field.default}`"
        case _:
            return "–"


def _allowed(field: Field) -> str:
    match field:
        case Switch():
            return "`true`, `false`"
        case Number():
            return ("0, " if field.zero_is_off else "") + f"{field.minimum}–{field.maximum}"
        case Choice():
            return ", ".join(f"`{option}`" for option in field.options)
        case Template() | Text():
            return f"≤ {field.maximum}"
        case _:
            return "–"


if __name__ == "__main__":
    for locale, folder in OWNERS.items():
        path = folder / "settings.md"
        path.write_text(written(path.read_text(encoding="utf-8"), locale), encoding="utf-8")
