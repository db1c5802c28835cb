"""No row is lost, doubled or seen too early when a job that writes files is killed at any of its file operations."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

#: A crash of the process loses nothing that was written, so the files may as well stay in memory.
_MEMORY = Path("/dev/shm")


@pytest.mark.parametrize(
    ("format_", "compacts", "lazy", "stride"),
    [
        ("csv", False, False, 5),
        ("csv", True, True, 7),
        ("parquet", False, True, 11),
        ("parquet", True, False, 11),
    ],
)
def test_killed_again_and_again(tmp_path: Path, format_: str, compacts: bool, lazy: bool, stride: int) -> None:
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else tmp_path) as folder:
        options = [folder, format_, str(compacts), str(lazy), str(stride)]
        done = subprocess.run(
            [sys.executable, "-m", "tests.connectors.file_crash_job", *options],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.rpartition("kills=")[2]) >= 20
