"""What the select fields of the form can be set to. Each value is the `name` that LangBot stores."""

from enum import StrEnum


class ToolMode(StrEnum):
    """How the calls of one model turn are run (D2)."""

    PARALLEL = "parallel"
    SERIAL = "serial"


class AgentReply(StrEnum):
    """Who answers when a LangBot Agent runs on a message event (J2)."""

    AUTO = "auto"
    MODEL = "model"


class ModelProfile(StrEnum):
    """How much guidance a model gets: that of a large one, of a small one, or by what its replies show."""

    STANDARD = "standard"
    SMALL = "small"
    AUTO = "auto"


class CallFormat(StrEnum):
    """How tools are offered: through the provider (`native`), or written into the prompt in a text format."""

    NATIVE = "native"
    AUTO = "auto"
    TAGS = "tags"
    PYTHONIC = "pythonic"
    JSON = "json"
    GUIDED = "guided"


class NoticeLanguage(StrEnum):
    """Language of the runner's own sentences: by the script of the newest user text, or one of the eight locales."""

    AUTO = "auto"
    EN_US = "en_US"
    ZH_HANS = "zh_Hans"
    ZH_HANT = "zh_Hant"
    JA_JP = "ja_JP"
    TH_TH = "th_TH"
    VI_VN = "vi_VN"
    ES_ES = "es_ES"
    RU_RU = "ru_RU"


class Ask(StrEnum):
    """Which tools a person has to agree to before they run (M1)."""

    NEVER = "never"
    CHANGES = "changes"
    LISTED = "listed"


class Agree(StrEnum):
    """Who may agree: the one whose message led to the call, or anyone in the chat (M1)."""

    ASKER = "asker"
    ANYONE = "anyone"


class ReasoningLevel(StrEnum):
    """Levels that LangBot's model selector can store for a model."""

    PROVIDER_DEFAULT = "provider_default"
    DISABLED = "disabled"
    ENABLED = "enabled"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"
