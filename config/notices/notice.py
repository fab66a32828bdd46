"""Which sentences there are, and how one is filled in."""

import re
from enum import StrEnum, auto

from config.locales import Locale
from config.notices.texts import TEXTS

MAX_VALUE_CHARS = 300
"""Longest value put into a sentence, in characters; what is longer ends in an ellipsis."""

PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Notice(StrEnum):
    """The sentences. Those ending in NOTE are appended to text of the model, the others stand alone."""

    NO_MODEL = auto()
    ALL_MODELS_FAILED = auto()
    PROMPT_TOO_LARGE = auto()
    MESSAGE_TOO_LARGE = auto()
    PICTURES_TOO_LARGE = auto()
    TOOLS_TOO_LARGE = auto()
    KNOWLEDGE_TOO_LARGE = auto()
    TIME_LIMIT = auto()
    TIME_LIMIT_NOTE = auto()
    LENGTH_LIMIT_NOTE = auto()
    STOPPED_NOTE = auto()
    TRANSPORT_LIMIT_NOTE = auto()
    EMPTY_ANSWER = auto()
    TOOL_ROUNDS_NOTE = auto()
    NO_TIME_NOTE = auto()
    NO_ANSWER_NOTE = auto()
    FILTERED = auto()
    FILTERED_NOTE = auto()
    SUMMARISING = auto()
    TOOL_RUNNING = auto()
    IMAGES_LEFT_OUT_NOTE = auto()
    FILES_TOO_LARGE_NOTE = auto()
    FILES_FAILED_NOTE = auto()
    OPEN_JOBS_NOTE = auto()
    CONSENT_WANTED = auto()
    CONSENT_BY_WORDS = auto()
    CONSENT_BY_ASKER = auto()
    CONSENT_BY_ANYONE = auto()
    CONSENT_BY_BUTTON = auto()
    CONSENT_OR_BUTTON = auto()
    CONSENT_AGREE = auto()
    CONSENT_REFUSE = auto()
    CONSENT_LAPSED = auto()
    CONSENT_GONE = auto()
    CONSENT_UNSURE = auto()
    CONSENT_CHANGED_NOTE = auto()
    CONSENT_TOO_LARGE_NOTE = auto()
    TOO_LONG = auto()
    TOOK_TOO_LONG = auto()
    FAILED = auto()
    IN_CIRCLES = auto()
    OUT_OF_STEPS = auto()
    TOOL_OFF_NOTE = auto()
    BROKEN_OFF_NOTE = auto()
    INTERNAL_NOTE = auto()
    DONE = auto()

    @property
    def placeholders(self) -> frozenset[str]:
        """Names of the values that `say` must be given for this sentence; the same in every locale."""
        return frozenset(PLACEHOLDER.findall(TEXTS[self.value][Locale.EN_US]))


def say(notice: Notice, locale: Locale, **values: object) -> str:
    """The sentence in `locale`, with each `{name}` replaced by the value of that name.

    A value may be any text, also one with braces or line breaks: it becomes one line of at most `MAX_VALUE_CHARS`
    characters and is never read as a template itself.

    Raises:
        KeyError: a placeholder of the sentence was given no value, which is a fault of the caller.
    """
    return PLACEHOLDER.sub(lambda found: short(values[found[1]]), TEXTS[notice.value][locale])


def short(value: object) -> str:
    line = " ".join(str(value).split())
    return line if len(line) <= MAX_VALUE_CHARS else line[: MAX_VALUE_CHARS - 1] + "…"
