"""The time of day, here and elsewhere, and the calendar."""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Final

from .failing import CannotDo

_DAYS: Final = (
    "Monday 星期一",
    "Tuesday 星期二",
    "Wednesday 星期三",
    "Thursday 星期四",
    "Friday 星期五",
    "Saturday 星期六",
    "Sunday 星期日",
)
_NAMED: Final[Mapping[str, int]] = {
    "": 0,
    "today": 0,
    "now": 0,
    "tomorrow": 1,
    "yesterday": -1,
    "今天": 0,
    "明天": 1,
    "后天": 2,
    "昨天": -1,
    "前天": -2,
}
_PLACES: Final[Mapping[str, str]] = {
    "beijing": "Asia/Shanghai",
    "china": "Asia/Shanghai",
    "北京": "Asia/Shanghai",
    "上海": "Asia/Shanghai",
    "中国": "Asia/Shanghai",
    "香港": "Asia/Hong_Kong",
    "台北": "Asia/Taipei",
    "japan": "Asia/Tokyo",
    "日本": "Asia/Tokyo",
    "东京": "Asia/Tokyo",
    "首尔": "Asia/Seoul",
    "新加坡": "Asia/Singapore",
    "伦敦": "Europe/London",
    "巴黎": "Europe/Paris",
    "柏林": "Europe/Berlin",
    "莫斯科": "Europe/Moscow",
    "纽约": "America/New_York",
    "洛杉矶": "America/Los_Angeles",
    "悉尼": "Australia/Sydney",
}
_HERE: Final = frozenset({"here", "local", "local time", "my location", "home", "这里", "本地", "当地"})
_MOST_DAYS: Final = 1_000_000


def current_time(now: datetime, place: str = "") -> str:
    """Time, weekday and date of `now`, which knows its zone, or of the same moment in a city or an IANA zone.

    Raises CannotDo for a place whose time is not known.
    """
    elsewhere = place.strip() if place.strip().casefold() not in _HERE else ""
    there = now.astimezone(_zone(elsewhere)) if elsewhere else now
    where = f" in {elsewhere}" if elsewhere else ""
    return f"It is {there:%H:%M}{where}, {_DAYS[there.weekday()]}, {there:%Y-%m-%d} (UTC{there:%z})."


def look_up(today: date, wanted: str = "", add_days: int = 0) -> str:
    """The weekday of a date, its week, and how far it is from today. `wanted`: YYYY-MM-DD, or a word such as tomorrow.

    Raises CannotDo for what is no date.
    """
    if abs(add_days) > _MOST_DAYS:
        raise CannotDo(f"at most {_MOST_DAYS} days can be added")
    try:
        day = _day(today, wanted.strip().casefold()) + timedelta(days=add_days)
    except (ValueError, OverflowError):
        raise CannotDo("give a date as YYYY-MM-DD, or today, tomorrow, yesterday") from None
    distance = _distance((day - today).days)
    return f"{day.isoformat()} is a {_DAYS[day.weekday()]}, week {day.isocalendar().week}, {distance}."


def _day(today: date, wanted: str) -> date:
    if wanted in _NAMED:
        return today + timedelta(days=_NAMED[wanted])
    return date.fromisoformat(wanted.replace("/", "-"))


def _distance(days: int) -> str:
    if abs(days) <= 1:
        return ("yesterday", "today", "tomorrow")[days + 1]
    return f"in {days} days" if days > 0 else f"{-days} days ago"


def _zone(place: str) -> zoneinfo.ZoneInfo:
    wanted = place.strip().casefold()
    name = _PLACES.get(wanted) or _known(wanted.replace(" ", "_"))
    if name is None:
        raise CannotDo("the time there is not known; name a large city or a zone such as Europe/Paris")
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, OSError):
        raise CannotDo("this computer knows no other time zones than its own") from None


def _known(wanted: str) -> str | None:
    """The zone of that name, or of that city: `tokyo` is Asia/Tokyo."""
    names = sorted(zoneinfo.available_timezones())
    return next((name for name in names if wanted in (name.casefold(), name.rpartition("/")[2].casefold())), None)
