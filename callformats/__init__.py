"""Calls written as text: read out of a reply, in every known format, and written back (S1)."""

from callformats.loose_json import Parsed, State, loads
from callformats.reading import Call, Fault, Reading, Refusal
from callformats.registry import all_formats, format_named
from callformats.stream import StreamReader
from callformats.whole import read
from callformats.writing import render, stop_strings

__all__ = [
    "Call",
    "Fault",
    "Parsed",
    "Reading",
    "Refusal",
    "State",
    "StreamReader",
    "all_formats",
    "format_named",
    "loads",
    "read",
    "render",
    "stop_strings",
]
