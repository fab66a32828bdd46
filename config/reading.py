"""Coercion of what a binding stores to typed values (A4): one reader per kind of field, none of which raises.

LangBot hands over the stored dict verbatim, so a value may be missing, null, of another type, or of another time. A
note says in plain words what was not taken as it stood. It never quotes the value, which may be a secret pasted into
the wrong field or arbitrarily long; `describe` names its type instead.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, assert_never

from config.choices import ReasoningLevel
from config.fields import (
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


class Absent(Enum):
    """Stands for a key that the binding does not have, which is not the same as null for `timeout`."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT

NO_SELECTION: Final = frozenset({"", "__none__", "__none"})
"""What LangBot's selectors store for "nothing selected"."""

MAX_ID_CHARS: Final = 256
"""Longest model or knowledge base id that is believed, in characters; LangBot's own have 36."""

MAX_NUMBER_CHARS: Final = 40
"""Longest text that is read as a number, in characters."""

ON_WORDS: Final = frozenset({"true", "yes", "on", "1"})
OFF_WORDS: Final = frozenset({"false", "no", "off", "0"})
ONE_OR_ZERO: Final[Mapping[int | float | None, str]] = {0: "0", 1: "1"}


@dataclass(frozen=True)
class Reading:
    """A typed value, and notes on what was coerced, clamped or ignored on the way to it."""

    value: object
    notes: tuple[str, ...] = ()


def read(field: Field, raw: object) -> Reading:
    """The typed value of `field` when the binding stores `raw` (`ABSENT` when it stores nothing). Never raises."""
    match field:
        case Switch():
            return read_switch(field, raw)
        case Number():
            return read_number(field, raw)
        case Choice():
            return read_choice(field, raw)
        case Template():
            return read_template(field, raw)
        case Text():
            return read_text(field, raw)
        case Names():
            return read_names(field, raw)
        case Prompt():
            return read_prompt(field, raw)
        case Models() | KnowledgeBases() | RerankModel():
            return read_selection(field, raw)
        case _:
            assert_never(field)


def read_selection(field: Models | KnowledgeBases | RerankModel, raw: object) -> Reading:
    """What one of LangBot's selectors stores: ids."""
    match field:
        case Models():
            return read_models(raw)
        case KnowledgeBases():
            return read_ids(raw)
        case RerankModel():
            return read_rerank_model(raw)


def read_switch(field: Switch, raw: object) -> Reading:
    """A `bool`. Words such as "true" and "off" and the numbers 0 and 1 are understood."""
    if isinstance(raw, bool):
        return Reading(raw)
    if unset(raw):
        return Reading(field.default)
    word = raw.strip().lower() if isinstance(raw, str) else ONE_OR_ZERO.get(as_number(raw), "")
    if word in ON_WORDS or word in OFF_WORDS:
        return Reading(word in ON_WORDS, (f"read {describe(raw)} as {'on' if word in ON_WORDS else 'off'}",))
    return Reading(field.default, (f"{describe(raw)} is neither on nor off, using the default",))


def read_number(field: Number, raw: object) -> Reading:
    """An `int` within the field's range, or `None` where the field is off; fractions are cut off."""
    if raw is None and field.zero_is_off:
        return Reading(None)
    if unset(raw):
        return Reading(field.default)
    number = as_number(raw)
    if number is None:
        return Reading(field.default, (f"{describe(raw)} is not a number, using {field.default}",))
    if number <= 0 and not (field.negative_is_least and number < 0):
        return Reading(None) if field.zero_is_off else Reading(field.default, (f"0 or less means {field.default}",))
    return clamp(field, int(number), exact=isinstance(raw, int) or (isinstance(raw, float) and raw == int(raw)))


def clamp(field: Number, number: int, *, exact: bool) -> Reading:
    """`number` within the field's range; `exact` says that no note is due unless the range changes it."""
    if number < field.minimum and field.zero_is_off:  # `timeout`, which LangBot reads as well and does not change (N4)
        return Reading(field.minimum, (f"below {field.minimum}; LangBot's own limit stays as stored",))
    if number < field.minimum:
        return Reading(field.minimum, (f"below {field.minimum}, using {field.minimum}",))
    if number > field.maximum:
        return Reading(field.maximum, (f"above {field.maximum}, using {field.maximum}",))
    return Reading(number, () if exact else (f"read as {number}",))


def as_number(raw: object) -> int | float | None:
    """The finite number that `raw` is or spells, else `None`. A boolean is no number."""
    if isinstance(raw, bool):
        return None
    if isinstance(raw, int):
        return raw
    if isinstance(raw, float):
        return raw if math.isfinite(raw) else None
    return spelled_number(raw.strip()) if isinstance(raw, str) else None


def spelled_number(text: str) -> int | float | None:
    if len(text) > MAX_NUMBER_CHARS:
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def read_choice(field: Choice, raw: object) -> Reading:
    """A member of the field's enumeration; case, white space and `-` for `_` do not matter."""
    if unset(raw):
        return Reading(field.default)
    wanted = plain_name(raw) if isinstance(raw, str) else ""
    for option in field.options:
        if plain_name(option) == wanted:
            return Reading(option, () if raw == option else (f"read as {option}",))
    return Reading(field.default, (f"{describe(raw)} is none of the options, using {field.default}",))


def plain_name(text: str) -> str:
    return text.strip().casefold().replace("-", "_")


def read_template(field: Template, raw: object) -> Reading:
    """One line of text. A template that is too long is not cut: the rest of it may be what keeps strangers apart."""
    if unset(raw):
        return Reading(field.default)
    if not isinstance(raw, str):
        return Reading(field.default, (f"{describe(raw)} is not text, using the default",))
    text = " ".join(legible(raw).split())
    if not text or len(text) > field.maximum:
        reason = f"longer than {field.maximum} characters" if text else "nothing legible"
        return Reading(field.default, (f"{reason}, using the default",))
    return Reading(text, () if text == raw.strip() else ("unreadable characters or line breaks left out",))


def read_text(field: Text, raw: object) -> Reading:
    """Text of at most `field.maximum` characters; what is longer is cut at its end."""
    if unset(raw):
        return Reading(field.default)
    if not isinstance(raw, str):
        return Reading(field.default, (f"{describe(raw)} is not text, ignored",))
    text = legible(raw).strip()
    if len(text) > field.maximum:
        return Reading(text[: field.maximum], (f"cut to {field.maximum} characters",))
    return Reading(text, () if text == raw.strip() else ("unreadable characters left out",))


def read_names(field: Names, raw: object) -> Reading:
    """Names once each, in their order. Bare text is taken for names apart by commas or white space."""
    if unset(raw):
        return Reading(())
    if isinstance(raw, str):
        raw = raw.replace(",", " ").split()
    if not isinstance(raw, list | tuple):
        return Reading((), (f"{describe(raw)} is not a list, ignored",))
    names = [entry.strip() if isinstance(entry, str) else "" for entry in raw]
    usable = [name for name in names if 0 < len(name) <= field.maximum and name.isprintable()]
    refused = sum(name not in usable and entry not in ("", None) for name, entry in zip(names, raw, strict=True))
    notes = [f"{refused} entries are not names, ignored"] if refused else []
    kept = tuple(dict.fromkeys(usable))
    if len(kept) > field.most:
        notes.append(f"more than {field.most} names, the rest is ignored")
    return Reading(kept[: field.most], tuple(notes))


def read_rerank_model(raw: object) -> Reading:
    """A model id, "" for none."""
    if unset(raw) or (isinstance(raw, str) and raw.strip() in NO_SELECTION):
        return Reading("")
    found = as_id(raw)
    return Reading(found, () if found else (f"{describe(raw)} is not a model, ignored",))


def read_ids(raw: object) -> Reading:
    """A tuple of ids in their order, without doubles. A bare id is taken for a list of one."""
    if raw is ABSENT or raw is None:
        return Reading(())
    if not isinstance(raw, list | tuple | str):
        return Reading((), (f"{describe(raw)} is not a list, ignored",))
    ids, refused = distinct_ids([raw] if isinstance(raw, str) else raw)
    return Reading(ids, (f"{refused} entries are not ids, ignored",) if refused else ())


def distinct_ids(entries: list[object] | list[str] | tuple[object, ...]) -> tuple[tuple[str, ...], int]:
    """The ids among `entries`, and how many entries were neither an id nor an empty selection."""
    found = [as_id(entry) for entry in entries]
    refused = sum(not name and not is_no_selection(entry) for name, entry in zip(found, entries, strict=True))
    return tuple(dict.fromkeys(name for name in found if name)), refused


def is_no_selection(entry: object) -> bool:
    return entry is None or (isinstance(entry, str) and entry.strip() in NO_SELECTION)


def as_id(raw: object) -> str:
    """The id that `raw` is, "" when it is none."""
    if not isinstance(raw, str):
        return ""
    text = raw.strip()
    believable = text not in NO_SELECTION and len(text) <= MAX_ID_CHARS and text.isprintable()
    return text if believable else ""


def read_models(raw: object) -> Reading:
    """`{primary, fallbacks, reasoning}` of a model selector. A bare id is taken for the primary model."""
    if unset(raw):
        raw = {}
    if isinstance(raw, str):
        raw = {"primary": raw}
    if not isinstance(raw, Mapping):
        return Reading(model_choice("", (), {}), (f"{describe(raw)} is not a model selection, ignored",))
    primary = as_id(raw.get("primary"))
    fallbacks = read_ids(raw.get("fallbacks"))
    levels = read_levels(raw.get("reasoning"))
    notes = [f"fallbacks: {note}" for note in fallbacks.notes] + [f"reasoning: {note}" for note in levels.notes]
    if not primary and not is_no_selection(raw.get("primary")):
        notes.insert(0, f"primary: {describe(raw.get('primary'))} is not a model, ignored")
    return Reading(model_choice(primary, fallbacks.value, levels.value), tuple(notes))


def model_choice(primary: str, fallbacks: object, reasoning: object) -> dict[str, object]:
    return {"primary": primary, "fallbacks": fallbacks, "reasoning": reasoning}


def read_levels(raw: object) -> Reading:
    """Reasoning level by model id; a level that LangBot does not know is left out."""
    if unset(raw):
        return Reading({})
    if not isinstance(raw, Mapping):
        return Reading({}, (f"{describe(raw)} is not a map of levels, ignored",))
    known = {level.value for level in ReasoningLevel}
    levels = {as_id(model): level for model, level in raw.items() if as_id(model)}
    kept = {model: level for model, level in levels.items() if isinstance(level, str) and level in known}
    unknown = sum(level not in (None, "") for model, level in levels.items() if model not in kept)
    return Reading(kept, (f"{unknown} levels are unknown, ignored",) if unknown else ())


def read_prompt(field: Prompt, raw: object) -> Reading:
    """The rows as they are stored: the prompt builder refuses a malformed one, it is not lost here (B1).

    Bare text is taken for a system row and a single row for a list of one. A row that is no mapping is kept as the
    content of a row without a role, which the builder refuses.
    """
    if unset(raw):
        return Reading(({"role": "system", "content": field.default},))
    if isinstance(raw, str):
        return Reading(({"role": "system", "content": raw},), ("read text as one system row",))
    if isinstance(raw, Mapping):
        return Reading((row_of(raw),), ("read one row as a list",))
    if not isinstance(raw, list | tuple):
        default = {"role": "system", "content": field.default}
        return Reading((default,), (f"{describe(raw)} is not a list of rows, using the default",))
    broken = sum(not isinstance(row, Mapping) for row in raw)
    return Reading(tuple(row_of(row) for row in raw), (f"{broken} rows are malformed",) if broken else ())


def row_of(row: object) -> Mapping[str, object]:
    if isinstance(row, Mapping):
        return {str(key): value for key, value in row.items()}
    return {"content": row}


def unset(raw: object) -> bool:
    """Whether a binding says nothing at all: no key, null, or blank text."""
    return raw is ABSENT or raw is None or (isinstance(raw, str) and not raw.strip())


def legible(text: str) -> str:
    """`text` without lone surrogates and NUL, which no encoder, provider or sandbox takes."""
    return text.encode("utf-8", "ignore").decode("utf-8").replace("\x00", "")


def describe(raw: object) -> str:
    """The type of a JSON value in plain words."""
    match raw:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "this text"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
        case None:
            return "null"
        case _:
            return "this value"
