"""What the library of call formats offers is what others use, and no more; its page tells all of it."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

import callformats

ROOT = Path(__file__).resolve().parents[2]
USERS = ("runner", "components", "config", "local", "weights", "demo", "bench")
README = (ROOT / "callformats" / "README.md").read_text(encoding="utf-8")


def imported() -> Iterator[tuple[str, str, str]]:
    """Each import of the library by others: in which file, from which module, which name."""
    for path in (path for folder in USERS for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "callformats":
                yield from ((path.name, node.module or "", alias.name) for alias in node.names)


def test_others_take_from_the_package_itself_and_only_what_it_lists() -> None:
    wrong = [each for each in imported() if each[1] != "callformats" or each[2] not in callformats.__all__]
    assert wrong == []


def test_what_is_listed_is_used_by_others_or_told_in_the_readme() -> None:
    used = {name for _, _, name in imported()}
    assert [name for name in callformats.__all__ if name not in used and f"`{name}" not in README] == []


def test_the_example_of_the_readme_prints_what_it_says() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (said,) = re.findall(r"^prints `(.*)`\.$", README, re.MULTILINE)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(program, "README.md", "exec"), {})
    assert len(program.strip().splitlines()) <= 6
    assert out.getvalue().strip() == said
