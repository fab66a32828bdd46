"""Guessing the language a person writes in, for the runner's own sentences: the run context has no locale."""

import re
import unicodedata

from config.locales import Locale

NOT_PROSE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+", re.DOTALL)
"""Code and addresses: they are in Latin letters whatever the writer's language."""

KANA = re.compile(r"[\u3041-\u3096\u30a1-\u30fa\uff66-\uff9d]")
HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
THAI = re.compile(r"[\u0e01-\u0e3a\u0e40-\u0e4e]")
CYRILLIC_WORD = re.compile(r"[\u0400-\u04ff]+")
LATIN_WORD = re.compile(r"[a-zA-Z\u00c0-\u024f\u1e00-\u1eff]+")
VIETNAMESE = re.compile(r"[\u1ea0-\u1ef9\u01a0\u01a1\u01af\u01b0]")
SPANISH_SIGN = re.compile(r"[¿¡ñÑ]")

THAI_LETTERS_A_WORD = 4
FOREIGN_SHARE = 0.5
"""A script other than Latin decides when it has at least this many words for each Latin one: people who write Chinese
quote whole error messages in English, and people who write English quote two Chinese words."""

MAX_CHARS = 2000
"""As much of a text as is looked at, in characters: the guess does not get better with more."""

PAIRS = (
    "这這个個们們说說时時为為对對过過还還现現发發开開关關见見问問题題请請谢謝吗嗎么麼没沒种種给給让讓长長门門车車东東"
    "马馬书書买買卖賣钱錢电電话話语語读讀写寫网網图圖听聽应應该該样樣从從动動实實两兩边邊头頭气氣员員业業产產经經济濟"
    "务務报報纸紙级級红紅绿綠线線组組织織结結统統继繼续續维維罗羅处處备備复複够夠夺奪奖獎妈媽孙孫宁寧审審宽寬导導将將"
    "层層岁歲岛島帅帥师師帐帳带帶帮幫广廣庄莊庆慶库庫张張弹彈强強归歸录錄忆憶态態总總恋戀惊驚愿願战戰户戶执執扩擴护護"
    "担擔择擇换換据據无無显顯术術机機杂雜权權极極构構标標树樹检檢楼樓欢歡汉漢汤湯测測满滿灯燈灵靈热熱爱愛状狀独獨环環"
    "视視认認讨討训訓议議记記设設证證识識词詞译譯试試详詳误誤课課调調谁誰贵貴费費资資赛賽轮輪转轉输輸达達运運进進远遠"
    "连連适適选選释釋钟鐘错錯镜鏡闻聞队隊阳陽阶階际際陆陸陈陳险險随隨难難静靜页頁项項顺順须須预預领領频頻风風飞飛饭飯"
    "馆館验驗鱼魚鸟鳥麦麥黄黃龙龍齐齊单單变變办辦义義习習乐樂华華鲜鮮简簡并並后後里裡内內"
)
"""Common characters in two forms each: the simplified one, then the traditional one."""

SIMPLIFIED = frozenset(PAIRS[0::2])
TRADITIONAL = frozenset(PAIRS[1::2])

SHINJITAI = frozenset("気図読対発変実検権労単売総経続駅応込働畑価仮険竜帰転伝関帯団観覚軽薬歩様毎戻")
"""Forms that only Japan writes: they speak for Japanese where a text has no kana."""

ORNAMENTAL_KANA = frozenset("のノツシ")
"""Kana that also turn up in Chinese brand names and in emoticons."""

SPANISH_WORD = re.compile(
    "hola|gracias|quier(?:o|es)|puedes?|necesito|tengo|d[óo]nde|cuál|cuánto|cuándo|cómo|qué|est(?:á|án|oy)|hacer|hazme|"
    "ayud[ao]|ayúdame|dime|el|la|una|del|pero|muy|mi|es|y|en|favor|buen[oa]s|días|porque|también"
)
SPANISH_OPENING = re.compile("hola|gracias|ayúdame|cuéntame|explícame|necesito|quiero")
SPANISH_SHARE = 0.3


def locale_of(text: str) -> Locale:
    """The locale whose people most likely wrote `text`, by script first and then by telling letters and words.

    English when nothing speaks for another, also for languages that are none of the eight.
    """
    prose = unicodedata.normalize("NFC", NOT_PROSE.sub(" ", text[:MAX_CHARS]))
    latin = len(LATIN_WORD.findall(prose))
    weights = {
        "han": len(HAN.findall(prose)) + len(KANA.findall(prose)),
        "thai": len(THAI.findall(prose)) / THAI_LETTERS_A_WORD,
        "cyrillic": len(CYRILLIC_WORD.findall(prose)),
    }
    script = max(weights, key=weights.__getitem__)
    if not weights[script] or weights[script] < latin * FOREIGN_SHARE:
        return latin_locale(prose)
    if script == "han":
        return east_asian(prose)
    return Locale.TH_TH if script == "thai" else Locale.RU_RU


def east_asian(prose: str) -> Locale:
    """Japanese, or Chinese in one of its scripts; the simplified one when nothing tells them apart."""
    simplified = sum(letter in SIMPLIFIED for letter in prose)
    traditional = sum(letter in TRADITIONAL for letter in prose)
    kana = set(KANA.findall(prose))
    if kana - ORNAMENTAL_KANA or ((kana or not SHINJITAI.isdisjoint(prose)) and not simplified):
        return Locale.JA_JP
    return Locale.ZH_HANT if traditional > simplified else Locale.ZH_HANS


def latin_locale(prose: str) -> Locale:
    if VIETNAMESE.search(prose):
        return Locale.VI_VN
    words = [word.casefold() for word in LATIN_WORD.findall(prose)]
    known = sum(SPANISH_WORD.fullmatch(word) is not None for word in words)
    greeted = any(SPANISH_OPENING.fullmatch(word) for word in words[:2])
    if SPANISH_SIGN.search(prose) or greeted or (known > 1 and known >= len(words) * SPANISH_SHARE):
        return Locale.ES_ES
    return Locale.EN_US
