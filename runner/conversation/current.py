"""What people say to this run: the current message, and follow-ups that steering brings (B4, G1)."""

from __future__ import annotations

from collections.abc import Sequence

from langbot_plugin.api.entities.builtin.provider.message import ContentElement
from langbot_plugin.api.entities.builtin.runner.event import ActorContext
from langbot_plugin.api.entities.builtin.runner.input import AgentInput, InputAttachment

from runner.conversation.speakers import Speakers
from runner.conversation.units import Image, Part, Reference, Text, UserTurn

NOTHING_SAID = "[empty message]"
"""Stands for a message in which nothing can be read (a sticker, a failed upload)."""

_NAME_LIMIT = 120
"""Characters of a file name that reach the model."""

_HOST_IMAGE = "[Image]"
"""What the Host writes in place of a picture that the primary model cannot see (host-contract §5)."""

_FILE_TYPES = frozenset({"file_base64", "file_url"})


def parts_of_input(value: AgentInput, actor_id: str | None, speakers: Speakers) -> tuple[Part, ...]:
    """The message as parts: its text with its sender, its files in words, its pictures. Never empty.

    `input.text` counts rather than the text elements: pinned resources stand only there (pitfall 20).
    """
    files = _files_in_words(value)
    pictures = tuple(image for element in value.contents for image in _images(element))
    words = "\n".join(filter(None, [value.to_text(), *files]))
    if not words.strip() and not pictures:
        words = NOTHING_SAID
    return (Text(speakers.says(actor_id, words)), *pictures) if words.strip() or speakers.group else pictures


def current_turn(
    value: AgentInput, actor: ActorContext | None, speakers: Speakers, knowledge: Reference | None = None
) -> UserTurn:
    """One message as a user turn of its own, what was found for it before its words (E2)."""
    said = parts_of_input(value, actor.actor_id if actor else None, speakers)
    return UserTurn((knowledge, *said) if knowledge is not None else said)


def said_in(value: AgentInput) -> str:
    """The person's own words, for retrieval: without pinned resources and without the Host's words for pictures."""
    texts = [element.text for element in value.contents if element.type == "text" and element.text]
    own = "\n".join(text for text in texts if text.strip() != _HOST_IMAGE)
    return (own if texts else value.to_text()).strip()


def _images(element: ContentElement) -> Sequence[Image]:
    if element.type == "image_base64" and element.image_base64:
        return [Image(base64=element.image_base64)]
    if element.type == "image_url" and element.image_url and element.image_url.url:
        return [Image(url=element.image_url.url)]
    return []


def _files_in_words(value: AgentInput) -> list[str]:
    """Files that no provider takes as such, each named once: attachments carry more than content elements do."""
    attached = [item for item in value.attachments if item.type != "image"]
    named = {item.name for item in attached}
    loose = [element for element in value.contents if element.type in _FILE_TYPES and element.file_name not in named]
    return [*map(_attachment_words, attached), *(_file_words(element.file_name) for element in loose)]


def _attachment_words(item: InputAttachment) -> str:
    facts = [_short(item.name) or "unnamed", item.mime_type or "", _size_words(item.size), item.path or ""]
    return f"[{item.type or 'file'}: {', '.join(filter(None, facts))}]"


def _file_words(name: str | None) -> str:
    return f"[file: {_short(name) or 'unnamed'}]"


def _short(name: str | None) -> str:
    return " ".join((name or "").replace("[", "(").replace("]", ")").split())[:_NAME_LIMIT]


def _size_words(size: int | None) -> str:
    if size is None:
        return ""
    return f"{size} bytes" if size < 1024 else f"{size / 1024:.0f} KiB"
