"""A short round of the harness of what goes on by itself: see ``harness.py``; ``make chaos`` plays the long one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_killed_projects_and_scripts_lose_and_double_nothing() -> None:
    """In a process of its own, as it starts and kills others."""
    harness = Path(__file__).with_name("harness.py")
    command = [sys.executable, str(harness), "6", "3"]
    played = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert played.returncode == 0, played.stdout + played.stderr
    assert "no row lost, none doubled" in played.stdout


LOSING = """
import sys
from collections import Counter
import harness
tally = harness.Tally()
harness.compare({"plain": Counter(a=1, b=1)}, {"plain": Counter(a=2)}, tally, "script 1")
harness.play = lambda *arguments: tally
sys.argv = ["harness.py", "1", "1"]
sys.exit(harness.main())
"""


def test_a_lost_or_doubled_row_is_told_and_fails() -> None:
    folder = Path(__file__).parent
    played = subprocess.run([sys.executable, "-c", LOSING], capture_output=True, text=True, cwd=folder, check=False)
    assert played.returncode == 1, played.stderr
    assert "1 rows lost, 1 doubled" in played.stdout
    assert "script 1: 1 rows of 'plain' are lost, e.g. b" in played.stdout
    assert "no row lost" not in played.stdout
