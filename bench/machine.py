"""What the numbers of a measurement depend on."""

from __future__ import annotations

import os
import platform


def machine() -> dict[str, object]:
    return {
        "cores": os.cpu_count(),
        "load": [round(value, 2) for value in os.getloadavg()],
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
