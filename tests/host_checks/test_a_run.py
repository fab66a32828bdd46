"""A whole run through the test host."""

from __future__ import annotations

from tests.host import Reply, TestHost, Tool, ToolCall


async def test_a_plain_message_is_answered_and_both_rows_are_kept() -> None:
    host = TestHost(replies=[Reply("Good morning", chunks=3)])
    run = await host.say("hello")
    assert (run.status, run.answer) == ("completed", "Good morning")
    assert [(row.role, row.text) for row in host.transcript()] == [("user", "hello"), ("assistant", "Good morning")]
    assert run.calls.names == ["get_prompt", "history_page", "invoke_llm_stream"]
    assert run.calls.depth == 2
    assert run.calls.before_first_model_call.depth == 1
    assert run.requests[0].roles == ["system", "user"]


async def test_a_tool_is_called_and_its_result_reaches_the_next_request() -> None:
    weather = Tool("weather", fn=lambda city: {"city": city, "sky": "clear"})
    host = TestHost(
        replies=[Reply("Let me see. ", tool_calls=[ToolCall("weather", {"city": "Oslo"})]), "Clear."], tools=[weather]
    )
    run = await host.say("weather in Oslo?")
    assert weather.calls == [{"city": "Oslo"}]
    assert run.requests[1].roles == ["system", "user", "assistant", "tool"]
    assert run.answer == "Let me see. Clear."
