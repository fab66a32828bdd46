"""A conversation as units that cannot be split wrongly.

A `UserTurn` is what people said; an `AssistantTurn` is one model reply together with the results of all its tool
calls. Cuts, stubs and summaries work on these, so no request can ever hold a call without its result (F3, D9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from langbot_plugin.api.entities.builtin.provider.message import ContentElement

from runner.host.events import Json


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """One picture: base64 (raw or a data URL) or an http(s) URL; exactly one is set."""

    base64: str | None = None
    url: str | None = None


def image_of(element: ContentElement) -> Image | None:
    """The picture that a content element holds; None for a hollow one, or one of another kind."""
    if element.type == "image_base64" and element.image_base64:
        return Image(base64=element.image_base64)
    if element.type == "image_url" and element.image_url and element.image_url.url:
        return Image(url=element.image_url.url)
    return None


@dataclass(frozen=True, slots=True)
class ToolImage(Image):
    """A picture that a tool returned (D4): nobody said it, and it gives way as results do (F4)."""


@dataclass(frozen=True, slots=True)
class Other:
    """A content element of the prompt that the runner does not interpret; it is passed on as it came (B1)."""

    element: ContentElement


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved text and where it is from, as a person would name it (E2)."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Reference(Text):
    """What knowledge bases hold for this run's message: data for this run alone, nobody said it (E2).

    `text` is `passages`, best first, as the model reads them. It is no part of a transcript, a record or a summary.
    """

    passages: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True)
class Told(Text):
    """What a tool said, in words of the user's side (S8). `text` is how it reads there; `result` what `tool` said."""

    tool: str = ""
    result: str = ""


Part = Text | Image | Other


@dataclass(frozen=True, slots=True)
class Span:
    """The transcript rows a unit was made of: cursors of the oldest and the newest, both inclusive."""

    first: str
    last: str


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What people said: one or more neighbouring user rows as one turn. `parts` is never empty."""

    parts: tuple[Part, ...]
    span: Span | None = None

    def text(self) -> str:
        """What was said: its text parts but knowledge, joined by blank lines (characters)."""
        said = (part for part in self.parts if isinstance(part, Text) and not isinstance(part, Reference))
        return "\n\n".join(part.text for part in said)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as it stands in the history. `arguments` is the JSON text of an object, always valid (D3)."""

    id: str
    name: str
    arguments: str
    provider_fields: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The tool message that answers one call; `text` is bounded and made harmless already."""

    call_id: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class AssistantTurn:
    """One model reply and the results of its calls, in the order of the calls.

    Raises ValueError when a call has no result, a result has no call, or the order differs.
    `author` is the model id that wrote it: provider fields go back only to that model (C2).
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    author: str | None = None
    provider_fields: Mapping[str, Json] | None = None
    span: Span | None = None

    def __post_init__(self) -> None:
        if tuple(call.id for call in self.calls) != tuple(result.call_id for result in self.results):
            raise ValueError("an assistant turn needs exactly one result for each of its calls, in their order")

    def with_results(self, results: tuple[ToolResult, ...]) -> Self:
        """The same reply with other result texts (a stub, a cut)."""
        return replace(self, results=results)


Unit = UserTurn | AssistantTurn


def newest_user(units: Sequence[Unit]) -> int:
    """Index of the newest user turn; -1 when there is none."""
    return max((index for index, unit in enumerate(units) if isinstance(unit, UserTurn)), default=-1)


def join_users(first: UserTurn, second: UserTurn) -> UserTurn:
    """Two neighbouring user turns as one."""
    return UserTurn(first.parts + second.parts, _both(first.span, second.span))


def _join_answers(first: AssistantTurn, second: AssistantTurn) -> AssistantTurn:
    return AssistantTurn(f"{first.text}\n\n{second.text}", span=_both(first.span, second.span))


def _both(first: Span | None, second: Span | None) -> Span | None:
    if first is None or second is None:
        return first or second
    return Span(first.first, second.last)


BETWEEN: Final = AssistantTurn("…")
"""A reply of nearly nothing, where one has to stand."""


class Alternation:
    """Makes of neighbours of one role one turn, as every provider wants it (B5); the same one each time, since counting
    goes by identity. In a conversation each message stays a unit of its own, so that older ones can go (F3).

    Words of people right behind results (a follow-up in mid-run, a message after a run that broke off) get a reply of
    nearly nothing before them: Mistral refuses a user's message behind a tool's.
    """

    def __init__(self) -> None:
        # The units are held beside what they became, so that their ids cannot be given to other objects.
        self._known: dict[tuple[int, int], tuple[Unit, Unit, Unit | None]] = {}

    def of(self, units: Iterable[Unit]) -> tuple[Unit, ...]:
        result: list[Unit] = []
        for unit in units:
            joined = self._joined(result[-1], unit) if result else None
            if not joined and isinstance(unit, UserTurn) and result and _ends_with_results(result[-1]):
                result.append(BETWEEN)
            result[-1 if joined else len(result) :] = [joined or unit]
        return tuple(result)

    def _joined(self, first: Unit, second: Unit) -> Unit | None:
        """Two neighbours as one; None where they stay two."""
        if isinstance(first, UserTurn) is not isinstance(second, UserTurn):
            return None
        key = id(first), id(second)
        if key not in self._known:
            self._known[key] = first, second, _join(first, second)
        return self._known[key][2]


def _ends_with_results(unit: Unit) -> bool:
    return isinstance(unit, AssistantTurn) and bool(unit.calls)


def _join(first: Unit, second: Unit) -> Unit | None:
    if isinstance(first, UserTurn) and isinstance(second, UserTurn):
        return join_users(first, second)
    if isinstance(first, AssistantTurn) and isinstance(second, AssistantTurn) and not first.calls and not second.calls:
        return _join_answers(first, second)
    return None


@dataclass(frozen=True, slots=True)
class System:
    """The one system message, always first. `parts` of the owner's prompt, then `added` by the runner (B2).

    `summary` is the last block of it (F3). `name` and `provider_fields` are the metadata of the first prompt row.
    """

    parts: tuple[Part, ...] = ()
    added: tuple[str, ...] = ()
    summary: str | None = None
    name: str | None = None
    provider_fields: Mapping[str, Json] | None = None
