"""How thoughts, turns and made-up tool results are marked in replies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Marks:
    """A pair of markers. `leads`: the opener is a sentence; it counts only where the reply begins."""

    opens: str
    closes: str
    leads: bool = False


HOST = Marks("<think>", "</think>")
"""As LangBot writes the thoughts that a provider gives beside the text."""

THOUGHTS = (
    HOST,
    Marks("<thinking>", "</thinking>"),
    Marks("<thought>", "</thought>"),
    Marks("<reasoning>", "</reasoning>"),
    Marks("<seed:think>", "</seed:think>"),
    Marks("<mm:think>", "</mm:think>"),
    Marks("<longcat_think>", "</longcat_think>"),
    Marks("[THINK]", "[/THINK]"),
    Marks("[unused16]", "[unused17]"),
    Marks("◁think▷", "◁/think▷"),
    Marks("<unused94>thought", "<unused95>"),
    Marks("<|thought_start|>", "<|thought_end|>"),
    Marks("<|think|>", "<|end|>"),
    Marks("<|channel>", "<channel|>"),
    Marks("<|START_THINKING|>", "<|END_THINKING|>"),
    Marks("<|begin_of_thought|>", "<|end_of_thought|>"),
    Marks("<|inner_prefix|>", "<|inner_suffix|>"),
    Marks("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    Marks("<|channel|>analysis<|message|>", "<|end|>"),
    Marks("Here is my thought process:", "Here is my response:", leads=True),
    Marks("Here's my thought process:", "Here's my response:", leads=True),
    Marks("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", leads=True),
)

SELF = Marks("to=self<|message|>", "<|eom|>")
"""A turn that a model addresses to itself; it counts where the reply begins."""

CLOSERS_ALONE = tuple(
    marks.closes
    for marks in THOUGHTS
    if marks.closes not in ("<|end|>", "<|eom|>") and not marks.closes.startswith("Here")
)
"""Closers that end a thought whose opener stood in the prompt."""

RESULTS = (
    Marks("<tool_response>", "</tool_response>"),
    Marks("<tool_responses>", "</tool_responses>"),
    Marks("<tool_result>", "</tool_result>"),
    Marks("<tool_results>", "</tool_results>"),
    Marks("<function_results>", "</function_results>"),
    Marks("<function_response>", "</function_response>"),
    Marks("<start_function_response>", "<end_function_response>"),
    Marks("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
    Marks("<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>"),
    Marks("<|tool_response_start|>", "<|tool_response_end|>"),
)
"""Tool results a model made up: hidden, and nothing behind them counts."""

RESULT_TOKENS = (
    "<｜tool▁outputs▁begin｜>",
    "<｜tool▁outputs▁end｜>",
    "<｜tool▁output▁begin｜>",
    "<｜tool▁output▁end｜>",
    "<|tool▁outputs▁begin|>",
    "<|tool▁outputs▁end|>",
    "<|tool▁output▁begin|>",
    "<|tool▁output▁end|>",
)
"""DeepSeek puts them around parts of its own answer: a fault too, but what stands between is left to be read."""

NOISE = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|eot|>",
    "<|eom|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|role_end|>",
    "[|endofturn|]",
    "<|end_of_msg|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|CHATBOT_TOKEN|>",
    "<|START_RESPONSE|>",
    "<|END_RESPONSE|>",
    "<|START_TEXT|>",
    "<|END_TEXT|>",
    "<｜end▁of▁sentence｜>",
    "<|end▁of▁sentence|>",
    "<end_of_turn>",
    "<turn|>",
    "<|tool_response>",
    "<tool_response|>",
    "<|start|>assistant",
    "<|channel|>final<|message|>",
    "<|channel|>commentary<|message|>",
    "<|channel|>commentary to=assistant",
    "<|message_sep|>",
    "<|python_tag|>",
    "<｜tool_calls_begin｜>",
    "<｜tool_calls_end｜>",
    "<|open|>response<|sep|>",
    "<|close|>response<|sep|>",
    "<|close|>message<|sep|>",
)
"""Tokens of the turn itself; no text for the user."""

ANSWER_TAGS = ("<answer>", "</answer>", "<response>", "</response>")
"""Tags that wrap the answer behind a thought; dropped only there."""

LAST_ONLY = ("</s>",)
"""Dropped only at the very end: elsewhere it is HTML."""
