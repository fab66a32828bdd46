"""How long a run may take, and when it has to come to an end by itself (G3)."""

from __future__ import annotations

from dataclasses import dataclass

_MARGIN_LEAST, _MARGIN_MOST, _MARGIN_SHARE = 2.0, 5.0, 0.05
_WRAP_UP_MOST, _WRAP_UP_SHARE = 30.0, 0.2


@dataclass(frozen=True, slots=True)
class Deadline:
    """Points in time on the run's clock (seconds). None: no limit at all.

    `wrap_up`: from here on no new tool round starts and the model concludes. `end`: here the run stops by itself, a
    little before the Host would close it without a word.
    """

    wrap_up: float | None
    end: float | None

    def share(self, now: float, part: float) -> float | None:
        """Seconds: so much of the time that is left for work; None without a limit."""
        return None if self.wrap_up is None else max(0.0, self.wrap_up - now) * part

    def is_near(self, now: float) -> bool:
        return self.wrap_up is not None and now >= self.wrap_up


def deadline_for(now: float, timeout: float | None, host_left: float | None) -> Deadline:
    """The deadline of a run that starts at `now`.

    `timeout` is the binding's limit in seconds, `host_left` what the Host's own deadline leaves; None is no limit.
    """
    limits = [limit for limit in (timeout, host_left) if limit is not None]
    if not limits:
        return Deadline(None, None)
    limit = max(0.0, min(limits))
    margin = max(_MARGIN_LEAST, min(_MARGIN_MOST, _MARGIN_SHARE * limit))
    end = now + max(limit - margin, 0.1)
    return Deadline(max(now, end - min(_WRAP_UP_MOST, _WRAP_UP_SHARE * limit)), end)
