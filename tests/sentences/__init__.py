"""Each sentence of S2, S3, S6, S7 and S8 as a scenario through the whole loop, and the same scenario without it."""

import pytest

pytest.register_assert_rewrite("tests.sentences.table")
