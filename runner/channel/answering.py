"""Who answers the person in the chat: the Host, this runner, or the model by its own tool calls (J2).

Pure. Outside a pipeline the Host sends nothing by itself, so exactly one of the other two must.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.resources import ToolResource

from config.choices import AgentReply
from config.settings import Settings
from runner.consent.request import PREFIX
from runner.conversation.happened import is_message
from runner.conversation.pressed import is_press
from runner.tools.catalogue import Catalogue, Entry, Kind, may_be_called

EVENT_REPLY = "event_reply"
"""The Host's tool that sends a text to where the event came from."""

MODEL_ANSWERS_LINE = (
    "What you write is not sent to anybody. To answer, call {tool} with the text; call it once unless several messages "
    "are wanted."
)
"""Added to the system message where the model has to send its answer itself."""


class Answering(StrEnum):
    """Who sends what this run says."""

    HOST = "host"  # a pipeline: messages of the run are delivered (C6)
    RUNNER = "runner"  # a message outside a pipeline: the runner replies, the model cannot
    MODEL = "model"  # a message outside a pipeline: the model replies by tool, the runner does not
    NOBODY = "nobody"  # another event: the model may act, its text is for the log


def answering_of(ctx: RunnerContext, settings: Settings) -> Answering:
    """Who answers in this run."""
    if ctx.delivery.automatic_reply:
        return Answering.HOST
    if not is_message(ctx.event.event_type) and not is_press(ctx, PREFIX):
        return Answering.NOBODY
    return Answering.MODEL if settings.agent_reply is AgentReply.MODEL else Answering.RUNNER


def may_reply(tools: Sequence[ToolResource]) -> bool:
    """Whether the Host lets this run send to where the event came from."""
    return any(
        tool.tool_name == EVENT_REPLY and tool.tool_type == Kind.PLATFORM and may_be_called(tool) for tool in tools
    )


def offered(catalogue: Catalogue, answering: Answering) -> Catalogue:
    """The tools the model may use: without the reply tool where the runner replies."""
    return catalogue.only(lambda entry: not is_reply(entry)) if answering is Answering.RUNNER else catalogue


def is_reply(entry: Entry) -> bool:
    return entry.kind is Kind.PLATFORM and entry.host_name == EVENT_REPLY


def system_line(catalogue: Catalogue, answering: Answering) -> str | None:
    """What the model must know about answering; None where its text reaches the chat, or cannot."""
    tool = sent_by(catalogue, answering)
    return MODEL_ANSWERS_LINE.format(tool=tool) if tool else None


def sent_by(catalogue: Catalogue, answering: Answering) -> str | None:
    """The tool by which the model has to send its answer itself; None where others send it, or nobody can."""
    if answering is not Answering.MODEL:
        return None
    return next((entry.name for entry in catalogue if is_reply(entry)), None)
