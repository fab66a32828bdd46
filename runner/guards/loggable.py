"""What a line for the bot's owner may hold: no keys, and nothing that makes it look like another line.

Failures are told in the Host's own words, and an exception of a provider, a proxy or a tool may quote the header or
the address it was called with. Linear time; every repetition is bounded or cannot meet itself.
"""

from __future__ import annotations

import re
import unicodedata

HIDDEN = "[hidden]"

_SECRETS: tuple[tuple[str, str], ...] = (
    # what stands behind a name for it: `api_key=…`, `"token": "…"`, `Authorization: Bearer …`
    (
        r"(?i)\b((?:x-)?(?:api|access|secret|private|auth|bot|client)[-_ ]?(?:key|token|secret)|authorization|password|"
        r"passwd|secret|token)(\W{0,3}[:=]\W{0,3})(?:(?:bearer|basic|token)\s{1,3})?[^\s\"',;&)}\]]{4,}",
        rf"\1\2{HIDDEN}",
    ),
    (r"(?i)\b(bearer|basic)(\s{1,3})[A-Za-z0-9._~+/=-]{8,}", rf"\1\2{HIDDEN}"),
    # user and password in an address
    (r"(://)[^\s/@:]{0,200}:[^\s/@]{1,200}@", rf"\1{HIDDEN}@"),
    # what is a key by its look: OpenAI's and many like it, GitHub, GitLab, Slack, Google, AWS, JWT, Telegram
    (r"\b(?:sk|pk|rk|gsk|xai|tvly|pplx|hf|r8|glpat|gh[pousr]|github_pat|xox[abeprs])[-_][A-Za-z0-9_-]{10,}", HIDDEN),
    (r"\bAIza[A-Za-z0-9_-]{30,}", HIDDEN),
    (r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", HIDDEN),
    (r"\beyJ[A-Za-z0-9_-]{8,400}\.[A-Za-z0-9_.-]{8,}", HIDDEN),
    (r"\b\d{8,10}:[A-Za-z0-9_-]{30,}", HIDDEN),
    (r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,30}-----)?", HIDDEN),
)
_PATTERNS = tuple((re.compile(pattern), told) for pattern, told in _SECRETS)

_BREAKS = re.compile(r"\r\n?|[\n\v\f\x1c-\x1e\x85\u2028\u2029]")
_INDENT = "\n    "
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co"})
"""Control and format characters, among them those that turn the direction of writing round."""


def loggable(text: str) -> str:
    """The text with keys hidden, control characters as `�`, and later lines indented so that none can pass for a line
    of its own."""
    lines = _BREAKS.split(without_keys(text))
    return _INDENT.join(line if line.isprintable() else "".join(map(_seen, line)) for line in lines)


def without_keys(text: str) -> str:
    """The text with `HIDDEN` in the place of whatever is a key or a password by its look or by the name before it."""
    for pattern, told in _PATTERNS:
        text = pattern.sub(told, text)
    return text


def _seen(character: str) -> str:
    # A joiner holds emoji and letters of some scripts together; without it they would come apart.
    if character in "\t\u200c\u200d" or unicodedata.category(character) not in _UNSEEN:
        return character
    return "�"
