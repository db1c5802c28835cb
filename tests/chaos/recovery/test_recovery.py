"""A short round of the fault harness: see ``harness.py``; ``make chaos`` plays the long one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


def test_killed_jobs_lose_and_double_nothing() -> None:
    """In a process of its own: the harness puts its folder on the path, which no other test shall see."""
    harness = Path(__file__).with_name("harness.py")
    played = subprocess.run(
        [sys.executable, str(harness), "6", "5", "--short", "--jobs=left-join,files,aggregate"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert played.returncode == 0, played.stdout + played.stderr
    assert "no row lost, none doubled by an exactly-once job" in played.stdout


def test_a_name_that_is_no_job_is_refused() -> None:
    harness = Path(__file__).with_name("harness.py")
    command = [sys.executable, str(harness), "1", "1", "--jobs=over,rankings"]
    played = subprocess.run(command, capture_output=True, text=True, check=False)
    assert played.returncode == 2, played.stdout
    assert "no job 'rankings', there are stateless, " in played.stderr
    assert played.stderr.rstrip().endswith("python-aggregate, left-join, files")


LOSING = """
import sys
from collections import Counter
import harness
one, tally = harness.Round("stateless", "rocksdb", True), harness.Tally()
harness.compare(one, {"o": Counter(a=2, c=1)}, {"o": Counter(a=1, b=1, c=1)}, tally)
harness.run = lambda *arguments: {one: tally}
sys.argv = ["harness.py", "1", "1"]
sys.exit(harness.main())
"""


def test_a_lost_or_doubled_row_is_told_and_fails() -> None:
    folder = Path(__file__).parent
    played = subprocess.run([sys.executable, "-c", LOSING], capture_output=True, text=True, cwd=folder, check=False)
    assert played.returncode == 1, played.stderr
    assert re.search(r"stateless +rocksdb +unaligned .* 1 lost +1 doubled +BROKEN", played.stdout)
    assert "1 rows of 'o' are lost, e.g. a" in played.stdout
    assert "no row lost" not in played.stdout


STRUCK = """
import subprocess, sys
from pathlib import Path
import harness
folder = Path(sys.argv[1])
old = folder / "checkpoints/old/chk-1"
old.mkdir(parents=True)
(old / "_metadata").touch()
before = harness.published(folder)
script = '''
import sys, time
from pathlib import Path
made = Path(sys.argv[1]) / "checkpoints/new/chk-2"
made.mkdir(parents=True)
(made / "_metadata").touch()
print(flush=True)
sys.stdin.readline()
if sys.argv[2] == "ended":
    (made / "_metadata").unlink()
print(flush=True)
time.sleep(60)
'''
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
job = subprocess.Popen([sys.executable, "-c", script, str(folder), sys.argv[2]], **pipes)
job.stdout.readline()


# The attempt goes on while its killer, who has seen its checkpoint, waits.
def wait(timeout=None, wait=job.wait):
    if not job.stdin.closed:
        job.stdin.close()
        job.stdout.readline()
        raise subprocess.TimeoutExpired("job", 0)
    return wait(timeout)


job.wait = wait
print(harness.Strike(delay_s=0.0).struck(job, folder, before) or "it had ended")
"""


@pytest.mark.parametrize(("state", "place"), [("running", "any moment"), ("ended", "it had ended")])
def test_a_process_that_is_killed_behind_the_end_of_its_job_is_not_started_again(
    tmp_path: Path, state: str, place: str
) -> None:
    """It has removed its checkpoints; those of older attempts lie behind what is committed."""
    command = [sys.executable, "-c", STRUCK, str(tmp_path), state]
    played = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent, timeout=60, check=False)
    assert played.stdout.strip() == place, played.stderr


@pytest.mark.nightly
def test_a_job_killed_in_incremental_checkpoints_loses_and_doubles_nothing(tmp_path: Path) -> None:
    played = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("incremental.py")), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert played.returncode == 0, played.stdout + played.stderr
    assert "no row lost, none doubled" in played.stdout
