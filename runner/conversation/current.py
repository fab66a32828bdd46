"""What people say to this run: the current message, and follow-ups that steering brings (B4, G1)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from langbot_plugin.api.entities.builtin.runner.event import ActorContext
from langbot_plugin.api.entities.builtin.runner.input import AgentInput

from runner.conversation import quotes
from runner.conversation.attachments import NOWHERE, Attached, Place, attached, lines_of
from runner.conversation.speakers import Speakers
from runner.conversation.units import Image, Part, Reference, Text, UserTurn, image_of
from runner.guards import defang

NOTHING_SAID = "[empty message]"
"""Stands for a message in which nothing can be read (a sticker, a failed upload)."""

_HOST_IMAGE = "[Image]"
"""What the Host writes in place of a picture that the primary model cannot see."""

PINNED = "\n\nMCP resource context selected by LangBot host:"
"""How the Host begins what it appends to a message: MCP resources that the pipeline pins."""


def parts_of_input(
    value: AgentInput, actor_id: str | None, speakers: Speakers, places: Mapping[str, Place] = NOWHERE
) -> tuple[Part, ...]:
    """The message as parts: its text with its sender, its files in words, its pictures. Never empty.

    `places` tells by reference which files stand in the sandbox. `input.text` counts rather than the text
    elements: pinned resources stand only there.
    """
    came = attached(value)
    files = lines_of(came, places)
    pictures = tuple(filter(None, map(image_of, value.contents))) or _attached_pictures(value)
    said = _resources_inert(_marks_apart(quotes.in_words(_text_of(value)), came))
    words = "\n".join(filter(None, [said, *files]))
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
    own = [text.partition(PINNED)[0] for text in texts or [value.to_text()]]
    return quotes.in_words("\n".join(text for text in own if text.strip() != _HOST_IMAGE)).strip()


def _text_of(value: AgentInput) -> str:
    """`input.text`, or the text elements where it says nothing.

    The Host glues the elements together, a quoted message and what was said to it too: they are put apart again.
    """
    texts = [element.text for element in value.contents if element.type == "text" and element.text]
    said, glued = value.text or "", "".join(texts)
    # Pinned resources stand at the end of the text, and in the first element where there are elements.
    if not said.strip() or (len(texts) > 1 and len(said) == len(glued)):
        return _apart(texts)
    return _apart(texts) + said[len(glued) :] if said.startswith(glued) else said


def _resources_inert(text: str) -> str:
    """What the Host appended is data (S7); behind it nothing tells what was said from what was appended."""
    said, mark, appended = text.partition(PINNED)
    return said + defang(mark + appended)


def _marks_apart(text: str, files: Sequence[Attached]) -> str:
    """Outside a pipeline the text holds the Host's marks of files, glued to what is said: `[File]plan.pdfRead it`."""
    names = "|".join(re.escape(name) for name in sorted({file.name for file in files} - {""}, key=len, reverse=True))
    marks = r"\[Image\]|\[Voice\]" + (rf"|\[File\](?:{names})" if names else "")
    return re.sub(rf"((?:{marks})+)(?=[^\s\[])", r"\1\n", text) if files else text


def _apart(texts: Sequence[str]) -> str:
    """The texts in a row, on lines of their own where no white space stands between them."""
    whole = ""
    for text in texts:
        whole += f"\n{text}" if whole and not (whole[-1].isspace() or text[0].isspace()) else text
    return whole


def _attached_pictures(value: AgentInput) -> tuple[Image, ...]:
    """Pictures that stand among the attachments only, unless the Host took them out for a model that cannot see."""
    if any((element.text or "").strip() == _HOST_IMAGE for element in value.contents):
        return ()
    pictures = [item for item in value.attachments if item.type == "image"]
    return tuple(
        Image(base64=item.content) if item.content else Image(url=item.url)  # an address may hold a key
        for item in pictures
        if item.content or (item.url or "").startswith(("http://", "https://"))
    )
