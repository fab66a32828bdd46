"""Calls written as text: read out of a reply in every known format, and written back (S1). README.md tells how.

What stands in `__all__` is the library; everything else in this folder may change.
"""

from callformats.inert import INERT
from callformats.json_value import Json
from callformats.loose_json import State, read_json
from callformats.offered import Offered, ToolSpec, spec_of, without_channel
from callformats.plain_words import framed
from callformats.quotation import ForeignText, Quotations
from callformats.reading import Call, Fault, Reading, Refusal
from callformats.registry import all_formats, all_markers, format_named
from callformats.repairs import why_not
from callformats.schema import decoded
from callformats.standing import CallKey, call_key
from callformats.stream import StreamReader
from callformats.whole import read
from callformats.without_thoughts import is_thought_alone, without_thoughts
from callformats.writing import render

__all__ = [
    "INERT",
    "Call",
    "CallKey",
    "Fault",
    "ForeignText",
    "Json",
    "Offered",
    "Quotations",
    "Reading",
    "Refusal",
    "State",
    "StreamReader",
    "ToolSpec",
    "all_formats",
    "all_markers",
    "call_key",
    "decoded",
    "format_named",
    "framed",
    "is_thought_alone",
    "read",
    "read_json",
    "render",
    "spec_of",
    "why_not",
    "without_channel",
    "without_thoughts",
]
