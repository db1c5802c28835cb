"""A short round of the fault harness: see ``harness.py``; ``make chaos`` plays the long one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_killed_jobs_lose_and_double_nothing() -> None:
    """In a process of its own: the harness puts its folder on the path, which no other test shall see."""
    harness = Path(__file__).with_name("harness.py")
    played = subprocess.run(
        [sys.executable, str(harness), "16", "5", "--short"], capture_output=True, text=True, timeout=600, check=False
    )
    assert played.returncode == 0, played.stdout + played.stderr
    assert "no row lost, none doubled by an exactly-once job" in played.stdout
