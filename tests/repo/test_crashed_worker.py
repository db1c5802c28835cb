"""A run of tests ends, and fails, when one of its processes dies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CONFTEST = f"""
import sys
sys.path.insert(0, {str(ROOT / "tests")!r})
from crashed_worker import EndingScheduling

def pytest_xdist_make_scheduler(config, log):
    return EndingScheduling(config, log)
"""

TESTS = """
import os, signal, pytest

@pytest.mark.xdist_group("together")
@pytest.mark.parametrize("number", range(5))
def test_of_a_group(number):
    pass

@pytest.mark.parametrize("number", range(60))
def test_alone(number):
    if number in (20, 58):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_others_are_run(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_dies.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider", "."]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "2 failed, 63 passed" in run.stdout
