"""The control markers of chat templates and call formats, by shape: data, no behaviour.

A shape is the one character that is changed to make a marker inert, and the patterns of what must stand before and
behind it. Shapes instead of a list of strings, since models write markers with attributes, other case and stray
blanks, and since new templates keep to the old shapes. What the call formats themselves mean by a literal is taken
from their registry (`guards.literals`), so that a new format needs nothing here. `tests/guards` holds the list of the
markers found in public templates, and tries each.
"""

from __future__ import annotations

from typing import NamedTuple

TAG_NAMES = (
    # calls, offers and results: <tool>, <tool_call>, <tools>, <function=…>, <start_function_call>, …
    r"tools?",
    r"tool_?call(?:s|ing)?",
    r"tool_\w{1,24}",
    r"functions?",
    r"function_\w{1,24}",
    r"start_function_\w{1,24}",
    r"end_function_\w{1,24}",
    "available_tools",
    r"dots_\w{1,24}",
    r"longcat_\w{1,24}",
    "use_mcp_tool",
    "invoke",
    "parameters?",
    "param",
    "arguments?",
    "server_name",
    "arg_key",
    "arg_value",
    "escape",
    # thoughts and answers
    "think",
    "thinking",
    "thoughts?",
    r"think_(?:start|end)",
    r"thought_(?:start|end)",
    "reasoning",
    "answer",
    # turns: <start_of_turn>, <end_of_utterance>, <beginning_of_sentence>, <im_start>, <start_user>, …
    r"start_of_\w{1,24}",
    r"begin(?:ning)?_of_\w{1,24}",
    r"end_of_\w{1,24}",
    r"start_(?:system|user|assistant|message|header_id|thinking|action)",
    r"end_(?:system|user|assistant|message|header_id|thinking|action)",
    *(rf"{role}_(?:start|end)" for role in ("im", "turn", "bot", "func", "python", "header", "role", "vision")),
    *(rf"{role}_(?:start|end)" for role in ("user", "system", "assistant")),
    # pictures and sound
    *(rf"{kind}_\w{{0,12}}(?:token|placeholder|pad|patch|start|end)" for kind in ("image", "audio", "video")),
    "im_(?:patch|sep)",
    "img_context",
)
"""Names in `<name>`, `</name>`, `<name attr>`, `<name=value>`, `<ns:name>`, in any case."""

NAME_SPACES = ("seed", "minimax", "mm", "atem", "steptml", "antml")
"""Whatever stands in `<ns:…>` and `</ns:…>` of these makers."""

WHOLE_TAGS = (
    "s",
    "bos",
    "eo(?:[abcdhmprst]|sys)",
    "unk",
    "pad",
    "mask",
    "sop",
    "bot",
    "human",
    "cls",
    "sep",
    "nl",
    "gmask",
    "step",
    "role",
    "response",
    "results",
    "global_setting",
    "startoftext",
    "endoftext",
    *(
        f"{name}_token"
        for name in ("bos", "eos", "eop", "pad", "unk", "cls", "sep", "mask", "user", "system", "chatbot")
    ),
    *(f"{name}_of_turn_token" for name in ("start", "end")),
    r"special_\d{1,4}",
    r"unused_?\d{1,4}",
    r"tokens_unused_\d{1,4}",
    r"reserved_\d{1,4}",
    r"reserved_(?:special_)?token_?\d{0,4}",
    r"extra_id_\d{1,4}",
    r"extra_\d{1,4}",
    r"loc_?\d{1,4}",
    r"seg_?\d{1,4}",
    r"row_\d{1,3}_col_\d{1,3}",
    "image",
    "video",
    "audio",
    "img",
    "ref",
    "box",
    "quad",
    "global-img",
    "fake_token_around_image",
    # code models
    r"fim[_-]\w{1,12}",
    "suf",
    "mid",
    "file_sep",
    "repo_?name",
    "gh_stars",
    "empty_output",
    r"issue_(?:start|comment|closed)",
    r"jupyter_(?:start|text|code|output|script)",
    r"commit_(?:before|msg|message|after)",
)
"""Short names that are markers only as exactly `<name>` or `</name>`, in any case."""

EXACT_TAGS = ("C_Q", "C_A", r"B_[A-Z]{2,6}", "AI", "用户", r"_[a-z]{2,12}", r"#[a-z_]{2,24}#")
"""As exactly `<name>`, in exactly this case: Baichuan-M1, MiniCPM, TeleChat, Inkbot."""

LOUD_BRACKETS = (
    "tool_calls?",
    "tool_results?",
    "tool_content",
    "available_tools",
    "model_settings",
    "system_prompt",
    "(?:end_)?tool_request",
    r"unused_?\d{1,4}",
    r"unused_token_\d{1,4}",
    r"control_\d{1,4}",
)
"""Names in `[NAME]` and `[/NAME]` that nothing else uses, in any case."""

BRACKETS = (
    "INST",
    "ARGS",
    "CALL_ID",
    "THINK",
    "IMG",
    "IMG_BREAK",
    "IMG_END",
    "AUDIO",
    "BEGIN_AUDIO",
    "TRANSCRIBE",
    "PREFIX",
    "MIDDLE",
    "SUFFIX",
    "(?:BEGIN|END) FINAL RESPONSE",
    "(?:BEGIN|END) OF [A-Z ]{1,32}",
    "gMASK",
    "sMASK",
    "BOS",
    "EOS",
    "PAD",
    "UNK",
    "CLS",
    "SEP",
    "MASK",
    "USER",
    "BOT",
)
"""Names in `[NAME]` and `[/NAME]`, in exactly this case: in lower case people write them in usage texts."""

FALCON = "ABSTRACT|INTRODUCTION|SUMMARY|COMMENT|ANSWER|QUESTION|DOMAIN|PREFIX|SUFFIX|MIDDLE|TITLE"
"""Names in `>>NAME<<`."""

ROLE_LINES = "Instruction|Input|Response|Human|Assistant|User|System"
"""Roles in `### NAME:`, Alpaca's and Vicuna's way to begin a turn."""


def _any_case(names: tuple[str, ...]) -> str:
    """The names in any case, by their first letter: finding out that a tag is none of them has to be quick."""
    rests: dict[str, list[str]] = {}
    for name in names:
        rests.setdefault(name[0], []).append(name[1:])
    return "|".join(f"[{first}{first.upper()}](?i:{'|'.join(rest)})" for first, rest in rests.items())


_TAGS = _any_case(TAG_NAMES)
_NAME_END = r"(?:(?![A-Za-z0-9_])|(?=name[ \t]{0,4}=))"
_BAR = "[|｜]"


class Shape(NamedTuple):
    """`char` is changed where the pattern `ahead` matches behind it, and `behind`, of a fixed width, before it."""

    char: str
    ahead: str = ""
    behind: str = ""


SHAPES: tuple[Shape, ...] = (
    # <|im_start|>, <|"|>, <|channel>, and DeepSeek's wide bars with their closers: every special token in bars, known
    # or not. A blank or `>` after the bar is an operator of Haskell, Elm or F#.
    Shape("<", rf"/?{_BAR}{{1,3}}[^\s>|｜]"),
    Shape("<", rf"[ \t]{{0,4}}/?[ \t]{{0,4}}{_BAR}{{1,3}}[ \t]{{0,4}}DSML"),
    # Gemma 4: <channel|>, <tool_call|>
    Shape("<", rf"/?[A-Za-z][\w.:-]{{0,40}}{_BAR}>"),
    # <tool_call>, <function=x>, and with a maker's prefix: <mm:think>, <atem:invoke>
    Shape("<", rf"[ \t]{{0,4}}/?[ \t]{{0,4}}(?:{_TAGS}|[A-Za-z][\w-]{{0,24}}:(?:{_TAGS})){_NAME_END}"),
    Shape("<", rf"/?(?:{_any_case(NAME_SPACES)}):[A-Za-z]"),
    Shape("<", rf"/?(?:{_any_case(WHOLE_TAGS)})>"),
    Shape("<", rf"/?(?:{'|'.join(EXACT_TAGS)})>"),
    # Seed-Coder: <[begin▁of▁sentence]>
    Shape("<", r"\[[A-Za-z]{1,12}[▁_-][^\s\[\]<>]{1,40}\]>"),
    # Llama 2, Gorilla
    Shape("<", r"</?(?:SYS|function|question)>>"),
    Shape("[", rf"/?(?i:{'|'.join(LOUD_BRACKETS)}){_NAME_END}"),
    Shape("[", rf"/?(?:{'|'.join(BRACKETS)})\]"),
    # EXAONE, BlueLM
    Shape("[", r"\|[A-Za-z]{1,20}\|\]"),
    # ChatGLM 2, LongCat
    Shape("[", r"Round \d{1,4}\]"),
    # MiniMax
    Shape("]", r"(?:~!?b[\[\]]|<\]minimax\[)"),
    Shape("[", r"e~\["),
    # Gemma 3 writes its calls in a fence of its own
    Shape("`", r"``[ \t]{0,4}tool_(?:code|call|calls|output)\b"),
    # Phi-4 mini, FireFunction
    Shape("[", behind="functools"),
    # Kimi VL
    Shape("◁", r"/?[a-z]{2,24}▷"),
    # Persimmon, CodeShell, Falcon
    Shape("|", r"(?:ENDOFTEXT|NEWLINE)\|"),
    Shape("|", r"<end>\|"),
    Shape(">", rf">(?:{FALCON})<<"),
    # Alpaca, Vicuna, Magicoder, OpenChat
    Shape("#", rf"## ?(?i:{ROLE_LINES}):"),
    Shape("@", r"@ (?:Instruction|Response)(?:\n|\Z)"),
    Shape(":", behind="GPT4 Correct User"),
    Shape(":", behind="GPT4 Correct Assistant"),
)
"""Every repetition is bounded, so that matching is linear."""
