"""Reads a reply as it arrives (S1). A whole reply is a stream of one chunk: there is no other path.

The reader moves through the text in order. What it decides depends on the text alone and is decided only once more
text cannot change it, so any way of cutting the reply into chunks gives the same reading.

Where it is:

    in a thought       from an opener, or from the start if the prompt holds one, to the closer of that thought
    where a line begins  a sentence or addressee that opens the reply, a call without markers, or a code fence
    in a line          text to be shown, up to the next marker
    at a marker        a thought, a block with a call, a made-up result (then all is done), or noise of the turn

A step takes one decision: it shows text, hides markup, or waits. Behind a line break or hidden markup a line begins;
behind a marker that means nothing, the line goes on. Inside a fence no line begins a call. The thought that is open at
the very end is read once more by itself: a call that it stopped at may run (S1).

Held back is only what more text could turn into something else: a marker that is still growing, a block without its
closer, a line that may be a call, white space in front of either. Candidates wait in `Findings`, since only the whole
reply tells echoes and quotations; `verdict` judges them at the end. One thing is taken back: text in front of a closer
without an opener was a thought (`retracted`).

The work is linear. A block that is not finished yet is tried again when a closer arrives or when it has grown by a
quarter (`Retries`); looking for calls without markers ends after 100,000 characters that came to nothing. `steps`
counts the characters that were gone over.
"""

from __future__ import annotations

from collections.abc import Sequence

from callformats.block import DECLINED, UNFINISHED, Block, Candidate, GaveUp, Outcome, Undecided
from callformats.explained import Example, Marked, meant
from callformats.found import Findings, Found, Names
from callformats.leads import (
    ADDRESSEE,
    FENCE_CHARACTERS,
    LEAD_OF,
    Beginning,
    Fence,
    Lead,
    fence,
    lead,
    next_addressee,
)
from callformats.lines import Line, NotLast, may_begin, read_line
from callformats.offered import Offered
from callformats.offers import Offers
from callformats.orphans import ORPHAN_CHARACTERS, Orphan, orphan
from callformats.quotation import ForeignText, Quotations
from callformats.reading import Call, Fault, Reading, Refusal
from callformats.registry import known_id
from callformats.retries import Retries
from callformats.scan import next_match, skip_blank_lines, skip_space
from callformats.thinking import QUOTES, OpenThought, without_labels
from callformats.thoughts import ANSWER_TAGS, LAST_ONLY, NOISE, RESULT_TOKENS, Marks
from callformats.tokens import tokens
from callformats.verdict import Judge
from callformats.visible import Visible

Tools = Sequence[Offered] | None

_PATIENCE = 100_000  # characters read for blocks without markers that came to nothing; then they are looked for no more
_LONG = 500  # characters of a chunk in which looking for closers is work of its own
_LOOK_AHEAD = 64  # characters a reader takes to decline, on the average
_ADDRESSES_ALL = "functionary-v32"


class StreamReader:
    """Reads one reply chunk by chunk.

    `tools` None takes any name for a tool (foreign logs). `format` names the format the model was asked for: it is
    tried first, and an unknown name changes nothing. `thinking` True: the prompt has opened a thought already; False:
    the model does not think, so a lone closer is text; None: not known, and text before a lone closer turns out to be
    a thought (see `retracted`). `untrusted`: texts of this run that were only to be read. `keep_thoughts` leaves
    thoughts in the text as written.
    """

    def __init__(
        self,
        tools: Tools,
        *,
        format: str | None = None,
        thinking: bool | None = None,
        untrusted: Sequence[ForeignText | str] | Quotations = (),
        keep_thoughts: bool = False,
    ) -> None:
        self._offers = Offers(tools)
        foreign = untrusted if isinstance(untrusted, Quotations) else Quotations(untrusted)
        self._judge = Judge(self._offers, foreign)
        self._tools = tools
        self._format = known_id(format)
        self._thinking = thinking
        self._keep = keep_thoughts
        self._inner = False
        self._tokens = tokens()
        self._text = ""
        self._at = 0
        self._before = "\n"
        self._visible = Visible()
        self._thought: list[str] = []
        self._open_thought: OpenThought | None = None
        self._had_thought = False
        self._done = False
        self._findings = Findings()
        self._line_tried = False
        self._fresh = True
        self._addressed = False
        self._fence: str | None = None
        self._retries = Retries()
        self._patience = _PATIENCE
        self._reading: Reading | None = None
        self.steps = 0
        """Characters handed to scanners and format readers so far, for counting work; not those that `_retries` looked
        through for closers."""
        self.retracted = False
        """Whether text that `feed` had returned turned out to be a thought: show `text` anew."""
        self.ended_in_thought = False
        """Whether the calls of the closed reading stood in a thought that stopped at them."""
        if thinking:
            if self._keep:
                self._visible.show("<think>")
            self._begin_thought(None)

    @property
    def text(self) -> str:
        """All text the user may see so far."""
        return self._visible.text

    @property
    def thought(self) -> str:
        """All thought so far."""
        return "".join(self._thought) + (self._open_thought.written if self._open_thought else "")

    def feed(self, chunk: str) -> str:
        """Takes the next characters of the reply; gives what became visible with them."""
        if self._reading is not None:
            raise ValueError("the reply is closed")
        due = self._retries.due(len(self._text) - self._at, chunk)
        self._retries.add(chunk)
        if due:
            self._advance(complete=False)
        return self._visible.take()

    def effort(self, chunk: str) -> int:
        """How many characters `feed` would go over with this chunk."""
        held = len(self._text) - self._at
        return len(chunk) + (held if len(chunk) > _LONG or self._retries.due(held, chunk) else 0)

    def close(self) -> Reading:
        """The whole reading. Safe to call again."""
        if self._reading is None:
            self._advance(complete=True)
            self._end_thought_at_end()
            self._visible.end()
            self._reading = self._conclude()
        return self._reading

    def _wait(self) -> bool:
        self._retries.wait(len(self._text) - self._at)
        return False

    # --- moving on -------------------------------------------------------------------------------------------------

    def _advance(self, complete: bool) -> None:
        self._text = self._text[self._at :] + self._retries.take()
        self._at = 0
        while self._at < len(self._text) and not self._done and self._step(complete):
            pass
        if self._done:
            self._move(len(self._text))

    def _step(self, complete: bool) -> bool:
        """One decision. False: nothing more can be decided yet."""
        if self._open_thought is not None:
            return self._in_thought(self._open_thought, complete)
        return self._in_text(complete)

    def _move(self, to: int) -> None:
        if to > self._at:
            self._before = self._text[to - 1]
        self._at = to

    def _show(self, to: int, *, inert: bool = False) -> bool:
        piece = self._text[self._at : to]
        if piece.strip():
            self._fresh = False
            self._findings.end_run()
        self._visible.show(self._tokens.inert(piece) if inert else piece)
        self._move(to)
        return True

    def _hide(self, to: int, *, block: bool = False) -> None:
        self._visible.hide(block=block)
        self._move(to)
        self._line_tried, self._before = False, "\n"
        self._retries.renew()

    # --- visible text ----------------------------------------------------------------------------------------------

    def _in_text(self, complete: bool) -> bool:
        if self._before == "\n" and not self._line_tried:
            begun = self._at_line_start(complete)
            if begun is not None:
                return begun
        match = next_match(self._tokens.pattern, self._text, self._at)
        self.steps += (match.end() if match else len(self._text)) - self._at
        if self._addressed and self._to_next_addressee(match.start() if match else len(self._text)):
            return True
        if match is None:
            held = self._tokens.held(self._text, self._at, ADDRESSEE if self._addressed else "")
            self._show(len(self._text) - held)
            if complete and held:  # behind a call it is a marker that was cut off
                end = self._hide if self._findings.run else self._show
                end(len(self._text))
            return False
        if match[0] == "\n":
            self._show(skip_blank_lines(self._text, match.end()))
            self._line_tried = False
            return True
        if match.start() > self._at:
            self._show(match.start())
        return self._at_token(match[0], complete)

    def _to_next_addressee(self, limit: int) -> bool:
        """Whether Functionary names another addressee in mid-line: a call may begin there as on a new line."""
        tried = self._before == "\n" and self._line_tried
        mark = next_addressee(self._text, self._at, limit, tried=tried)
        if mark < 0:
            return False
        self._show(mark)
        self._before, self._line_tried = "\n", False
        return True

    def _at_token(self, token: str, complete: bool) -> bool:
        end = self._at + len(token)
        if not complete and self._tokens.may_grow(self._text, self._at):
            return self._wait()
        if self._before in QUOTES:
            if end >= len(self._text) and not complete:
                return self._wait()
            if self._text[end : end + 1] == self._before:
                return self._show(end)
        if token in self._tokens.thoughts:
            return self._open(token)
        if token in self._tokens.thought_closers:
            return self._close_alone(end)
        if token in self._tokens.openers:
            return self._at_opener(token, complete)
        return self._at_other(token, end, complete)

    def _at_other(self, token: str, end: int, complete: bool) -> bool:
        if token in self._tokens.results:
            # Nothing behind a result the model made up counts: it speaks of something that did not happen.
            self._findings.fault(Fault.MADE_UP_RESULT)
            self._hide(end)
            self._done = True
        elif token in RESULT_TOKENS:
            self._findings.fault(Fault.MADE_UP_RESULT)
            self._hide(end)
        elif token in ANSWER_TAGS:
            closes = token.startswith("</") and self._visible.answer_tag
            if self._had_thought and (closes or not self._visible.begun):
                self._visible.answer_tag = True
                self._hide(end)
            else:
                self._show(end)
        elif token in LAST_ONLY:
            last = skip_space(self._text, end) >= len(self._text)
            if last and not complete:
                return self._wait()
            end_with = self._hide if last else self._show
            end_with(end)
        elif self._fence is not None and token not in NOISE:
            self._show(end)
        else:
            self._fresh = self._fresh or token.startswith("<|start|>") or token == "<|eom|>"
            self._hide(end)
        return True

    # --- blocks with markers ---------------------------------------------------------------------------------------

    def _at_opener(self, token: str, complete: bool) -> bool:
        outcome = self._block(self._at, token, complete)
        if outcome is UNFINISHED:
            return self._wait()
        return self._take(outcome, token, complete) if isinstance(outcome, Marked) else self._orphan(token, complete)

    def _block(self, at: int, token: str, complete: bool) -> Marked | Undecided:
        """The block that the opener at `at` begins, read by the first format that knows it."""
        formats = self._tokens.openers[token]
        if self._format is not None:
            formats = tuple(sorted(formats, key=lambda one: one.id != self._format))
        for one in formats:
            outcome = one.read(self._text, at, complete)
            self._count(outcome, at)
            if outcome is UNFINISHED:
                return UNFINISHED
            if isinstance(outcome, Block):
                return Marked.of(outcome, one.id)
        return DECLINED

    def _count(self, outcome: Outcome | Line | NotLast, start: int) -> None:
        if isinstance(outcome, Block | Line | NotLast):
            self.steps += outcome.end - start
        elif isinstance(outcome, GaveUp):
            self.steps += outcome.read_to - start
        else:
            self.steps += len(self._text) - start if outcome is UNFINISHED else _LOOK_AHEAD

    def _take(self, block: Marked, token: str, complete: bool) -> bool:
        unknown = not any(self._offers.knows(one.candidate.name) for one in block.found)
        if self._fence is not None and block.found and unknown:
            # A fenced example of some other system's calls is something to read.
            return self._show(self._at + len(token))
        if block.found and (self._fence is not None or self._before == "`"):
            run = meant(self._text, block, complete, self._block, inline=self._fence is None)
            if not isinstance(run, Marked):
                return self._wait() if not isinstance(run, Example) else self._show(run.end)
            block = run
        if any(self._judge.quoted(one.candidate) for one in block.found):
            # Something to read, as inert as it came (I5).
            return self._show(block.end, inert=True)
        for one in block.found:
            self._findings.add(one)
        self._hide(block.end, block=True)
        self._done = block.final
        return True

    def _orphan(self, token: str, complete: bool) -> bool:
        self.steps += min(ORPHAN_CHARACTERS, len(self._text) - self._at)
        found = orphan(self._text, self._at, token, complete)
        if not isinstance(found, Orphan):
            return self._wait()
        if found.shown:
            return self._show(found.end)
        if found.raw is not None:
            self._findings.add(Found(Candidate("", raw=found.raw, broken=True), "", True))
        self._hide(found.end, block=found.raw is not None)
        return True

    # --- where a line begins ---------------------------------------------------------------------------------------

    def _at_line_start(self, complete: bool) -> bool | None:
        """What a line begins with; None when it is only text. True and False as in `_step`."""
        start = self._at
        while start < len(self._text) and self._text[start] in " \t":
            start += 1
        if start >= len(self._text) and not complete:
            return self._wait()
        if self._fresh:
            led = self._lead(start, complete)
            if led is not None:
                return led
        if self._fence is None and self._patience > 0:
            tried = self._markerless(start, complete)
            if tried is not None:
                return tried
        fenced = self._fence_line(complete) if self._text[start : start + 1] in FENCE_CHARACTERS else None
        if fenced is not None:
            return fenced
        self._line_tried = True
        return None

    def _markerless(self, start: int, complete: bool) -> bool | None:
        names = Names(self._offers, whole=bool(self._offers) and not self._visible.begun)
        if not may_begin(self._text[start : start + 1], names):
            return None
        outcome = read_line(self._text, start, complete, names, self._format)
        self._count(outcome, start)
        if outcome is UNFINISHED:
            return self._wait()
        if isinstance(outcome, NotLast):
            self._patience -= outcome.read_to - start
            self._show(outcome.end)
            self._line_tried = True
            return True
        if isinstance(outcome, GaveUp):
            self._patience -= outcome.read_to - start
        if not isinstance(outcome, Line):
            return None
        rulings = [self._judge.rule(one, outcome.format_id) for one in outcome.block.candidates]
        text = (Fault.QUOTED,) if names.whole else (Fault.QUOTED, Fault.UNKNOWN_TOOL)
        no_call = any(isinstance(ruling, Refusal) and ruling.fault in text for ruling in rulings)
        if no_call or not all(map(self._judge.plausible, outcome.block.candidates)):
            self._show(outcome.block.end)
            self._line_tried = True
            return True
        for one in outcome.block.candidates:
            self._findings.add(Found(one, outcome.format_id, False))
        if outcome.made_up:
            self._findings.fault(Fault.MADE_UP_RESULT)
            self._done = True
        self._hide(outcome.end, block=True)
        return True

    def _lead(self, start: int, complete: bool) -> bool | None:
        """What only stands where a reply begins."""
        to_all = self._format == _ADDRESSES_ALL and not self._visible.begun
        found = lead(self._text, self._at, start, complete, to_all=to_all)
        if found is Beginning.UNSURE:
            return self._wait()
        if not isinstance(found, Lead):
            return None
        self._hide(found.end)
        if found.thought is not None:
            self._begin_thought(found.thought)
        elif found.to_all:
            self._fresh = False
            self._addressed = True
        return True

    def _fence_line(self, complete: bool) -> bool | None:
        """A code fence: nothing inside it is a call without markers."""
        token = self._tokens.pattern.match(self._text, self._at)
        if token is not None and token[0] in self._tokens.openers:
            return None
        found = fence(self._text, self._at, complete)
        if found is Beginning.UNSURE:
            return self._wait()
        if not isinstance(found, Fence):
            return None
        end = self._at + len(found.line)
        if self._fence is None:
            self._fence = found.ticks
            self._visible.open_fence(found.line)
            self._move(end)
            return True
        if not found.ticks.startswith(self._fence):
            return None
        self._fence = None
        if not self._visible.close_fence():
            return None
        self._move(end)
        return True

    # --- thoughts --------------------------------------------------------------------------------------------------

    def _open(self, token: str) -> bool:
        end = self._at + len(token)
        if self._keep:
            self._visible.show(token)
            self._move(end)
        else:
            self._hide(end)
        self._begin_thought(self._tokens.thoughts[token])
        return True

    def _begin_thought(self, marks: Marks | None) -> None:
        self._had_thought = True
        self._open_thought = OpenThought(marks)

    def _close_alone(self, end: int) -> bool:
        """A closer without an opener: the text before it was a thought, if nothing is known against that."""
        if self._thinking is False or self._had_thought or self._findings:
            return self._show(end)
        self._had_thought = True
        opening = LEAD_OF.get(self._text[self._at : end])
        if opening is not None:
            # The template put the sentence that opens the thought into the prompt.
            self._thought.append(opening + "\n")
        self._thought.append(self._visible.withdraw())
        self.retracted = self.retracted or self._visible.withdrawn
        self._hide(end)
        return True

    def _in_thought(self, thought: OpenThought, complete: bool) -> bool:
        ending = thought.ending(self._text, self._at, self._before, complete)
        self.steps += (ending.end or len(self._text)) - self._at
        thought.add(self._text[self._at : ending.thought_end])
        self._move(ending.thought_end)
        if ending.end is None:
            return self._wait() if self._at < len(self._text) else False
        self._open_thought = None
        if self._keep:
            self._visible.show(thought.written + self._text[self._at : ending.end])
            self._move(ending.end)
            self._before, self._line_tried = "\n", False
        else:
            self._thought.append(without_labels(thought.written))
            self._hide(ending.end)
        return True

    def _end_thought_at_end(self) -> None:
        """The reply ends inside a thought: a call that the thought stopped at may run if it fits (S1)."""
        if self._open_thought is None:
            return
        written = self._open_thought.written
        self._open_thought = None
        if self._keep:
            self._visible.show(written)
            return
        if self._inner:
            self._thought.append(written)
            return
        inner = StreamReader(self._tools, format=self._format, thinking=False)
        inner._inner = True
        inner.feed(without_labels(written))
        inner.close()
        self.steps += inner.steps
        last = [one for one in inner._findings.run if one.marked]
        rulings = [self._judge.rule(one.candidate, one.format_id, must_fit=True) for one in last]
        if last and all(isinstance(ruling, Call) for ruling in rulings):
            self._thought.append(without_labels(inner.text))
            self._findings.extend(last)
            self.ended_in_thought = True
        else:
            self._thought.append(without_labels(written))

    # --- the end ------------------------------------------------------------------------------

    def _conclude(self) -> Reading:
        calls, refusals = self._findings.ruled(self._judge, frozenset(self._tokens.openers))
        return Reading(self._visible.text, "".join(self._thought).strip(), calls, refusals)
