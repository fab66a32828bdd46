"""LangBot's side of the Runner protocol, in this process: see `TestHost`."""

from .box import Box
from .delivery import Card
from .faults import Fault
from .host import TestHost
from .incoming import Attachment
from .knowledge import Chunk, KnowledgeBase
from .legality import Rule, Violation, violations
from .passthrough import PassThroughRunner
from .plugin import full_manifest, manifest_of
from .records import Call, Calls, depth_of
from .run_record import RunRecord
from .script import Model, ModelRequest, Reply, ToolCall
from .skills import Skill
from .texts import LANGUAGES, Language, Reason, model_error
from .tools import Tool, mcp_content

__all__ = [
    "LANGUAGES",
    "Attachment",
    "Box",
    "Call",
    "Calls",
    "Card",
    "Chunk",
    "Fault",
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
