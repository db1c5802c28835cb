"""State that does not fit: COUNT and SUM over many keys with the rocksdb backend, beside Flink's and hashmap.

    python benchmarks/rocksdb.py [--rows N] [--keys N] [--megabytes N] [--shapes zipf,uniform]

The same csv files, the same SQL, the same managed memory on both sides, parallelism 2, one run each, one behind
another. Flink runs where ``FLINK_PYTHON`` names the Python that has apache-flink; its time is that of the job, in a
warm JVM, and it is stopped after ``--patience`` times FlowSQL's, which is that of the whole process. Memory is the most
that the process had resident, above that of the same query over as many rows of a thousand keys.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

TABLES = (
    "CREATE TABLE s (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')",
    "CREATE TABLE o (k BIGINT, n BIGINT, t BIGINT) WITH ('connector' = 'blackhole')",
)
QUERY = "INSERT INTO o SELECT k, COUNT(*), SUM(v) FROM s GROUP BY k"
FILES = 2
PIECE = 1_000_000


def write_rows(folder: Path, shape: str, rows: int, keys: int) -> None:
    """Two csv files of keys and values; Zipf's exponent is 1.1."""
    rng = np.random.default_rng(7)
    names = rng.permutation(keys)
    chances = np.cumsum(np.arange(1, keys + 1, dtype=np.float64) ** -1.1)
    folder.mkdir()
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    for number in range(FILES):
        with csv.CSVWriter(
            folder / f"{number}.csv", schema, write_options=csv.WriteOptions(include_header=False)
        ) as out:
            for start in range(0, rows // FILES, PIECE):
                n = min(PIECE, rows // FILES - start)
                if shape == "zipf":
                    drawn = names[np.minimum(np.searchsorted(chances, rng.random(n) * chances[-1]), keys - 1)]
                else:
                    drawn = rng.integers(0, keys, n)
                out.write(pa.table([pa.array(drawn), pa.array(rng.integers(0, 1000, n))], schema=schema))


def options(backend: str, megabytes: int) -> dict[str, str]:
    """The same for both."""
    return {
        "parallelism.default": "2",
        "state.backend.type": backend,
        "taskmanager.memory.managed.size": f"{megabytes} mb",
        "pipeline.object-reuse": "true",
    }


def flowsql(path: Path, backend: str, megabytes: int) -> tuple[float, float]:
    """Seconds, and most resident megabytes."""
    script = path.with_suffix(".sql")
    script.write_text(";\n".join([*(text.format(path=path) for text in TABLES), QUERY]) + ";\n")
    given = [part for key, value in options(backend, megabytes).items() for part in ("-D", f"{key}={value}")]
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "flowsql.cli", "-f", str(script), *given], stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit("the query failed")
    return time.perf_counter() - began, _resident(used)


def _resident(used: resource.struct_rusage) -> float:
    return used.ru_maxrss / 1024


FLINK = """
import json, sys, time
from pyflink.table import EnvironmentSettings, TableEnvironment
options, warm, *statements = json.loads(sys.argv[1])
for path in warm:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in options.items():
        tables.get_config().set(key, value)
    for statement in statements[:-1]:
        tables.execute_sql(statement.replace("{path}", path))
    began = time.perf_counter()
    tables.execute_sql(statements[-1]).wait()
    seconds = time.perf_counter() - began
print(seconds)
"""


def flink(python: str, path: Path, warm: Path, megabytes: int, patience: float) -> float | None:
    """Seconds of the job; None where it takes longer than ``patience``."""
    given = json.dumps([options("rocksdb", megabytes), [str(warm), str(path)], *TABLES, QUERY])
    environment = {**os.environ, "JVM_ARGS": "-Xmx4g"}
    # Starting Flink and its first, small job take up to a minute.
    command = [python, "-c", FLINK, given]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, start_new_session=True
    ) as process:
        try:
            out, _ = process.communicate(timeout=patience + 60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None
    return float(out.split()[-1])


def main() -> None:
    """All shapes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--patience", type=float, default=20)
    parser.add_argument("--shapes", default="zipf,uniform")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder) / "few"
        write_rows(few, "uniform", given.rows, 1000)
        _, base = flowsql(few, "rocksdb", given.megabytes)
        warm = Path(folder) / "warm"
        write_rows(warm, "uniform", 200_000, 100_000)
        for shape in given.shapes.split(","):
            path = Path(folder) / shape
            write_rows(path, shape, given.rows, given.keys)
            memory, most = flowsql(path, "hashmap", given.megabytes)
            disk, bounded = flowsql(path, "rocksdb", given.megabytes)
            print(
                f"{shape}: rocksdb {given.rows / disk / 1e6:.2f} M rows/s, {disk / memory:.1f} x the time of hashmap; "
                f"{bounded - base:.0f} MB above the query over few keys, hashmap {most - base:.0f} MB",
                flush=True,
            )
            if "FLINK_PYTHON" in os.environ:
                theirs = flink(os.environ["FLINK_PYTHON"], path, warm, given.megabytes, given.patience * disk)
                ratio = f"more than {given.patience:.0f}" if theirs is None else f"{theirs / disk:.1f}"
                print(f"{shape}: Flink's rocksdb takes {ratio} x as long", flush=True)


if __name__ == "__main__":
    main()
