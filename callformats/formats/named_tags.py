"""Calls as tags with the names inside: Qwen3-Coder, Seed-OSS, Functionary 3.1, MiniMax M2, Step-3,
MiniCPM, dots and the invoke/parameter shape in general. Each is one grammar."""

from __future__ import annotations

import re
from dataclasses import replace

from callformats.block import Format
from callformats.tag_grammar import Grammar, reader_of, written


def _equals_grammar(wraps: tuple[str, ...], wrap_closes: tuple[str, ...]) -> Grammar:
    return Grammar(
        wraps=wraps,
        wrap_closes=wrap_closes,
        calls=("<function=",),
        call=re.compile(r"<function=\s{0,4}[\"']?(?P<name>[^<>\n\"']{1,128})[\"']?>"),
        call_close=re.compile(r"</function\s{0,4}>"),
        parameter=re.compile(r"<parameter=\s{0,4}[\"']?(?P<name>[^<>\n\"']{1,128})[\"']?>"),
        parameter_start=re.compile(r"<parameter="),
        parameter_close=re.compile(r"</parameter\s{0,4}>"),
        trims_newline=True,
        call_template="<function={name}>\n{parameters}</function>",
        parameter_template="<parameter={name}>\n{value}\n</parameter>\n",
    )


def attribute_grammar(
    wraps: tuple[str, ...],
    wrap_closes: tuple[str, ...],
    call: str,
    parameter: str,
    *,
    call_template: str,
    parameter_template: str,
    marks_strings: bool = False,
) -> Grammar:
    """A grammar of `<call name="…">` and `<parameter name="…">`; `call` and `parameter` are patterns without groups."""
    name = r"\s{0,4}name\s{0,4}=\s{0,4}[\"'](?P<name>[^\"'<>\n]{1,128})[\"']"
    maybe_name = r"(?:\s{0,4}name\s{0,4}=\s{0,4}[\"'](?P<name>[^\"'<>\n]{0,128})[\"'])?"
    string = r"(?:\s{1,4}string\s{0,4}=\s{0,4}[\"'](?P<string>true|false)[\"'])?" if marks_strings else ""
    return Grammar(
        wraps=wraps,
        wrap_closes=wrap_closes,
        calls=(f"<{call} name=", f"<{call}name="),
        call=re.compile(rf"<{call}{name}\s{{0,4}}/?>"),
        call_close=re.compile(rf"</{call}\s{{0,4}}>"),
        parameter=re.compile(rf"<{parameter}{maybe_name}{string}\s{{0,4}}>"),
        parameter_start=re.compile(rf"<{parameter}\s{{0,4}}name\s{{0,4}}="),
        parameter_close=re.compile(rf"</{parameter}\s{{0,4}}>"),
        trims_newline=False,
        call_template=call_template,
        parameter_template=parameter_template,
        marks_strings=marks_strings,
    )


def _prefixed(prefix: str, wraps: tuple[str, ...], wrap_closes: tuple[str, ...]) -> Grammar:
    return attribute_grammar(
        wraps,
        wrap_closes,
        f"{prefix}invoke",
        f"{prefix}parameter",
        call_template=f'<{prefix}invoke name="{{name}}">\n{{parameters}}</{prefix}invoke>',
        parameter_template=f'<{prefix}parameter name="{{name}}">{{value}}</{prefix}parameter>\n',
    )


def _format(format_id: str, grammar: Grammar, aliases: tuple[str, ...] = ()) -> Format:
    closes = (*grammar.wrap_closes, grammar.call_close.pattern.replace(r"\s{0,4}", ""))
    return Format(
        id=format_id,
        read=reader_of(grammar),
        write=lambda name, arguments: written(grammar, name, arguments),
        opens=(*grammar.wraps, *grammar.calls),
        closes=closes,
        stops=closes[:1],
        aliases=aliases,
    )


FORMATS = (
    _format(
        "qwen3-xml",
        _equals_grammar(("<tool_call>",), ("</tool_call>",)),
        ("qwen3-coder", "functionary-v31", "llama3-function-tag"),
    ),
    _format("seed-oss", _equals_grammar(("<seed:tool_call>",), ("</seed:tool_call>",))),
    _format(
        "minimax-m2",
        _prefixed("", ("<minimax:tool_call>", "<function_calls>"), ("</minimax:tool_call>", "</function_calls>")),
    ),
    _format("invoke-in-tool-call", _prefixed("", ("<tool_call>",), ("</tool_call>",))),
    _format("dots", _prefixed("", ("<dots_function_call>",), ("</dots_function_call>",))),
    _format("atem", _prefixed("atem:", ("<atem:function_calls>",), ("</atem:function_calls>",))),
    _format(
        "step3",
        replace(
            _prefixed(
                "steptml:",
                ("<｜tool_call_begin｜>", "<steptml:toolcall>"),
                ("<｜tool_call_end｜>", "</steptml:toolcall>"),
            ),
            lead="function<｜tool_sep｜>",
        ),
    ),
    _format(
        "minicpm5-xml",
        attribute_grammar(
            (),
            (),
            "function",
            "param",
            call_template='<function name="{name}">{parameters}</function>',
            parameter_template='<param name="{name}">{value}</param>',
        ),
        ("minicpm",),
    ),
)
