"""The tables of docs/providers.md, from what the tests drive: `python -m tests.providers.page` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.providers.catalogue import DRIVEN, NOT_DRIVEN
from tests.providers.dialect import Dialect
from tests.providers.situations import SITUATIONS

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "providers.md"
BEGIN: Final = "<!-- tables: written by `python -m tests.providers.page` -->"
END: Final = "<!-- /tables -->"


def tables() -> str:
    """Who is driven before whom in which situations, what each provider refuses, and who cannot be reached."""
    return "\n\n".join((_driven(), _rules(), _left_out()))


def written(text: str) -> str:
    """The page with its tables made anew. Raises ValueError where a mark is missing."""
    head, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} has lost {BEGIN} or {END}")
    return f"{head}{begin}{tables()}\n{END}{tail}"


def _driven() -> str:
    names = [situation.name for situation in SITUATIONS]
    lines = ["## Which are driven, and through what", "", _row("LangBot's requester", "model", "provider", *names)]
    lines.append(_row(*["---"] * (3 + len(names))))
    lines += [_row(f"`{case.requester}`", f"`{case.model}`", case.provider, *["✓"] * len(names)) for case in DRIVEN]
    return "\n".join(lines)


def _rules() -> str:
    lines = ["## What each provider refuses", ""]
    for name, dialect in _dialects().items():
        lines.append(f"- **{name}**")
        lines += [f"  - {rule.name.replace('_', ' ')} ({rule.source})" for rule in dialect.rules]
    return "\n".join(lines)


def _left_out() -> str:
    lines = ["## Which are not driven", ""]
    return "\n".join([*lines, *(f"- `{name}`: {why}" for name, why in NOT_DRIVEN.items())])


def _dialects() -> dict[str, Dialect]:
    made = (case.dialect() for case in DRIVEN)
    return {dialect.name: dialect for dialect in made}


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
