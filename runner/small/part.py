"""The parts of the small profile that can be left out one by one, to show by tests and benches what each is worth.

No binding can reach this: `DefaultRunner(parts=…)` is for those who build the runner themselves. What keeps foreign
text from being obeyed (S7) has no switch.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Part(StrEnum):
    """One part. Without it the loop does what it does with a model that needs no help."""

    LENIENT_READING = "lenient-reading"  # S1: calls are read out of text
    REPLAY = "replay"  # S1: earlier turns are shown in the form the model is asked to write
    RANKING = "ranking"  # S2: the best tools in full, the others as an index behind `load_tool`
    SHORT_HISTORY = "short-history"  # S3: the newest twelve turns
    SHORT_RESULTS = "short-results"  # S3: results cut to 1,500 characters
    FEWER_TOOLS = "fewer-tools"  # S3: fitting by 4, 2, 1 tools
    WORKED_CALL = "worked-call"  # S3: one worked call in the system prompt
    ERROR_CODES = "error-codes"  # S3: what the codes in use mean
    PLACE = "place"  # S3: where the chat is, and the owner's site instructions
    RESTATEMENT = "restatement"  # S3: the request once more after each step of tools
    ONE_BY_ONE = "one-by-one"  # S3: calls run one at a time
    STEP_LIMIT = "step-limit"  # S3: seconds of one generation
    MAX_STEPS = "max-steps"  # S3: steps of tools in a run
    HOLDING = "holding"  # S3: prose is shown after the checks
    FAILURE_CHECK = "failure-check"  # S3: a reply that passes over a failed call goes back
    WORK_CHECK = "work-check"  # S3: a reply that tells the user to use a tool goes back
    ID_CHECK = "id-check"  # Sg: an id that stands nowhere is asked about once
    ECHO_CHECK = "echo-check"  # S3: an echo of a result becomes its gist
    LADDER = "ladder"  # S3: bad calls are corrected outside of the history, each time otherwise
    LOOP_BREAKER = "loop-breaker"  # S3: circles of calls, judged by their outcome
    CHANT_BREAKER = "chant-breaker"  # S3: text that repeats itself, white space without end
    WRAP_UP = "wrap-up"  # S3: open work at the end is bounced once
    HINTS = "hints"  # S6: advice given once a conversation, when its moment comes
    JOBS = "jobs"  # S4: a slow call goes on as a job, in any profile
    EVIDENCE = "evidence"  # S5: new errors of a console or log ride along with an action
    EMPTY_RETRY = "empty-retry"  # S3: an empty reply is asked for once more
    REPLY_TOOL = "reply-tool"  # S8: the answer is a call, too
    SCHEMA = "schema"  # S8: a JSON schema with the request, in the format `guided`


Parts = frozenset[Part]
EVERY_PART: Final[Parts] = frozenset(Part)


def all_but(*left_out: Part) -> Parts:
    """Every part but these."""
    return EVERY_PART - set(left_out)
