"""Q5: the simulated weak model sees only its request, writes at the measured rates, and can be repeated."""

from __future__ import annotations

import dataclasses
import inspect
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bench.small.__main__ import main
from bench.small.play import GUIDED, LENIENT, STANDARD, TEXT
from bench.small.rates import MODELS, Asked, Habit, rates_of
from bench.small.reading import OURS, measure, public_lines, raw_lines
from bench.small.seen import look
from bench.small.simulated import outcome
from bench.small.tasks import TASKS
from bench.small.weak import WeakModel, Writer, served
from tests.host import ModelRequest

FUNCS: list[dict[str, Any]] = [
    {"name": name, "description": "", "parameters": {"type": "object", "properties": {}, "required": []}}
    for name in ("calculator", "write_file", "search_docs", "create_reminder")
]
SOME = TASKS[::6]


def asks(*said: tuple[str, str], funcs: list[dict[str, Any]] = FUNCS, **extra: Any) -> ModelRequest:
    messages: list[dict[str, Any]] = [{"role": role, "content": text} for role, text in said]
    return ModelRequest("m1", True, messages, funcs, funcs, extra, None, None, False, 10)


def test_Q5_the_simulated_model_gets_a_request_and_nothing_else() -> None:
    assert [field.name for field in dataclasses.fields(WeakModel) if field.init] == ["model", "seed"]
    assert list(inspect.signature(WeakModel.__call__).parameters) == ["self", "request"]
    unread = asks(("user", "[the beginning of this chat was cut off]"))
    assert WeakModel("1.5b", 1).write(unread) == "I am not sure what you would like me to do."


def test_Q5_the_same_request_gives_the_same_reply_unless_another_temperature_is_asked_for() -> None:
    request = asks(("user", TASKS[0].says))
    first, second = WeakModel("0.5b", 3), WeakModel("0.5b", 3)
    assert first.write(request) == first.write(request) == second.write(request)
    warm = asks(("user", TASKS[0].says), temperature=1.0)
    assert len({first.write(warm) for _ in range(20)}) > 1


def test_Q5_a_result_counts_only_when_it_stands_in_the_request() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "calculator", "arguments": "{}"}}
    request = asks(("user", TASKS[0].says))
    assert look(request).next is TASKS[0].steps[0]
    request.messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
    request.messages.append({"role": "tool", "tool_call_id": "c1", "content": "4195"})
    assert look(request).next is None
    assert look(request).done == ["4195"]
    request.messages[-1]["content"] = "Error [failed]: no"
    assert look(request).next is TASKS[0].steps[0]
    assert look(request).corrected


@pytest.mark.parametrize("model", MODELS)
def test_Q5_calls_go_wrong_as_often_as_in_the_raw_replies(model: str) -> None:
    habits = rates_of(model).calls_for(Asked("native"))
    measured = sum(habit.right for habit in habits) / len(habits)
    drawn = [_kind(WeakModel(model, seed).write(asks(("user", TASKS[0].says)))) for seed in range(500)]
    assert abs(drawn.count("right") / len(drawn) - measured) < 0.07


def _kind(text: str) -> str:
    words = ('"calculator"', '"47 * 89 + 12"')
    broken = "tool_response" in text or '["47' in text
    return "right" if all(word in text for word in words) and not broken else "wrong"


@pytest.mark.parametrize("model", MODELS)
def test_Q5_a_corrected_call_goes_right_as_often_as_a_prompt_put_in_another_way(model: str) -> None:
    said = [("user", TASKS[0].says), ("user", "Error: no. Try again.")]
    drawn = [_kind(WeakModel(model, seed).write(asks(*said))) for seed in range(500)]
    assert abs(drawn.count("right") / len(drawn) - rates_of(model).asked_anew) < 0.07


def test_Q5_the_server_before_the_model_takes_only_well_formed_calls_for_calls() -> None:
    call = json.dumps({"name": "calculator", "arguments": {"expression": "1+1"}})
    request = asks(("user", "x"))
    assert len(served(f"<tool_call>\n{call}\n</tool_call>", request).tool_calls) == 1
    for text in (f"```json\n{call}\n```", call, f"<tool_call>{call[:-1]}</tool_call>", call.replace("calc", "other")):
        assert not served(text, request).tool_calls
    assert not served(f"<tool_call>{call}</tool_call>", asks(("user", "x"), funcs=[])).tool_calls


def test_Q5_a_habit_is_written_as_its_labels_say() -> None:
    seen = look(asks(("user", TASKS[0].says)))
    writer = Writer(seen, Random(1))

    def written(*labels: str) -> str:
        return writer.call(Habit(frozenset(labels), False, None), "calculator", {"expression": "1+1"})

    assert written().startswith("<tool_call>")
    assert written("wrong_wrapper", "markdown_fence").startswith("```json")
    assert '"arguments"' not in written("wrong_wrapper", "flat_fields")
    assert written("wrong_wrapper", "double_braces").startswith("{{")
    assert written("hallucinated_result").startswith("<tool_response>")
    assert "calculator" not in written("wrong_tool_choice")
    assert "1+1" not in written("prose_instead_of_call")
    assert "1+1" not in written("wrong_wrapper", "hit_length_limit")


async def test_Q5_seeds_reproduce_and_differ() -> None:
    once, again = await outcome(TEXT, "0.5b", (4, 5), SOME), await outcome(TEXT, "0.5b", (4, 5), SOME)
    assert once == again
    assert once.sums[0] != dataclasses.replace(once.sums[1], seed=4)


async def test_Q5_with_the_layer_more_tasks_are_finished_than_without() -> None:
    standard, lenient, guided = [await outcome(arm, "0.5b", (1,), SOME) for arm in (STANDARD, LENIENT, GUIDED)]
    assert standard.finished[0] < lenient.finished[0] <= guided.finished[0]
    assert guided.mean("shown") == 0 < standard.mean("shown")


def test_Q5_of_the_public_cases_all_but_four_are_read_right_and_nothing_is_invented_but_one_disputed_escape() -> None:
    tallies = measure(list(public_lines())).by_reader[OURS].values()
    assert sum(each.lines - each.right for each in tallies) == 4
    assert sum(each.invented for each in tallies) == 1


def test_Q5_the_comparison_counts_calls_that_a_reader_invents_or_misses() -> None:
    line = next(line for line in public_lines() if len(line.wanted) == 1)
    assert line.right(line.wanted)
    assert not line.right([])
    assert not line.right([*line.wanted, ("rm", {})])
    assert line.invented([*line.wanted, ("rm", {})]) == line.invented([("rm", {})]) == 1
    raw = next(iter(raw_lines()))
    assert not raw.right([(raw.wanted[0][0], {"no such argument": 1})])


def test_Q5_a_way_of_asking_that_was_not_measured_gets_the_rates_of_the_nearest() -> None:
    rates = rates_of("1.5b")
    native_turns = rates.calls_for(Asked("native", native_turns=True))
    assert rates.calls_for(Asked("json", reply_tool=True, native_turns=True)) is native_turns
    guided = Asked("native", reply_tool=True, schema=True)
    assert rates.calls_for(Asked("json", reply_tool=True, schema=True, native_turns=True)) is rates.calls_for(guided)
    assert rates.calls_for(Asked("hermes", reply_tool=True)) is rates.calls_for(Asked("native", reply_tool=True))


def test_Q5_one_command_prints_tables_and_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "out.json"
    asked = [
        "simulated",
        "--model",
        "0.5b",
        "--seeds",
        "1",
        "--task",
        "calc-1",
        "--arm",
        "standard",
        "--json",
        str(file),
    ]
    assert main(asked) == 0
    assert "| standard | " in capsys.readouterr().out
    (outcome,) = json.loads(file.read_text("utf-8"))["outcomes"]
    assert (outcome["arm"], outcome["tasks"], len(outcome["seeds"])) == ("standard", 1, 1)
    with pytest.raises(SystemExit, match="no such arm"):
        main(["simulated", "--arm", "nonsense"])
