"""Messages sent across the end of runs, through the real LangBot: none is lost without a trace (G1).

What the window is depends on the machine; it is printed, not asserted. `WINDOW_PAIRS=100` sends 200 messages.
"""

from __future__ import annotations

import os
import sys

import pytest

from tests.e2e.bed import Bed
from tests.e2e.crossings import PAIRS_PER_CHAT, cross_in_one_chat, moments, table
from tests.e2e.scripted_model import ScriptedModel

pytestmark = pytest.mark.usefixtures("ours")

PAIRS = int(os.environ.get("WINDOW_PAIRS", "20"))


async def test_G1_every_message_across_the_end_of_a_run_is_answered_once_or_named_as_dropped(
    bed: Bed, model: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    crossings = []
    pipeline = bed.pipeline()
    for begin in range(0, PAIRS, PAIRS_PER_CHAT):
        crossings += await cross_in_one_chat(bed, model, pipeline, begin, moments(PAIRS))
    with capsys.disabled():
        sys.stdout.write(f"\n{table(crossings)}\n")
    assert [crossing.answers for crossing in crossings] == [0 if c.fate == "dropped" else 1 for c in crossings]
    assert [crossing.strangers for crossing in crossings] == [0] * PAIRS
