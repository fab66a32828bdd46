"""The calls that were agreed to, as calls of this run: the same ones, or refused (M3, M4). Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

from runner.consent.desk import Decided
from runner.consent.request import HeldCall, digest_of
from runner.conversation.units import ToolCall
from runner.tools.catalogue import Catalogue, Entry
from runner.tools.prepare import Ready, Refused
from runner.tools.results import ErrorCode

GONE: Final = "agreed to, but not run: this tool is not offered any more. Say so."
CHANGED: Final = "agreed to, but not run: the tool has changed since it was shown. Call it again if it is still wanted."
OTHER_SANDBOX: Final = (
    "agreed to, but not run: the sandbox it was meant for ended with the message that asked. Begin again if it is "
    "still wanted."
)
NO_SKILL: Final = "agreed to, but not run: the skill {skill} that it belongs to cannot be activated any more. Say so."


def revived(
    decided: Decided,
    catalogue: Catalogue,
    claim: Callable[[str | None], str],
    *,
    sandbox: str,
    lost_skill: str | None,
) -> Sequence[Ready | Refused]:
    """One call for each that was agreed to, in their order, with ids of this run (`claim`).

    `sandbox` names the run's sandbox; `lost_skill` is one of theirs that cannot be activated.
    """
    return [_revived(call, decided, catalogue, claim(None), sandbox, lost_skill) for call in decided.calls]


def _revived(
    held: HeldCall, decided: Decided, catalogue: Catalogue, id_: str, sandbox: str, lost_skill: str | None
) -> Ready | Refused:
    entry = next((one for one in catalogue if (one.kind, one.host_name) == (held.kind, held.host_name)), None)
    call = ToolCall(id_, entry.name if entry else held.name, held.arguments)
    why = _why_not(held, decided, entry, sandbox, lost_skill)
    if entry is None or why is not None:
        return Refused(call, ErrorCode.FAILED, why or GONE, entry)
    return Ready(call, entry, json.loads(json.dumps(held.values)))


def _why_not(held: HeldCall, decided: Decided, entry: Entry | None, sandbox: str, lost_skill: str | None) -> str | None:
    if entry is None:
        return GONE
    if digest_of(entry) != held.digest:
        return CHANGED
    if entry.is_sandbox and decided.sandbox != sandbox:
        return OTHER_SANDBOX
    if entry.is_sandbox and lost_skill is not None:
        return NO_SKILL.format(skill=lost_skill)
    return None
