"""Lookup joins with a table of PostgreSQL and `lookup.cache` = PARTIAL, beside Flink with the same cache.

    python benchmarks/jdbc_lookup.py [--rows N] [--repeat N] [--url postgresql://user:password@host:port/database]
    FLINK_PYTHON=/path/to/python FLINK_JARS=/folder/of/jars python benchmarks/jdbc_lookup.py

``FLINK_PYTHON`` is a Python that has apache-flink, ``FLINK_JARS`` a folder with flink-connector-jdbc-core,
flink-connector-jdbc-postgres and the driver of PostgreSQL; without them only FlowSQL is measured. The server is the one
of ``--url`` or of the variable ``PG_URL``; the table ``flowsql_dimension`` is made there, and dropped at the end.

The dimension has 100,000 rows. The probe side is datagen's, with keys whose frequency falls with their number: a key
is ``100000 * POWER(u, 4)`` of a uniform ``u``. In the case ``fits`` the cache holds all keys, in ``too small`` 10,000,
which more than half of all rows find. Both systems run in one process each, in turns, and have run the case before;
``further`` is the rate of the rows beyond a quarter, which leaves out what a job costs before its first row and the
filling of the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]
DIMENSION = 100_000
#: Rows of a run (times ``--rows``), most keys of the cache, Flink's share of the rows: a miss costs it a round trip.
CASES = {"fits": (4_000_000, DIMENSION, 1.0), "too small": (2_000_000, DIMENSION // 10, 0.1)}


def environment(api: str) -> Any:
    """A session of ``flowsql`` or ``pyflink``."""
    if api == "pyflink":
        from pyflink.table import EnvironmentSettings, TableEnvironment

        made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        jars = sorted(Path(os.environ["FLINK_JARS"]).glob("*.jar"))
        wanted = [jar for jar in jars if jar.name.startswith(("flink-connector-jdbc", "postgresql-"))]
        made.get_config().set("pipeline.jars", ";".join(jar.resolve().as_uri() for jar in wanted))
        made.get_config().set("pipeline.object-reuse", "true")
    else:
        for folder in (".", "grammar", "planner", "runtime", "connectors"):
            sys.path.insert(0, str(ROOT / folder))
        from flowsql.table import EnvironmentSettings, TableEnvironment

        made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    made.get_config().set("parallelism.default", "1")
    return made


def run(made: Any, uri: str, rows: int, most: int) -> float:
    """Seconds of one job."""
    parts = urlsplit(uri)
    for name in ("probe", "dimension", "found"):
        made.execute_sql(f"DROP TEMPORARY TABLE IF EXISTS {name}")
    made.execute_sql(
        "CREATE TEMPORARY TABLE probe (id BIGINT, u DOUBLE, pt AS PROCTIME()) WITH ('connector' = 'datagen', "
        f"'rows-per-second' = '1000000000', 'number-of-rows' = '{rows}', 'fields.u.min' = '0', 'fields.u.max' = '1')"
    )
    made.execute_sql(
        "CREATE TEMPORARY TABLE dimension (k BIGINT, name STRING, price DOUBLE) WITH ('connector' = 'jdbc', "
        f"'url' = 'jdbc:postgresql://{parts.hostname}:{parts.port}{parts.path}', 'username' = '{parts.username}', "
        f"'password' = '{parts.password}', 'table-name' = 'flowsql_dimension', 'lookup.cache' = 'PARTIAL', "
        f"'lookup.partial-cache.max-rows' = '{most}')"
    )
    made.execute_sql(
        "CREATE TEMPORARY TABLE found (id BIGINT, name STRING, price DOUBLE) WITH ('connector' = 'blackhole')"
    )
    made.execute_sql(
        "CREATE TEMPORARY VIEW IF NOT EXISTS keyed AS "
        f"SELECT id, CAST({DIMENSION} * POWER(u, 4) AS BIGINT) AS k, pt FROM probe"
    )
    began = time.perf_counter()
    made.execute_sql(
        "INSERT INTO found SELECT p.id, d.name, d.price FROM keyed AS p "
        "LEFT JOIN dimension FOR SYSTEM_TIME AS OF p.pt AS d ON p.k = d.k"
    ).wait()
    return time.perf_counter() - began


def cpu_seconds() -> float:
    """Processor time of this process and of those that it started, which run (Linux)."""
    fields: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue  # it ended meanwhile
        fields[int(name.split()[0])] = rest.split()
    own = {os.getpid()}
    while more := {pid for pid, stat in fields.items() if pid not in own and int(stat[1]) in own}:
        own |= more
    ticks = sum(sum(map(int, fields[pid][11:13])) for pid in own)
    return ticks / os.sysconf("SC_CLK_TCK")


def serve(api: str, uri: str) -> None:
    """Run the jobs that are asked for, a line each, and say how long each took."""
    made = environment(api)
    for line in sys.stdin:
        rows, most = json.loads(line)
        cpu = cpu_seconds()
        wall = run(made, uri, rows, most)
        print(json.dumps([wall, cpu_seconds() - cpu]), flush=True)


class System:
    """One of the two, in a process of its own."""

    def __init__(self, name: str, python: str, api: str, uri: str) -> None:
        self.name = name
        self.api = api
        self._process = subprocess.Popen(
            [python, __file__, "--serve", api, "--url", uri],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, rows: int, most: int) -> tuple[float, float]:
        """Seconds, and processor seconds, of one job."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([rows, most]) + "\n")
        self._process.stdin.flush()
        # A JVM writes its warnings to the same place.
        while not (line := self._process.stdout.readline()).startswith("["):
            if not line:
                raise SystemExit(f"{self.name} ended")
        wall, cpu = json.loads(line)
        return wall, cpu

    def end(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def compared(systems: list[System], case: str, scale: float, repeat: int) -> None:
    """Run a case in turns, and print what a job and a further row cost."""
    usual, most, flinks_share = CASES[case]
    sizes = {system: int(usual * scale * (flinks_share if system.api == "pyflink" else 1)) for system in systems}
    for system, rows in sizes.items():
        system.run(rows, most)
    runs = [
        {system: (system.run(rows // 4, most), system.run(rows, most)) for system, rows in sizes.items()}
        for _ in range(repeat)
    ]
    figures = {}
    for system, rows in sizes.items():
        small, whole = (
            [statistics.median(turn[system][size][kind] for turn in runs) for kind in range(2)] for size in range(2)
        )
        further = rows - rows // 4
        figures[system] = (
            rows / whole[0], further / (whole[0] - small[0]), (whole[1] - small[1]) / further * 1e6,
        )  # fmt: skip
        rate, more, cpu = figures[system]
        print(f"cache {case:10} {system.name:8} {rate:12,.0f} rows/s, further {more:12,.0f}, {cpu:8.2f} CPU us a row")
    if len(systems) > 1:
        (rate, more, cpu), (other_rate, other_more, other_cpu) = (figures[system] for system in systems)
        print(f"{'':16} ratio {rate / other_rate:.1f}, further {more / other_more:.1f}, CPU 1/{other_cpu / cpu:.0f}")


def dimension(uri: str, *, drop: bool = False) -> None:
    """Make the table, or drop it."""
    import adbc_driver_postgresql.dbapi as adbc

    with adbc.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS flowsql_dimension")
        if not drop:
            cursor.execute("CREATE TABLE flowsql_dimension (k bigint PRIMARY KEY, name text, price float8)")
            cursor.execute(
                "INSERT INTO flowsql_dimension SELECT i, 'product number ' || i, i * 0.25 "
                f"FROM generate_series(0, {DIMENSION - 1}) i"
            )
            cursor.execute("ANALYZE flowsql_dimension")


def main() -> None:
    """Measure, then print a line a case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1.0, help="share of the usual rows of each case")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--url", default=os.environ.get("PG_URL"))
    parser.add_argument("--serve", choices=["flowsql", "pyflink"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.url is None:
        raise SystemExit("name a PostgreSQL: --url postgresql://user:password@host:port/database")
    if arguments.serve:
        serve(arguments.serve, arguments.url)
        return
    dimension(arguments.url)
    systems = [System("FlowSQL", sys.executable, "flowsql", arguments.url)]
    if "FLINK_PYTHON" in os.environ:
        systems.append(System("Flink", os.environ["FLINK_PYTHON"], "pyflink", arguments.url))
    try:
        for case in CASES:
            compared(systems, case, arguments.rows, arguments.repeat)
    finally:
        for system in systems:
            system.end()
        dimension(arguments.url, drop=True)


if __name__ == "__main__":
    main()
