"""What can go wrong in a run: one tree.

```
AgentError
├── HostCallFailed          one call to the Host failed; `kind` says how
├── ModelFailed             one model could not answer; `cause` says why; the next model may
│   ├── BrokenOff             it failed when the beginning of its reply was read already (`runner.loop.turn`)
│   ├── StepTimedOut          it took longer than one step may take (`runner.loop.turn`)
│   ├── Hangs                 nothing at all came of it while another could answer (`runner.loop.turn`)
│   └── CountFailed           a request could not be counted for it (`runner.context.meter`)
├── RunFault                the run ends; `code` and text are for the bot's owner (C8)
│   ├── NoUsableModel         nothing authorised is configured
│   ├── AllModelsFailed       every configured model failed
│   ├── CountingUnavailable   the Host offers no token counting (F2)
│   ├── PromptMalformed       a row of the prompt cannot be read (B1)
│   └── InputTooLarge         what cannot be cut is above the budget (F7)
├── RunCancelled            the Host asked for a stop (G2)
└── TimeIsUp                the run's own deadline passed (G3)
```
"""

from __future__ import annotations

from enum import StrEnum


class AgentError(Exception):
    """Root of everything the agent raises on purpose."""


class HostFailure(StrEnum):
    """How a call to the Host failed, as far as the wire tells."""

    DENIED = "denied"  # not granted to this run: asking again is useless
    TIMEOUT = "timeout"  # no answer in time; the work may still go on in the Host
    CONNECTION = "connection"  # the connection to the runtime broke
    MALFORMED = "malformed"  # an answer came, and it cannot be read
    REFUSED = "refused"  # the Host answered with an error text


class HostCallFailed(AgentError):
    """One call to the Host failed.

    `action` is the port method's name, `text` the Host's words (at most 4,096 characters, localised).
    """

    def __init__(self, action: str, kind: HostFailure, text: str) -> None:
        super().__init__(f"{action}: {kind.value}: {text}")
        self.action = action
        self.kind = kind
        self.text = text


class ModelTrouble(StrEnum):
    """Why a model gave no answer; decides what is tried next (C1, C3, C7)."""

    OVERFLOW = "overflow"
    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    NETWORK = "network"
    AUTH = "auth"
    DENIED = "denied"
    BAD_REQUEST = "bad_request"
    REASONING_REFUSED = "reasoning_refused"
    EMPTY = "empty"
    FILTERED = "content_filter"  # the provider's filter let nothing of the reply through (K6)
    UNREADABLE = "unreadable"  # a reply came, in a shape that is none
    BROKEN = "broken"  # the engine cannot run here at all (S0)
    OTHER = "other"


RETRYABLE_TROUBLES = frozenset({ModelTrouble.TIMEOUT, ModelTrouble.NETWORK, ModelTrouble.RATE_LIMIT})
"""Only these make a failed run `retryable` (C8)."""


class ModelFailed(AgentError):
    """One model could not answer. `text` is for the log, never for the chat."""

    def __init__(self, model_id: str, cause: ModelTrouble, text: str) -> None:
        super().__init__(f"model {model_id}: {cause.value}: {text}")
        self.model_id = model_id
        self.cause = cause
        self.text = text


class RunFault(AgentError):
    """The run ends. `str()` of it names what happened and the next step for the bot's owner."""

    code = "runner.error"
    retryable = False


class NoUsableModel(RunFault):
    code = "runner.no_model"


class AllModelsFailed(RunFault):
    code = "runner.models_failed"

    def __init__(self, failures: tuple[ModelFailed, ...]) -> None:
        self.failures = failures
        self.retryable = any(failure.cause in RETRYABLE_TROUBLES for failure in failures)
        listed = "; ".join(str(failure)[:300] for failure in failures)
        super().__init__(
            f"every configured model failed ({listed}). Check the model's address, key and limits, or add a fallback."
        )


class CountingUnavailable(RunFault):
    code = "runner.token_count_unavailable"


class PromptMalformed(RunFault):
    code = "runner.prompt_malformed"


class InputTooLarge(RunFault):
    """What cannot be cut is above the input budget. `part` and `setting` name what to shrink or change."""

    code = "runner.input_too_large"

    def __init__(self, part: str, setting: str, tokens: int, budget: int) -> None:
        self.part = part
        self.setting = setting
        self.tokens = tokens
        self.budget = budget
        super().__init__(
            f"the {part} alone needs {tokens} tokens and the input budget leaves it {budget}: "
            f"shorten it or raise `{setting}`."
        )


class RunCancelled(AgentError):
    """The Host recorded `cancel_requested_at` for this run."""


class TimeIsUp(AgentError):
    """The run's own deadline passed."""
