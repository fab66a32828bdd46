"""What LangBot's own export script says (langbot/pkg/box/selected_files.py), run on a folder of this machine.

Skipped without the `langbot` package. The script is what the Host runs inside a sandbox.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runner.sandbox.exports import Unsent, why_refused

selected_files = pytest.importorskip("langbot.pkg.box.selected_files")


def refusal(*paths: Path) -> str:
    """What the script complains about."""
    script = selected_files.selected_files_script(
        [str(path) for path in paths], max_file_bytes=1_000, max_total_bytes=5_000
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    return "" if done.returncode == 0 else done.stderr[-4_000:]


def test_H3_a_folder_is_told_apart_from_a_file_that_cannot_be_taken(tmp_path: Path) -> None:
    folder, file, link = tmp_path / "folder", tmp_path / "file", tmp_path / "link"
    folder.mkdir()
    file.write_bytes(b"x")
    link.symlink_to(file)
    assert refusal(file) == ""
    assert why_refused(refusal(folder)) is None
    assert why_refused(refusal(link)) is Unsent.FAILED
    assert why_refused(refusal(tmp_path / "nothing")) is Unsent.FAILED
