from __future__ import annotations

import pytest

from demo import model
from demo.errors import DemoError


def test_the_model_is_the_one_that_is_named_or_the_default() -> None:
    assert model.choose(None).key == model.DEFAULT
    assert model.choose(" 0.5B ").key == "0.5b"


def test_a_name_that_is_in_no_catalogue_is_one_line() -> None:
    with pytest.raises(DemoError, match=r"DEMO_MODEL=7b is unknown; choose one of 135m, 0\.5b, 1\.5b"):
        model.choose("7b")
