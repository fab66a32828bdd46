"""Keys and passwords in a text, found by the name before them, by where they stand, or by their look (I7).

It does not matter what stands before such a name: `OPENAI_API_KEY=…`, `db.password: …`, `{"refreshToken": "…"}`,
`--api-key …`. A word too many that is hidden costs little, a key in a log much. Linear time: what is repeated without
a bound is never given back.
"""

from __future__ import annotations

import re

HIDDEN = "[hidden]"

_PLAIN_WORDS = (
    "a an and are be been but can cannot could did do does empty error expected expired failed false for from given "
    "has have in incorrect invalid is it its may missing must no none not null of on or please required revoked set "
    "should that the this to too true try unexpected unknown unset value was were will wrong you your arguments "
    "cancelled limit timeout tool authentication authorization scheme realm token tokens header auth access "
    "credentials 错误 無效 无效 不正确 不能 失败 过期 为空 缺失"
)
"""What is said of a key rather than a key."""

_OF_ANOTHER_KIND = (
    "age budget cost count counts dir enabled endpoint error expires expiry field file format header index len length "
    "level lifetime limit limits method mode name names param path policy position prefix price provider rate "
    "required size state status strategy ttl type types uri url usage used valid version window"
)
"""Last words of names that only speak of a key: `token_count`, `passwordLength`."""

_PLAIN = frozenset(_PLAIN_WORDS.split())

_NAMES = (
    r"pass(?:words?|wd|wort|wrd|phrases?|code)|(?<![a-z])(?:pass|pwd|pw|psw)(?![a-z])|secrets?|credentials?|jwt|cookies?"
    r"|(?<!eos_)(?<!bos_)(?<!pad_)(?<!unk_)(?<!sep_)(?<!cls_)(?<!max_)token(?!s)"
    r"|(?:access|refresh|auth|bearer|api|session)[-_ ]?tokens"
    r"|(?:api|access|secret|private|auth|client|account|shared|encryption|signing|signature|master|service|license|ssh"
    r"|subscription|consumer|session|app|bot|deploy|storage)[-_. ]?keys?|authorization|(?<![a-z])auth(?![a-z])"
    r"|session[-_ ]?id|signature|(?<![a-z])sig(?![a-z])|(?-i:[A-Z0-9]_KEY)|(?<=[?&])key|one[-_ ]time[-_ ]code"
    # Chinese, Japanese, Russian, Spanish, Vietnamese, Thai
    r"|密[码碼]|口令|密[钥鑰匙]|令牌|凭[证据]|憑證|パスワード|暗証番号|シークレット|トークン|秘密鍵|(?:api|アクセス|秘密)\s?キー|鍵"
    r"|парол[ьяюе]|токен|секрет|ключ|contraseña|contrasena|clave|mật khẩu|mã thông báo|mã bí mật|khóa|khoá"
    r"|รหัสผ่าน|โทเค็น|โทเคน|คีย์|ความลับ"
)
_SUFFIX = r"(?:[_-]\w{1,30}+|\d{1,4}+|(?-i:[A-Z])[a-z]{1,20}+){0,3}+"
_SUFFIX += "".join(f"(?<!{word})" for word in _OF_ANOTHER_KIND.split())
_SAID = r"(?:\s(?:provided|given|supplied|used|was|is))?"
_CLOSES = r"(?:\\{0,8}[\"'`]|%22|&quot;)?\]?"
_SEPARATOR = r"(?:\s{0,8}(?:=>|:=|={1,2}|->|→|[:：＝]|%3[AaDd])\s{0,8}|(?<=[\"'`]),\s{0,8}(?=[bru]{0,2}[\"'`])|>)"
_QUOTED = (
    r"[bru]{0,2}(?:"
    r"(?P<escaped>\\{1,8}[\"'`])(?:(?!(?<!\\)(?P=escaped)).)*+"
    r"|\"(?:[^\"\\]|\\.)*+|'(?:[^'\\]|\\.)*+|`[^`]*+|%22(?:(?!%22)\S)*+|&quot;(?:(?!&quot;).)*+)"
)
_LISTED = r"\[[^\]\[]*+\]?"
# A mark that may belong to a password ends it only where something else begins behind it.
_BARE = (
    r"(?:[|>][+-]?\s{1,8})?(?:(?!&[\w.%-]{1,40}=|&quot;|%2[26Cc]|[<，。；、）]|[,;](?:\s|\Z|[\"']?\w{1,40}[\"']?[:=])"
    r"|[\"'`](?:[\s,;:)\]}>]|\Z))\S)++"
)
_SCHEME = r"(?:(?:bearer|basic|token|digest|apikey|negotiate|ntlm|hmac|ssws)\s{1,8})?"

_NAMED = re.compile(
    rf"(?P<name>{_NAMES}){_SUFFIX}(?P<between>{_SAID}{_CLOSES}{_SEPARATOR})(?P<scheme>{_SCHEME})"
    rf"(?P<value>{_QUOTED}|{_LISTED}|{_BARE})",
    re.IGNORECASE | re.DOTALL,
)
_HEADERS = re.compile(
    r"(?P<name>(?:proxy-)?authorization|(?:set-)?cookie2?)(?P<between>\s{0,4}[:=]\s{0,8})(?![\"'`\[])"
    r"(?P<value>[^\s\"'=,;]++(?:[ \t]{1,4}[^\s\"'=,;]++(?!=))?"
    r"(?:[,;]?[ \t]{0,4}[\w.-]{0,80}=[ \t]?(?:\"[^\"\n]*+\"?|[^\s,;\"']*+))*+)",
    re.IGNORECASE,
)
_OPTIONS = re.compile(
    rf"(?P<between>--[\w-]{{0,40}}?(?:{_NAMES}){_SUFFIX}\s{{1,8}}|\s-u\s{{1,8}}(?=\S{{1,80}}:)|\bidentified\s{{1,4}}by\s{{1,8}})"
    rf"(?P<value>{_QUOTED}|{_BARE})",
    re.IGNORECASE | re.DOTALL,
)
_SPOKEN = re.compile(
    rf"(?P<name>{_NAMES})(?P<between>\s{{0,4}}(?:is|was|是|为|為|は|это|es|là|คือ)\s{{0,4}})"
    r"(?P<value>[\"'`“「]?(?=[^\s\"'`”」]{0,200}\d)[^\s\"'`”」]{6,})",
    re.IGNORECASE,
)

_LOOKS: tuple[tuple[str, str], ...] = (
    (
        r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----).)*+(?:-----END [A-Z0-9 ]{0,40}-----)?",
        HIDDEN,
    ),
    # user and password in an address, or a key in the place of the user
    (r"(://)[^\s/@:\"'<>]{0,200}:(?!\d{1,5}[/?#])[^\s\"'<>]{1,300}@(?=[\w.\[-])", rf"\1{HIDDEN}@"),
    (r"(://)[^\s/@:\"'<>]{1,200}@(?=[\w.\[-])", rf"\1{HIDDEN}@"),
    # addresses that are a key: Slack, Discord, Feishu
    (r"(hooks\.slack\.com/\w{1,20}/|/api/webhooks/\d{5,25}/|/bot/v2/hook/)[\w/-]{6,200}", rf"\1{HIDDEN}"),
    # keys by their look: OpenAI's and many like it, GitHub, GitLab, Slack, Google, AWS, JWT, Telegram
    (
        r"(?<![A-Za-z0-9])(?:sk|pk|rk|gsk|xai|tvly|pplx|hf|r8|glpat|gh[pousr]|github_pat|xapp|xox[abeprs]|nvapi|npm|pypi"
        r"|shpat|lin_api|dop_v1|GOCSPX|SG|key)[-_.][A-Za-z0-9_.-]{10,}",
        HIDDEN,
    ),
    (r"AIza[A-Za-z0-9_-]{30,}", HIDDEN),
    (r"\bya29\.[\w-]{10,}|\b1//0[\w-]{8,}", HIDDEN),
    (r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", HIDDEN),
    (r"\beyJ[A-Za-z0-9_-]{8,600}\.[A-Za-z0-9_.-]{8,}", HIDDEN),
    (r"(?<!\d)\d{6,12}:[A-Za-z0-9_-]{30,}", HIDDEN),
    # a long value of a field that is called `key` and nothing more
    (
        r"(?i)((?<![a-z])key\\{0,8}[\"'`]?\s{0,4}[:=]\s{0,4}\\{0,8}[\"'`]?)(?=[^\s\"'`]{0,100}\d)[\w+/=.-]{16,}",
        rf"\1{HIDDEN}",
    ),
)
_PATTERNS = tuple((re.compile(pattern, re.DOTALL), told) for pattern, told in _LOOKS)
_SCHEMES = re.compile(r"(?i)\b(?P<between>(?:bearer|basic)\s{1,8})(?P<value>[A-Za-z0-9._~+/=-]{8,})")


def without_keys(text: str) -> str:
    """The text with `HIDDEN` in the place of whatever is a key or a password by its look or by the name before it."""
    for pattern, told in _PATTERNS:
        text = pattern.sub(told, text)
    for named in (_HEADERS, _NAMED, _OPTIONS, _SPOKEN, _SCHEMES):
        text = named.sub(_hidden, text)
    return text


def _hidden(found: re.Match[str]) -> str:
    value = found["value"]
    words = re.findall(r"\w+", value.replace("_", " "))
    if not words or _PLAIN.issuperset(word.lower() for word in words):
        return found[0]
    closes = value[-1] if value[-1] in ")}" and value[0] not in "\"'`\\" else ""
    return found[0][: found.start("value") - found.start()] + _opening(value) + HIDDEN + closes


def _opening(value: str) -> str:
    """The quote that a value begins with; its end stands behind it still."""
    return re.match(r"[bru]{0,2}\\{0,8}[\"'`]|%22|&quot;|", value, re.IGNORECASE)[0]  # type: ignore[index]
