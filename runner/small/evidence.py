"""New errors that a set of tools reports by itself, shown with the action that may have caused them (S5).

A picture of a page proves how it looks, not that it works. Where the binding grants a tool that reads a console or a
log, it is called once after an action of the same set, and what is new in it rides along with the action's result.
Decides only; the call is made by others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from runner.conversation.cut import clip, head
from runner.guards import frame
from runner.loop.policy import Look
from runner.small.console import Line, labelled, lines_of, overlap
from runner.small.log_tools import acts, addresses, is_own, is_witness, stated_page, visits, witness_of
from runner.small.request_shaping import RESULT_CHARACTERS
from runner.tools.catalogue import Catalogue, Entry
from runner.tools.execute import Outcome
from runner.tools.results import Rendered

MOST_LINES: Final = 5
LINE_CHARACTERS: Final = 140
INTRO: Final = "[New in {tool} since it was last looked at:]"
FIRST_INTRO: Final = "[In {tool}, looked at for the first time, so some of it may be older:]"
MORE: Final = "(more before these)"

_LEAST_OF_RESULT = 200


@dataclass(slots=True)
class ConsoleEvidence:
    """What the consoles and logs of one run have told so far, and whether the page that is open is the user's own."""

    _seen: dict[str, tuple[Line, ...]] = field(default_factory=dict)
    _own_page: dict[str, bool] = field(default_factory=dict)

    def looks(self, outcomes: Sequence[Outcome], catalogue: Catalogue) -> tuple[Look, ...]:
        """The looks to take after a round: one for each set of tools that acted, after its last action."""
        wanted: dict[str, Look] = {}
        for at, outcome in enumerate(outcomes):
            entry = outcome.entry
            if entry is None or not outcome.ran:
                continue
            if is_witness(entry):
                self._new(entry, outcome.rendered)  # the model has looked by itself
                wanted.pop(entry.name, None)
            elif (witness := witness_of(entry, catalogue)) is not None:
                own = self._is_on_own_host(outcome, witness, catalogue)
                ended = outcome.job is None and not outcome.rendered.terminate
                if own and ended and acts(entry):
                    wanted[witness.name] = Look(at, witness)
                elif not own:
                    wanted.pop(witness.name, None)
        return tuple(wanted.values())

    def with_news(self, result: Rendered, witness: Entry, told: Rendered, *, limit: int) -> Rendered:
        """An action's result and what is new in `told`, together at most `limit` characters; itself without news."""
        intro = (INTRO if witness.name in self._seen else FIRST_INTRO).format(tool=witness.name)
        news = [each for line in self._new(witness, told) if (each := labelled(line)) is not None]
        if not news:
            return result
        shown = [head(each, LINE_CHARACTERS) for each in news[-MOST_LINES:]]
        if len(news) > len(shown):
            shown.insert(0, MORE)
        block = f"\n\n{intro}\n" + frame("\n".join(shown), f"tool {witness.name}")
        room = min(limit, RESULT_CHARACTERS) - len(block)
        if room < _LEAST_OF_RESULT:
            return result
        return replace(result, text=clip(result.text, room).text + block)

    def _new(self, witness: Entry, told: Rendered) -> tuple[Line, ...]:
        """The lines behind those of the last look, whether the tool tells everything each time or only what is new."""
        lines = lines_of(told.body)
        before = self._seen.get(witness.name, ())
        # A console that was emptied tells nothing: what it told before stays known, should it tell it again.
        self._seen[witness.name] = lines or before
        return lines[overlap(before, lines) :]

    def _is_on_own_host(self, outcome: Outcome, witness: Entry, catalogue: Catalogue) -> bool:
        """Whether an action was about something on the user's own host; where pages are visited, it must be known."""
        asked = tuple(addresses(outcome.call.arguments))
        if not visits(witness, catalogue):
            return all(map(is_own, asked))
        if asked:
            self._own_page[witness.name] = all(map(is_own, asked))
        page = stated_page(outcome.rendered.body)
        if page is not None and not is_own(page):
            # Led elsewhere: only an address that was asked for leads back, since a page may say what it likes.
            self._own_page[witness.name] = False
        return self._own_page.get(witness.name, False)
