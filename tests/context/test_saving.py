"""F6: the checkpoint is written where it changed, and undoes nothing of others."""

from __future__ import annotations

import pytest

from runner.context.checkpoint import Checkpoint, read, write
from runner.host.errors import HostCallFailed, HostFailure
from runner.host.events import Json
from tests.context.conversations import user
from tests.context.setting import GOOD, Model, Setting, history, view


class Store:
    """The state key, with failures."""

    def __init__(self, value: Json = None, *, fails: str = "") -> None:
        self.value, self.fails, self.writes = value, fails, 0
        self.hidden = False
        self.asked: list[str] = []

    async def load(self) -> Json:
        if self.fails == "load":
            raise HostCallFailed("state_get", HostFailure.TIMEOUT, "late")
        return self.value

    async def store(self, value: Json) -> None:
        if self.fails == "store":
            raise HostCallFailed("state_set", HostFailure.REFUSED, "no")
        self.value = value
        self.writes += 1

    async def holds(self, cursor: str) -> bool:
        self.asked.append(cursor)
        return not self.hidden


async def test_F6_the_checkpoint_is_written_once_after_a_second_look() -> None:
    setting = Setting(Model(GOOD))
    await setting.fit(view(*history(60), user("now")))
    store = Store()
    await setting.context.save(store.load, store.store, store.holds)
    assert store.writes == 1
    assert read(store.value) == setting.context.checkpoint


async def test_F6_a_reset_during_the_first_compaction_leaves_nothing_behind() -> None:
    setting = Setting(Model(GOOD))
    await setting.fit(view(*history(60), user("now")))
    store = Store()
    store.hidden = True
    await setting.context.save(store.load, store.store, store.holds)
    checkpoint = setting.context.checkpoint
    assert checkpoint is not None and store.asked == [checkpoint.covers_until]
    assert (store.writes, store.value) == (0, None)
    assert "reset" in setting.lines[-1]


async def test_F6_after_a_reset_what_another_run_stored_since_does_not_let_old_words_back_in() -> None:
    setting = Setting(Model(GOOD), checkpoint=Checkpoint(GOOD, "1", "1"))
    await setting.fit(view(*history(60), user("now")))
    store = Store(write(Checkpoint(windows={"m1": 9_000})))
    store.hidden = True
    await setting.context.save(store.load, store.store, store.holds)
    assert store.writes == 0
    assert "reset" in setting.lines[-1]


async def test_F6_what_changed_after_a_save_is_saved_too_and_nothing_twice() -> None:
    setting = Setting(Model(GOOD))
    await setting.fit(view(*history(60), user("now")))
    store = Store()
    await setting.context.save(store.load, store.store, store.holds)
    assert not await setting.context.save(store.load, store.store, store.holds)
    setting.context.note("offered", ["read"])
    await setting.context.save(store.load, store.store, store.holds)
    stored = read(store.value)
    assert stored == setting.context.checkpoint and stored is not None and stored.summary
    assert (stored.notes, store.writes) == ({"offered": ["read"]}, 2)


async def test_J5_a_second_save_does_not_undo_what_another_run_reached_meanwhile() -> None:
    setting = Setting(Model(GOOD))
    await setting.fit(view(*history(60), user("now")))
    store = Store(write(Checkpoint("Theirs reaches further.", "1", "999")))
    await setting.context.save(store.load, store.store, store.holds)
    setting.context.note("offered", ["read"])
    await setting.context.save(store.load, store.store, store.holds)
    stored = read(store.value)
    assert stored is not None and (stored.covers_until, stored.notes) == ("999", {"offered": ["read"]})


async def test_F6_other_things_are_remembered_beside_the_summary() -> None:
    setting = Setting(checkpoint=Checkpoint(GOOD, "1", "9", notes={"names": {"7": "Ann"}}))
    setting.context.note("offered", ["read"])
    store = Store(write(Checkpoint(GOOD, "1", "9", notes={"names": {"7": "Ann"}})))
    await setting.context.save(store.load, store.store, store.holds)
    stored = read(store.value)
    assert stored is not None and stored.summary == GOOD
    assert stored.notes == {"names": {"7": "Ann"}, "offered": ["read"]}


async def test_F6_a_run_that_changed_nothing_neither_reads_nor_writes() -> None:
    setting = Setting(checkpoint=Checkpoint(GOOD, "1", "9"))
    await setting.fit(view(user("hi")))
    store = Store(fails="load")
    await setting.context.save(store.load, store.store, store.holds)
    assert setting.lines == []


@pytest.mark.parametrize("fails", ["load", "store"])
async def test_Q4_a_state_that_fails_costs_a_log_line_only(fails: str) -> None:
    setting = Setting(Model(GOOD))
    await setting.fit(view(*history(60), user("now")))
    store = Store(fails=fails)
    await setting.context.save(store.load, store.store, store.holds)
    assert store.writes == 0
    assert "not saved" in setting.lines[-1]
