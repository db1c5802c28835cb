"""State of several times the budget stays within it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BUDGET = 32 << 20
#: With 24 columns and what finds a key in memory: four budgets.
KEYS = 600_000


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc")
def test_state_of_four_budgets_stays_within_one_and_a_fifth(tmp_path: Path) -> None:
    program = Path(__file__).with_name("memory_program.py")
    command = [sys.executable, str(program), str(tmp_path), str(BUDGET), str(KEYS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 1.2 * BUDGET
    assert list(tmp_path.iterdir()) == []
