"""The eight languages of the form and of the runner's own sentences (A3)."""

from enum import StrEnum


class Locale(StrEnum):
    """A locale, spelled the way LangBot spells the keys of its translated texts."""

    EN_US = "en_US"
    ZH_HANS = "zh_Hans"
    ZH_HANT = "zh_Hant"
    JA_JP = "ja_JP"
    TH_TH = "th_TH"
    VI_VN = "vi_VN"
    ES_ES = "es_ES"
    RU_RU = "ru_RU"
