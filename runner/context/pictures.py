"""What pictures cost: learned from the Host's counts, since no text tells it (L7).

Providers charge from 85 to some thousands of tokens for a picture, by its size and their own rules. Until the Host has
counted some, each is taken for `tokens.IMAGE_TOKENS`. Those of this run's messages and those before are counted apart:
the first have to stay, and screenshots of tools are of another size than what people send.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator

from runner.context.tokens import Ruler
from runner.conversation.request import Request
from runner.conversation.units import Image, System, Unit, UserTurn
from runner.host.errors import CountingUnavailable, ModelFailed


def pictures_in(units: Iterable[Unit]) -> Iterator[Image]:
    """The pictures of some turns."""
    for unit in units:
        if isinstance(unit, UserTurn):
            yield from (part for part in unit.parts if isinstance(part, Image))


async def learn_prices(
    ruler: Ruler,
    groups: Iterable[tuple[Image, ...]],
    count: Callable[[Request], Awaitable[int]],
    scale: Callable[[int, int], float],
) -> None:
    """Ask the Host for the price of each group that holds a picture without one, and let `ruler` know it.

    `scale` gives the Host tokens of one local token of text: it is told the Host tokens and the local tokens of these
    pictures, as they were priced so far. A count that fails leaves the prices as they are.
    """
    counted: list[tuple[tuple[Image, ...], int]] = []
    for pictures in groups:
        if not all(map(ruler.knows, pictures)):
            try:
                counted.append((pictures, await count(Request(System(), (UserTurn(pictures),)))))
            except (ModelFailed, CountingUnavailable):
                continue
    local = sum(ruler.part(picture) for pictures, _ in counted for picture in pictures)
    of_text = scale(sum(tokens for _, tokens in counted), local)
    for pictures, tokens in counted:
        ruler.price(pictures, max(1, round(tokens / len(pictures) / of_text)))
