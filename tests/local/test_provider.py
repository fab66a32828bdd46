"""S0: what a provider must have, and what the absence of the rest means."""

from __future__ import annotations

import pytest

from local import Available, Error, Finish, GenerateRequest, GenerateResult, ModelChoice, create
from local.provider import OnProgress, complete
from tests.written import bare

from .scripted import Scripted, asking, parts_of, text_of


class Least:
    """Nothing but what an engine must have."""

    id = "least"
    label = "The least"

    def __init__(self) -> None:
        self.asked: list[GenerateRequest] = []

    async def availability(self) -> Available:
        return Available()

    async def prepare(self, on_progress: OnProgress) -> None:
        on_progress(1.0)

    async def generate(self, request: GenerateRequest) -> GenerateResult:
        self.asked.append(request)
        return GenerateResult(f"You said: {request.messages[-1].content}")


async def test_S0_the_five_required_members_are_enough() -> None:
    provider = Least()
    parts = await parts_of(provider, asking("hello"))
    assert text_of(parts) == "You said: hello"
    assert parts[-1] == Finish("stop")


async def test_S0_what_is_missing_means_tags_tools_by_template_everything_fits_and_no_choice() -> None:
    whole = complete(Least())
    assert (whole.tools_inline, whole.call_format, whole.broken) == (False, "tags", None)
    assert await whole.fits("system", (), ())
    assert list(whole.models()) == []
    with pytest.raises(ValueError, match="has no model 'x'"):
        await whole.select_model("x")
    whole.dispose()


async def test_S0_the_base_class_means_the_same_by_its_defaults() -> None:
    whole = complete(Scripted("Hi."))
    assert (whole.tools_inline, whole.call_format, whole.broken) == (False, "tags", None)
    assert list(whole.models()) == []
    with pytest.raises(ValueError, match="has no model 'x'"):
        await whole.select_model("x")


async def test_S0_optional_members_count_where_they_are_there_even_when_they_come_late() -> None:
    class Full(Least):
        tools_inline = True
        call_format = "guided"
        disposed = False

        async def fits(self, system: object, messages: object, tools: object) -> bool:
            return False

        def models(self) -> list[ModelChoice]:
            return [ModelChoice("a", "A")]

        async def select_model(self, model_id: str) -> None:
            self.label = model_id

        def dispose(self) -> None:
            self.disposed = True

    engine = Full()
    whole = complete(engine)
    assert (whole.tools_inline, whole.call_format, whole.broken) == (True, "guided", None)
    assert not await whole.fits("", (), ())
    assert [choice.id for choice in whole.models()] == ["a"]
    await whole.select_model("a")
    whole.dispose()
    engine.broken = "no memory"  # type: ignore[attr-defined]
    assert (whole.label, engine.disposed, whole.broken) == ("a", True, "no memory")


async def test_S0_any_call_format_that_can_be_written_is_one() -> None:
    provider = Scripted("[TOOL_CALLS][" + bare("get_weather", city="Oslo") + "]", "Sunny.", call_format="mistral")
    await parts_of(provider, asking())
    assert provider.requests[1].messages[1].content.startswith("[TOOL_CALLS]")


@pytest.mark.parametrize("name", ["telepathy", ""])
async def test_S0_a_call_format_that_nobody_knows_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no call format named"):
        await parts_of(Scripted("Hi.", call_format=name), asking())


async def test_S0_a_provider_that_is_not_prepared_is_asked_nothing() -> None:
    from local import NeedsDownload

    provider = Scripted("Hi.")
    provider.state = NeedsDownload(1_000)
    parts = await parts_of(provider, asking())
    assert isinstance(parts[-1], Error)
    assert "is not ready (needs-download)" in parts[-1].text
    assert (provider.prepared, provider.requests) == (0, [])


def test_S0_an_agent_needs_providers_with_ids_of_their_own() -> None:
    for providers in ([], [Scripted("a"), Scripted("b")]):
        with pytest.raises(ValueError, match="ids of their own"):
            create(providers)
