"""What is left to chance in the tests, and how to have it again or have more of it.

`LOCALAGENT_SEED=7` chooses other examples, cases and chats than every run else does; the first lines of a run print it.
`LOCALAGENT_EXAMPLES=100` gives every property a hundred times its examples.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest
from hypothesis import settings

USUAL = 20_000
SEED = int(os.environ.get("LOCALAGENT_SEED", USUAL))
EXAMPLES = int(os.environ.get("LOCALAGENT_EXAMPLES", "1"))


def give_more_examples(items: Iterable[pytest.Item]) -> None:
    """Multiplies what each property asks for, its own number included."""
    functions = {item.function for item in items if isinstance(item, pytest.Function)}
    for test in (function for function in functions if hasattr(function, "hypothesis")):
        test = getattr(test, "__func__", test)  # of a class, the method itself
        # Where a decorator leaves its settings; there is no other way to change them for all tests at once.
        own: settings = test._hypothesis_internal_use_settings
        test._hypothesis_internal_use_settings = settings(own, max_examples=own.max_examples * EXAMPLES)
