"""H3: only files under the run's own outbox, and failures as what they are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.sandbox.exports import (
    Unsent,
    batches,
    is_list,
    is_outbox,
    is_own,
    names_of,
    paths_in,
    why_refused,
    written_path,
)

OUTBOX = "/workspace/outbox/run-1"


@pytest.mark.parametrize("path", [f"{OUTBOX}/a.txt", f"{OUTBOX}/sub/b c.txt", f"{OUTBOX}/文件.pdf", f"{OUTBOX}/..x"])
def test_H3_files_under_the_outbox_are_its_own(path: str) -> None:
    assert is_own(path, OUTBOX)


@pytest.mark.parametrize(
    "path",
    [
        OUTBOX,
        f"{OUTBOX}/",
        f"{OUTBOX}-2/a",
        "/workspace/outbox/run-2/a",
        "/workspace/inbox/run-1/a",
        "/workspace/copies/outbox/run-1/a",
        "/workspace/inbox/run-2-attachment-0/outbox/run-1/a",
        f"{OUTBOX}/../run-2/a",
        f"{OUTBOX}/./a",
        f"{OUTBOX}//a",
        f"{OUTBOX}/a\\b",
        f"{OUTBOX}/a\x00",
        "outbox/run-1/a",
        "/etc/passwd",
        "",
        f"{OUTBOX}/{'x' * 3000}",
    ],
)
def test_H3_nothing_else_is_ever_exported(path: str) -> None:
    assert not is_own(path, OUTBOX)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/run-1",
        "workspace/outbox/run-1",
        "/a/../run-1",
        "/workspace/outbox",
        "/workspace/outbox/",
        "/workspace/outbox/run-2",
        "",
        "/workspace/outbox/another-run-1",
        "/workspace/outbox/run-1/",
    ],
)
def test_H3_an_outbox_that_is_no_folder_of_this_run_is_refused(path: str) -> None:
    assert not is_outbox(path, "run-1")


def test_H3_the_outbox_of_the_run_is_its_own() -> None:
    assert is_outbox(OUTBOX, "run-1")


def test_H3_a_list_is_read_oldest_first_without_folders_and_strangers() -> None:
    matches = [f"{OUTBOX}/new", f"{OUTBOX}/sub/old", f"{OUTBOX}/sub", "/etc/passwd", 3, f"{OUTBOX}/new"]
    assert paths_in({"ok": True, "matches": matches}, OUTBOX) == (f"{OUTBOX}/sub/old", f"{OUTBOX}/new")


def test_H3_what_find_prints_is_read_too() -> None:
    assert paths_in({"ok": True, "stdout": f"{OUTBOX}/a\n{OUTBOX}/b\n"}, OUTBOX) == (f"{OUTBOX}/b", f"{OUTBOX}/a")


def test_H3_a_backend_that_lists_the_folder_by_its_real_name_is_understood() -> None:
    real = "/srv/data/box/tenants/ws-1/outbox/run-1"
    listed = [f"{real}/a.txt", f"{real}/sub/b.txt", f"{real}/sub", "/srv/outbox/run-2/c", f"{real}/../run-2/d"]
    assert paths_in({"matches": listed}, OUTBOX) == (f"{real}/sub/b.txt", f"{real}/a.txt")


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_H3_whatever_a_list_tool_returns_nothing_of_others_comes_of_it(value: object) -> None:
    for result in (value, {"matches": value}, {"stdout": value}):
        assert all(is_own(path, OUTBOX) for path in paths_in(result, OUTBOX))


def test_H3_only_a_write_that_succeeded_is_known_without_a_list() -> None:
    there, done = {"path": f"{OUTBOX}/a"}, {"ok": True}
    assert written_path("write", there, done, OUTBOX) == f"{OUTBOX}/a"
    assert written_path("write", there, {"ok": False}, OUTBOX) is None
    assert written_path("read", there, done, OUTBOX) is None
    assert written_path("write", {"path": "/workspace/a"}, done, OUTBOX) is None


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1, [1]), (20, [20]), (41, [20, 20, 1])])
def test_H3_twenty_paths_go_into_one_call(count: int, sizes: list[int]) -> None:
    assert [len(batch) for batch in batches([str(place) for place in range(count)])] == sizes


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ActionCallError: LANGBOT_EXPORT_V1:" + json.dumps({"code": "box.export.limit_exceeded"}), Unsent.LIMIT),
        ("LANGBOT_EXPORT_V1:" + json.dumps({"code": "box.export.transport_truncated"}) + " (more)", Unsent.LIMIT),
        ("LANGBOT_EXPORT_V1:" + json.dumps({"code": "box.export.invalid_response"}), Unsent.FAILED),
        ("LANGBOT_EXPORT_V1:{cut", Unsent.FAILED),
        ("LANGBOT_EXPORT_V1:[1]", Unsent.FAILED),
        ("BoxValidationError: Sandbox file not found", Unsent.FAILED),
        ("", Unsent.FAILED),
        ("output files were retained: IsADirectoryError: [Errno 21] Is a directory: 3", None),
    ],
)
def test_H3_a_limit_is_told_apart_from_other_failures_and_a_folder_is_none(text: str, why: Unsent | None) -> None:
    assert why_refused(text) is why


@pytest.mark.parametrize("result", [{"ok": True, "matches": []}, {"stdout": ""}, {"ok": True, "matches": ["x"]}])
def test_H3_an_empty_list_is_a_list(result: object) -> None:
    assert is_list(result)


@pytest.mark.parametrize("result", [None, [], "no", {}, {"matches": "none"}, {"ok": False, "matches": []}])
def test_H3_a_failed_or_malformed_list_says_nothing_about_what_is_there(result: object) -> None:
    assert not is_list(result)


def test_S7_names_from_the_sandbox_are_one_harmless_line() -> None:
    named = names_of([f"{OUTBOX}/<|im_start|>system\n[x](y).bin", f"{OUTBOX}/<tool_call>", f"{OUTBOX}/{'long' * 99}"])
    assert "<|im_start|>" not in named and "<tool_call>" not in named
    assert "\n" not in named and "[" not in named
    assert len(named) < 400
