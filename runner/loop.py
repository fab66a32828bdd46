"""The turn loop: the only place where turn order is decided.

```
turn ─▸ calls? ─▸ tools ─▸ steering ─┐
  ▲        └ none ─▸ steering ─▸ end │
  └──────────────────────────────────┘
```
"""

from __future__ import annotations

from dataclasses import dataclass

from runner.conversation.units import AssistantTurn
from runner.models.reply import Reply
from runner.steering import Steering
from runner.turn import Turns
from runner.view import View


@dataclass(frozen=True, slots=True)
class Ending:
    """How the loop ended by itself. `cut`: the last reply reached the model's length limit."""

    cut: bool = False


class Loop:
    """Model turns and follow-ups, until the model has answered and nobody has said anything more."""

    def __init__(self, view: View, turns: Turns, steering: Steering) -> None:
        self._view = view
        self._turns = turns
        self._steering = steering

    async def run(self) -> Ending:
        """Runs to the end of the conversation's turn; between the last pull and the return nothing is awaited (G1)."""
        while True:
            reply = await self._turns.take()
            self._remember(reply)
            said = await self._steering.pull()
            if said is None:
                return Ending(cut=reply.cut)
            self._view.add(said)

    def _remember(self, reply: Reply) -> None:
        if reply.text.strip():
            self._view.add(AssistantTurn(reply.text, author=reply.model_id, provider_fields=reply.provider_fields))
