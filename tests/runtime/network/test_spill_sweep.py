"""What a killed process left in temporary folders goes when the next job spills; what a living one holds stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from flowsql_core.batch import ChangelogBatch
from flowsql_runtime.network.spill import SpillSpace

HOLDER = """
import sys, time
import pyarrow as pa
from flowsql_core.batch import ChangelogBatch
from flowsql_runtime.network.spill import SpillSpace

file = SpillSpace(sys.argv[1], sys.argv[2]).new_file((pa.int64(),))
file.append(ChangelogBatch.of([pa.array(range(1000), pa.int64())]))
print(file.path.parent.name, flush=True)
sys.stdin.read()
"""


def holder(folder: Path, job: str) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), job],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert process.stdout is not None
    return process, folder / process.stdout.readline().strip()


def test_folders_of_killed_processes_are_swept_and_no_others(tmp_path: Path) -> None:
    killed, left = holder(tmp_path, "killed")
    living, held = holder(tmp_path, "living")
    foreign = tmp_path / "flowsql-spill-notes"
    foreign.mkdir()
    try:
        assert left.is_dir()
        assert left != held
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert left.is_dir()
        space = SpillSpace(str(tmp_path), "next")
        other = SpillSpace(str(tmp_path), "beside")
        for mine in (space, other):
            mine.new_file((pa.int64(),)).append(ChangelogBatch.of([pa.array([1], pa.int64())]))
        assert not left.exists()
        assert held.is_dir()
        assert any(held.glob("*.arrows"))
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {
            held.name,
            foreign.name,
            f"flowsql-spill-{os.getpid()}-next",
            f"flowsql-spill-{os.getpid()}-beside",
        }
        space.close()
        other.close()
        assert {path.name for path in tmp_path.iterdir()} == {held.name, foreign.name}
    finally:
        for process in (killed, living):
            process.kill()
            process.communicate()
