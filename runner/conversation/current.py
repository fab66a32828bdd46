"""What people say to this run: the current message, and follow-ups that steering brings (B4, G1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from langbot_plugin.api.entities.builtin.provider.message import ContentElement
from langbot_plugin.api.entities.builtin.runner.event import ActorContext
from langbot_plugin.api.entities.builtin.runner.input import AgentInput

from runner.conversation.attachments import Place, attached, lines_of
from runner.conversation.speakers import Speakers
from runner.conversation.units import Image, Part, Reference, Text, UserTurn

NOTHING_SAID = "[empty message]"
"""Stands for a message in which nothing can be read (a sticker, a failed upload)."""

NOWHERE: Mapping[str, Place] = MappingProxyType({})
"""No file was put into a sandbox."""

_HOST_IMAGE = "[Image]"
"""What the Host writes in place of a picture that the primary model cannot see (host-contract §5)."""


def parts_of_input(
    value: AgentInput, actor_id: str | None, speakers: Speakers, places: Mapping[str, Place] = NOWHERE
) -> tuple[Part, ...]:
    """The message as parts: its text with its sender, its files in words, its pictures. Never empty.

    `places` tells by reference which files stand in the sandbox. `input.text` counts rather than the text
    elements: pinned resources stand only there (pitfall 20).
    """
    files = lines_of(attached(value), places)
    pictures = tuple(image for element in value.contents for image in _images(element)) or _attached_pictures(value)
    words = "\n".join(filter(None, [_text_of(value), *files]))
    if not words.strip() and not pictures:
        words = NOTHING_SAID
    return (Text(speakers.says(actor_id, words)), *pictures) if words.strip() or speakers.group else pictures


def current_turn(
    value: AgentInput,
    actor: ActorContext | None,
    speakers: Speakers,
    *,
    knowledge: Reference | None = None,
    places: Mapping[str, Place] = NOWHERE,
    aside: str = "",
) -> UserTurn:
    """One message as a user turn of its own.

    Before its words stands what was found for it (E2), and what the runner has to tell `aside`. The words come last of
    the texts: they are cut last.
    """
    before = [*([knowledge] if knowledge is not None else []), *([Text(aside)] if aside else [])]
    return UserTurn((*before, *parts_of_input(value, actor.actor_id if actor else None, speakers, places)))


def said_in(value: AgentInput) -> str:
    """The person's own words, for retrieval: without pinned resources and without the Host's words for pictures."""
    texts = [element.text for element in value.contents if element.type == "text" and element.text]
    own = "\n".join(text for text in texts if text.strip() != _HOST_IMAGE)
    return (own if texts else value.to_text()).strip()


def _text_of(value: AgentInput) -> str:
    """`input.text`, or the text elements where it says nothing."""
    if value.text and value.text.strip():
        return value.text
    return " ".join(element.text for element in value.contents if element.type == "text" and element.text)


def _attached_pictures(value: AgentInput) -> tuple[Image, ...]:
    """Pictures that stand among the attachments only, unless the Host took them out for a model that cannot see."""
    if any((element.text or "").strip() == _HOST_IMAGE for element in value.contents):
        return ()
    pictures = [item for item in value.attachments if item.type == "image"]
    return tuple(
        Image(url=item.url) if item.url else Image(base64=item.content)
        for item in pictures
        if item.content or (item.url or "").startswith(("http://", "https://"))
    )


def _images(element: ContentElement) -> Sequence[Image]:
    if element.type == "image_base64" and element.image_base64:
        return [Image(base64=element.image_base64)]
    if element.type == "image_url" and element.image_url and element.image_url.url:
        return [Image(url=element.image_url.url)]
    return []
