"""C1, C3: which models a run may use, and in which order."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langbot_plugin.api.entities.builtin.provider.reasoning import ReasoningLevel
from langbot_plugin.api.entities.builtin.runner.resources import ModelResource

from runner.host.errors import AllModelsFailed, ModelFailed, ModelTrouble, NoUsableModel
from runner.models.fallback_order import Lineup, ModelRef, authorised

IDS = st.sampled_from(["a", "b", "c", "d", ""])
GRANTS = st.lists(
    st.builds(
        ModelResource,
        model_id=st.sampled_from(["a", "b", "c"]),
        operations=st.lists(st.sampled_from(["invoke", "stream", "rerank", "count_tokens"]), unique=True),
    ),
    unique_by=lambda model: model.model_id,
)


def granted(*ids: str) -> list[ModelResource]:
    return [ModelResource(model_id=an_id) for an_id in ids]


@given(st.lists(IDS), GRANTS)
def test_C1_wanted_order_each_once_and_nothing_that_is_not_granted(
    wanted: list[str], grants: list[ModelResource]
) -> None:
    usable = {
        model.model_id for model in grants if not model.operations or {"invoke", "stream"} & set(model.operations)
    }
    expected = [an_id for an_id in dict.fromkeys(wanted) if an_id in usable]
    try:
        got = [ref.id for ref in authorised(wanted, {}, grants)]
    except NoUsableModel as told:
        assert expected == [] and "AI tab" in str(told) and told.code == "runner.no_model"
    else:
        assert got == expected


@pytest.mark.parametrize(
    ("operations", "streams", "counts"),
    [
        ([], True, True),
        (["stream"], True, False),
        (["invoke"], False, False),
        (["invoke", "count_tokens"], False, True),
    ],
)
def test_C2_streaming_only_where_it_is_granted_and_no_list_is_every_operation(
    operations: list[str], streams: bool, counts: bool
) -> None:
    (ref,) = authorised(["a"], {}, [ModelResource.model_validate({"model_id": "a", "operations": operations})])
    assert (ref.streams, "count_tokens" in ref.operations) == (streams, counts)


@pytest.mark.parametrize("level", get_args(ReasoningLevel))
def test_C3_a_known_level_belongs_to_its_model_alone(level: str) -> None:
    one, two = authorised(["a", "b"], {"a": level, "z": "max"}, granted("a", "b"))
    assert (one.level, two.level) == (level, None)


@pytest.mark.parametrize("level", ["", "very much", "HIGH"])
def test_C3_an_unknown_level_is_no_level(level: str) -> None:
    (ref,) = authorised(["a"], {"a": level}, granted("a"))
    assert ref.level is None


def test_C1_the_model_that_answered_stays_and_a_failed_one_is_not_asked_again() -> None:
    lineup = Lineup(authorised(["a", "b"], {}, granted("a", "b")))
    assert lineup.current.id == "a"
    lineup.advance(ModelFailed("a", ModelTrouble.AUTH, "key"))
    assert (lineup.current.id, lineup.fallbacks_used) == ("b", 1)


def test_C1_when_none_is_left_every_failure_is_named() -> None:
    lineup = Lineup((ModelRef("a", None, frozenset()), ModelRef("b", None, frozenset())))
    lineup.advance(ModelFailed("a", ModelTrouble.AUTH, "bad key"))
    with pytest.raises(AllModelsFailed) as told:
        lineup.advance(ModelFailed("b", ModelTrouble.TIMEOUT, "slow"))
    assert "bad key" in str(told.value) and "slow" in str(told.value)
    assert [failure.model_id for failure in told.value.failures] == ["a", "b"]
