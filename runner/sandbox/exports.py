"""What a run may send out of its outbox: reading lists, checking paths, reading failures (H3). Pure.

`/workspace` is one folder for all sandboxes of a workspace (H4), and what stands in a list comes from the sandbox: only
paths under this run's own outbox are ever exported.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final

from runner.conversation.names import one_line
from runner.host.events import Json

BATCH: Final = 20
"""Paths the Host takes in one call."""

MOST_FILES: Final = 100
"""Files the Host sends with one message."""

_PATH_CHARACTERS: Final = 2_000
_FOLDER: Final = "IsADirectoryError"
_MARK: Final = "LANGBOT_EXPORT_V1:"
_LIMIT_CODES: Final = frozenset({"box.export.limit_exceeded", "box.export.transport_truncated"})


class Unsent(Enum):
    """Why a file stays behind."""

    LIMIT = "limit"
    FAILED = "failed"


def is_outbox(path: str, run_id: str) -> bool:
    """Whether a folder can be this run's outbox: an absolute path in a folder at least, named by the run."""
    return path.startswith("/") and len(path.split("/")) > 2 and path.endswith(f"/{run_id}") and _is_plain(path)


def is_own(path: str, outbox: str) -> bool:
    """Whether a path is a file's place under this run's outbox.

    A backend that isolates nothing (LangBot's `host`) lists the folder by its real name, and takes files out by that
    alone. Its last two names are those of the outbox, the run's id among them, so that is accepted too, outside of the
    folder that all runs share.
    """
    if path.endswith("/") or not path.startswith("/") or not _is_plain(path):
        return False
    shared = outbox[: outbox.index("/", 1) + 1]
    real_name = f"/{'/'.join(outbox.split('/')[-2:])}/"
    return path.startswith(f"{outbox}/") if path.startswith(shared) else real_name in path


def _is_plain(path: str) -> bool:
    steps = path.split("/")[1:]
    return len(path) <= _PATH_CHARACTERS and not {"", ".", ".."} & set(steps) and not {"\\", "\x00"} & set(path)


def glob_arguments(outbox: str) -> dict[str, Json]:
    """The `glob` call that lists an outbox, its folders included."""
    return {"pattern": "*", "path": outbox}


def find_arguments(outbox: str) -> dict[str, Json]:
    """The `exec` call that lists the files of an outbox where `glob` is not granted."""
    return {"command": f"find {shlex.quote(outbox)} -type f 2>/dev/null | head -n {MOST_FILES + 1}"}


def paths_in(result: object, outbox: str) -> tuple[str, ...]:
    """The files under the outbox in what `glob` or `find` returned, oldest first; folders are left out."""
    if not isinstance(result, Mapping):
        return ()
    matches, printed = result.get("matches"), result.get("stdout")
    listed = matches if isinstance(matches, list) else printed.splitlines() if isinstance(printed, str) else []
    own = list(dict.fromkeys(path for path in listed if isinstance(path, str) and is_own(path, outbox)))[::-1]
    folders = {parent for path in own for parent in _parents(path)}
    return tuple(path for path in own if path not in folders)


def is_list(result: object) -> bool:
    """Whether `glob` or `find` gave a list at all; an empty one says that nothing is there."""
    if not isinstance(result, Mapping) or result.get("ok") is False:
        return False
    return isinstance(result.get("matches"), list) or isinstance(result.get("stdout"), str)


def is_incomplete(result: object) -> bool:
    """Whether a list says that there is more than it holds."""
    return isinstance(result, Mapping) and result.get("truncated") is True


def written_path(name: str, arguments: Mapping[str, Json], result: object, outbox: str) -> str | None:
    """The file that a successful `write` put into the outbox: known without any list."""
    path = arguments.get("path")
    done = isinstance(result, Mapping) and result.get("ok") is not False
    return path if name == "write" and done and isinstance(path, str) and is_own(path, outbox) else None


def batches(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    """The paths in calls of at most 20."""
    return (paths[start : start + BATCH] for start in range(0, len(paths), BATCH))


def why_refused(text: str) -> Unsent | None:
    """What an export's error text says of one path; its structured part stands behind a marker.

    None: it is a folder, which lists hold as well. Only the Host's script knows that, and says so in Python's words.
    """
    if _FOLDER in text:
        return None
    _, mark, body = text.partition(_MARK)
    try:
        error, _ = json.JSONDecoder().raw_decode(body.lstrip()) if mark else (None, 0)
    except ValueError:
        return Unsent.FAILED
    limited = isinstance(error, dict) and error.get("code") in _LIMIT_CODES
    return Unsent.LIMIT if limited else Unsent.FAILED


def names_of(paths: Iterable[str]) -> str:
    """File names for a sentence of the answer, which later requests hold: they may be anything (S7)."""
    return ", ".join(one_line(path.rsplit("/", 1)[-1]) for path in paths)


def _parents(path: str) -> Iterator[str]:
    while (path := path.rpartition("/")[0]) != "":
        yield path
