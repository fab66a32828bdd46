"""How many tokens a request may hold (F1, C7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Self

from config.settings import RESERVE_DIVISOR
from runner.host.events import Json

LEAST_WINDOW: Final = 512
"""No model is smaller (tokens); a refused size below this is not believed as a window."""

NEAR: Final = 0.9
"""At this share of the input budget the request is counted whole once more, not by sums (F2)."""


@dataclass(frozen=True, slots=True)
class Budget:
    """All in tokens. `cap` is a tighter limit on the input after a refusal in this run, None without one (C7).

    `wider`: the budget as the owner set it, where the window is what a refusal in an earlier run taught; else None.
    """

    window: int
    reserve: int
    cap: int | None = None
    wider: Budget | None = None

    @classmethod
    def of(cls, window: int, reserve: int, *, reported: Json = None, learned: int | None = None) -> Self:
        """F1: the Host's window capped by the setting, or the setting; at most what C7 learned.

        `reported` is whatever the Host says; only a positive integer counts. The reserve is at most 25 % of the window.
        """
        known = window
        if isinstance(reported, int) and not isinstance(reported, bool) and reported > 0:
            known = min(known, reported)
        known = max(known, LEAST_WINDOW)
        wide = cls(known, _kept_free(reserve, known))
        if learned is None or not LEAST_WINDOW <= learned < known:
            return wide
        return cls(learned, _kept_free(reserve, learned), wider=wide)

    @property
    def input(self) -> int:
        """Tokens a request may have, system, tools and conversation together."""
        room = self.window - self.reserve
        return room if self.cap is None else min(room, self.cap)

    @property
    def narrowed(self) -> bool:
        """Whether this model takes less than the owner's settings say; another one may take more (C7)."""
        return self.wider is not None or self.cap is not None

    @property
    def near(self) -> int:
        """At this many tokens a sum is not enough (F2)."""
        return int(self.input * NEAR)

    def tighter(self, counted: int) -> Self:
        """After a refusal at `counted` tokens: the input is at most half of it (C7)."""
        return replace(self, cap=max(LEAST_WINDOW // 2, min(self.input, counted // 2)))


def _kept_free(reserve: int, window: int) -> int:
    return max(0, min(reserve, window // RESERVE_DIVISOR))


def planning_scale(host: int, local: int) -> float:
    """Host tokens for one local token. Bounded, so that a strange count cannot wreck a plan (F2)."""
    if host <= 0 or local <= 0:
        return 1.0
    return min(4.0, max(0.25, host / local))
