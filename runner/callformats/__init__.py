"""Calls written as text: read out of a reply, in every known format, and written back (S1)."""

from runner.callformats.loose_json import Parsed, State, loads
from runner.callformats.reading import Call, Fault, Reading, Refusal
from runner.callformats.registry import all_formats, format_named
from runner.callformats.stream import StreamReader
from runner.callformats.whole import read
from runner.callformats.writing import render, stop_strings

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
