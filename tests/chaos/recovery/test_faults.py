"""A full disk, a storage that hangs, a frozen process, failing operators: some of what ``faults.py`` plays in full."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

OWN_MOUNTS = ["unshare", "--user", "--map-root-user", "--mount"]


@cache
def may_mount(folder: Path) -> bool:
    """Whether this user may mount file systems in a namespace of its own."""
    mount = [*OWN_MOUNTS, "mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    try:
        return subprocess.run(mount, capture_output=True, check=False, timeout=60).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("fault", "job", "mounts"),
    [
        pytest.param("full-output", "statement-set", True, marks=pytest.mark.nightly),
        pytest.param("hanging", "aggregate", False, marks=pytest.mark.nightly),
        ("frozen", "window", False),
        pytest.param("failing", "keyed-process", False, marks=pytest.mark.nightly),
    ],
)
def test_a_job_goes_on_and_loses_and_doubles_nothing(tmp_path: Path, fault: str, job: str, mounts: bool) -> None:
    if mounts and not may_mount(tmp_path):
        pytest.skip("this user may not mount a small file system")
    command = [sys.executable, str(Path(__file__).with_name("faults.py")), fault, job]
    played = subprocess.run(
        [*OWN_MOUNTS, *command] if mounts else command, capture_output=True, text=True, timeout=600, check=False
    )
    assert played.returncode == 0, played.stdout + played.stderr
    assert "no row lost, none doubled" in played.stdout
