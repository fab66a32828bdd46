"""Whether a call stands in a text of others: then the model only quotes it, however it was spelled there (I5).

What is compared are names and arguments, never spellings: `plain_words` takes disguises off a text, `standing` finds
the call in what is left.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from callformats.json_value import Json
from callformats.plain_words import plain, squeezed, without_frame
from callformats.standing import END, CallKey, Searched, call_key

_SEAM = 4_000
"""Characters at both ends of a text where a call may begin that goes on in the next one."""

_SHORTEST_RAW = 12
"""Characters of a call that cannot be read, below which being found says nothing."""


@dataclass(frozen=True, slots=True)
class ForeignText:
    """A text that was only to be read. `own`: calls (`call_key`) that may stand in it all the same, such as those the
    model had made before it came. `goes_on`: what stands in it may go on in the next text, as in two results.
    """

    text: str
    own: frozenset[CallKey] = frozenset()
    goes_on: bool = False


class Quotations:
    """The texts of others in one request, which are only collected when somebody asks.

    `known`: what they are in plain words, kept by whoever asks again. Calls of tools in `harmless` do nothing.
    """

    def __init__(
        self,
        texts: Sequence[ForeignText | str] | Callable[[], Sequence[ForeignText]],
        known: dict[str, str] | None = None,
        harmless: Sequence[str] = (),
    ) -> None:
        self._texts = texts
        self._known = known if known is not None else {}
        self._harmless = frozenset(harmless)
        self._ruled: dict[CallKey, bool] = {}
        self._whole: _Whole | None = None

    @property
    def asked(self) -> bool:
        """Whether somebody has asked already: the first question goes over all the texts, further ones cost little."""
        return self._whole is not None

    def hold(self, names: Sequence[str], arguments: Mapping[str, Json]) -> bool:
        """Whether this call stands in one of the texts. `names`: how its tool is called."""
        if not self._harmless.isdisjoint(names):
            return False
        keys = {call_key(name, dict(arguments)) for name in names if name.strip()}
        return any(self._holds(key) for key in sorted(keys))

    def hold_raw(self, raw: str) -> bool:
        """Whether the text of a call that cannot be read stands in one of them."""
        wanted = squeezed(raw)
        return len(wanted) >= _SHORTEST_RAW and self._all().holds_raw(wanted)

    def _holds(self, key: CallKey) -> bool:
        if key not in self._ruled:
            self._ruled[key] = self._all().holds(key)
        return self._ruled[key]

    def _all(self) -> _Whole:
        if self._whole is None:
            given = self._texts() if callable(self._texts) else self._texts
            texts = [one if isinstance(one, ForeignText) else ForeignText(one) for one in given]
            for one in texts:
                if one.text not in self._known:
                    self._known[one.text] = plain(one.text)
            self._whole = _Whole(texts, self._known)
        return self._whole


class _Whole:
    """All the texts in a row, and the seams of those that go on in one another."""

    def __init__(self, texts: Sequence[ForeignText], known: Mapping[str, str]) -> None:
        self._texts = texts
        pieces = [known[one.text] + END for one in texts]
        self._starts = [0, *itertools.accumulate(map(len, pieces))]
        self._one_by_one = Searched("".join(pieces))
        joined = [one for one in texts if one.goes_on]
        self._seams = Searched(plain("".join(map(_ends, joined))))
        self._own_first = joined[0].own if joined else frozenset[CallKey]()

    def holds(self, key: CallKey) -> bool:
        places = self._one_by_one.places(key)
        if places:
            return any(key not in self._text_at(place).own for place in places)
        return key not in self._own_first and bool(self._seams.places(key))

    def holds_raw(self, wanted: str) -> bool:
        return wanted in self._one_by_one.squeezed or wanted in self._seams.squeezed

    def _text_at(self, place: int) -> ForeignText:
        return self._texts[bisect.bisect_right(self._starts, place) - 1]


def _ends(one: ForeignText) -> str:
    """The text, or its beginning and its end: a call that is spread over texts goes over those."""
    text = without_frame(one.text)
    return text if len(text) <= 2 * _SEAM else f"{text[:_SEAM]}{END}{text[-_SEAM:]}"
