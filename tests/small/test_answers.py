"""S3: what a plain reply may pass over, and what not."""

from __future__ import annotations

import json

import pytest

from runner.small.answers import Done, echoes, ends_of, gist, ignores_failure, leaves_open, passes_work_on, repeats

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
