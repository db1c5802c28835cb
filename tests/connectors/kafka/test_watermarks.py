"""Watermarks of partitions: slow, idle, ended and aligned ones give the windows that Flink 2.3 gives.

The cases are those of ``watermarks/``, in the form of ``../shared/conformance_connectors``: its ``ask_flink.py`` with
``--cases`` recorded Flink's answers, and its ``run.py`` plays them here. A step waits for the rows that only the steps
before it can bring, so the answers hang on no clock.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CASES = Path(__file__).with_name("watermarks")
RUNNER = ROOT.parent / "shared" / "conformance_connectors" / "run.py"
NAMES = sorted(str(path.relative_to(CASES).with_suffix("")) for path in CASES.glob("*/*.sql"))

pytestmark = [
    pytest.mark.servers,
    pytest.mark.shared,
    pytest.mark.skipif(not RUNNER.exists(), reason="the runner of connector cases is not beside the checkout"),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("parallelism", [1, 2])
def test_windows_are_those_of_flink(name: str, parallelism: int, kafka_server: dict[str, str]) -> None:
    paths = [ROOT, *(ROOT / folder for folder in ("grammar", "planner", "runtime", "connectors"))]
    case = CASES / name
    command = [
        sys.executable, str(RUNNER), "--cases", str(case.parent), "--command", f"{sys.executable} -m flowsql.cli",
        "--parallelism", str(parallelism), "--strict", case.name,
    ]  # fmt: skip
    environment = {**os.environ, "KAFKA": kafka_server["KAFKA"], "PYTHONPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
