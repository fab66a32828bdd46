"""Units of measurement, by their English and Chinese names and their signs."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import isfinite
from typing import Final

from .calculator import written
from .failing import CannotDo

# For each quantity: how many of its base unit one of these is. The first name is the one that is shown.
_QUANTITIES: Final[Mapping[str, Mapping[str, str]]] = {
    "length": {
        "m|metre|meter|米|公尺": "1",
        "km|kilometre|kilometer|公里|千米": "1000",
        "cm|centimetre|centimeter|厘米|公分": "0.01",
        "mm|millimetre|millimeter|毫米": "0.001",
        "mi|mile|英里": "1609.344",
        "yd|yard|码": "0.9144",
        "ft|foot|feet|英尺": "0.3048",
        "in|inch|inche|英寸": "0.0254",
        "nmi|nautical mile|海里": "1852",
        "li|里|华里": "500",
    },
    "mass": {
        "kg|kilogram|kilo|公斤|千克": "1",
        "g|gram|克": "0.001",
        "mg|milligram|毫克": "0.000001",
        "t|tonne|ton|吨": "1000",
        "lb|pound|磅": "0.45359237",
        "oz|ounce|盎司": "0.028349523125",
        "jin|斤|市斤": "0.5",
        "liang|两": "0.05",
    },
    "volume": {
        "l|litre|liter|升|公升": "1",
        "ml|millilitre|milliliter|毫升": "0.001",
        "m3|cubic metre|cubic meter|立方米": "1000",
        "gal|gallon|加仑": "3.785411784",
        "pt|pint|品脱": "0.473176473",
        "cup|杯": "0.2365882365",
    },
    "area": {
        "m2|square metre|square meter|平方米": "1",
        "km2|square kilometre|square kilometer|平方公里": "1000000",
        "ha|hectare|公顷": "10000",
        "acre|英亩": "4046.8564224",
        "ft2|square foot|square feet|平方英尺": "0.09290304",
        "mu|亩": "2000/3",
    },
    "speed": {
        "m/s|米每秒": "1",
        "km/h|kph|公里每小时|千米每小时": "1/3.6",
        "mph|英里每小时": "0.44704",
        "kn|knot|节": "1852/3600",
    },
    "duration": {
        "s|second|秒": "1",
        "min|minute|分钟": "60",
        "h|hour|小时": "3600",
        "d|day|天": "86400",
        "wk|week|周|星期": "604800",
    },
    "data": {
        "B|byte|字节": "1",
        "kB|kilobyte": "1000",
        "MB|megabyte|兆": "1000000",
        "GB|gigabyte": "1000000000",
        "KiB|kibibyte": "1024",
        "MiB|mebibyte": "1048576",
        "GiB|gibibyte": "1073741824",
    },
}
# Value in kelvin = (value + first) times second.
_TEMPERATURES: Final[Mapping[str, tuple[str, str]]] = {
    "°C|c|celsius|degree celsius|摄氏度|摄氏|℃": ("273.15", "1"),
    "°F|f|fahrenheit|degree fahrenheit|华氏度|华氏|℉": ("459.67", "5/9"),
    "K|kelvin|开尔文": ("0", "1"),
}
_LARGEST: Final = 10**30


class _Unit:
    """One unit: value in the base unit of `quantity` = (value + shift) times factor."""

    def __init__(self, quantity: str, sign: str, factor: str, shift: str = "0") -> None:
        over, _, under = factor.partition("/")
        self.quantity, self.sign = quantity, sign
        self.factor, self.shift = Fraction(over) / Fraction(under or 1), Fraction(shift)


def _named() -> dict[str, _Unit]:
    found: dict[str, _Unit] = {}
    for quantity, units in _QUANTITIES.items():
        for names, factor in units.items():
            found |= _by_name(names, _Unit(quantity, names.partition("|")[0], factor))
    for names, (shift, factor) in _TEMPERATURES.items():
        found |= _by_name(names, _Unit("temperature", names.partition("|")[0], factor, shift))
    return found


def _by_name(names: str, unit: _Unit) -> dict[str, _Unit]:
    return {name.casefold(): unit for name in names.split("|")}


_UNITS: Final = _named()


def convert(value: float, from_unit: str, to_unit: str) -> str:
    """`convert(5, "miles", "km")` gives `5 mi = 8.04672 km`. Exact, shown with at most 12 digits.

    Raises CannotDo for a unit that is not known, for two that measure different things, and for a huge number.
    """
    if not isfinite(value) or abs(value) > _LARGEST:
        raise CannotDo("the number is too large")
    source, target = _unit(from_unit), _unit(to_unit)
    if source.quantity != target.quantity:
        raise CannotDo(f"{source.sign} measures {source.quantity} and {target.sign} {target.quantity}")
    exact = Fraction(repr(value))
    result = (exact + source.shift) * source.factor / target.factor - target.shift
    return f"{written(exact)} {source.sign} = {written(result)} {target.sign}"


def _unit(name: str) -> _Unit:
    wanted = " ".join(name.casefold().replace("²", "2").replace("³", "3").split()).rstrip(".")
    for spelt in (wanted, wanted.removesuffix("s"), wanted.removesuffix("es"), wanted.replace("_", " ")):
        if spelt in _UNITS:
            return _UNITS[spelt]
    raise CannotDo("that unit is not known; use one such as km, mile, kg, pound, litre, celsius")
