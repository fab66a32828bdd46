"""The files that came with a message, each once, and how the model reads of them (B4, H2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from langbot_plugin.api.entities.builtin.provider.message import ContentElement
from langbot_plugin.api.entities.builtin.runner.input import AgentInput, InputAttachment

from runner.conversation.addresses import tellable
from runner.conversation.names import one_line
from runner.guards import defang

_FILE_TYPES = frozenset({"file_base64", "file_url"})
VOICE_NAMES = frozenset({"voice", "voice.silk"})
"""What the Host calls a voice message among the content elements."""

PATH_LIMIT = 1_000
"""Characters of a file's path that reach the model; the Host makes them of plain letters, an adapter of anything."""

_CHAIN = "message_chain"


@dataclass(frozen=True, slots=True)
class Attached:
    """One file. `ref` is what the Host imports it by (none while steering); `size` is bytes, None when unknown;
    `address` is where it can be fetched, empty where that may hold a key."""

    kind: str
    name: str = ""
    mime: str = ""
    size: int | None = None
    path: str = ""
    ref: str | None = None
    address: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file stands in the sandbox. `path` None: it could not be put there."""

    path: str | None
    size: int | None = None


NOWHERE: Mapping[str, Place] = MappingProxyType({})
"""No file was put into a sandbox."""


def attached(value: AgentInput) -> tuple[Attached, ...]:
    """Every file of a message once. The Host lists most of them twice: from the content elements and from the message
    chain, voices even as two kinds.
    """
    listed = [item for item in value.attachments if not _repeats(item, value.attachments)]
    files = [_attached(item, value.attachments) for item in listed]
    names = {file.name for file in files}
    voices = any(file.kind == "voice" for file in files)
    loose = (element for element in value.contents if element.type in _FILE_TYPES)
    return (*files, *(_loose(each) for each in loose if not _is_listed(each, names, voices=voices)))


def in_words(file: Attached, place: Place | None = None) -> str:
    """A file in one line: kind, name, type, size, its place in the sandbox, and its address."""
    size = file.size if place is None or place.size is None else place.size
    where = file.path if place is None else place.path or "could not be put into the sandbox"
    facts = (
        one_line(file.name) or "unnamed",
        one_line(file.mime),
        _size_words(size),
        one_line(where, PATH_LIMIT),
        one_line(file.address, PATH_LIMIT),
    )
    return defang(f"[{file.kind}: {', '.join(filter(None, facts))}]")


def lines_of(files: tuple[Attached, ...], places: Mapping[str, Place]) -> list[str]:
    """One line for each file the model does not see otherwise: all but pictures that were never to be imported."""
    placed = [(file, places.get(file.ref) if file.ref else None) for file in files]
    return [in_words(file, place) for file, place in placed if file.kind != "image" or place is not None]


def _repeats(item: InputAttachment, among: list[InputAttachment]) -> bool:
    """Whether an item of the message chain only repeats one of the content elements.

    Pictures lose their payload on the way, but content elements hold either all pictures of the chain or none.
    """
    if item.source != _CHAIN:
        return False
    others = (other for other in among if other.source != _CHAIN)
    if item.type == "image":
        return any(other.type == "image" for other in others)
    return any(_same_payload(item, other) for other in others)


def _same_payload(one: InputAttachment, other: InputAttachment) -> bool:
    return bool((one.content and one.content == other.content) or (one.url and one.url == other.url))


def _attached(item: InputAttachment, among: list[InputAttachment]) -> Attached:
    twins = [other for other in among if other is not item and _same_payload(item, other)]
    voice = item.name in VOICE_NAMES or any(one.type == "voice" for one in (item, *twins))
    return Attached(
        kind="voice" if voice else item.type or "file",
        name=item.name or "",
        mime=item.mime_type or "",
        size=item.size if item.size is not None else _bytes_in(item.content),
        path=item.path or "",
        ref=item.ref,
        address=next(filter(None, (tellable(one.url) for one in (item, *twins))), ""),
    )


def _loose(element: ContentElement) -> Attached:
    name = element.file_name or ""
    kind, size = "voice" if name in VOICE_NAMES else "file", _bytes_in(element.file_base64)
    return Attached(kind, name, size=size, address=tellable(element.file_url))


def _is_listed(element: ContentElement, names: set[str], *, voices: bool) -> bool:
    name = element.file_name or ""
    return name in names or (voices and name in VOICE_NAMES)


def _bytes_in(base64: str | None) -> int | None:
    """The size of what base64 text or a data URL holds, without decoding it."""
    if not base64:
        return None
    body = len(base64) - (base64.find(",") + 1 if base64.startswith("data:") else 0)
    return (body - base64[-2:].count("=")) * 3 // 4


def _size_words(size: int | None) -> str:
    if size is None:
        return ""
    if size < 1024:
        return f"{size} bytes"
    return f"{size / 1024:.0f} KiB" if size < 1024 * 1024 else f"{size / 1024 / 1024:.1f} MiB"
