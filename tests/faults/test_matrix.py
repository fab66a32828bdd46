"""A sample of the matrix from a printed seed, and that a breach in it would be noticed (Q4)."""

from __future__ import annotations

import os

import pytest

from runner.channel import steering
from runner.run.run import _Run
from tests.host import Fault
from tests.host.faults import bent
from tests.seeds import SEED

from .matrix import FAULTS, STAGES, Case, Report, actions_of, all_cases, play, sample

CASES = int(os.environ.get("LOCALAGENT_FAULT_CASES", "150"))


def test_Q4_every_call_of_a_run_may_fail_in_every_way(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    for case in sample(SEED, CASES):
        play(case, report)
    with capsys.disabled():
        print(f"\nfaults from seed {SEED}: {report.text}")  # noqa: T201 - the seed has to be seen
    assert report.findings == []
    assert (report.cases, report.runs) == (CASES, 2 * CASES)
    assert report.struck >= 0.95 * CASES, "too few faults struck to prove anything"


def test_Q4_the_matrix_is_whole() -> None:
    """Each call that a run can make stands on some stage; there are thousands of cases."""
    made = {action for name in STAGES for action in actions_of(name)}
    assert made == {
        "get_prompt",
        "history_page",
        "count_tokens",
        "invoke_llm_stream",
        "invoke_llm",
        "get_langbot_version",
        "call_tool",
        "steering_pull",
        "run_get",
        "run_list",
        "run_events_page",
        "retrieve_knowledge_base",
        "invoke_rerank",
        "get_box_status",
        "acquire_box",
        "bind_box",
        "import_box_attachments",
        "export_box_files",
        "state_get",
        "state_set",
        "state_delete",
        "reply_stream",
        "call_platform_api",
    }
    assert sum(1 for _ in all_cases()) > 2_000


def test_Q4_the_same_seed_gives_the_same_cases() -> None:
    assert sample(3, 20) == sample(3, 20) != sample(4, 20)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_Q4_an_answer_of_other_types_has_them_so_deep(depth: int) -> None:
    answer = {"items": [{"event": "e"}], "count": 3}
    wrong = bent(Fault.wrong_type(depth), answer)
    assert (
        wrong
        == [
            {"items": "x", "count": "x"},
            {"items": [["x"]], "count": "x"},
            {"items": [{"event": 7}], "count": "x"},
        ][depth]
    )


# That a breach would be noticed


def findings(case: Case) -> list[str]:
    report = Report()
    play(case, report)
    return report.findings


def test_Q4_a_run_without_an_ending_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forgets(_self: object) -> None:
        """Says nothing, ever."""

    monkeypatch.setattr(_Run, "drive", forgets)
    assert findings(Case("plain", "run_get", "error", always=False))


def test_Q4_a_follow_up_that_nobody_read_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def deaf(_self: object) -> None:
        return None

    monkeypatch.setattr(steering.Steering, "_missed", deaf)
    found = findings(Case("lost_pull", "history_page", "error", always=True))
    assert found, "a lost follow-up"


@pytest.mark.parametrize("fault", FAULTS)
def test_Q4_a_poll_that_fails_in_any_way_ends_no_run(fault: str) -> None:
    assert findings(Case("tools", "run_get", fault, always=True)) == []
