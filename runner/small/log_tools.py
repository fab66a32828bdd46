"""Which tool tells what another one did, and whether that was on the user's own host (S5). Pure.

The Host does not say which tools belong together, so their names decide. In doubt a tool is no witness: one that is
called by mistake might do something.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from runner.host.events import Json
from runner.tools.catalogue import Catalogue, Entry, Kind

_SUBJECTS = frozenset({"console", "log", "logs"})
_NOUNS = frozenset({"messages", "entries", "errors", "output", "lines", "history", "logs", "log"})
_READING = frozenset({"get", "list", "read", "show", "tail", "fetch", "view"})
_LOOKING = _READING | {"snapshot", "screenshot", "wait", "status", "search", "find"}
_DOING = frozenset(
    {"write", "clear", "delete", "remove", "add", "append", "post", "send", "set", "create", "put", "reset", "rotate"}
    | {"run", "exec", "execute", "eval", "open", "close", "start", "stop", "enable", "disable", "save", "export"}
)
_PAGE = frozenset(
    {"click", "navigate", "goto", "open", "type", "fill", "press", "hover", "drag", "select", "submit", "upload"}
    | {"reload", "refresh", "evaluate", "page", "url"}
)
_ADDRESS = frozenset({"url", "uri", "href", "address", "link"})
_OWN_NAMES: Final = ("localhost", "host.docker.internal")
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{0,20}://|file:|about:")
_STATED_PAGE = re.compile(r"(?im)^[\s*#>-]{0,8}page url:[ \t]{0,8}(\S+)")


def witness_of(entry: Entry, catalogue: Catalogue) -> Entry | None:
    """The tool that reads the console or log of the set an action belongs to; the first one granted."""
    return next((other for other in catalogue if is_witness(other) and _belongs(entry, other)), None)


def is_witness(entry: Entry) -> bool:
    """Whether a tool reads a console or a log, by its name, and can be called without arguments."""
    free = entry.kind in (Kind.PLUGIN, Kind.MCP) and not entry.spec.parameters.get("required")
    return free and _set_of(entry) is not None


def acts(entry: Entry) -> bool:
    """Whether a tool does something, as far as its name says: looking is no action."""
    return not entry.read_only and not entry.own and _LOOKING.isdisjoint(_words(entry.host_name))


def visits(witness: Entry, catalogue: Catalogue) -> bool:
    """Whether the set of a witness takes addresses, as a browser does."""
    return any(_belongs(entry, witness) and not _ADDRESS.isdisjoint(_fields(entry)) for entry in catalogue)


def is_own(address: str) -> bool:
    """Whether an address is on the user's own host: a file, or this very machine by any of its names."""
    address = address.strip()
    if address.lower().startswith("file:"):
        return True
    try:
        name = (urlsplit(address if _SCHEME.match(address) else f"//{address}").hostname or "").rstrip(".")
    except ValueError:
        return False
    if name in _OWN_NAMES or name.endswith(".localhost"):
        return True
    try:
        ip = ipaddress.ip_address(name)
    except ValueError:
        return False
    return ip.is_loopback or ip.is_unspecified


def addresses(arguments: str) -> Iterator[str]:
    """Addresses among the arguments of a call (JSON text), by their field or by how they begin."""
    for name, value in _object(arguments).items():
        value = value.strip() if isinstance(value, str) else ""
        if value and (_SCHEME.match(value) or not _ADDRESS.isdisjoint(_words(name))):
            yield value


def stated_page(body: str) -> str | None:
    """The page on which an action ended, as its result says it."""
    stated = _STATED_PAGE.search(body)
    if stated:
        return stated[1]
    url = _object(body).get("url")
    return url if isinstance(url, str) else None


def _set_of(witness: Entry) -> tuple[str, ...] | None:
    """The words of a name that tell whose console or log it reads (`get_app_logs`: app); None when it reads none."""
    named = _words(witness.host_name)
    words = [word for word in named if word not in _READING]
    while len(words) > 1 and words[-1] in _NOUNS and not _SUBJECTS.isdisjoint(words[:-1]):
        words.pop()
    if not words or words[-1] not in _SUBJECTS or not _DOING.isdisjoint(words):
        return None
    # A lone `app_log` may as well write one.
    return None if _READING.isdisjoint(named) and named[-1] == "log" else tuple(words[:-1])


def _belongs(entry: Entry, witness: Entry) -> bool:
    """Sets are of one kind and share a word; a console of no set is that of a browser."""
    if entry.kind is not witness.kind or entry == witness:
        return False
    shared, words = _set_of(witness), set(_words(entry.host_name))
    if shared:
        return words >= set(shared)
    return "console" in _words(witness.host_name) and not words.isdisjoint(_PAGE)


def _fields(entry: Entry) -> Collection[str]:
    properties = entry.spec.parameters.get("properties")
    return properties if isinstance(properties, dict) else ()


def _words(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(name))


def _object(text: str) -> Mapping[str, Json]:
    if not text.lstrip().startswith("{"):
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
