"""A changelog aggregate as a stream on Spark, beside Spark's own ``groupBy`` over the same files in the same session.

    python benchmarks/spark_streaming.py [--rows 1000000] [--keys 100000] [--files 10] [--batches 10,2] [--repeat 3]

Both read csv and write JSON lines, batch by batch, and keep a checkpoint. FlowSQL writes the whole changelog (-U and
+U, a line each), with mini-batches the net change of each group a batch; Spark the new value of each group a batch.
They take turns; the first round is not counted, medians are shown.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import Configuration
from flowsql_runtime.spark.sessions.current import spark_host

CORES = {"parallelism.default": "2", "spark.master": "local[2]", "table.local-time-zone": "UTC"}
#: One change a group and batch, as Spark's update mode has it.
MINI_BATCHES = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "1 h",
    "table.exec.mini-batch.size": "10000000",
}


def write_input(folder: Path, rows: int, keys: int, files: int) -> None:
    folder.mkdir()
    rng = np.random.default_rng(1)
    for file in range(files):
        found, values = rng.integers(0, keys, rows // files), rng.integers(0, 1000, rows // files)
        path = folder / f"{file:04}.csv"
        path.write_text("".join(f"{key},{value}\n" for key, value in zip(found.tolist(), values.tolist(), strict=True)))
        os.utime(path, (1_700_000_000 + file, 1_700_000_000 + file))


def by_flowsql(source: Path, target: Path, files_per_batch: int, mini: bool) -> float:
    options = {
        **CORES,
        **(MINI_BATCHES if mini else {}),
        "execution.target": "spark",
        "execution.checkpointing.dir": f"{target}/checkpoint",
        "flowsql.spark.max-files-per-batch": str(files_per_batch),
    }
    environment = TableEnvironment.of_configuration(Configuration(values=options))
    for name, columns, path, format_ in (
        ("src", "k BIGINT, v BIGINT", source, "csv"),
        ("dst", "k BIGINT, n BIGINT, s BIGINT", target / "out", "debezium-json"),
    ):
        environment.execute_sql(
            f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{path}', "
            f"'format' = '{format_}')"
        )
    began = time.monotonic()
    environment.execute_sql("INSERT INTO dst SELECT k, COUNT(*), SUM(v) FROM src GROUP BY k").wait()
    return time.monotonic() - began


def by_spark(source: Path, target: Path, files_per_batch: int) -> float:
    from pyspark.sql import functions

    session = spark_host(Configuration(values=CORES)).session
    rows = session.readStream.schema("k BIGINT, v BIGINT").option("maxFilesPerTrigger", files_per_batch)
    groups = rows.csv(str(source)).groupBy("k").agg(functions.count("*").alias("n"), functions.sum("v").alias("s"))

    def write(frame: Any, number: int) -> None:
        frame.write.mode("overwrite").json(f"{target}/out/{number}")

    began = time.monotonic()
    writer = groups.writeStream.outputMode("update").foreachBatch(write)
    writer.option("checkpointLocation", f"{target}/checkpoint").trigger(availableNow=True).start().awaitTermination()
    return time.monotonic() - began


def measured(folder: Path, rows: int, files: int, batches: int, repeat: int) -> Iterable[str]:
    runs = {
        "FlowSQL": partial(by_flowsql, mini=False),
        "FlowSQL, mini-batches": partial(by_flowsql, mini=True),
        "Spark": by_spark,
    }
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(repeat + 1):
        for place, (name, run) in enumerate(runs.items()):
            seconds = run(folder / "in", folder / f"{place}-{batches}-{turn}", files // batches)
            if turn:
                taken[name].append(seconds)
    spark = statistics.median(taken["Spark"])
    for name, found in taken.items():
        seconds = statistics.median(found)
        speed = f"{rows / seconds:,.0f} rows/s, {spark / seconds:.2f} of Spark's"
        yield f"{batches} batches, {name}: {seconds:.2f} s, {speed}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("rows", 1_000_000), ("keys", 100_000), ("files", 10), ("repeat", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--batches", default="10,2")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        write_input(Path(name) / "in", given.rows, given.keys, given.files)
        for batches in map(int, given.batches.split(",")):
            for line in measured(Path(name), given.rows, given.files, batches, given.repeat):
                print(line, flush=True)


if __name__ == "__main__":
    main()
