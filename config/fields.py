"""The fields of the form, each declared once: name, kind, default, range, and where it lives in `Settings`.

`config.form` writes the form of components/runner/default.yaml from this list and `config.reading` reads a binding by
it, so that neither can disagree with the other. Order is the order on screen. `at` is the dotted path in `Settings`;
an empty path means that only the form uses the field. A field with `shown_by` is shown while that switch is on, or,
where that is a choice, while another option than its default is chosen. LangBot stores and hands over hidden fields
all the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from config.choices import AgentReply, Agree, Ask, CallFormat, ModelProfile, NoticeLanguage, ToolMode

ADVANCED = "advanced-settings"
BOX = "box-enabled"
KIND = "model-profile"
ASK = "ask-before-tools"


@dataclass(frozen=True, kw_only=True)
class Switch:
    """On or off."""

    form_type: ClassVar[str] = "boolean"
    name: str
    at: str
    default: bool
    shown_by: str = ""
    required: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class Number:
    """A whole number from `minimum` to `maximum`. 0 or less means the default, or with `zero_is_off` no limit; with
    `negative_is_least` less than 0 means the minimum, where the default would be far more than anybody meant.
    """

    form_type: ClassVar[str] = "integer"
    name: str
    at: str
    default: int
    minimum: int
    maximum: int
    zero_is_off: bool = False
    negative_is_least: bool = False
    shown_by: str = ""
    required: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One member of the enumeration that `default` belongs to."""

    form_type: ClassVar[str] = "select"
    name: str
    at: str
    default: StrEnum
    shown_by: str = ""
    required: ClassVar[bool] = False

    @property
    def options(self) -> tuple[StrEnum, ...]:
        return tuple(type(self.default))


@dataclass(frozen=True, kw_only=True)
class Template:
    """One line of text with presets; anything up to `maximum` characters may be typed instead."""

    form_type: ClassVar[str] = "select"
    name: str
    at: str
    default: str
    presets: tuple[str, ...]
    maximum: int
    shown_by: str = ""
    required: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class Text:
    """Free text of up to `maximum` characters."""

    form_type: ClassVar[str] = "text"
    name: str
    at: str
    maximum: int
    default: str = ""
    shown_by: str = ""
    required: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class Names:
    """At most `most` names of up to `maximum` characters; a `*` in one stands for any characters."""

    form_type: ClassVar[str] = "array[string]"
    name: str
    at: str
    most: int
    maximum: int
    shown_by: str = ""
    required: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class Models:
    """A primary model, its fallbacks, and a reasoning level for each."""

    form_type: ClassVar[str] = "model-fallback-selector"
    name: str
    at: str
    shown_by: str = ""
    required: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """Rows of `{role, content}`. `default` is the text of the one system row a new binding starts with."""

    form_type: ClassVar[str] = "prompt-editor"
    name: str
    at: str
    default: str
    shown_by: str = ""
    required: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class KnowledgeBases:
    """Ids of knowledge bases."""

    form_type: ClassVar[str] = "knowledge-base-multi-selector"
    name: str
    at: str
    shown_by: str = ""
    required: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class RerankModel:
    """Id of a rerank model; empty means none."""

    form_type: ClassVar[str] = "rerank-model-selector"
    name: str
    at: str
    shown_by: str = ""
    required: ClassVar[bool] = False


Field = Switch | Number | Choice | Template | Text | Names | Models | Prompt | KnowledgeBases | RerankModel

FIELDS: Sequence[Field] = (
    Models(name="model", at="model"),
    Prompt(name="prompt", at="prompt", default="You are a helpful assistant."),
    Switch(name="remove-think", at="remove_think", default=False),
    KnowledgeBases(name="knowledge-bases", at="knowledge.bases"),
    Switch(name=BOX, at="box.enabled", default=False),
    Template(
        name="box-session-id-template",
        at="box.session_template",
        default="{launcher_type}_{launcher_id}",
        presets=("{launcher_type}_{launcher_id}", "{launcher_type}_{launcher_id}_{sender_id}", "{run_id}", "{global}"),
        maximum=512,
        shown_by=BOX,
    ),
    Choice(name=ASK, at="consent.ask", default=Ask.NEVER),
    Names(name="ask-before-these-tools", at="consent.names", most=200, maximum=128, shown_by=ASK),
    Choice(name="who-may-agree", at="consent.who", default=Agree.ASKER, shown_by=ASK),
    Switch(name=ADVANCED, at="", default=False),
    Switch(name="date-grounding", at="date_grounding", default=True, shown_by=ADVANCED),
    # Below 5 s nothing would be left once the run keeps its margin before the Host's deadline (G3).
    Number(name="timeout", at="timeout", default=300, minimum=5, maximum=86400, zero_is_off=True, shown_by=ADVANCED),
    Number(name="retrieval-top-k", at="knowledge.top_k", default=5, minimum=1, maximum=100, shown_by=ADVANCED),
    RerankModel(name="rerank-model", at="knowledge.rerank_model", shown_by=ADVANCED),
    # The Host reranks no more than 64 documents (E1).
    Number(name="rerank-top-k", at="knowledge.rerank_top_k", default=5, minimum=1, maximum=64, shown_by=ADVANCED),
    Number(
        name="max-tool-iterations",
        at="tools.max_rounds",
        negative_is_least=True,
        default=100,
        minimum=1,
        maximum=1000,
        shown_by=ADVANCED,
    ),
    Choice(name="tool-execution-mode", at="tools.mode", default=ToolMode.PARALLEL, shown_by=ADVANCED),
    Number(
        name="max-tool-result-chars",
        at="tools.max_result_chars",
        default=20000,
        minimum=1000,
        maximum=200000,
        shown_by=ADVANCED,
    ),
    Number(
        name="context-history-fetch-limit",
        at="context.history_limit",
        default=50,
        minimum=1,
        maximum=1000,
        shown_by=ADVANCED,
    ),
    Number(
        name="context-window-tokens",
        at="context.window_tokens",
        default=200000,
        minimum=1024,
        maximum=10_000_000,
        shown_by=ADVANCED,
    ),
    Number(
        name="context-reserve-tokens",
        at="context.reserve_tokens",
        default=16384,
        minimum=256,
        maximum=1_000_000,
        shown_by=ADVANCED,
    ),
    Number(
        name="context-keep-recent-tokens",
        at="context.keep_recent_tokens",
        default=20000,
        minimum=256,
        maximum=1_000_000,
        shown_by=ADVANCED,
    ),
    # A stored summary has to fit the Host's 256 KiB state value beside its own bookkeeping (F6).
    Number(
        name="context-summary-tokens",
        at="context.summary_tokens",
        default=8000,
        minimum=128,
        maximum=32000,
        shown_by=ADVANCED,
    ),
    Switch(name="tool-memory", at="tools.memory", default=True, shown_by=ADVANCED),
    Choice(name="agent-reply", at="agent_reply", default=AgentReply.AUTO, shown_by=ADVANCED),
    Switch(name="progress-notices", at="progress_notices", default=True, shown_by=ADVANCED),
    Choice(name="notice-language", at="notice_language", default=NoticeLanguage.AUTO, shown_by=ADVANCED),
    Choice(name=KIND, at="small.profile", default=ModelProfile.STANDARD, shown_by=ADVANCED),
    Choice(name="tool-call-format", at="small.call_format", default=CallFormat.NATIVE, shown_by=ADVANCED),
    # Whatever the format of calls, these four do nothing where the kind of model is `standard`.
    Number(name="max-tools-shown", at="small.max_tools_shown", default=8, minimum=1, maximum=64, shown_by=KIND),
    Number(name="max-steps", at="small.max_steps", default=6, minimum=1, maximum=100, shown_by=KIND),
    Number(name="step-timeout", at="small.step_timeout", default=180, minimum=5, maximum=3600, shown_by=KIND),
    Text(name="site-instructions", at="small.site_instructions", maximum=8000, shown_by=KIND),
    Switch(name="debug-dump", at="debug_dump", default=False, shown_by=ADVANCED),
)
