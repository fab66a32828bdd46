"""How a run speaks with its model: what the loop asks at each turn, answered plainly for models that need no help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from runner.conversation.request import Request
from runner.conversation.units import AssistantTurn
from runner.models.reply import Reply
from runner.tools.catalogue import Catalogue, Entry
from runner.tools.execute import Outcome
from runner.tools.results import Rendered


@dataclass(frozen=True, slots=True)
class Go:
    """The reply stands: show what it holds and run its calls; `one_by_one` whatever the binding says.

    `small`: slow calls become jobs sooner (S4), and actions bring new errors along (S5).
    """

    reply: Reply
    one_by_one: bool = False
    small: bool = False


@dataclass(frozen=True, slots=True)
class Again:
    """The reply is not shown and the model is asked once more. `note` is for the person in the chat."""

    note: str | None = None


class Stop(StrEnum):
    """Why a policy ends a run."""

    CIRCLES = "circles"
    STEPS = "steps"


@dataclass(frozen=True, slots=True)
class Halt:
    """The run ends here; `notes` say why to the person in the chat."""

    notes: tuple[str, ...]
    why: Stop = Stop.CIRCLES


Next = Go | Again | Halt


class Reading(Protocol):
    """One reply on its way. `over`: nothing of worth comes any more, the stream may be closed."""

    @property
    def over(self) -> bool: ...

    def effort(self, fragment: str | None) -> int:
        """How many characters `feed` would go over with this fragment; None: what `close` would."""

    def feed(self, fragment: str) -> str:
        """Takes the next characters; gives what may be shown now."""

    def close(self, reply: Reply) -> Reply:
        """The reply as it is to be understood; `Reply.held` is what was not shown yet."""


class AsItIs:
    """Everything is shown as it comes, and only the provider's own calls are calls."""

    over = False

    def effort(self, fragment: str | None) -> int:
        return 0

    def feed(self, fragment: str) -> str:
        return fragment

    def close(self, reply: Reply) -> Reply:
        return reply


class Policy(Protocol):
    """One run's policy. Pure: it decides, others act."""

    def shape(self, request: Request, model_id: str) -> Request:
        """The request as this model is to see it. The same units give the same objects: counting goes by identity."""

    def smaller(self) -> bool:
        """Whether the next shape of the same request is smaller (fewer tools); asked while it does not fit."""

    def begin(self, model_id: str, *, conclude: bool, unforced: bool = False) -> None:
        """A model is about to be asked. `unforced`: it takes no schema for its reply and no temperature (K7)."""

    def reading(self, model_id: str) -> Reading:
        """How its reply is to be read."""

    def step_seconds(self, model_id: str) -> float | None:
        """How long until its reply begins, and again from there to its end; None: no limit of its own."""

    def retries_empty(self, reply: Reply) -> bool:
        """Whether the same model is asked once more after a reply of nothing."""

    def judge(self, reply: Reply, catalogue: Catalogue, *, concluding: bool) -> Next:
        """What a reply leads to."""

    def ran(self, outcomes: Sequence[Outcome]) -> Halt | None:
        """A round of tools is over."""

    def asked(self, text: str) -> None:
        """Somebody said something new: the request to work on."""

    def recall(self, turns: Sequence[AssistantTurn]) -> None:
        """Calls that an earlier run finished and gave no answer to: they count as this run's own (S3)."""


@dataclass(frozen=True, slots=True)
class Look:
    """A look to take: with `witness`, after the outcome at place `at`."""

    at: int
    witness: Entry


class Evidence(Protocol):
    """What the consoles and logs of one run have told so far (S5)."""

    def looks(self, outcomes: Sequence[Outcome], catalogue: Catalogue) -> tuple[Look, ...]:
        """The looks to take after a round."""

    def with_news(self, result: Rendered, witness: Entry, told: Rendered, *, limit: int) -> Rendered:
        """An action's result and what is new in `told`, together at most `limit` characters."""


class Standard:
    """A model that needs no help: everything as it comes (S6)."""

    def shape(self, request: Request, model_id: str) -> Request:
        return request

    def smaller(self) -> bool:
        return False

    def begin(self, model_id: str, *, conclude: bool, unforced: bool = False) -> None:
        return None

    def reading(self, model_id: str) -> Reading:
        return AsItIs()

    def step_seconds(self, model_id: str) -> float | None:
        return None

    def retries_empty(self, reply: Reply) -> bool:
        return False

    def judge(self, reply: Reply, catalogue: Catalogue, *, concluding: bool) -> Next:
        return Go(reply)

    def ran(self, outcomes: Sequence[Outcome]) -> Halt | None:
        return None

    def asked(self, text: str) -> None:
        return None

    def recall(self, turns: Sequence[AssistantTurn]) -> None:
        return None
