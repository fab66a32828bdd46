"""What comes in from the chat or the platform, before it becomes a run."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from langbot_plugin.api.entities.builtin.provider.message import ContentElement

from .script import Json
from .transcript import BOT, WORKSPACE, hollow

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
