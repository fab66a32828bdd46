"""What comes in from the chat or the platform, and what the person there sees."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from langbot_plugin.api.entities.builtin.provider.message import ContentElement, Message, MessageChunk

from .script import Json
from .transcript import BOT, WORKSPACE, hollow

# What comes in from the chat or the platform, before it becomes a run.

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Attachment:
    """A file, image or voice that came with a message. `content` is base64."""

    name: str
    content: str = ""
    type: str = "file"
    url: str | None = None


@dataclass(frozen=True)
class Incoming:
    """One event. `conversation` names launcher type and id, as in `person_1` or `group_9`."""

    text: str | None
    sender: str = "u1"
    sender_name: str = ""
    conversation: str | None = "person_1"
    images: Sequence[str] = ()
    attachments: Sequence[Attachment] = ()
    variables: Json = field(default_factory=dict)
    event_type: str = "message.received"
    data: Json = field(default_factory=dict)
    source: str = "host_adapter"
    interaction: Json | None = None
    number: int = field(default_factory=lambda: next(_numbers))
    time: int = field(default_factory=lambda: int(time.time()))

    @property
    def event_id(self) -> str:
        if self.source == "platform":
            return f"platform:{BOT}:{self.number}"
        return "host:" + hashlib.sha256(f"{self.conversation}-{self.number}".encode()).hexdigest()[:32]

    @property
    def launcher(self) -> tuple[str, str]:
        kind, _, name = (self.conversation or "").partition("_")
        return kind, name

    @property
    def name(self) -> str:
        return self.sender_name or self.sender

    def contents(self, *, images: bool = True) -> list[Json]:
        """Content parts. Without `images` each is the word `[Image]` (preproc.py, where the primary lacks vision)."""
        parts = [ContentElement.from_text(self.text)] if self.text is not None else []
        for image in self.images:
            parts.append(ContentElement.from_image_base64(image) if images else ContentElement.from_text("[Image]"))
        for one in self.attachments:
            if one.type != "image":
                parts.append(ContentElement.from_file_base64(one.content, one.name))
        return [part.model_dump(mode="json") for part in parts]

    def attachment_list(self, *, references: bool = True) -> list[Json]:
        """`ctx.input.attachments`; steering ones carry no reference (box/runner.py:prepare_input_files)."""
        found: list[Json] = [{"type": "image", "source": "base64", "content": image} for image in self.images]
        for one in self.attachments:
            source = "url" if one.url else "base64"
            found.append({"type": one.type, "source": source, "content": one.content, "name": one.name, "url": one.url})
        unset: Json = dict.fromkeys(("url", "name", "id", "path"))
        return [
            {**unset, **one, "content": one["content"] or None, "ref": f"attachment-{index}" if references else None}
            for index, one in enumerate(found)
        ]

    def input(self, *, images: bool = True, references: bool = True) -> Json:
        parts = self.contents(images=images)
        texts = [str(part["text"]) for part in parts if part["type"] == "text"]
        return {
            "text": "".join(texts) or None,
            "contents": parts,
            "attachments": self.attachment_list(references=references),
            "interaction": self.interaction,
        }

    def row(self, *, images: bool = True) -> tuple[str | None, Json, list[Json]]:
        """Text, `content_json` and attachments of its transcript row (run_journal.py:write_user_transcript)."""
        given = self.input(images=images)
        references = [
            {**one, "content": None, "content_redacted": True} if one["content"] else one
            for one in given["attachments"]
        ]
        return given["text"], {"role": "user", "content": [hollow(part) for part in given["contents"]]}, references

    @property
    def actor(self) -> Json:
        return {"actor_type": "user", "actor_id": self.sender, "actor_name": self.name, "metadata": {}}

    @property
    def platform(self) -> bool:
        """Whether it comes straight from the platform, past any pipeline (platform/botmgr.py)."""
        return self.source == "platform"

    @property
    def subject(self) -> Json:
        kind, launcher_id = self.launcher
        if self.interaction is not None:
            data = {"action_id": self.interaction["action_id"]}
            return {"subject_type": "interaction", "subject_id": self.interaction["interaction_id"], "data": data}
        if not self.platform:
            data = {"launcher_type": kind, "launcher_id": launcher_id, "sender_id": self.sender, "bot_uuid": BOT}
            return {"subject_type": "message", "subject_id": str(self.number), "data": data}
        if kind == "group":
            return {"subject_type": "group", "subject_id": launcher_id, "data": {"group_name": f"Group {launcher_id}"}}
        if self.event_type.startswith("message."):
            return {"subject_type": "message", "subject_id": str(self.number), "data": {}}
        return {"subject_type": "event", "subject_id": self.event_type, "data": {}}

    @property
    def event(self) -> Json:
        legacy = "GroupMessage" if self.launcher[0] == "group" else "FriendMessage"
        own: Json = {"type": self.event_type, "timestamp": self.time}
        if not self.platform:
            own = {"instance_uuid": "instance-1", "workspace_uuid": WORKSPACE, "placement_generation": 1}
            own |= {"type": legacy, "time": float(self.time)}
        return {
            "event_id": self.event_id,
            "event_type": self.event_type,
            "event_time": self.time,
            "source": self.source,
            "source_event_type": self.event_type if self.platform else legacy,
            "raw_ref": {"ref_id": str(self.number), "storage_key": None} if self.platform else None,
            "data": {**own, **_compact(self.data)},
        }

    @property
    def reply_target(self) -> Json:
        kind, launcher_id = self.launcher
        target: Json = {"target_type": kind or None, "target_id": launcher_id or None, "message_id": str(self.number)}
        if self.platform and launcher_id:
            target["chat_id"] = launcher_id
            if kind == "group":
                target["group_id"] = launcher_id
        return target

    def steering_item(self, run_id: str, runner_id: str) -> Json:
        """As the Host queues it (orchestrator.py:_build_steering_item): images whatever the model can see."""
        place = {"conversation_id": self.conversation, "thread_id": None, "bot_id": BOT, "workspace_id": WORKSPACE}
        given = self.input(references=False)
        given.pop("interaction")
        return {
            "claimed_run_id": run_id,
            "runner_id": runner_id,
            "claimed_at": int(time.time()),
            "event": self.event,
            "conversation": place,
            "actor": self.actor,
            "subject": self.subject,
            "input": given,
        }

    def event_row(self, seq: int) -> Json:
        """The event as `event_get` shows it (event_log_store.py)."""
        event, actor, subject = self.event, self.actor, self.subject
        return {
            **{key: event[key] for key in ("event_id", "event_type", "event_time", "source", "raw_ref")},
            **{key: actor[key] for key in ("actor_type", "actor_id", "actor_name")},
            **{key: subject[key] for key in ("subject_type", "subject_id")},
            "bot_id": BOT,
            "workspace_id": WORKSPACE,
            "conversation_id": self.conversation,
            "thread_id": None,
            "input_summary": (self.text or "")[:200],
            "input_ref": None,
            "seq": seq,
            "cursor": str(seq),
            "created_at": self.time,
            "metadata": {"input_event": event["data"]},
        }


def _compact(data: Json) -> Json:
    """Event data as the Host hands it on: strings and JSON over 512 bytes are left out
    (botmgr.py:_compact_event_data)."""
    kept = {}
    for key, value in data.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if len(text.encode("utf-8")) <= 512 and not key.startswith("_"):
            kept[key] = value
    return kept


# What the person in the chat sees: langbot/pkg/pipeline/process/stream_results.py (coalescing),
# process/handlers/chat.py, wrapper/wrapper.py, respback/respback.py, pipelinemgr.py:_check_output.

FAILURE_HINT = "Agent runner execution failed."
UNAVAILABLE_HINT = "Agent runner temporarily unavailable. Please try again."

Delivered = Message | MessageChunk


@dataclass(eq=False)
class Card:
    """One message in the chat. A stream adapter rewrites it with each text; `final`: it was closed."""

    texts: list[str] = field(default_factory=list)
    final: bool = False
    files: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.texts[-1] if self.texts else ""


class RunFailed(Exception):
    """The Host's RunnerExecutionError: the chat sees a hint, never this text."""

    def __init__(self, text: str, *, code: str | None = None, retryable: bool = False) -> None:
        super().__init__(text)
        self.code = code
        self.retryable = retryable


async def coalesce(results: AsyncIterator[Delivered]) -> AsyncIterator[Delivered]:
    """Merges a final delta with the completed message behind it when the message repeats it or is its end."""
    waiting: MessageChunk | None = None
    shown = ""
    async for result in results:
        if waiting is not None:
            merged = _merge(waiting, result)
            if merged is None:
                yield waiting
            else:
                result = merged
            waiting, shown = None, ""
        if isinstance(result, Message):
            shown = ""
            yield result
            continue
        if result.content is None or isinstance(result.content, str):
            shown = result.all_content if result.all_content is not None else result.content or shown
            result = result.model_copy(update={"all_content": shown})
        if result.is_final:
            waiting = result
        else:
            yield result
    if waiting is not None:
        yield waiting


def _merge(chunk: MessageChunk, result: Delivered) -> Delivered | None:
    """The one update that stands for both, or None when they are two."""
    text = chunk.all_content if chunk.all_content is not None else chunk.content
    if not isinstance(result, Message) or result.role != chunk.role:
        return None
    if (result.tool_calls or []) != (chunk.tool_calls or []):
        return None
    both_texts = isinstance(text, str) and isinstance(result.content, str)
    is_end = both_texts and bool(result.content) and str(text).endswith(str(result.content))
    if text and result.content != text and not is_end:
        return None
    return result.model_copy(update={"content": text}) if is_end else result


class Chat:
    """One adapter's view of one run. `streaming` False: an adapter that cannot stream gets the last result only."""

    def __init__(self, *, streaming: bool, seconds: float = 0.0) -> None:
        self.cards: list[Card] = []
        self.notice: str | None = None
        self.updates = 0
        self._streaming = streaming
        self._seconds = seconds
        self._open: Card | None = None

    async def deliver(self, results: AsyncIterator[Delivered]) -> None:
        """Consumes a run's messages; `seconds` pass for each text shown."""
        try:
            if self._streaming:
                async for result in coalesce(results):
                    await self._show(result)
            else:
                await self._show_last(results)
        except RunFailed as failure:
            self._fail(failure)
            raise

    async def _show(self, result: Delivered) -> None:
        final = True
        if isinstance(result, MessageChunk):
            final = result.is_final
            if result.all_content is not None:
                result = result.model_copy(update={"content": result.all_content})
        if result.tool_calls:
            final = False
        card = self._card()
        if result.role == "assistant" and (result.content or result.attachments):
            card.texts.append(_text(result))
            card.files.extend(_files(result))
            card.final = final
            self.updates += 1
            await asyncio.sleep(self._seconds)
        if final and not result.tool_calls:
            self._open = None

    async def _show_last(self, results: AsyncIterator[Delivered]) -> None:
        last: Delivered | None = None
        async for result in results:
            last = result
        if last is None or last.role != "assistant" or not (last.content or last.attachments):
            return
        self.cards.append(Card([_text(last)], final=True, files=_files(last)))
        self.updates += 1

    def _card(self) -> Card:
        if self._open is None:
            self._open = Card()
            self.cards.append(self._open)
        return self._open

    def _fail(self, failure: RunFailed) -> None:
        """The hint takes the place of the text of the newest card, which stays unfinished
        (chat.py:ChatMessageHandler, pipelinemgr.py:_check_output)."""
        self.notice = UNAVAILABLE_HINT if failure.retryable else FAILURE_HINT
        if self._streaming and self.cards:
            self.cards[-1].texts.append(self.notice)
        else:
            self.cards.append(Card([self.notice], final=True))


def _text(result: Delivered) -> str:
    """The plain text an adapter shows: files ride beside it."""
    content = result.content
    if isinstance(content, list):
        return "".join(part.text or "" for part in content if part.type == "text")
    return content or ""


def _files(result: Delivered) -> list[str]:
    return [str(getattr(component, "name", "") or component.type) for component in result.attachments or ()]
