"""What a reader had to make of a text that is no JSON, by name, and the one rule that says which of it may run (Sl)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Final


class Repair(Enum):
    """What had to be made of a text that is no JSON; the words say it to a model."""

    # Another spelling: clear in Python or JavaScript.
    QUOTES = "a string stands in other quotes"
    CONTROL = "a string holds a line break or another control character"
    ESCAPE = "a string holds an escape that JSON does not have"
    WORD = "a word stands for a value"
    NUMBER = "a number is not written as in JSON"
    TUPLE = "a list stands in parentheses"
    COMMA = "a comma is too many"
    BARE_KEY = "a key has no quotes"
    SET = "an object holds values without keys"
    BEGUN_TWICE = "a value is begun empty and written once more"
    # A slip with one reading: what it says runs if the tool's schema accepts it.
    COMMENT = "there is a comment in it"
    NO_COMMA = "a comma is missing"
    TAG_END = "a tag's end stands for a comma"
    LOOSE_KEY = "a key is not written as one"
    NO_KEY = "an object stands without a key"
    BRACES = "its braces are doubled"
    BACKSLASH = "a backslash stands before a letter"
    CLOSERS = "closers are missing at its end"
    INNER_CLOSER = "a closer is missing inside"
    STRAY_CLOSERS = "closers are too many"
    FENCE = "it stands in a code fence"
    # More than one reading: never runs, whatever the schema says.
    TORN_KEY = "a string in it is not closed"
    GROUP = "parentheses around one value may be a list or not"
    SIGN = "a backslash stands before a sign"
    DANGLING = "it breaks off where more was to come"
    NO_NAME = "a value in it stands without a key"
    BEHIND = "something stands behind its arguments that may belong to them"
    BESIDE = "something stands beside its arguments, and closers are missing or too many"


SPELLINGS: Final = frozenset(
    {
        Repair.QUOTES,
        Repair.CONTROL,
        Repair.ESCAPE,
        Repair.WORD,
        Repair.NUMBER,
        Repair.TUPLE,
        Repair.COMMA,
        Repair.BARE_KEY,
        Repair.SET,
        Repair.BEGUN_TWICE,
    }
)
UNSURE: Final = frozenset(
    {Repair.TORN_KEY, Repair.GROUP, Repair.SIGN, Repair.DANGLING, Repair.NO_NAME, Repair.BEHIND, Repair.BESIDE}
)
CLOSERS: Final = frozenset({Repair.CLOSERS, Repair.INNER_CLOSER, Repair.STRAY_CLOSERS})


def why_not(repairs: AbstractSet[Repair]) -> str | None:
    """The one rule over repairs (Sl): why a call that needed them must not run, natively or as text; None if it may,
    provided that the tool's schema accepts the result.
    """
    if Repair.COMMENT in repairs and repairs & CLOSERS:
        return "closers are missing, and a comment in it may hold them"
    return next((repair.value for repair in Repair if repair in repairs and repair in UNSURE), None)
