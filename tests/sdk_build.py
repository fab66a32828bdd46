"""The plugin's package as the SDK's own command builds it, from the folder that `make package` leaves (N1)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from demo import package


def built_by_the_SDK(plugin: Path, out: Path) -> Path:
    """Run `lbp build` in the laid-out folder; returns the .lbpkg. Raises CalledProcessError where the command fails."""
    folder = package.lay_out(plugin, out)
    lbp = Path(sys.executable).parent / "lbp"
    subprocess.run([lbp, "build", "-o", out / "dist"], cwd=folder, check=True, capture_output=True, timeout=120)
    return out / "dist" / package.identity(plugin).file_name
