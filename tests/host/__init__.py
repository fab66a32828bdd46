"""LangBot's side of the Runner protocol, in this process.

    async def test_a_tool_result_reaches_the_next_request() -> None:
        weather = Tool("weather", fn=lambda city: {"sky": "clear"})
        host = TestHost(MyRunner(), replies=[Reply(tool_calls=[ToolCall("weather", {"city": "Oslo"})]), "Clear."],
                        tools=[weather])
        host.fail("steering_pull", Fault.timeout())
        run = await host.say("How is the weather?")
        assert (run.status, run.answer) == ("completed", "Clear.")
        assert run.requests[1].violations() == []
        assert run.calls.but("run_get").depth <= 8

A run's record says what each side saw: `results` (the Runner's), `cards` (the chat's), `requests` (the provider's),
`calls` (the Host's). Everything the Host keeps is under `host.world`.
"""

from .box import Box
from .chat import Attachment, Card
from .faults import Fault
from .host import TestHost
from .legality import Rule, Violation, violations
from .passthrough import PassThroughRunner
from .platform import CardRefused, InteractionCard
from .plugin import full_manifest, manifest_of
from .records import Call, Calls, depth_of
from .run_record import RunRecord
from .script import Model, ModelRequest, Reply, ToolCall
from .texts import LANGUAGES, Language, Reason, model_error
from .tools import Chunk, KnowledgeBase, Skill, Tool, mcp_content

__all__ = [
    "LANGUAGES",
    "Attachment",
    "Box",
    "Call",
    "Calls",
    "Card",
    "CardRefused",
    "Chunk",
    "Fault",
    "InteractionCard",
    "KnowledgeBase",
    "Language",
    "Model",
    "ModelRequest",
    "PassThroughRunner",
    "Reason",
    "Reply",
    "Rule",
    "RunRecord",
    "Skill",
    "TestHost",
    "Tool",
    "ToolCall",
    "Violation",
    "depth_of",
    "full_manifest",
    "manifest_of",
    "mcp_content",
    "model_error",
    "violations",
]
