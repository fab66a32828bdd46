"""Where LangBot's plugin runtime fetches the requirements of a plugin.

The runtime names an index to pip by itself, pypi.org where its own two variables say nothing, so the index that pip is
set to on this machine would not count.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping

# LangBot's variable, and pip's setting of the same meaning.
_SETTINGS = {
    "LANGBOT_PLUGIN_PYPI_INDEX_URL": "index-url",
    "LANGBOT_PLUGIN_PYPI_TRUSTED_HOST": "trusted-host",
}


def variables(env: Mapping[str, str], configured: Callable[[str], str] | None = None) -> dict[str, str]:
    """LangBot's variables as the caller set them, else as pip is set in `env` or in its files; the others are left out.

    `configured` says what stands in pip's files, '' for nothing.
    """
    of_files = configured or _of_files
    found = {
        name: env.get(name) or env.get(f"PIP_{setting.upper().replace('-', '_')}") or of_files(setting)
        for name, setting in _SETTINGS.items()
    }
    # pip parts hosts by white space, LangBot by commas; an address holds neither.
    return {name: ",".join(value.split()) for name, value in found.items() if value.strip()}


def _of_files(setting: str) -> str:
    asked = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "get", f"global.{setting}"]
    # Not set is an error to pip, and so is a pip that is missing: both mean that there is nothing to go by.
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
