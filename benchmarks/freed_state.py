"""Memory over an hour of event time: what operators let go of, and what a join of two large tables takes.

    python benchmarks/freed_state.py [--operators interval-join,window,...] [--rows N] [--early N] [--join-rows N]

Each operator runs in a process of its own, with the hashmap backend at parallelism 1, over rows that ``datagen`` makes,
of 100,000 keys and up to 2 s out of order. The process tells how much memory it has resident after ``--early`` rows and
at the end; the later figure may be a tenth above the earlier one. ``regular-join`` keeps both sides whole: its most is
told.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

HOUR_MS: Final = 3_600_000
KEYS: Final = 100_000
#: A row in so many tells how much memory there is.
SAMPLES: Final = 50

#: As fast as they are taken.
DATAGEN: Final = "'connector' = 'datagen', 'rows-per-second' = '100000000', 'number-of-rows' = '{rows}'"
SOURCE: Final = f"""CREATE TABLE t (
    id BIGINT, k INT, v INT,
    ts AS TO_TIMESTAMP_LTZ(id * {HOUR_MS} / {{rows}} - MOD(v, 2000), 3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ({DATAGEN}, 'fields.v.min' = '0', 'fields.v.max' = '1000000',
    'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '{{rows}}',
    'fields.k.min' = '1', 'fields.k.max' = '{KEYS}')"""
SIDE: Final = f"""CREATE TABLE {{name}} (k BIGINT, v BIGINT, s STRING) WITH ({DATAGEN}, 'fields.s.length' = '10',
    'fields.k.kind' = 'sequence', 'fields.k.start' = '1', 'fields.k.end' = '{{rows}}')"""

#: Columns of the answer, and the query.
QUERIES: Final[Mapping[str, tuple[str, str]]] = {
    # Both sides of one source: two would have to run at the same pace.
    "interval-join": (
        "a BIGINT, b BIGINT",
        "SELECT l.id, r.id "
        "FROM (SELECT * FROM t WHERE MOD(id, 2) = 0) AS l JOIN (SELECT * FROM t WHERE MOD(id, 2) = 1) AS r "
        "ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL '5' SECOND AND l.ts + INTERVAL '5' SECOND",
    ),
    "window": (
        "a TIMESTAMP(3), k INT, n BIGINT, s BIGINT",
        "SELECT window_start, k, COUNT(*), SUM(CAST(v AS BIGINT)) FROM "
        "TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)) "
        "GROUP BY window_start, window_end, k",
    ),
    "session": (
        "a TIMESTAMP(3), k INT, n BIGINT, s BIGINT",
        "SELECT window_start, k, COUNT(*), SUM(CAST(v AS BIGINT)) FROM "
        "TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' SECOND)) "
        "GROUP BY window_start, window_end, k",
    ),
    "over": (
        "a BIGINT, n BIGINT, s BIGINT",
        "SELECT id, COUNT(*) OVER w, SUM(CAST(v AS BIGINT)) OVER w FROM t WINDOW w AS "
        "(PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW)",
    ),
    "match": (
        "k INT, a BIGINT, n BIGINT, c BIGINT",
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.id AS a, COUNT(B.v) AS n, C.id AS c "
        "AFTER MATCH SKIP PAST LAST ROW PATTERN (A B+ C) WITHIN INTERVAL '20' SECOND "
        "DEFINE B AS B.v < COALESCE(LAST(B.v, 1), A.v), C AS C.v > LAST(B.v))",
    ),
    "regular-join": (
        "k BIGINT, v BIGINT, w BIGINT, s STRING, u STRING",
        "SELECT l.k, l.v, r.v, l.s, r.s FROM l JOIN r ON l.k = r.k",
    ),
}


def resident_mb() -> float:
    """What the process has in memory now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def play(operator: str, rows: int, early: int) -> None:
    """One query in this process; prints its figures."""
    from flowsql.table import TableEnvironment
    from flowsql_runtime.operators.base import SourceStatus
    from flowsql_runtime.operators.source import ScanOperator

    samples: list[tuple[int, float]] = []
    emit = ScanOperator.emit_next

    def watched(self: ScanOperator) -> SourceStatus:
        status = emit(self)
        done = self.ctx.metrics.records_out
        if done >= (len(samples) + 1) * rows // SAMPLES:
            samples.append((done, resident_mb()))
        return status

    ScanOperator.emit_next = watched  # type: ignore[method-assign]
    environment = TableEnvironment.create()
    environment.get_config().set("parallelism.default", "1")
    environment.get_config().set("table.local-time-zone", "UTC")
    environment.execute_sql(SOURCE.format(rows=rows))
    for name in ("l", "r"):
        environment.execute_sql(SIDE.format(name=name, rows=rows))
    columns, query = QUERIES[operator]
    environment.execute_sql(f"CREATE TABLE o ({columns}) WITH ('connector' = 'blackhole')")
    environment.execute_sql(f"INSERT INTO o {query}").wait()
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime
    most = used.ru_maxrss / 1024
    if operator == "regular-join":
        print(
            f"{operator:14} {rows:,} x {rows:,} rows: at most {most:,.0f} MB, {seconds:.0f} s of processor", flush=True
        )
        return
    # What stays resident swings with the batches under way: the most of a tenth of the run on either side.
    near = [mb for done, mb in samples if early * 0.9 <= done <= early * 1.1]
    last = [mb for done, mb in samples if done >= rows * 0.9]
    if not near or not last:
        sys.exit(f"{rows:,} rows are too few: the source hands over more at a time than a tenth of them")
    then, now = max(near), max(last)
    print(
        f"{operator:14} {rows:,} rows: {then:,.0f} MB at {early:,} rows, {now:,.0f} MB at the end "
        f"({now / then - 1:+.0%}), at most {most:,.0f} MB, {seconds:.0f} s of processor",
        flush=True,
    )


def main() -> int:
    """Each operator in its own process, one behind another."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--operators", default=",".join(QUERIES), help="only these, with commas between them")
    arguments.add_argument("--rows", type=int, default=50_000_000)
    arguments.add_argument("--early", type=int, default=10_000_000)
    arguments.add_argument("--join-rows", type=int, default=10_000_000, help="of each side of the regular join")
    arguments.add_argument("--play", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.play:
        play(given.play, given.join_rows if given.play == "regular-join" else given.rows, given.early)
        return 0
    failed = 0
    for operator in given.operators.split(","):
        numbers = ["--rows", given.rows, "--early", given.early, "--join-rows", given.join_rows]
        command = [sys.executable, __file__, "--play", operator, *map(str, numbers)]
        failed |= subprocess.run(command, check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
