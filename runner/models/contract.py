"""What a turn needs of the models that can answer: the LangBot Host's, or an engine in the same process (S0)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from runner.conversation.request import Request
from runner.host.errors import ModelFailed
from runner.host.events import Usage
from runner.models.reply import ReplyReader


class Model(Protocol):
    """One model: it generates and decides nothing."""

    @property
    def id(self) -> str: ...

    @property
    def has_level(self) -> bool:
        """Whether a reasoning level goes with its requests (C3)."""

    def answer(self, request: Request, reader: ReplyReader) -> AsyncGenerator[str, None]:
        """Yields the fragments of a reply (characters); the reader holds all of it afterwards. Raises ModelFailed.

        Closing the generator stops the model.
        """


class Order(Protocol):
    """Who answers, and who comes after it."""

    @property
    def is_last(self) -> bool:
        """Whether nobody else may be asked after an empty reply."""

    def advance(self, failure: ModelFailed) -> None:
        """Go on to the next model. Raises AllModelsFailed when there is none."""


class Models(Protocol):
    """The models of one run at work."""

    @property
    def current(self) -> Model:
        """The model that answers."""

    @property
    def lineup(self) -> Order: ...

    def add_usage(self, usage: Usage | None) -> None:
        """Count the tokens of one call; None means the model did not say."""
