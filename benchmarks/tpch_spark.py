"""TPC-H on Spark: each query through FlowSQL and as it stands by ``spark.sql``, in one session over the same files.

    python benchmarks/tpch_spark.py FOLDER [--format csv] [--queries q1,q5] [--repeat 4] [--explain]

``FOLDER`` holds ``lineitem.parquet`` and the other tables, as ``tpchgen-cli parquet -s 1 -o FOLDER`` writes them; csv
files are made of them once. A time is from the statement to its last row in this process; the two take turns in both
orders, the first four rounds are not counted, medians are shown.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import duckdb

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from flowsql.table.session.environment import TableEnvironment  # noqa: E402
from flowsql_core.config import Configuration  # noqa: E402
from tests.sql.tpch.tables import COLUMNS  # noqa: E402

QUERIES = dict(re.findall(r"-- (q\d+)\n(.*?);\n", (ROOT / "tests/sql/tpch/queries.sql").read_text(), re.DOTALL))

CONFIGURATION = Configuration(
    values={"execution.runtime-mode": "batch", "execution.batch.engine": "spark", "table.local-time-zone": "UTC"}
)

#: Rounds of which Java still compiles much of the code.
WARM_UP = 4


def environment(folder: Path, format_: str) -> TableEnvironment:
    made = TableEnvironment.of_configuration(CONFIGURATION)
    for name, columns in COLUMNS.items():
        made.execute_sql(
            f"CREATE TABLE {name} ({columns.replace('VARCHAR', 'STRING')}) WITH ('connector' = 'filesystem', "
            f"'path' = '{folder}/{name}.{format_}', 'format' = '{format_}')"
        )
    return made


def write_csv(folder: Path) -> None:
    with duckdb.connect() as connection:
        for name in COLUMNS:
            if not (folder / f"{name}.csv").exists():
                rows = f"SELECT * FROM read_parquet('{folder}/{name}.parquet')"
                connection.execute(f"COPY ({rows}) TO '{folder}/{name}.csv' (FORMAT csv, HEADER false)")


def seconds(run: Any) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet")
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--repeat", type=int, default=4)
    parser.add_argument("--explain", action="store_true", help="print both physical plans instead")
    arguments = parser.parse_args()
    if arguments.format == "csv":
        write_csv(arguments.folder)
    flowsql = environment(arguments.folder, arguments.format)
    flowsql.execute_sql("SELECT COUNT(*) AS n FROM region").print()
    from flowsql_runtime.spark.sessions.current import spark_host

    spark = spark_host(CONFIGURATION).session
    for name in COLUMNS:
        path = f"{arguments.folder}/{name}.{arguments.format}"
        reader = spark.read.schema(COLUMNS[name].replace("VARCHAR", "STRING"))
        (reader.csv(path) if arguments.format == "csv" else spark.read.parquet(path)).createOrReplaceTempView(name)
    ratios = []
    for name in arguments.queries.split(","):
        query = QUERIES[name]
        if arguments.explain:
            print(name, flowsql.explain_sql(query), spark.sql(query)._jdf.queryExecution().toString(), sep="\n")
            continue

        def own(query: str = query) -> None:
            for _ in flowsql.execute_sql(query).batches():
                pass

        def hand_written(query: str = query) -> None:
            spark.sql(query).toArrow()

        times = []
        for turn in range(arguments.repeat + WARM_UP):
            # What runs second finds Spark's own code a little warmer.
            if turn % 2:
                their_s, own_s = seconds(hand_written), seconds(own)
            else:
                own_s, their_s = seconds(own), seconds(hand_written)
            times.append((own_s, their_s))
        times = times[WARM_UP:]
        mine, theirs = (statistics.median(column) for column in zip(*times, strict=True))
        ratios.append(mine / theirs)
        print(f"{name:4} FlowSQL {mine:6.2f} s, spark.sql {theirs:6.2f} s, ratio {mine / theirs:5.2f}", flush=True)
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"geometric mean {mean:.2f}, most {max(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
