"""The control markers of chat templates and call formats, by shape: data, no behaviour.

A shape is the one character that is changed to make a marker inert, and the pattern of what must follow it (or, for
`BEHIND`, stand before it). Shapes instead of a list of strings, since models write markers with attributes, other
case and stray blanks, and since new templates keep to the old shapes. `tests/guards` checks them against the markers
of 80 public templates, `tests/callformats` against the markers of every format of the registry.
"""

from __future__ import annotations

TAG_NAMES = (
    # calls and their parts
    "tool_call",
    "tool_calls",
    "toolcall",
    "tool_code",
    "tool_use",
    "tool_request",
    "tool_sep",
    "function",
    "functions",
    "function_call",
    "function_calls",
    "start_function_call",
    "end_function_call",
    "start_function_declaration",
    "end_function_declaration",
    "start_function_response",
    "end_function_response",
    "dots_function_call",
    "longcat_tool_call",
    "longcat_arg_key",
    "longcat_arg_value",
    "invoke",
    "parameter",
    "param",
    "arg_key",
    "arg_value",
    "escape",
    # offers and results
    "tools",
    "available_tools",
    "tool_list",
    "tool_response",
    "tool_responses",
    "tool_result",
    "tool_results",
    "function_results",
    # thoughts and answers
    "think",
    "thinking",
    "thought",
    "longcat_think",
    "reasoning",
    "answer",
    # turns
    "start_of_turn",
    "end_of_turn",
    "start_of_image",
    "end_of_image",
    "image_soft_token",
)
"""Names in `<name>`, `</name>`, `<name attr>`, `<name=value>`, `<ns:name>`, in any case."""

WHOLE_TAGS = (
    "s",
    "bos",
    "eos",
    "unk",
    "pad",
    "mask",
    "sop",
    "eop",
    "bot",
    "eot",
    "cls",
    "sep",
    r"special_\d{1,4}",
    r"unused\d{1,4}",
    r"seed:\w{1,30}",
)
"""Short names that are markers only as exactly `<name>` or `</name>`, in any case."""

LOUD_BRACKETS = ("tool_calls?", "tool_results?", "tool_content", "available_tools", "(?:end_)?tool_request")
"""Names in `[NAME]` and `[/NAME]` that nothing else uses, in any case."""

BRACKETS = (
    "INST",
    "ARGS",
    "CALL_ID",
    "THINK",
    "SYSTEM_PROMPT",
    "IMG",
    "IMG_BREAK",
    "IMG_END",
    "AUDIO",
    "BEGIN_AUDIO",
    "PREFIX",
    "MIDDLE",
    "SUFFIX",
    "BEGIN FINAL RESPONSE",
    "gMASK",
    "sMASK",
)
"""Names in `[NAME]` and `[/NAME]`, in exactly this case: in lower case people write them in usage texts."""

_NAME_END = r"(?:(?![A-Za-z0-9_])|(?=name\s{0,4}=))"

AHEAD: tuple[tuple[str, str], ...] = (
    # <|im_start|>, <|"|>, <|channel>, and DeepSeek's wide bars with their closers: every special token in bars, known
    # or not. A blank or `>` after the bar is an operator of Haskell, Elm or F#.
    ("<", r"/?[|｜][^\s>|｜]"),
    # Gemma 4: <channel|>, <tool_call|>
    ("<", r"/?[A-Za-z][\w.:-]{0,40}[|｜]>"),
    # <tool_call>, <function=x>, and with a maker's prefix: <mm:think>, <atem:invoke>
    ("<", rf"[ \t]{{0,4}}/?[ \t]{{0,4}}(?:[A-Za-z][\w-]{{0,24}}:)?(?i:{'|'.join(TAG_NAMES)}){_NAME_END}"),
    ("<", rf"/?(?i:{'|'.join(WHOLE_TAGS)})>"),
    # Llama 2
    ("<", r"</?SYS>>"),
    ("[", rf"/?(?i:{'|'.join(LOUD_BRACKETS)}){_NAME_END}"),
    ("[", rf"/?(?:{'|'.join(BRACKETS)})\]"),
    # EXAONE
    ("[", r"\|[A-Za-z]{1,20}\|\]"),
    # MiniMax
    ("]", r"(?:~!?b[\[\]]|<\]minimax\[)"),
    ("[", r"e~\["),
    # Gemma 3 writes its calls in a fence of its own
    ("`", r"``[ \t]{0,4}tool_(?:code|call|calls|output)\b"),
)
"""(character to change, what follows it). Every repetition is bounded, so that matching is linear."""

BEHIND: tuple[tuple[str, str], ...] = (
    # Phi-4 mini, FireFunction
    ("[", r"functools"),
)
"""(character to change, what stands right before it)."""

INERT: dict[str, str] = {"<": "‹", "[": "⁅", "]": "⁆", "`": "‵"}
"""What a changed character becomes: one character that looks alike, is no letter, and that no Unicode normalisation
(as tokenizers do) turns back."""
