"""Everyday tools whose results nobody can guess."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from langbot_plugin.api.definition.components.tool.tool import Tool
from langbot_plugin.api.entities.builtin.provider.session import Session

# Reminders, confirmed with a number.


class AddReminder(Tool):
    async def call(self, params: dict[str, Any], session: Session, query_id: int) -> str:
        text, minutes = str(params["text"]), int(params["minutes"])
        return f"Reminder R{7000 + minutes} is set: {text!r} in {minutes} minutes."


# Sums of numbers, without eval.

_WAYS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


class Calculate(Tool):
    async def call(self, params: dict[str, Any], session: Session, query_id: int) -> str:
        return f"{params['expression']} = {_value(ast.parse(str(params['expression']), mode='eval').body):g}"


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=how, right=right) if type(how) in _WAYS:
            return _WAYS[type(how)](_value(left), _value(right))
    raise ValueError("only numbers with + - * / and brackets")


# Weather that nobody can guess.


class GetWeather(Tool):
    async def call(self, params: dict[str, Any], session: Session, query_id: int) -> str:
        city = str(params["city"]).strip()
        degrees = 3 + sum(map(ord, city.lower())) % 30
        return f"{city}: {degrees} degrees, light wind from station W{degrees * 37 + 1000}."


# Parcels that are somewhere.


class TrackParcel(Tool):
    async def call(self, params: dict[str, Any], session: Session, query_id: int) -> str:
        number = str(params["number"]).strip().upper()
        shelf = 400 + sum(map(ord, number)) % 500
        return f"Parcel {number} is at depot D{shelf} and arrives on Friday."
