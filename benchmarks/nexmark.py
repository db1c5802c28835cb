"""Nexmark by the suite beside the checkout: FlowSQL alone, or with Flink where ``FLINK_PYTHON`` is set."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUITE = ROOT.parent / "shared" / "nexmark"
#: Events of a run, fewer where each costs more.
EVENTS = "5000000," + ",".join(
    [f"{query}=1000000" for query in ("q4", "q6", "q7", "q9", "q18", "q19", "q20", "q23")]
    + ["q15=500000", "q16=500000"]
)


def supported() -> list[str]:
    """Queries that FlowSQL answers as Flink does."""
    listed = (ROOT / "tests" / "nexmark" / "passing.txt").read_text().split()
    return sorted(listed, key=lambda query: int(query[1:]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rest", nargs="*", help="options for side_by_side.py, behind --")
    arguments = parser.parse_args()
    if not SUITE.is_dir():
        print(f"Nexmark: skipped, there is no {SUITE}")
        return 0
    flowsql = Path(sys.executable).with_name("flowsql")
    command = [
        sys.executable,
        str(SUITE / "side_by_side.py"),
        "--command",
        f"{flowsql} TUNED -D parallelism.default=PARTS -f FILE",
    ]
    command += ["--command-parts", "2", "--parallelism", "2"]
    if "FLINK_PYTHON" not in os.environ:
        command += ["--only", "command"]
    options = arguments.rest or ["--events", EVENTS, "--queries", ",".join(supported())]
    return subprocess.run([*command, *options], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
