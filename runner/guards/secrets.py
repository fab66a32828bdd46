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

_LONGEST_REMARK = 80

_OF_ANOTHER_KIND = (
    "age budget cost count counts dir enabled endpoint error expires expiry field file format header index len length "
    "level lifetime limit limits method mode name names param path policy position prefix price provider rate "
    "required size state status strategy ttl type types uri url usage used valid version window"
)
"""Last words of names that only speak of a key: `token_count`, `passwordLength`."""

_PLAIN = frozenset(_PLAIN_WORDS.split())

_KINDS = (
    "api access secret private auth client account shared encryption signing signature master service license ssh "
    "subscription consumer session app bot deploy storage refresh bearer"
)


def _behind_a_kind(name: str) -> str:
    """The name where such a word stands before it: `api_key`, `access tokens`."""
    return f"(?:{'|'.join(f'(?<={kind})|(?<={kind}[-_. ])' for kind in _KINDS.split())}){name}"


_STEMS = (
    # Each name begins with one; Chinese, Japanese, Russian, Spanish, Vietnamese and Thai ones are the second half.
    "pass pwd pw psw secret credential jwt cookie token key auth session sig 密 口令 令牌 凭 憑 パスワード 暗証番号 "
    "シークレット トークン 秘密鍵 キー 鍵 парол токен секрет ключ contrase clave mật mã khóa khoá รหัสผ่าน โทเค คีย์ ความลับ"
)
_NAMES = (
    r"pass(?:words?|wd|wort|wrd|phrases?|code)|(?<![a-z])(?:pass|pwd|pw|psw)(?![a-z])|(?<=pg|my)pass(?![a-z])"
    r"|secrets?|credentials?|jwt|cookies?"
    r"|(?<!eos_)(?<!bos_)(?<!pad_)(?<!unk_)(?<!sep_)(?<!cls_)(?<!max_)token(?!s)"
    rf"|{_behind_a_kind('tokens')}|{_behind_a_kind('keys?')}|(?-i:(?<=[A-Z0-9]_)KEY)|(?<=[?&])key"
    r"|authorization|(?<![a-z])auth(?![a-z])|session[-_ ]?id|signature|(?<![a-z])sig(?![a-z])"
    r"|密[码碼钥鑰匙]|口令|令牌|凭[证据]|憑證|パスワード|暗証番号|シークレット|トークン|秘密鍵|(?:(?<=api)|(?<=api\s)|(?<=アクセス)|(?<=秘密))キー|鍵"
    r"|парол[ьяюе]|токен|секрет|ключ|contraseña|contrasena|clave|mật khẩu|mã thông báo|mã bí mật|khóa|khoá"
    r"|รหัสผ่าน|โทเค็น|โทเคน|คีย์|ความลับ"
)
_SUFFIX = r"(?:[_-]\w{1,30}+|\d{1,4}+|(?-i:[A-Z])[a-z]{1,20}+){0,3}+"
_SUFFIX += "".join(f"(?<!{word})" for word in _OF_ANOTHER_KIND.split())
_SAID = r"(?:\s(?:provided|given|supplied|used|was|is))?"
_CLOSES = r"(?:\\{0,8}[\"'`]|%22|&quot;)?\]?"
_SEPARATOR = r"(?:\s{0,8}(?:=>|:=|={1,2}|->|→|[:：＝]|%3[AaDd])\s{0,8}|(?<=[\"'`]),\s{0,8}(?=[bru]{0,2}[\"'`])|>)"
_SPOKEN = r"\s{0,4}(?:is|was|是|为|為|は|это|es|là|คือ)\s{0,4}(?=[\"'`“「]?[^\s\"'`”」]{0,200}\d)(?=\S{6})"
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
    rf"(?P<name>{_NAMES}){_SUFFIX}(?P<between>{_SAID}{_CLOSES}(?:{_SEPARATOR}{_SCHEME}|{_SPOKEN})|(?P<option>\s{{1,8}}))"
    rf"(?P<value>{_QUOTED}|{_LISTED}|{_BARE})",
    re.IGNORECASE | re.DOTALL,
)
_OPTION = re.compile(r"(?<![\w-])--[\w-]{0,40}\Z")
_STEM = re.compile("|".join("".join(f"[{each}{each.upper()}]" for each in stem) for stem in _STEMS.split()))
_HEADERS = re.compile(
    r"(?P<name>authorization|cookie2?)(?P<between>\s{0,4}[:=]\s{0,8})(?![\"'`\[|>])"
    r"(?P<value>[^\s\"'=,;]++(?:[ \t]{1,4}[^\s\"'=,;]++(?!=))?"
    r"(?:[,;]?[ \t]{0,4}[\w.-]{0,80}=[ \t]?(?:\"[^\"\n]*+\"?|[^\s,;\"']*+))*+)",
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
    (r"\d(?<!\d\d)\d{5,11}:[A-Za-z0-9_-]{30,}", HIDDEN),
    # commands with a password: curl -u ann:…, IDENTIFIED BY '…'
    (r"(\s-u\s{1,8}[\"']?)[^\s:\"']{1,80}:[^\s\"']+", rf"\1{HIDDEN}"),
    (r"([iI][dD][eE][nN][tT][iI][fF][iI][eE][dD]\s{1,4}[bB][yY]\s{1,8}[\"'`])[^\"'`\s]+", rf"\1{HIDDEN}"),
    # a long value of a field that is called `key` and nothing more
    (
        r"((?:key|Key|KEY)(?<![A-Za-z]...)\\{0,8}[\"'`]?\s{0,4}[:=]\s{0,4}\\{0,8}[\"'`]?)(?=[^\s\"'`]{0,100}\d)[\w+/=.-]{16,}",
        rf"\1{HIDDEN}",
    ),
)
_PATTERNS = tuple((re.compile(pattern, re.DOTALL), told) for pattern, told in _LOOKS)
_SCHEMES = re.compile(r"[bB](?i:earer|asic)\s{1,8}(?P<value>[A-Za-z0-9._~+/=-]{8,})")


def without_keys(text: str) -> str:
    """The text with `HIDDEN` in the place of whatever is a key or a password by its look or by the name before it."""
    for pattern, told in _PATTERNS:
        text = pattern.sub(told, text)
    return _SCHEMES.sub(lambda found: found[0] if _is_plain(found["value"]) else _hidden(found), _without_named(text))


def _without_named(text: str) -> str:
    """The text without what stands behind the name of a key."""
    pieces: list[str] = []
    after = 0
    for stem in _STEM.finditer(text):
        if stem.start() < after:
            continue
        found = _HEADERS.match(text, stem.start()) or _NAMED.match(text, stem.start())
        if found is None or _is_plain(found["value"]) or _is_two_words(text, found):
            continue
        pieces += (text[after : found.start()], _hidden(found))
        after = found.end()
    return "".join((*pieces, text[after:]))


def _is_two_words(text: str, found: re.Match[str]) -> bool:
    """Whether only blanks stand between name and value, and it is no option of a command (`--api-key …`)."""
    if found.groupdict().get("option") is None:
        return False
    return _OPTION.search(text, max(0, found.start() - 44), found.start()) is None


def _is_plain(value: str) -> bool:
    """Whether only ordinary words stand there; what is long is no remark about a key."""
    if len(value) > _LONGEST_REMARK:
        return False
    words = re.findall(r"\w+", value.replace("_", " "))
    return _PLAIN.issuperset(word.lower() for word in words)


def _hidden(found: re.Match[str]) -> str:
    value = found["value"]
    opens = re.match(r"[bru]{0,2}\\{0,8}[\"'`]|%22|&quot;|", value, re.IGNORECASE)
    closes = value[-1] if value[-1] in ")}" and value[0] not in "\"'`\\" else ""
    before = found[0][: found.start("value") - found.start()]
    return f"{before}{opens[0] if opens else ''}{HIDDEN}{closes}"
