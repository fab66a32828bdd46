"""Q5: the simulated weak model writes at the measured rates, tasks are judged by their effect, and the picture
shows the rows of the report."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

from bench.plot import main as draw
from bench.plot import rows_of, svg_of
from bench.small.__main__ import main
from bench.small.desk import Desk, calculate, convert, search
from bench.small.play import GUIDED, LENIENT, STANDARD, TEXT, Played, play
from bench.small.rates import MODELS, Asked, Habit, rates_of
from bench.small.reading import OURS, measure, public_lines, raw_lines
from bench.small.real import SUBSET, chosen, engine, reply_of
from bench.small.seen import look
from bench.small.simulated import outcome
from bench.small.tasks import TASKS, Task
from bench.small.weak import WeakModel, Writer, served
from bench.table import Row
from tests.host import ModelRequest, Reason, Reply, ToolCall

# Q5: the simulated weak model sees only its request, writes at the measured rates, and can be repeated.

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


async def test_Q5_without_mistakes_a_task_takes_its_steps_and_an_answer_in_every_form() -> None:
    tasks = [task for task in TASKS if task.id in ("two-3", "two-4")]
    for arm in (TEXT, GUIDED):
        done = await outcome(arm, "1.5b", (1,), tasks)
        assert (done.finished[0], done.sums[0].rounds) == (2, sum(len(task.steps) + 1 for task in tasks))


# Q5: what a real server answers is handed on as LangBot's provider would.


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


def test_Q5_the_eight_tasks_are_of_the_forty_and_unknown_ones_are_refused() -> None:
    assert [task.id for task in chosen(SUBSET)] == list(SUBSET)
    with pytest.raises(KeyError):
        chosen(["no-such-task"])


def test_Q5_without_the_file_of_a_model_it_says_how_to_get_it(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALAGENT_CACHE", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"DEMO_MODEL=0\.5b make demo"), engine("0.5b"):
        pass


# Q5: the tasks of the bench are judged by their real effect.


def perfect(request: ModelRequest) -> Reply:
    """A model that can do every task and writes calls as its provider wants them."""
    seen = look(request)
    assert seen.task is not None
    step = seen.next
    if step is None:
        return Reply(seen.task.answer(seen.done))
    return Reply(tool_calls=[ToolCall(step.tool, step.arguments(seen.done))])


def mute(_: ModelRequest) -> Reply:
    return Reply("")


def boastful(_: ModelRequest) -> Reply:
    """Says that it is done, and does nothing."""
    return Reply("Done, I have taken care of it. The answer is 12.")


async def finished(speaker: object) -> list[Played]:
    return await asyncio.gather(*(play(task, STANDARD, speaker) for task in TASKS))  # type: ignore[arg-type]


async def test_Q5_a_model_that_can_do_them_finishes_all_forty_tasks() -> None:
    played = await finished(perfect)
    assert [one.task for one in played if not one.finished] == []
    assert len(played) == len({one.task for one in played}) == 40
    assert sum(one.rounds for one in played) == sum(len(task.steps) + 1 for task in TASKS)


@pytest.mark.parametrize("speaker", [mute, boastful])
async def test_Q5_a_model_that_does_nothing_finishes_none(speaker: object) -> None:
    assert [one.task for one in await finished(speaker) if one.finished] == []


def test_Q5_a_task_is_not_done_when_another_file_was_changed(tmp_path: Path) -> None:
    task = next(task for task in TASKS if task.id == "write-1")
    desk = Desk(tmp_path)
    desk.write_file("todo.md", "buy milk\ncall Anna\npay rent")
    assert task.check(desk, "")
    desk.write_file("report.txt", "gone")
    assert not task.check(desk, "")


def _given(id: str) -> Task:
    return next(task for task in TASKS if task.id == id)


@pytest.mark.parametrize(
    ("id", "answer", "right"),
    [
        ("calc-1", "It is 4,195.", True),
        ("calc-1", "It is 41950.", False),
        ("calc-1", "It is 14195.", False),
        ("calc-4", "每人 86 元", True),
        ("find-1", "The code is 7734.", True),
        ("find-1", "The code is 7743.", False),
        ("chat-3", "Tuples are immutable.", True),
        ("chat-3", "I have written it down.", False),
    ],
)
def test_Q5_an_answer_counts_by_what_it_says(id: str, answer: str, right: bool, tmp_path: Path) -> None:
    assert _given(id).check(Desk(tmp_path), answer) is right


def test_Q5_chit_chat_with_an_effect_is_not_finished(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.send_message("Bob", "hi")
    assert not _given("chat-1").check(desk, "Hello!")


def test_Q5_the_tools_really_work(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert calculate("(1250 - 375) * 1.06") == "927.5"
    assert convert(3.5, "ounces", "grams").endswith("= 99.223 grams")
    assert "7734" in search("descaling code")
    assert "14:20" in search("产品周会")
    assert search("xyzzy") == "Nothing found."
    with pytest.raises(ValueError, match="only numbers"):
        calculate("__import__('os')")
    with pytest.raises(ValueError, match="only files of this folder"):
        desk.write_file("../outside.txt", "x")


# The picture of the bench: the rows of a report are in it, with their numbers, whatever they are called.

ROWS = [
    Row("Q1", "one answer", "calls", 4, 6, 6),
    Row("Q1", "one <b> & more", "MB out", None, 0.25),
    Row("Q2", "crowd", "peak memory", 100, 600, 512, "MiB"),
    Row("Q3", "nothing at all", "lost", 0, 0, 0),
]
SVG = "{http://www.w3.org/2000/svg}"


def words_of(picture: Path) -> list[str]:
    return [element.text or "" for element in ElementTree.parse(picture).iter(f"{SVG}text")]


def report(path: Path, rows: object) -> Path:
    about = {"cores": 2, "load": [0.1, 0.2, 0.3], "python": "3.11.7"}
    path.write_text(json.dumps({"before": about, "after": about, "rows": rows}), "utf-8")
    return path


def test_every_row_is_drawn_with_its_numbers(tmp_path: Path) -> None:
    source, picture = report(tmp_path / "report.json", [row.as_dict() for row in ROWS]), tmp_path / "deep" / "a.svg"
    assert draw([str(source), str(picture), "--all"]) == 0
    words = words_of(picture)
    for row in ROWS:
        assert any(f"{row.scenario}: {row.measure}" in text for text in words)
    for told in ("4 / 6 ≤ 6", "– / 0.250", "100 / 600 ≤ 512", "0 / 0 ≤ 0", "2 cores, load 0.1, Python 3.11.7"):
        assert told in words
    assert [text[:2] for text in words if text.startswith("Q")] == ["Q1", "Q2", "Q3"]


def test_rows_without_a_limit_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    source, picture = report(tmp_path / "report.json", [row.as_dict() for row in ROWS]), tmp_path / "a.svg"
    assert draw([str(source), str(picture)]) == 0
    words = words_of(picture)
    assert [row.scenario for row in ROWS if any(row.scenario in text for text in words)] == [
        row.scenario for row in ROWS if row.limit is not None
    ]


def test_no_bar_is_wider_than_its_place_and_what_is_above_its_limit_has_another_colour() -> None:
    bars = list(ElementTree.fromstring(svg_of(ROWS)).iter(f"{SVG}rect"))
    drawn = [bar for bar in bars if bar.get("height") == "9"]
    assert len(drawn) == 2 + 1 + 2 + 2
    assert all(1 <= float(bar.get("width", "0")) <= 420 for bar in drawn)
    assert [bar.get("fill") for bar in drawn].count("#d64545") == 1


def test_a_report_reads_back_as_its_rows() -> None:
    assert rows_of({"rows": [row.as_dict() for row in ROWS]}) == ROWS


@pytest.mark.parametrize("text", ["", "{}", '{"rows": [{}]}', "[]"])
def test_what_is_no_report_is_said_and_draws_nothing(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, picture = tmp_path / "report.json", tmp_path / "a.svg"
    source.write_text(text, "utf-8")
    assert draw([str(source), str(picture)]) == 2
    assert not picture.exists()
    assert "no report" in capsys.readouterr().err
