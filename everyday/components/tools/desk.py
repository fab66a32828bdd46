"""All tools by their names: what each takes from the arguments of a call, and whom it asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from .calculator import calculate
from .calendar import current_time, look_up
from .failing import CannotDo
from .notebook import Notebook
from .units import convert


@dataclass(frozen=True, slots=True)
class Desk:
    """`now` gives the moment with its zone; the notebook is that of the chat."""

    now: Callable[[], datetime]
    notebook: Notebook

    async def call(self, name: str, arguments: Mapping[str, object]) -> str:
        """What a tool answers. Raises CannotDo, with a sentence for the model, when it cannot be done."""
        match name:
            case "current_time":
                return current_time(self.now(), _text(arguments, "place"))
            case "calendar":
                return look_up(self.now().date(), _text(arguments, "date"), int(_number(arguments, "add_days")))
            case "calculate":
                return calculate(_text(arguments, "expression"))
            case "convert_units":
                return convert(_number(arguments, "value"), _text(arguments, "from"), _text(arguments, "to"))
            case "add_note":
                return await self.notebook.add(_text(arguments, "text"))
            case "list_notes":
                return await self.notebook.list()
            case "search_notes":
                return await self.notebook.search(_text(arguments, "words"))
        raise CannotDo(f"there is no tool {name}")


def here_and_now() -> datetime:
    """This moment in the zone of the computer."""
    return datetime.now().astimezone()


def _text(arguments: Mapping[str, object], name: str) -> str:
    value = arguments.get(name)
    if value is None:
        return ""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    raise CannotDo(f"{name} has to be a text")


def _number(arguments: Mapping[str, object], name: str) -> float:
    """A number, 0 where none is given; whole ones stay exact."""
    value = arguments.get(name) or 0
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return _finite(value)
        except (ValueError, OverflowError):
            pass
    raise CannotDo(f"{name} has to be a number")


def _finite(value: float | str) -> float:
    """Raises ValueError or OverflowError for what is no number that can be counted with."""
    number = float(value)
    int(number)  # neither infinite nor NaN
    return number
