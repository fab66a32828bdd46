"""S5: which lines of a console or log are new, and which tool tells what another did."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.small.console import Line, labelled, lines_of, overlap
from runner.small.log_tools import acts, addresses, is_own, is_witness, stated_page, visits, witness_of
from runner.tools.catalogue import Entry
from tests.tools.offers import catalogue, offer

# S5: which lines of a console or log are new, and what each is.

LINES = st.lists(st.sampled_from([Line("a"), Line("b"), Line("a", "error")]), max_size=12)


@given(LINES, LINES)
def test_S5_what_was_told_before_and_stands_at_the_start_is_known(before: list[Line], new: list[Line]) -> None:
    now = [*before, *new]
    assert overlap(before, now) >= len(before)


@given(LINES, LINES)
def test_S5_the_known_part_is_the_longest_end_of_before_that_begins_now(before: list[Line], now: list[Line]) -> None:
    longest = max(k for k in range(min(len(before), len(now)) + 1) if before[len(before) - k :] == now[:k])
    assert overlap(before, now) == longest


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("", []),
        ("\n  one\r\n\n two  words ", [Line("one"), Line("two words")]),
        ("[error] no JSON", [Line("[error] no JSON")]),
        ('[{"type": "ERROR", "text": "a\\nb"}, {"message": "c"}]', [Line("a b", "error"), Line("c")]),
        ('{"logs": "one\\ntwo", "session": "s1"}', [Line("one"), Line("two")]),
        ('{"messages": [{"level": "info", "msg": "x"}]}', [Line("x", "info")]),
        ('["one", "two"]', [Line("one"), Line("two")]),
        ("[]", []),
        ('[{"text": "cut off', []),
        ("[" * 100_000, []),
        ('{"a": ' * 100_000, []),
    ],
    ids=str,
)
def test_S5_entries_are_read_from_text_and_from_json(body: str, lines: list[Line]) -> None:
    assert list(lines_of(body)) == lines


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_S5_any_json_is_read(value: Any) -> None:
    assert all("\n" not in line.text for line in lines_of(json.dumps(value)))


@pytest.mark.parametrize(
    ("line", "label"),
    [
        (Line("x", "error"), "error: x"),
        (Line("x", "pageerror"), "exception: x"),
        (Line("Really?", "confirm"), "dialog: Really?"),
        (Line("error in a log line", "info"), None),
        (Line("[alert] Hello"), "dialog: [alert] Hello"),
        (Line("12:00 ERROR no route"), "error: 12:00 ERROR no route"),
        (Line("Traceback (most recent call last):"), "exception: Traceback (most recent call last):"),
        (Line("ValueError: bad"), "exception: ValueError: bad"),
        (Line("[error] ValueError: bad"), "error: [error] ValueError: bad"),
        (Line("0 errors"), None),
        (Line("terror"), None),
        (Line("all fine"), None),
    ],
    ids=str,
)
def test_S5_a_line_is_called_what_it_is(line: Line, label: str | None) -> None:
    assert labelled(line) == label


# S5: which tool tells what another did, and whose host an address is on.

PAGE: dict[str, Any] = {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}


def entry(name: str, kind: str = "mcp", parameters: dict[str, Any] | None = None) -> Entry:
    return catalogue(offer(name, kind, parameters)).entries[0]


@pytest.mark.parametrize(
    "name",
    [
        "browser_console_messages",
        "list_console_messages",
        "get_app_logs",
        "server_logs",
        "getConsoleLogs",
        "read_log",
        "page-console",
        "tail_server_log",
        "console",
    ],
)
def test_S5_a_tool_that_reads_a_console_or_log_is_a_witness(name: str) -> None:
    assert is_witness(entry(name))


@pytest.mark.parametrize(
    "name",
    [
        "write_log",
        "clear_console",
        "browser_console_clear",
        "login",
        "log_in",
        "app_log",
        "delete_app_logs",
        "catalogue",
        "browser_click",
        "console_run",
        "open_console",
        "log_message",
        "blog",
        "send_logs",
        "export_app_logs",
    ],
)
def test_S5_in_doubt_a_tool_is_none(name: str) -> None:
    assert not is_witness(entry(name))


def test_S5_a_witness_needs_no_argument_and_is_no_tool_of_the_platform() -> None:
    assert not is_witness(entry("server_logs", parameters=PAGE))
    assert not is_witness(entry("server_logs", "platform"))
    assert not is_witness(entry("server_logs", "builtin"))
    assert is_witness(entry("server_logs", parameters={**PAGE, "required": []}))


@pytest.mark.parametrize(
    ("action", "witness", "kind"),
    [
        ("browser_click", "browser_console_messages", "mcp"),
        ("navigate_page", "list_console_messages", "mcp"),
        ("restart_app", "get_app_logs", "mcp"),
        ("restart_app", None, "plugin"),
        ("send_mail", None, "mcp"),
        ("kitchen_restart", None, "mcp"),
    ],
)
def test_S5_tools_of_one_set_share_a_kind_and_a_word(action: str, witness: str | None, kind: str) -> None:
    witnesses = [offer(name, "mcp") for name in ("browser_console_messages", "list_console_messages", "get_app_logs")]
    tools = catalogue(offer(action, kind), *witnesses)
    found = witness_of(tools.entries[0], tools)
    assert (found.name if found else None) == witness


def test_S5_looking_is_no_action() -> None:
    assert [acts(entry(name)) for name in ("browser_click", "browser_snapshot", "get_x", "browser_wait_for")] == [
        True,
        False,
        False,
        False,
    ]


def test_S5_a_set_that_takes_addresses_visits_pages() -> None:
    witness = offer("browser_console_messages", "mcp")
    plain = catalogue(offer("browser_click", "mcp"), witness)
    browser = catalogue(offer("browser_navigate", "mcp", PAGE), witness)
    assert not visits(plain.entries[-1], plain)
    assert visits(browser.entries[-1], browser)


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost:3000/a",
        "localhost:3000",
        "http://127.0.0.1",
        "https://[::1]:8443/",
        "file:///tmp/a.html",
        "http://shop.localhost/",
        "http://0.0.0.0:80",
        "FILE:///a",
        "http://host.docker.internal:1",
        "127.9.9.9",
    ],
)
def test_S5_the_users_own_host_has_these_names(address: str) -> None:
    assert is_own(address)


@pytest.mark.parametrize(
    "address",
    [
        "https://shop.example/",
        "http://localhost.evil.example/",
        "http://localhost@evil.example/",
        "192.168.1.5",
        "",
        "about:blank",
        "http://[broken",
        "data:text/html,x",
        "http://127.0.0.1.evil.example",
        "javascript:alert(1)",
    ],
)
def test_S5_everything_else_is_outside(address: str) -> None:
    assert not is_own(address)


@given(st.text())
def test_S5_any_text_may_be_asked_about(text: str) -> None:
    assert is_own(text) in (True, False)
    assert stated_page(text) is None or stated_page(text)
    assert list(addresses(text)) == [] or text.lstrip().startswith("{")


def test_S5_addresses_are_known_by_their_field_or_by_how_they_begin() -> None:
    arguments = json.dumps({"pageUrl": "localhost:1", "target": "https://a.example", "text": "hi", "n": 3})
    assert list(addresses(arguments)) == ["localhost:1", "https://a.example"]


def test_S5_a_result_may_state_its_page_and_links_are_none() -> None:
    assert stated_page("Clicked.\n- Page URL: http://a.example/x\n") == "http://a.example/x"
    assert stated_page('{"url": "http://a.example"}') == "http://a.example"
    assert stated_page("- link:\n  - /url: https://b.example") is None
