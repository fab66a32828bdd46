"""The policy for weak models: decides how each turn is asked and what its reply leads to (S1-S3, S8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from callformats import Quotations
from config.notices import Notice
from config.settings import Small
from runner.conversation.readable import is_readable
from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import AssistantTurn, System, Unit, newest_user
from runner.loop.policy import Again, AsItIs, Go, Halt, Next, Reading, Stop
from runner.models.calls import RawCall
from runner.models.reply import Reply
from runner.small import answers, prompt
from runner.small.call_log import Trail
from runner.small.escalation import Ladder, Rung
from runner.small.foreign import foreign_texts
from runner.small.hints import Hints
from runner.small.loop_detection import Circle
from runner.small.memory import Memory
from runner.small.modes import Mode, Modes, Own
from runner.small.part import EVERY_PART, Part, Parts
from runner.small.reading import Lenient, Ways
from runner.small.reply_tool import REPLY, REPLY_SPEC
from runner.small.request_shaping import FEWER, RESULT_CHARACTERS, Dresser, Wants
from runner.small.shown import LOAD, LOAD_SPEC, Places
from runner.small.unknown_ids import MOST_ASKED, question_about, unknown_id
from runner.tools import validate_args
from runner.tools.arguments import Broken, read_arguments
from runner.tools.catalogue import Catalogue
from runner.tools.execute import Outcome
from runner.tools.jobs import JOB_OUTPUT
from runner.tools.prepare import Ready, Refused, WantedCall, prepare
from runner.tools.results import ErrorCode

PSEUDO_TOOLS = (REPLY, LOAD, JOB_OUTPUT)
"""Names that no tool of the Host may have while this policy is on."""

FLAGGED = "That call brought the same result as before. Do not repeat it: do something else, or answer the user."
CHANTED = "Your reply repeated itself and was not sent. Write it once more, shortly, or call a tool."
NOT_LOADED = "{load} takes the name of one tool of the list of further tools, once."
SWITCHED_OFF = "{tool} is switched off for this message."
LOADED = "{tool} is among your tools now. Call it."
UNSENT = "Your reply was not sent: plain words reach nobody here. Call {tool} with it now."
FAULTY_TEXT = "Your reply was not sent: {problem}. Call the tool itself, or answer in plain words."


@dataclass(slots=True)
class _Turn:
    """What is decided anew for each reply."""

    model_id: str = ""
    conclude: bool = False
    level: int = 0
    resample: bool = False
    retried_empty: bool = False
    sent_schema: bool = False
    unforced: bool = False


@dataclass(frozen=True, slots=True)
class _SentBack:
    """A reply that was not shown, and what was said to the model about it."""

    text: str
    correction: str


class Guiding:
    """One run. `say` gives a sentence of the runner in the chat's language, `log` a line for the bot's owner.

    `parts`: what of this policy is on. `own` says how a model is asked for calls where the model itself decides that,
    not the settings (S0). `hints`, `places`: those of the conversation; None: of one that is kept nowhere.
    `sends_by`: the tool by which the model has to send its answer itself (J2). `last_word`: behind its
    last step the model is asked once more, and only another call ends the run; else the run ends right there.
    """

    def __init__(
        self,
        settings: Small,
        memory: Memory,
        catalogue: Catalogue,
        say: Callable[..., str],
        log: Callable[[str], None],
        place: Sequence[str] = (),
        parts: Parts = EVERY_PART,
        *,
        own: Mapping[str, Own] | None = None,
        hints: Hints | None = None,
        places: Places | None = None,
        sends_by: str | None = None,
        last_word: bool = True,
    ) -> None:
        self._settings = settings
        self._catalogue = catalogue
        self._say = say
        self._parts = parts
        self._hints = hints or Hints(None, lambda _value: None)
        self._sends_by = sends_by if Part.REPLY_TOOL in parts else None
        self._modes = Modes(settings, memory, parts, own or {}, self._sends_by, log)
        self._last_word = last_word
        self._dresser = Dresser(settings.site_instructions, place, parts, places or Places())
        self._ladder = Ladder()
        self._trail = Trail()
        self._turn = _Turn()
        self._query = ""
        self._tail: str | None = None
        self._steps = 0
        self._loaded: list[str] = []
        self._bounced: set[str] = set()
        self._asked_about: set[str] = set()
        self._sent_back: _SentBack | None = None
        self._request = Request(System(), ())
        self._began: Unit | None = None
        self._plain_texts: dict[str, str] = {}

    # --- asking ----------------------------------------------------------------------------------------------------

    def begin(self, model_id: str, *, conclude: bool, unforced: bool = False) -> None:
        turn = self._turn
        self._turn = _Turn(
            model_id, conclude, resample=turn.resample, retried_empty=turn.retried_empty, unforced=unforced
        )
        if unforced and self._modes.of(model_id).schema:
            self._modes.without_schema(model_id, "refused")

    def shape(self, request: Request, model_id: str) -> Request:
        self._request = request
        if self._began is None and (newest := newest_user(request.units)) >= 0:
            self._began = request.units[newest]
        mode = self._modes.of(model_id)
        if mode.plain and self._tail is None and not self._resamples:
            return request
        shaped = self._dresser.dress(request, mode, self._wants())
        self._turn.sent_schema = "response_format" in shaped.extra
        return shaped

    @property
    def _tools(self) -> tuple[ToolSpec, ...]:
        """All that the run offers now, shown or not."""
        return self._request.tools

    def smaller(self) -> bool:
        if Part.FEWER_TOOLS not in self._parts:
            return False
        turn = self._turn
        shown = min(self._settings.max_tools_shown, len(self._tools))
        while turn.level < len(FEWER):
            turn.level += 1
            if self._modes.of(turn.model_id).small and FEWER[turn.level - 1] < shown:
                return True
        return False

    @property
    def _resamples(self) -> bool:
        return self._turn.resample and not self._turn.unforced

    def _wants(self) -> Wants:
        level = self._turn.level
        return Wants(
            query=self._query,
            most=FEWER[level - 1] if level else self._settings.max_tools_shown,
            off=self._ladder.off,
            loaded=tuple(self._loaded),
            recent=self._trail.names,
            codes=frozenset(code for code in prompt.CODES if code.value in self._trail.codes),
            tail=self._tail,
            hint=self._hints.due,
            conclude=self._turn.conclude,
            resample=self._resamples,
            fewer=level > 0,
        )

    def reading(self, model_id: str) -> Reading:
        mode = self._modes.of(model_id)
        if not self._tools and mode.plain:
            return AsItIs()
        loads = mode.small and Part.RANKING in self._parts
        pseudo = (*((REPLY_SPEC,) if mode.replies else ()), *((LOAD_SPEC,) if loads else ())) if self._tools else ()
        ways = Ways(
            form=mode.written,
            hold=(mode.small and Part.HOLDING in self._parts) or mode.schema,
            replies=mode.replies and bool(self._tools),
            live=not mode.small or not (self._trail.ends_on_failure or self._left_open()),
            guard=mode.small and Part.CHANT_BREAKER in self._parts,
            calls=Part.LENIENT_READING in self._parts,
        )
        texts = partial(foreign_texts, self._request, self._began)
        foreign = Quotations(texts, self._plain_texts, harmless=[spec.name for spec in pseudo])
        return Lenient((*self._tools, *pseudo), foreign, ways)

    def step_seconds(self, model_id: str) -> float | None:
        limited = self._modes.of(model_id).small and Part.STEP_LIMIT in self._parts
        return float(self._settings.step_timeout) if limited else None

    # --- reading ---------------------------------------------------------------------------------------------------

    def retries_empty(self, reply: Reply) -> bool:
        retries = self._modes.of(reply.model_id).small and Part.EMPTY_RETRY in self._parts
        if not retries or self._turn.retried_empty:
            return False
        self._turn.retried_empty = self._turn.resample = True
        return True

    def judge(self, reply: Reply, catalogue: Catalogue, *, concluding: bool) -> Next:
        self._catalogue = catalogue
        self._tail = None
        self._hints.given()
        self._turn.resample = self._turn.retried_empty = False
        before = self._modes.of(reply.model_id)
        checked = tuple((call, self._checked(call)) for call in reply.calls)
        malformed = bool(reply.faults) or any(isinstance(each, str) for _, each in checked)
        self._modes.learn(reply, before, malformed=malformed, sent_schema=self._turn.sent_schema)
        if concluding:
            return Go(reply)
        if reply.chanted:
            return self._after_chant()
        if reply.calls:
            return self._after_calls(reply, checked, before)
        if reply.problem is not None and _unseen(reply):
            return self._after_fault(reply)
        if before.small and _unseen(reply):
            return self._after_answer(reply)
        return Go(reply)

    def _after_chant(self) -> Next:
        if "chant" in self._bounced:
            return Halt((self._say(Notice.IN_CIRCLES),))
        self._bounced.add("chant")
        self._turn.resample = True
        return self._send_back(CHANTED)

    def _after_calls(self, reply: Reply, checked: Sequence[tuple[RawCall, Ready | str]], mode: Mode) -> Next:
        if mode.plain and not reply.wrote:
            return Go(reply)
        ready = [(call, each) for call, each in checked if isinstance(each, Ready)]
        bad = next(((call, each) for call, each in checked if isinstance(each, str)), None)
        if bad is None or ready:
            return self._after_ready(reply, ready, bad, mode)
        if bad[0].name == LOAD and Part.RANKING in self._parts:
            return self._load(bad[0])
        if Part.LADDER not in self._parts:
            return self._go(reply, mode)
        return self._slip(bad[0].name, bad[1])

    def _after_ready(
        self, reply: Reply, ready: Sequence[tuple[RawCall, Ready]], bad: tuple[RawCall, str] | None, mode: Mode
    ) -> Next:
        for call, _ in ready:
            self._ladder.valid(call.name)
        answer = self._sent_in([each for _, each in ready]) if mode.small else None
        limited = mode.small and answer is None and Part.MAX_STEPS in self._parts
        if limited and self._steps >= self._settings.max_steps:
            return self._out_of_steps()
        if answer is not None and bad is None and (objection := self._objection(answer)) is not None:
            return self._send_back(objection)
        if mode.small and answer is None and (asked := self._unknown_id([each for _, each in ready])) is not None:
            return self._send_back(asked)
        return self._go(self._without_bad(reply, tuple(call for call, _ in ready), bad), mode)

    def _unknown_id(self, calls: Sequence[Ready]) -> str | None:
        """What to say, once for each id, to calls with one that the model cannot have read anywhere (Sg)."""
        if Part.ID_CHECK not in self._parts or len(self._asked_about) >= MOST_ASKED:
            return None
        for each in calls:
            found = unknown_id(each.values, self._request)
            if found is not None and found[1] not in self._asked_about:
                self._asked_about.add(found[1])
                return question_about(each.call.name, *found)
        return None

    def _go(self, reply: Reply, mode: Mode) -> Go:
        return Go(reply, one_by_one=mode.small and Part.ONE_BY_ONE in self._parts, small=mode.small)

    def _without_bad(self, reply: Reply, ready: tuple[RawCall, ...], bad: tuple[RawCall, str] | None) -> Reply:
        """The reply with its valid calls; what was wrong with the others is told outside of the history."""
        if bad is None or Part.LADDER not in self._parts:
            return reply
        self._tail = self._ladder.unlike_before(f"Error: {bad[1]}")
        return replace(reply, calls=ready)

    def _checked(self, call: RawCall) -> Ready | str:
        """The call as it may run, or why it may not."""
        if call.name in self._ladder.off:
            return SWITCHED_OFF.format(tool=call.name)
        prepared = prepare(WantedCall(call.id, call.name, call.arguments, certain=call.certain), self._catalogue)
        return prepared if isinstance(prepared, Ready) else _first_problem(call, prepared) or prepared.text

    def _load(self, call: RawCall) -> Next:
        read = read_arguments(call.arguments, LOAD_SPEC.parameters)
        name = None if isinstance(read, Broken) else read.values.get("name")
        if not isinstance(name, str) or self._catalogue.get(name) is None or name in self._loaded:
            return self._slip(LOAD, NOT_LOADED.format(load=LOAD))
        self._loaded.append(name)
        return self._send_back(LOADED.format(tool=name))

    def _slip(self, tool: str, problem: str) -> Next:
        entry = self._catalogue.get(tool)
        spec = entry.spec if entry is not None else next(iter(self._tools), REPLY_SPEC)
        form = self._modes.of(self._turn.model_id).written
        others = [other.name for other in self._tools if other.name != tool and other.name not in self._ladder.off]
        example = prompt.worked_call(spec, form)
        correction = self._ladder.slip(tool, problem, example=example, others=others)
        if correction.rung is Rung.STOP:
            return Halt((self._say(Notice.IN_CIRCLES),))
        self._turn.resample = correction.resample
        self._tail = correction.text
        off = correction.off if correction.off and self._catalogue.get(correction.off) else None
        return Again(self._say(Notice.TOOL_OFF_NOTE, tool=off) if off else None)

    def _after_fault(self, reply: Reply) -> Next:
        """Something that looks like a call and is none. Words beside it may stand the second time."""
        if Part.LADDER not in self._parts:
            return Go(reply)
        if not is_readable(reply.text):
            return self._slip(reply.refused, f"{reply.problem}.")
        if "fault" in self._bounced:
            return Go(reply)
        self._bounced.add("fault")
        return self._send_back(FAULTY_TEXT.format(problem=reply.problem))

    def _after_answer(self, reply: Reply) -> Next:
        if Part.ECHO_CHECK in self._parts and answers.echoes(reply.text, self._trail.done):
            return Go(replace(reply, text=self._trail.gist, held=self._trail.gist))
        if self._sent_back is not None and answers.repeats(reply.text, self._sent_back.correction):
            return self._instead_of(reply, self._sent_back)
        if (unsent := self._unsent()) is not None:
            return self._send_back(unsent)
        objection = self._objection(reply.text)
        if objection is None:
            return Go(reply)
        self._sent_back = _SentBack(reply.text, objection)
        return self._send_back(objection)

    def _unsent(self) -> str | None:
        """What to say, once, to an answer in plain words that nobody would get, since the model has to send it (J2)."""
        if self._sends_by is None or self._trail.brought(self._sends_by):
            return None
        if "unsent" in self._bounced or self._sends_by in self._ladder.off:
            return None
        self._bounced.add("unsent")
        return UNSENT.format(tool=self._sends_by)

    def _sent_in(self, calls: Sequence[Ready]) -> str | None:
        """The answer that calls are about to send; None where they do anything else."""
        if any(each.call.name != self._sends_by for each in calls):
            return None
        return "\n\n".join(str(each.values.get("text", "")) for each in calls)

    def _objection(self, text: str) -> str | None:
        """The first objection to an answer that was not made yet in this run; None when it may stand."""
        for name, said in self._objections(answers.ends_of(text)):
            if said is not None and name not in self._bounced:
                self._bounced.add(name)
                return said
        return None

    def _instead_of(self, reply: Reply, sent_back: _SentBack) -> Go:
        """What stands where a model only repeats its correction: what it had said, or what its last call brought if
        that failed, since what it had said may pass over it."""
        text = self._trail.gist if self._trail.ends_on_failure else sent_back.text
        return Go(replace(reply, text=text, held=text))

    def _objections(self, text: str) -> Sequence[tuple[str, str | None]]:
        done = self._trail.done
        names = [tool.name for tool in self._tools if tool.name not in self._ladder.off]
        ignored = answers.ignores_failure(text, done) if Part.FAILURE_CHECK in self._parts else None
        passed_on = answers.passes_work_on(text, names, self._trail.names) if Part.WORK_CHECK in self._parts else None
        return ((f"failure {len(done)}", ignored), ("work", passed_on), ("open", self._left_open()))

    def _left_open(self) -> str | None:
        return self._trail.left_open(can_read=self._can_read()) if Part.WRAP_UP in self._parts else None

    def _can_read(self) -> bool:
        return any(entry.read_only and not entry.own for entry in self._catalogue)

    def _send_back(self, text: str) -> Again:
        self._tail = self._ladder.unlike_before(text)
        return Again()

    # --- after tools -----------------------------------------------------------------------------------------------

    def ran(self, outcomes: Sequence[Outcome]) -> Halt | None:
        self._steps += 1
        mode = self._modes.of(self._turn.model_id)
        judges = mode.small and Part.LOOP_BREAKER in self._parts
        for outcome in outcomes:
            circle = self._trail.add(outcome)
            if judges and circle is Circle.STOP:
                return Halt(self._what_came((self._say(Notice.IN_CIRCLES),)))
            if judges and circle is Circle.FLAG:
                self._tail = self._ladder.unlike_before(FLAGGED)
        if mode.small and Part.HINTS in self._parts:
            step = self._trail.done[len(self._trail.done) - len(outcomes) :]
            self._hints.after(step, can_read=self._can_read(), shown=RESULT_CHARACTERS)
        if self._has_answered(outcomes, mode):
            return Halt(())
        limited = mode.small and Part.MAX_STEPS in self._parts and not self._last_word
        return self._out_of_steps() if limited and self._steps >= self._settings.max_steps else None

    def _has_answered(self, outcomes: Sequence[Outcome], mode: Mode) -> bool:
        """Whether the model has just sent its answer by its own call: a weak one would go on and send it again."""
        names = {outcome.call.name for outcome in outcomes if not outcome.rendered.error}
        return mode.guides and self._sends_by is not None and names == {self._sends_by}

    def recall(self, turns: Sequence[AssistantTurn]) -> None:
        self._trail.recall(turns, self._catalogue)

    def asked(self, text: str) -> None:
        self._query = text
        self._tail = None
        self._steps = 0
        self._ladder.renew()
        self._trail.renew()

    def _out_of_steps(self) -> Halt:
        return Halt(self._what_came((self._say(Notice.OUT_OF_STEPS, steps=self._steps),)), Stop.STEPS)

    def _what_came(self, notes: tuple[str, ...]) -> tuple[str, ...]:
        """The gist of the last result before the sentences on why the run stops: often it is what was asked for."""
        return (self._trail.gist, *notes) if self._trail.gist else notes


def _first_problem(call: RawCall, refused: Refused) -> str | None:
    """What is wrong with arguments that can be read, in one short sentence (S2); None when it is something else."""
    if refused.entry is None or refused.code is not ErrorCode.INVALID_ARGUMENTS:
        return None
    schema = refused.entry.spec.parameters
    read = read_arguments(call.arguments, schema)
    return None if isinstance(read, Broken) else validate_args(schema, read.values)


def _unseen(reply: Reply) -> bool:
    """Whether nothing of a reply was shown: after visible text nothing is corrected."""
    return len(reply.held) == len(reply.text)
