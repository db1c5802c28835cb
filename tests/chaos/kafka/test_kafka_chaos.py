"""A short form of the harness that kills jobs and brokers; ``make chaos`` plays the long one."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos.kafka.harness import Tally, compare, names
from tests.chaos.kafka.jobs import QUERIES

ROOT = Path(__file__).resolve().parents[3]


def played(*arguments: str) -> subprocess.CompletedProcess[str]:
    paths = [ROOT, *(ROOT / name for name in ("grammar", "planner", "runtime", "connectors"))]
    return subprocess.run(
        [sys.executable, "-m", "tests.chaos.kafka.harness", *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
    )


@pytest.mark.servers
@pytest.mark.parametrize(("jobs", "backend"), [("upserts", "rocksdb"), ("files", "hashmap")])
def test_killed_jobs_and_brokers_lose_and_double_nothing(jobs: str, backend: str) -> None:
    done = played("2", "1", "7", f"--jobs={jobs}", f"--backends={backend}", "--rows=10000")
    if done.returncode == 3:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 lost, 0 doubled in" in done.stdout


def test_a_name_that_is_no_job_is_refused() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no 'rankings', there are upserts, window, "):
        names(tuple(QUERIES))("window,rankings")


def test_lost_doubled_and_wrong_rows_are_told() -> None:
    tally = Tally()
    wanted = Counter(["a", "b"])
    compare("it", wanted, Counter(wanted), Counter(wanted), tally)
    assert not tally.broken
    compare("it", wanted, Counter(["a"]), Counter(["a"]), tally)
    compare("it", wanted, Counter(["a", "b", "b"]), Counter(["a", "b", "b"]), tally)
    compare("it", wanted, Counter(["a", "c"]), Counter(["a", "c"]), tally)
    # A total that was told twice on the way, although the last one is right.
    compare("it", wanted, Counter(wanted), Counter(["count 1 of a", "count 1 of a"]), tally)
    assert (tally.lost, tally.doubled) == (2, 3)
    assert [text.partition(",")[0] for text in tally.broken] == [
        "it: 1 rows lost",
        "it: 1 rows doubled or wrong",
        "it: 1 rows lost",
        "it: 1 rows doubled or wrong",
        "it: 1 rows doubled or wrong",
    ]
