"""DeepSeek V3.2: tags with DSML between bars, which servers hand on wide, plain, doubled, or with blanks."""

from __future__ import annotations

from dataclasses import replace

from callformats.block import Format
from callformats.formats.named_tags import attribute_grammar
from callformats.tag_grammar import reader_of, written

_OWN = "｜DSML｜"
"""As the template writes it."""

_BARS = ("｜", "|", "｜｜", "||")
_MIXED = ("｜DSML|", "|DSML｜", "｜｜DSML||", "||DSML｜｜")
_BLANKS = (("", "", ""), ("", "", " "), ("", " ", ""), ("", " ", " "), (" ", "", " "), (" ", " ", " "), (" ", " ", ""))
_SPELLINGS = (
    *(f"{one}{bar}{two}DSML{two}{bar}{three}" for bar in _BARS for one, two, three in _BLANKS),
    *_MIXED,
)
"""How it is seen, its own spelling first."""

_PREFIX = r"[ ]?[｜|]{1,2}[ ]?DSML[ ]?[｜|]{1,2}[ ]?"
_WRAPS = ("function_calls>", "tool_calls>")


def _tags(opening: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{opening}{prefix}{name}" for prefix in _SPELLINGS for name in names))


_GRAMMAR = replace(
    attribute_grammar(
        _tags("<", _WRAPS),
        _tags("</", _WRAPS),
        f"{_PREFIX}invoke",
        f"{_PREFIX}parameter",
        call_template=f'<{_OWN}invoke name="{{name}}">\n{{parameters}}</{_OWN}invoke>',
        parameter_template=f'<{_OWN}parameter name="{{name}}" string="{{string}}">{{value}}</{_OWN}parameter>\n',
        marks_strings=True,
    ),
    calls=_tags("<", ("invoke name=", "invokename=")),
)

FORMATS = (
    Format(
        "deepseek-dsml",
        reader_of(_GRAMMAR),
        lambda name, arguments: written(_GRAMMAR, name, arguments),
        (*_GRAMMAR.wraps, *_GRAMMAR.calls),
        (*_GRAMMAR.wrap_closes, *_tags("</", ("invoke>",))),
        _GRAMMAR.wrap_closes[:1],
        aliases=("deepseek-v32",),
    ),
)
