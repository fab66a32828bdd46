"""Q5: what a real server answers is handed on as LangBot's provider would."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from bench.small.real import SUBSET, chosen, engine, reply_of
from tests.host import Reason


def answered(status: int = 200, **message: Any) -> httpx.Response:
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9, "prompt_tokens_details": {}}
    return httpx.Response(
        status,
        json={"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage} if status == 200 else {},
    )


def test_Q5_calls_of_the_server_are_calls_and_text_is_text() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"n": 1}'}}
    reply = reply_of(answered(content=None, tool_calls=[call]))
    assert [(one.name, one.text, one.id) for one in reply.tool_calls] == [("look", '{"n": 1}', "c")]
    assert reply_of(answered(content="hello")).text == "hello"
    assert reply_of(answered(content="hello")).usage == {
        "prompt_tokens": 7,
        "completion_tokens": 2,
        "total_tokens": 9,
    }


@pytest.mark.parametrize(("status", "reason"), [(400, Reason.BAD_REQUEST), (500, Reason.API_ERROR)])
def test_Q5_a_refusal_of_the_server_is_a_failure_of_the_provider(status: int, reason: Reason) -> None:
    assert reply_of(answered(status)).error is reason


def test_Q5_the_twelve_tasks_are_of_the_forty_and_unknown_ones_are_refused() -> None:
    assert [task.id for task in chosen(SUBSET)] == list(SUBSET)
    with pytest.raises(KeyError):
        chosen(["no-such-task"])


def test_Q5_without_the_file_of_a_model_it_says_how_to_get_it(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALAGENT_CACHE", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"DEMO_MODEL=0\.5b make demo"), engine("0.5b"):
        pass
