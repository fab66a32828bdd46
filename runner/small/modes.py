"""How each model is treated: by the settings, by its own word, and by what its replies have shown (S0, S1, S8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from config.choices import CallFormat, ModelProfile
from config.settings import Small
from runner.conversation.readable import is_readable
from runner.models.reply import Reply
from runner.small.forms import FORM_IDS, family_of
from runner.small.memory import Known, Memory
from runner.small.part import Part, Parts
from runner.small.reply_tool import REPLY

MALFORMED_ENOUGH = 2
"""So many malformed calls, and `auto` treats a model as small."""


@dataclass(frozen=True, slots=True)
class Own:
    """What a model says of itself: the form it is asked for, and the id of the call format it writes (S0)."""

    form: CallFormat
    writes: str


@dataclass(frozen=True, slots=True)
class Mode:
    """How one model is treated. `form` NATIVE: tools go through the provider. `wrote`: it writes calls as text, in the
    form nearest to what it wrote; `writes`: in exactly this call format.

    `schema`: a JSON schema goes with the request; `reply_tool`: whether the loop has one at all. `sends_by`: the tool
    of the Host by which the model has to answer itself (J2); it stands in for the reply tool.
    """

    small: bool
    form: CallFormat
    wrote: CallFormat | None = None
    schema: bool = False
    reply_tool: bool = True
    writes: str | None = None
    sends_by: str | None = None

    @property
    def plain(self) -> bool:
        """Nothing is changed in the request."""
        return not self.small and self.form is CallFormat.NATIVE

    @property
    def replies(self) -> bool:
        """Whether the loop's own reply tool is on offer."""
        return self.reply_tool and self.sends_by is None and self.guides

    @property
    def guides(self) -> bool:
        """Whether an answer, too, is wanted as a call."""
        return self.small or self.form is CallFormat.GUIDED or self.schema

    @property
    def answers_by(self) -> str | None:
        """The tool by which the model is asked to answer; None: in plain words."""
        if self.sends_by is not None and self.guides:
            return self.sends_by
        return REPLY if self.replies else None

    @property
    def written(self) -> str | None:
        """The call format in which the model writes, and is shown earlier turns; None: as the provider has them."""
        if self.writes is not None:
            return self.writes
        form = self.wrote if self.form is CallFormat.NATIVE else self.form
        return FORM_IDS.get(form) if form else None


class Modes:
    """The modes of one run's models. `own` is what models say of themselves: it counts before the settings (S0).

    `sends_by`: the tool by which the model has to send its answer itself (J2). `log` gets a line for the bot's owner.
    """

    def __init__(
        self,
        settings: Small,
        memory: Memory,
        parts: Parts,
        own: Mapping[str, Own],
        sends_by: str | None,
        log: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._memory = memory
        self._parts = parts
        self._own = own
        self._sends_by = sends_by
        self._log = log
        self._malformed = 0
        self._no_schema: set[str] = set()

    def of(self, model_id: str) -> Mode:
        """How a model is treated from what is set and what is known of it."""
        known = self._memory.of(model_id)
        small = self._settings.profile is ModelProfile.SMALL
        small = small or (self._settings.profile is ModelProfile.AUTO and known.small)
        own, reply_tool = self._own.get(model_id), Part.REPLY_TOOL in self._parts
        form = own.form if own else self._settings.call_format
        if form is CallFormat.AUTO:
            form = CallFormat.GUIDED if known.form else CallFormat.NATIVE
        mode = Mode(small, form, reply_tool=reply_tool, sends_by=self._sends_by)
        if form is not CallFormat.GUIDED:
            return replace(mode, wrote=known.form if small else None, writes=own.writes if own else None)
        if model_id in self._no_schema:
            return replace(mode, form=known.form or CallFormat.JSON)
        return replace(mode, schema=Part.SCHEMA in self._parts)

    def without_schema(self, model_id: str, why: str) -> None:
        """No schema goes with requests to this model any more."""
        self._no_schema.add(model_id)
        self._log(f"model {model_id}: the schema for guided calls was {why}; calls are asked for as text from now on")

    def learn(self, reply: Reply, mode: Mode, *, malformed: bool, sent_schema: bool) -> None:
        """A model has replied in this mode. `malformed`: a call of it could not be run; `sent_schema`: it was given one
        to keep to."""
        model, known = reply.model_id, self._memory.of(reply.model_id)
        obeyed = reply.answered or reply.wrote == FORM_IDS[CallFormat.GUIDED]
        if mode.schema and sent_schema and not obeyed and (reply.wrote or is_readable(reply.text)):
            self.without_schema(model, "ignored")
        self._malformed += malformed
        small = known.small or reply.wrote is not None or self._malformed >= MALFORMED_ENOUGH
        if self._settings.profile is not ModelProfile.AUTO:
            small = known.small
        form = known.form
        if mode.form is CallFormat.NATIVE and form is None:
            form = family_of(reply.wrote) if reply.wrote else None
        self._memory.learn(model, Known(small, form))
