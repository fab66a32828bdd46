"""Sums as people write them, worked out exactly and within bounds; nothing is ever evaluated as code."""

from __future__ import annotations

import ast
import math
import operator
import re
import unicodedata
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final

from .failing import CannotDo

MOST_CHARACTERS: Final = 200
MOST_BITS: Final = 4096
"""Of a numerator or denominator: some 1,200 digits."""
_WHOLE_DIGITS: Final = 30
_SIGNIFICANT: Final = 12

_WAYS: Final[Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda left, right: Fraction(left // right),
    ast.Mod: operator.mod,  # written `mod`
}
_FUNCTIONS: Final[Mapping[str, Callable[[Fraction], Fraction]]] = {
    "sqrt": lambda value: _root(value),
    "abs": abs,
    "round": lambda value: Fraction(round(value)),
    "floor": lambda value: Fraction(math.floor(value)),
    "ceil": lambda value: Fraction(math.ceil(value)),
}
_NAMES: Final = {"pi": Fraction(math.pi), "e": Fraction(math.e)}
_SIGNS: Final = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**", "π": "pi", "√": "sqrt"})
_SHARE: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)[ \t]*%")
_UNCLEAR: Final = re.compile(r"%[ \t]*(?!of\b|mod\b)[\w.(]")
"""`7 % 3` is a share to one and a remainder to another."""
_WORDS: Final = re.compile(r"\b(of|mod)\b")
_END: Final = re.compile(r"[ \t]*(?:=|=[ \t]*\?|\?)[ \t]*$")


def calculate(expression: str) -> str:
    """`12.5 % of 84` gives `12.5 % of 84 = 10.5`. Exact for + - * / and whole powers; else 12 digits.

    Raises CannotDo, with a sentence, for anything that is no sum or that would grow beyond the bounds.
    """
    if len(expression) > MOST_CHARACTERS:
        raise CannotDo(f"the sum is too long: at most {MOST_CHARACTERS} characters")
    asked = _END.sub("", " ".join(expression.split()))
    try:
        tree = ast.parse(_as_python(asked), mode="eval")
        value = _value(tree.body)
    except ZeroDivisionError:
        raise CannotDo("a division by zero has no result") from None
    except (SyntaxError, MemoryError, RecursionError, OverflowError, ValueError) as error:
        if isinstance(error, CannotDo):
            raise
        raise CannotDo("this is no sum; write numbers with + - * / ** and brackets, such as 12.5 % of 84") from None
    return f"{asked} = {written(value)}"


def written(value: Fraction) -> str:
    """A number for people: whole as it is up to 30 digits, else with at most 12 significant digits."""
    if value.denominator == 1 and len(str(abs(value.numerator))) <= _WHOLE_DIGITS:
        return str(value.numerator)
    try:
        return f"{float(value):.{_SIGNIFICANT}g}"
    except OverflowError:
        raise CannotDo("the result is too large") from None


def _as_python(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).translate(_SIGNS)
    if _UNCLEAR.search(plain):
        raise CannotDo("write `7 % of 3` for a share and `7 mod 3` for a remainder")
    shares = _SHARE.sub(r"(\1/100)", plain)
    return _WORDS.sub(lambda found: "*" if found[1] == "of" else "%", shares).strip()


def _value(node: ast.expr) -> Fraction:
    return _bounded(_worked_out(node))


def _worked_out(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return Fraction(repr(number))  # 0.1 is a tenth
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=how, right=right) if type(how) in _WAYS:
            return _WAYS[type(how)](_value(left), _value(right))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](_value(argument))
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
    raise CannotDo(f"only numbers, + - * / // mod **, brackets and {', '.join(_FUNCTIONS)} can be worked out")


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        if base < 0:
            raise CannotDo("a broken power of a negative number has no result")
        return Fraction(float(base) ** float(exponent))
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits * abs(exponent) > MOST_BITS:
        raise CannotDo("the power is too large")
    return Fraction(base**exponent.numerator)


def _root(value: Fraction) -> Fraction:
    if value < 0:
        raise CannotDo("a negative number has no square root")
    exact = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
    return exact if exact * exact == value else Fraction(math.sqrt(value))


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MOST_BITS:
        raise CannotDo("the numbers grow too large")
    return value
