"""The fast tests with the oldest versions that `requirements.txt` allows (N1).

`python -m tests.oldest [PYTEST ARGUMENTS]` installs them into a folder beside the environment of `make test`, in front
of it for this one run, and needs a package index. Without arguments it runs all tests that need no LangBot.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
SUPPLIED = frozenset({"langbot-plugin"})
"""What the plugin's runtime brings itself: it is never installed anew."""


def allowed() -> list[Requirement]:
    """What the plugin requires, in the order of the file."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def oldest(requirement: Requirement) -> str:
    """The lowest version that a requirement allows. Raises ValueError where it names none."""
    for bound in requirement.specifier:
        if bound.operator in {">=", "==", "~="}:
            return bound.version
    raise ValueError(f"{requirement} has no lowest version")


def main(arguments: list[str]) -> int:
    pinned = [f"{each.name}=={oldest(each)}" for each in allowed() if each.name not in SUPPLIED]
    print(" ".join(pinned), file=sys.stderr, flush=True)  # noqa: T201 - a command
    with tempfile.TemporaryDirectory(prefix="localagent-oldest-") as folder:
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, *pinned]
        subprocess.run(install, check=True, stderr=subprocess.DEVNULL)
        tests = [sys.executable, "-m", "pytest", *(arguments or ["tests", "-q", "-m", "not e2e"])]
        return subprocess.run(tests, cwd=ROOT, env={**os.environ, "PYTHONPATH": folder}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
