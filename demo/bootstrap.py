"""Make `.venv` and install requirement files into it; nothing is done when a stamp says it is all there.

`python3 -m demo.bootstrap KIND …` with the kinds of `FILES`, run by the Makefile with the system's Python: standard
library only.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

from demo.errors import DemoError
from weights import pip
from weights.errors import StepFailed

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
# What the plugin itself imports at run time belongs to each of them that runs the plugin's code in this environment.
FILES = {
    "demo": ("requirements-demo.txt",),
    "dev": ("requirements-dev.txt", "requirements.txt", "requirements-model.txt"),
    "model": ("requirements-model.txt",),
    "package": ("requirements-package.txt",),
}
# What is there as well once a kind is installed.
INCLUDED = {"demo": ("package",), "dev": ("demo", "model", "package")}
# The versions all of this was last seen working with: LangBot leaves most of its dependencies open, and a new release
# of one of them has stopped it before.
CONSTRAINTS = "constraints.txt"
# Measured with LangBot 4.11.2: 1.6 GB installed, plus what pip unpacks on the way.
NEED_BYTES = {"demo": 2_500_000_000, "dev": 3_300_000_000, "model": 300_000_000, "package": 50_000_000}


def requirement_files(kind: str) -> list[Path]:
    return [ROOT / name for name in FILES[kind] if (ROOT / name).is_file()]


def fingerprint(kind: str) -> str:
    """Changes when a requirement file (or one it includes) or the Python version does."""
    digest = hashlib.sha256(sys.version.encode())
    included = [ROOT / "requirements-demo.txt"] if kind == "dev" else []
    for path in [*requirement_files(kind), *included, ROOT / CONSTRAINTS]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def venv_python() -> Path:
    return VENV / "bin" / "python"


def make_venv() -> None:
    """Create `.venv`, or make it anew when its interpreter no longer runs.

    Raises DemoError when Python lacks venv or ensurepip (Debian and Ubuntu split them off).
    """
    if venv_python().exists() and subprocess.run([venv_python(), "-c", ""], check=False).returncode == 0:
        return
    print("localagent: making .venv", file=sys.stderr, flush=True)
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(VENV)], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        words = made.stdout + made.stderr
        if "ensurepip" in words or "No module named venv" in words:
            package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
            raise DemoError(f"this Python has no venv; install it first (Debian, Ubuntu: apt install {package})")
        raise DemoError(f"could not make .venv: {pip.cause(words)}")


def install(kind: str) -> None:
    """Install the requirement files of `kind` unless the stamp says they are installed as they stand."""
    stamp = VENV / f".stamp-{kind}"
    wanted = fingerprint(kind)
    if stamp.is_file() and stamp.read_text() == wanted and venv_python().exists():
        return
    pip.require_space(VENV, NEED_BYTES[kind], f"install the packages for {kind}")
    make_venv()
    names = " and ".join(path.name for path in requirement_files(kind))
    wait = "once, some minutes" if kind in ("demo", "dev") else "once"
    print(f"localagent: installing {names} into .venv ({wait})", file=sys.stderr, flush=True)
    begin = time.monotonic()
    show = pip.StepLine("  pip:")
    arguments = ["install", "--progress-bar", "off", "--prefer-binary", "-c", CONSTRAINTS]
    for path in requirement_files(kind):
        arguments += ["-r", str(path)]
    try:
        pip.run(str(venv_python()), arguments, VENV / "pip.log", f"install {names}", show)
    finally:
        show.done()
    stamp.write_text(wanted)
    for included in INCLUDED.get(kind, ()):
        (VENV / f".stamp-{included}").write_text(fingerprint(included))
    print(f"localagent: installed in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


def main(kinds: list[str]) -> int:
    os.chdir(ROOT)
    try:
        for kind in kinds:
            install(kind)
    except StepFailed as error:
        print(f"localagent: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"localagent: could not prepare .venv: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("localagent: stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
