"""Cold start: median wall time of fresh ``flowsql`` processes: help, ``SELECT 1`` and a small csv aggregate.

The aggregate runs also with an empty kernel cache, as on a machine where FlowSQL has never run.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

AGGREGATE = """
CREATE TABLE orders (customer STRING, amount DOUBLE) WITH (
  'connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv');
SELECT customer, COUNT(*) AS orders, SUM(amount) AS total FROM orders GROUP BY customer;
"""


def measure(command: list[str], times: int, fresh: bool = False) -> list[float]:
    """Seconds of each run; the run must succeed. ``fresh``: each run begins with an empty kernel cache."""
    seconds = []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "FLOWSQL_KERNEL_CACHE": folder} if fresh else None
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
            seconds.append(time.perf_counter() - start)
    return seconds


def report(name: str, first: float, rest: list[float]) -> None:
    print(
        f"{name:40} median {statistics.median(rest):.3f} s  (first {first:.3f}, "
        f"least {min(rest):.3f}, most {max(rest):.3f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--fresh-times", type=int, default=3, help="runs with an empty kernel cache")
    arguments = parser.parse_args()
    beside = pathlib.Path(sys.executable).with_name("flowsql")
    flowsql = [str(beside)] if beside.exists() else [shutil.which("flowsql") or sys.exit("flowsql is not installed")]
    with tempfile.TemporaryDirectory() as folder:
        orders = pathlib.Path(folder, "orders.csv")
        orders.write_text("".join(f"customer{i % 7},{i}.5\n" for i in range(1000)))
        script = pathlib.Path(folder, "aggregate.sql")
        script.write_text(AGGREGATE.format(path=orders))
        cases = {
            "flowsql --help": [*flowsql, "--help"],
            "flowsql -c 'SELECT 1'": [*flowsql, "-c", "SELECT 1"],
            "csv aggregate, 1,000 rows": [*flowsql, "-f", str(script)],
        }
        for name, command in cases.items():
            first = measure(command, 1)[0]
            report(name, first, measure(command, arguments.times))
        seconds = measure([*flowsql, "-f", str(script)], arguments.fresh_times, fresh=True)
        report("csv aggregate, no kernel compiled", seconds[0], seconds)


if __name__ == "__main__":
    main()
