"""The typed settings of one binding. `Settings.read` is the only way to make them, and it never raises (A4)."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Self

from pydantic import BaseModel, ConfigDict

from config.choices import AgentReply, Agree, Ask, CallFormat, ModelProfile, NoticeLanguage, ToolMode
from config.fields import FIELDS
from config.locales import Locale
from config.notices.language import locale_of
from config.reading import ABSENT, read

RESERVE_DIVISOR = 4
"""The reserve is at most one part in this many of the window: 25 % (F1)."""


class Part(BaseModel):
    """Frozen, exact about types, without room for unknown names."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class ModelChoice(Part):
    """Model ids. `primary` is "" when none is chosen; `reasoning` maps a model id to one of `ReasoningLevel`."""

    primary: str
    fallbacks: tuple[str, ...]
    reasoning: Mapping[str, str]

    @property
    def order(self) -> tuple[str, ...]:
        """Every chosen model once, in the order in which they are tried (C1)."""
        return tuple(dict.fromkeys(model for model in (self.primary, *self.fallbacks) if model))


class Knowledge(Part):
    """Retrieval. `top_k` and `rerank_top_k` count chunks; `rerank_model` is "" for none (E1)."""

    bases: tuple[str, ...]
    top_k: int
    rerank_model: str
    rerank_top_k: int


class Box(Part):
    """The sandbox: whether it is used, and the template of the key by which chats share one (H1)."""

    enabled: bool
    session_template: str


class Tools(Part):
    """Tool use: rounds, characters one tool message may hold, and whether a record is kept for later runs (B6)."""

    max_rounds: int
    mode: ToolMode
    max_result_chars: int
    memory: bool


class Context(Part):
    """Token limits, and how many transcript rows are pulled."""

    history_limit: int
    window_tokens: int
    reserve_tokens: int
    keep_recent_tokens: int
    summary_tokens: int

    def input_budget(self) -> int:
        """Tokens a request may have where nothing tells of a smaller window: window minus reserve (F1)."""
        return self.window_tokens - min(self.reserve_tokens, self.window_tokens // RESERVE_DIVISOR)


class Small(Part):
    """How weak models are helped (S1-S8): `step_timeout` is seconds, `site_instructions` at most 8,000 characters."""

    profile: ModelProfile
    call_format: CallFormat
    max_tools_shown: int
    max_steps: int
    step_timeout: int | float
    site_instructions: str


class Consent(Part):
    """Which tools ask before they run, by `names` where listed (`*` in one is any text), and who may agree (M1)."""

    ask: Ask
    names: tuple[str, ...]
    who: Agree


class Settings(Part):
    """All settings of a binding. `timeout` is seconds, `None` when only the Host's deadline counts.

    `prompt` holds the rows as stored; what is malformed in them is for the prompt builder to refuse.
    """

    model: ModelChoice
    prompt: tuple[Mapping[str, object], ...]
    remove_think: bool
    knowledge: Knowledge
    box: Box
    consent: Consent
    date_grounding: bool
    timeout: int | None
    tools: Tools
    context: Context
    small: Small
    agent_reply: AgentReply
    progress_notices: bool
    notice_language: NoticeLanguage
    debug_dump: bool

    @classmethod
    def read(cls, config: Mapping[str, object]) -> tuple[Self, tuple[str, ...]]:
        """The settings in a stored binding, and notes on what was coerced, clamped or ignored, for one log line.

        Keys that are not in the form are ignored in silence: LangBot keeps fields of its own beside ours.
        """
        parts: defaultdict[str, dict[str, object]] = defaultdict(dict)
        notes: list[str] = []
        for field in FIELDS:
            reading = read(field, config.get(field.name, ABSENT))
            notes += [f"{field.name}: {note}" for note in reading.notes]
            part, _, name = field.at.rpartition(".")
            if name:
                parts[part][name] = reading.value
        return cls.model_validate({**parts.pop(""), **parts}), tuple(notes)

    def notice_locale(self, newest_text: str) -> Locale:
        """The locale of the runner's own sentences: the chosen one, else by the script of the newest user text."""
        if self.notice_language is NoticeLanguage.AUTO:
            return locale_of(newest_text)
        return Locale(self.notice_language.value)
