"""S3: what a plain reply may pass over, how it is corrected, and when a run goes in circles."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.conversation.record import Record, RecordedCall
from runner.conversation.units import AssistantTurn, Text, Unit, UserTurn
from runner.loop.loop_detection import Seen
from runner.small.answers import Done, echoes, ends_of, gist, ignores_failure, leaves_open, passes_work_on, repeats
from runner.small.earlier import calls_of, unanswered
from runner.small.escalation import MOST_SLIPS, Correction, Ladder, Rung
from runner.small.loop_detection import READS_ALLOWED, Circle, Circles
from runner.tools.catalogue import Catalogue

# S3: what a plain reply may pass over, and what not.

FAILED = Done("save", "{}", "disk full", code="failed")
FINE = Done("save_note", "{}", "saved")


@pytest.mark.parametrize(
    "text",
    [
        "It could not be saved.",
        "I couldn't do it",
        "Sorry!",
        "保存失败了",
        "保存できませんでした",
        "Не удалось сохранить",
        "No se pudo guardar",
        "Không thể lưu",
        "ไม่สามารถบันทึกได้",
    ],
)
def test_S3_a_reply_that_owns_up_to_a_failure_stands(text: str) -> None:
    assert ignores_failure(text, [FAILED]) is None


LENT = Done("lend", '{"book": "B102"}', "Error: B102 is already lent to Ivan until 2027-03-11", code="tool_error")


@pytest.mark.parametrize(
    "text",
    [
        "B102 is already lent to Ivan until 11 March, so it is not available.",
        "Ivan has it at the moment.",
        "You get it after 11 March.",
        "这本书已经借给伊万了，暂时借不到。",
        "這本書目前沒有辦法借出。",
        "この本はすでに貸し出し中です。",
        "この本は今お貸しできません。",
        "หนังสือเล่มนี้ยังไม่ว่าง",
        "Cuốn sách này chưa có sẵn.",
        "Ese libro ya está prestado.",
        "Эта книга уже выдана.",
        "Сейчас её нет.",
        "Das Buch B102 hat jemand anders.",
    ],
)
def test_Sa_an_answer_that_admits_the_failure_or_shares_a_mark_with_it_stands(text: str) -> None:
    assert ignores_failure(text, [LENT]) is None


@pytest.mark.parametrize(
    "text",
    [
        "Saved!",
        "已保存。",
        "保存しました。",
        "บันทึกแล้ว",
        "Đã lưu xong.",
        "Guardado con éxito.",
        "Все готово",
        "好的，已經借給你了。",
    ],
)
def test_Sa_a_claim_is_sent_back_in_every_language(text: str) -> None:
    assert ignores_failure(text, [LENT]) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Please use add_to_cart.",
        "请使用add_to_cart工具。",
        "請點擊 add_to_cart。",
        "add_to_cart を使ってください。",
        "โปรดใช้ add_to_cart",
        "Bạn hãy dùng add_to_cart.",
        "Puede usar add_to_cart.",
        "Используйте add_to_cart.",
    ],
)
def test_Sa_you_do_it_is_said_in_every_language(text: str) -> None:
    assert passes_work_on(text, ["add_to_cart"], ()) is not None


@pytest.mark.parametrize("text", ["Saved!", "已保存。", "Все готово"])
def test_S3_a_reply_that_passes_over_a_failure_is_told_so(text: str) -> None:
    told = ignores_failure(text, [FINE, FAILED])
    assert told is not None
    assert "disk full" in told
    assert ignores_failure(text, [FAILED, FINE]) is None


@pytest.mark.parametrize("text", ["Click Add to cart.", "You can use add_to_cart", "please run `add-to-cart`"])
def test_S3_telling_the_user_to_use_a_tool_that_is_here_is_sent_back(text: str) -> None:
    assert passes_work_on(text, ["add_to_cart"], ()) is not None
    assert passes_work_on(text, ["add_to_cart"], {"add_to_cart"}) is None
    assert passes_work_on(text, ["other_tool"], ()) is None


@pytest.mark.parametrize("text", ["It is in your cart.", "I know add_to_cart and more.", "use a cart"])
def test_S3_naming_things_is_no_passing_on(text: str) -> None:
    assert passes_work_on(text, ["add_to_cart"], ()) is None


def test_S3_a_short_answer_out_of_a_result_is_no_echo() -> None:
    body = "The weather in Oslo: sunny, 21 degrees. " * 20
    assert not echoes("sunny, 21 degrees", [Done("look", "{}", body)])
    assert echoes(body[:400], [Done("look", "{}", body)])
    assert echoes("--- data block 1 from tool look", [])


def test_S3_a_gist_is_short_and_in_one_paragraph() -> None:
    assert gist([Done("look", "{}", "one\n\ntwo")]) == "one two"
    assert len(gist([Done("look", "{}", "x" * 900)])) <= 302
    assert gist([]) == ""


@pytest.mark.parametrize(
    ("items", "is_open"),
    [
        ([{"content": "a", "status": "pending"}], True),
        ([{"title": "a", "done": False}], True),
        ([{"title": "a", "done": True}, {"title": "b", "completed": True}], False),
        ([], False),
    ],
)
def test_S3_open_items_of_a_todo_list_are_found_in_results_and_arguments(items: object, is_open: bool) -> None:
    for done in (
        Done("todo_write", json.dumps({"items": items}), "ok"),
        Done("todo_list", "{}", json.dumps({"todos": items})),
    ):
        assert (leaves_open([done], can_read=False) is not None) == is_open


def test_S3_a_write_wants_a_look_only_where_one_is_possible() -> None:
    write, look = Done("write", "{}", "ok"), Done("read", "{}", "text", reads=True)
    assert leaves_open([write], can_read=True) is not None
    assert leaves_open([write], can_read=False) is None
    assert leaves_open([write, look], can_read=True) is None
    assert leaves_open([look, write], can_read=True) is not None
    assert leaves_open([Done("write", "{}", "x", code="failed")], can_read=True) is None


def test_S3_saying_a_correction_back_is_known_and_a_short_word_is_none() -> None:
    correction = "Your reply was not sent yet: nothing has looked at what you wrote. Read it once, then answer."
    assert repeats(correction, correction)
    assert repeats("nothing has looked at  what you wrote.", correction)
    assert not repeats("you wrote", correction)
    assert not repeats("The note is saved; nothing else was asked for.", correction)


def test_Sm_of_a_very_long_reply_the_beginning_and_the_end_are_looked_at() -> None:
    long = "It could not be saved." + " word" * 100_000
    assert len(ends_of(long)) < 25_000
    assert ends_of(long).startswith("It could not be saved.")
    assert ends_of("short") == "short"
    assert not echoes(long, [Done("look", "{}", "word " * 300)])


# S3: calls that an earlier run finished without an answer.

ASKED = UserTurn((Text("save it"),))
TURNS = Record(
    ((RecordedCall("save", '{"a":1}', "saved\nas 7", None),), (RecordedCall("save", "{}", "disk full", "failed"),))
).as_units("unsaid")


def test_S3_a_history_that_ends_on_words_leaves_nothing_unanswered() -> None:
    said: tuple[Unit, ...] = (ASKED, *TURNS, AssistantTurn("Saved."))
    assert unanswered(said) == ()
    assert unanswered((ASKED,)) == unanswered(()) == ()


def test_S3_calls_come_back_as_the_run_that_made_them_knew_them() -> None:
    turns = unanswered((ASKED, AssistantTurn("Well."), ASKED, *TURNS))
    assert list(calls_of(turns, Catalogue())) == [
        Done("save", '{"a":1}', "saved\nas 7"),
        Done("save", "{}", "disk full", code="failed"),
    ]


# S3: the correction ladder.

NAMES = st.sampled_from(["", "a", "b", "get_weather"])
PROBLEMS = st.sampled_from(["", "missing city.", "x" * 5_000])
STEPS = st.lists(st.tuples(NAMES, PROBLEMS, st.booleans()), max_size=30)


def slip(ladder: Ladder, tool: str = "a", problem: str = "wrong.") -> Correction:
    return ladder.slip(tool, problem, example='{"name": "a"}', others=["b", "c"])


def test_S3_each_rung_says_something_of_its_own() -> None:
    ladder = Ladder()
    given_ = [slip(ladder) for _ in range(5)]
    assert [one.rung for one in given_] == list(Rung)
    assert len({one.text for one in given_}) == 5
    assert '{"name": "a"}' in given_[0].text
    assert "b or c" in given_[1].text and given_[1].resample
    assert given_[2].off == "a" and ladder.off == {"a"}


def test_S3_a_valid_call_sets_its_own_tool_back_and_no_other() -> None:
    ladder = Ladder()
    slip(ladder, "a"), slip(ladder, "a"), slip(ladder, "b"), slip(ladder, "b")
    ladder.valid("a")
    assert slip(ladder, "a").rung is Rung.EXAMPLE
    assert slip(ladder, "b").rung is Rung.OFF


def test_S3_ever_new_names_come_to_an_end_too() -> None:
    ladder = Ladder()
    rungs = [slip(ladder, f"tool {n}").rung for n in range(MOST_SLIPS)]
    assert rungs[-1] is Rung.STOP
    assert Rung.STOP not in rungs[:-1]


@given(STEPS)
def test_S3_no_two_corrections_in_a_row_are_equal(steps: list[tuple[str, str, bool]]) -> None:
    ladder = Ladder()
    texts: list[str] = []
    for tool, problem, valid in steps:
        if valid:
            ladder.valid(tool)
        texts.append(slip(ladder, tool, problem).text if len(texts) % 3 else ladder.unlike_before("the same words"))
    assert all(one != other for one, other in itertools.pairwise(texts))
    assert all(len(text) < 1_500 for text in texts)


# S3: the loop breaker, by outcome.


def act(call: str, result: str, **about: bool) -> Seen:
    return Seen.of(call, "{}", result, failed=about.get("failed", False), reads=about.get("reads", False))


@pytest.mark.parametrize("length", range(1, 6))
def test_S3_a_cycle_of_up_to_five_is_flagged_once_and_then_stops(length: int) -> None:
    circles = Circles()
    found = [circles.add(act(f"tool {n % length}", f"result {n % length}")) for n in range(2 * length + 1)]
    assert found[: 2 * length - 1] == [Circle.NONE] * (2 * length - 1)
    assert found[2 * length - 1 :] == [Circle.FLAG, Circle.STOP]


def test_S3_a_failure_counts_as_the_same_whatever_it_says() -> None:
    circles = Circles()
    found = [circles.add(act("save", f"failed at {n} ms", failed=True)) for n in range(3)]
    assert found == [Circle.NONE, Circle.FLAG, Circle.STOP]


@given(st.lists(st.sampled_from("abc"), max_size=40))
def test_S3_an_action_whose_result_changes_may_always_repeat(calls: list[str]) -> None:
    circles = Circles()
    assert all(circles.add(act(call, f"result {n}")) is Circle.NONE for n, call in enumerate(calls))


def test_S3_reads_are_exempt_until_eight_identical_results() -> None:
    circles = Circles()
    found = [circles.add(act("read", "same", reads=True)) for _ in range(READS_ALLOWED)]
    assert found == [Circle.NONE] * 7 + [Circle.STOP]
