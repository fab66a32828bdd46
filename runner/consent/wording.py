"""What people read of a request for consent (M2): the tools, their arguments, and what to reply. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from pydantic import JsonValue

from config.choices import Agree
from config.notices import Notice
from runner.consent.request import SECONDS, ConsentRequest, HeldCall
from runner.conversation.cut import clip, sendable
from runner.conversation.pressed import AGREES, REFUSES
from runner.guards import defang, loggable
from runner.guards.secrets import without_keys
from runner.host.events import Json

Say = Callable[..., str]

VALUE_CHARACTERS: Final = 300
"""Of one argument; the exact call is kept, and the length of what is left out is told."""

FIELDS: Final = 20
"""Arguments of a call that are told one by one."""

CALLS_CHARACTERS: Final = 8_000
"""Of all calls together."""

CARD_CHARACTERS: Final = 1_500
"""The same on a card: LangBot takes 10,000, Telegram 4,096 and Discord 2,000 for all of it."""

_TITLE_CHARACTERS: Final = 500


def calls_told(calls: list[HeldCall], most: int = CALLS_CHARACTERS) -> str:
    """Each call with its arguments, one a line, shortened, harmless and without keys; at most so many characters."""
    return clip("\n".join(map(_call_told, calls)), most).text


def text_of(request: ConsentRequest, say: Say, *, group: bool, name: str, buttons: bool) -> str:
    """The request as it stands in the answer. `name`: of who was asked."""
    head = say(Notice.CONSENT_WANTED)
    return f"{head}\n\n{calls_told(request.calls)}\n\n{_how(request, say, group=group, name=name, buttons=buttons)}"


def card_of(request: ConsentRequest, say: Say) -> dict[str, Json]:
    """The same as a card with two buttons; it says by itself what would run."""
    title, told = say(Notice.CONSENT_WANTED), calls_told(request.calls, CARD_CHARACTERS)
    return {
        "interaction_id": request.key,
        "kind": "confirmation",
        "title": title[:_TITLE_CHARACTERS],
        "description": told,
        "fields": [],
        "actions": [
            {"id": AGREES, "label": say(Notice.CONSENT_AGREE), "style": "primary"},
            {"id": REFUSES, "label": say(Notice.CONSENT_REFUSE), "style": "default"},
        ],
        "expires_at": request.lapses_at,
        "fallback_text": f"{title}\n\n{told}",
    }


def _how(request: ConsentRequest, say: Say, *, group: bool, name: str, buttons: bool) -> str:
    minutes = SECONDS // 60
    if not request.words:
        return say(Notice.CONSENT_BY_BUTTON, minutes=minutes)
    if not group:
        words = say(Notice.CONSENT_BY_WORDS, minutes=minutes)
    elif request.who == Agree.ANYONE:
        words = say(Notice.CONSENT_BY_ANYONE, minutes=minutes)
    else:
        words = say(Notice.CONSENT_BY_ASKER, minutes=minutes, name=name)
    return f"{words} {say(Notice.CONSENT_OR_BUTTON)}" if buttons else words


def _call_told(call: HeldCall) -> str:
    """A list in Markdown. What a model chose stands as code, which shows each letter: a link would hide where it leads,
    and a comment all it says.
    """
    told = [f"- `{_harmless(call.label)}`", *(f"  - `{line}`" for line in _values_told(call.values))]
    return "\n".join(told)


def _values_told(values: Mapping[str, JsonValue]) -> list[str]:
    lines = [_value_told(name, value) for name, value in list(values.items())[:FIELDS]]
    more = len(values) - FIELDS
    return [*lines, *([f"… +{more}"] if more > 0 else [])]


def _value_told(name: str, value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # A key is told by the name before it, so it is looked for before anything is cut.
    whole = without_keys(f"{name}: {text}")
    label, _, rest = whole.partition(": ")
    shown = clip(rest, VALUE_CHARACTERS, lambda cut: f" … ({cut}) … ").text
    return f"{_harmless(label)[:100]}: {_harmless(shown)}"


def _harmless(text: str) -> str:
    """One line that is no marker, no fence, no table and no mention of everybody."""
    line = " ".join(loggable(sendable(text)).split())
    return defang(line).replace("`", "'").replace("@", "@\u200b")
