from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo import endpoint
from demo.errors import DemoError
from demo.ports import free_ports
from tests.e2e.scripted_model import Reply, ScriptedModel


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


def test_without_an_address_the_demo_brings_its_own_model() -> None:
    assert endpoint.from_environment({"MODEL_NAME": "x"}) is None


def test_an_endpoint_that_answers_is_taken_as_it_is(model: ScriptedModel) -> None:
    model.script()
    env = {"MODEL_BASE_URL": model.base_url + "/", "MODEL_NAME": "mine", "MODEL_API_KEY": "k"}
    assert endpoint.from_environment(env) == endpoint.Endpoint(model.base_url, "mine", "k")
    assert [request.model for request in model.requests] == ["mine"]


def test_the_only_model_on_offer_needs_no_name(model: ScriptedModel) -> None:
    model.script()
    found = endpoint.from_environment({"MODEL_BASE_URL": model.base_url})
    assert found is not None
    assert found.name == "scripted"


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_said_to_be_refused(model: ScriptedModel, status: int) -> None:
    model.script(Reply(status=status))
    with pytest.raises(DemoError, match=r"refused the key .*check MODEL_API_KEY"):
        endpoint.from_environment({"MODEL_BASE_URL": model.base_url, "MODEL_NAME": "x"})


def test_a_model_that_fails_is_named_with_its_status(model: ScriptedModel) -> None:
    model.script(Reply(status=404))
    with pytest.raises(DemoError, match=r"the model x at MODEL_BASE_URL=.* does not answer: HTTP 404"):
        endpoint.from_environment({"MODEL_BASE_URL": model.base_url, "MODEL_NAME": "x"})


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:11434", "is no address"),
        ("http://127.0.0.1:{closed}/v1", "cannot reach the model"),
        ("http://[broken", "cannot reach the model"),
    ],
)
def test_a_wrong_address_is_one_clear_line(address: str, words: str) -> None:
    with pytest.raises(DemoError, match=words) as raised:
        (closed,) = free_ports(1)
        endpoint.from_environment({"MODEL_BASE_URL": address.replace("{closed}", str(closed)), "MODEL_NAME": "x"})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("env", [{}, {"MODEL_NAME": "x"}])
def test_an_address_without_its_v1_is_told_so(model: ScriptedModel, env: dict[str, str]) -> None:
    with pytest.raises(DemoError, match=r"often ends in /v1"):
        endpoint.from_environment({"MODEL_BASE_URL": model.base_url.removesuffix("/v1"), **env})
