"""Latency from an event to its result at a fixed rate: a count per key as it changes, and windows of a second.

    python benchmarks/latency.py [--rate 100000] [--seconds 60]
    FLINK_PYTHON=/path/to/python python benchmarks/latency.py

``FLINK_PYTHON`` is a Python that has apache-flink; without it only FlowSQL is measured. Both systems run the same
statements: datagen makes events that carry the time at which they were made, print writes to a pipe, and the reader of
the pipe looks at the clock. Each query runs with default options and with ``execution.buffer-timeout.interval`` 0.

    aggregate   arrival of the row that says every 1,000th event of a key, less the time of that event
    window      arrival of each key's row of a window, less the end of the window: what its watermark adds is in it

The first ten seconds, or a third of a shorter run, are left out. Printed are p50, p99 and the most, in milliseconds.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
IMPORT_ROOTS = (".", "grammar", "planner", "runtime", "connectors")
KEYS = 100
SOURCE = """
CREATE TABLE events (k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
    'connector' = 'datagen', 'rows-per-second' = '{rate}', 'number-of-rows' = '{rows}',
    'fields.k.min' = '0', 'fields.k.max' = '{most}');
"""
QUERIES = {
    "aggregate": """
CREATE TABLE results (k INT, n BIGINT, moment TIMESTAMP(3)) WITH ('connector' = 'print');
INSERT INTO results SELECT k, COUNT(*), MAX(ts) FROM events GROUP BY k HAVING COUNT(*) - COUNT(*) / 1000 * 1000 = 0;
""",
    "window": """
CREATE TABLE results (k INT, n BIGINT, moment TIMESTAMP(3)) WITH ('connector' = 'print');
INSERT INTO results SELECT k, COUNT(*), window_end
FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '1' SECOND)) GROUP BY k, window_start, window_end;
""",
}
SETTINGS = {"default": {}, "buffer timeout 0": {"execution.buffer-timeout.interval": "0 ms"}}
#: A row as both systems print it; rows that are taken back count for nothing.
_ROW = re.compile(rb"\+[IU]\[\d+, \d+, (\d{4}-\d\d-\d\d)[T ]([0-9:.]+)\]")


def run_flink(script: str, options: dict[str, str]) -> None:
    """Run the statements in PyFlink, in this process."""
    from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found, unused-ignore]

    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in options.items():
        environment.get_config().set(key, value)
    for statement in filter(None, map(str.strip, script.split(";\n"))):
        result = environment.execute_sql(statement)
    result.wait()


def latencies(command: list[str], environment: dict[str, str], seconds: int) -> np.ndarray:
    """Milliseconds of each row that a process prints, those of its first seconds left out."""
    found: list[tuple[float, float]] = []
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment)
        assert process.stdout is not None
        descriptor, rest = process.stdout.fileno(), b""
        while piece := os.read(descriptor, 1 << 16):
            arrived = time.time()
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if row := _ROW.search(line):
                    text = b" ".join(row.groups()).decode()
                    found.append((arrived, datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()))
        if process.wait():
            log.seek(0)
            sys.exit(log.read().decode(errors="replace")[-2000:])
    if not found:
        sys.exit("no row was printed")
    moments = np.array(found)
    # What datagen's last rows leave open is said when the input ends, before its time.
    kept = moments[moments[:, 0] > moments[0, 0] + min(10, seconds / 3)]
    kept = kept[kept[:, 0] >= kept[:, 1]]
    return (kept[:, 0] - kept[:, 1]) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=100_000, help="events a second")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--parallelism", type=int, default=1)
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--flink", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.flink:
        path, *pairs = arguments.flink
        run_flink(Path(path).read_text(), dict(pair.split("=", 1) for pair in pairs))
        return
    rows = arguments.rate * arguments.seconds
    source = SOURCE.format(rate=arguments.rate, rows=rows, most=KEYS - 1)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["TZ"] = "UTC"
    own = {**environment, "PYTHONPATH": os.pathsep.join(str(ROOT / root) for root in IMPORT_ROOTS)}
    print("query | options | system | rows | p50 ms | p99 ms | most ms")
    for query in arguments.queries.split(","):
        for name, chosen in SETTINGS.items():
            options = {**chosen, "parallelism.default": str(arguments.parallelism), "table.local-time-zone": "UTC"}
            pairs = [f"{key}={value}" for key, value in options.items()]
            with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
                script.write((source + QUERIES[query]).lstrip())
                script.flush()
                words = [word for pair in pairs for word in ("-D", pair)]
                parties = {"FlowSQL": ([sys.executable, "-m", "flowsql.cli", *words, "-f", script.name], own)}
                if "FLINK_PYTHON" in os.environ:
                    flink = [os.environ["FLINK_PYTHON"], str(Path(__file__)), "--flink", script.name, *pairs]
                    parties["Flink"] = (flink, environment)
                for party, (command, around) in parties.items():
                    found = latencies(command, around, arguments.seconds)
                    middle, high, most = np.percentile(found, (50, 99, 100))
                    print(
                        f"{query} | {name} | {party} | {len(found)} | {middle:.0f} | {high:.0f} | {most:.0f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
