"""The end of the process: nothing that was asked for behind the command is lost."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
{before}
from flowsql.cli.process import run
sys.argv = ["flowsql", "-c", {sql!r}]
run()
"""
BEFORE = {
    "what is registered for the end": "import atexit; atexit.register(print, 'behind the command')",
    "threads that a program waits for": (
        "import threading, time\nthreading.Thread(target=lambda: (time.sleep(2), print('behind the command'))).start()"
    ),
}


def ended(before: str, sql: str) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.format(before=before, sql=sql)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_what_comes_behind_the_command(before: str) -> None:
    done = ended(before, "SELECT 1 AS n")
    assert done.returncode == 0, done.stderr
    assert "Received a total of 1 row" in done.stdout
    assert done.stdout.endswith("behind the command\n")


def test_the_status_of_a_failure() -> None:
    done = ended("", "SELECT nothing")
    assert done.returncode == 1
    assert "nothing" in done.stderr
