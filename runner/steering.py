"""Follow-up messages: what people say while the run works (G1)."""

from __future__ import annotations

from dataclasses import dataclass

from langbot_plugin.api.entities.builtin.runner.steering import SteeringInputItem

from runner.conversation.current import parts_of_input
from runner.conversation.speakers import Speakers
from runner.conversation.units import Part, UserTurn
from runner.errors import HostCallFailed
from runner.host import Host


@dataclass(slots=True)
class Steering:
    """Pulls follow-ups of one run.

    `pulled` counts what came, `unanswered` what came since the last reply, `failed_pulls` what could not be asked for;
    `newest_text` is what was said last. All for the log and the language of notices.
    """

    host: Host
    speakers: Speakers
    pulled: int = 0
    unanswered: int = 0
    failed_pulls: int = 0
    newest_text: str = ""

    async def pull(self) -> UserTurn | None:
        """Everything said since the last pull as one user turn, in the order sent; None when nobody spoke.

        A pull that fails is counted and treated as silence: the answer matters more (Q4).
        """
        try:
            items = await self.host.steering()
        except HostCallFailed:
            self.failed_pulls += 1
            return None
        if not items:
            return None
        self.pulled += len(items)
        self.unanswered += len(items)
        self.newest_text = items[-1].input.to_text() or self.newest_text
        return UserTurn(tuple(part for item in items for part in self._parts(item)))

    def answered(self) -> None:
        """The model has replied to everything said so far."""
        self.unanswered = 0

    def _parts(self, item: SteeringInputItem) -> tuple[Part, ...]:
        actor = item.actor
        if actor is not None and actor.actor_id and actor.actor_name:
            self.speakers = Speakers(self.speakers.group, {**self.speakers.names, actor.actor_id: actor.actor_name})
        return parts_of_input(item.input, actor.actor_id if actor else None, self.speakers)
