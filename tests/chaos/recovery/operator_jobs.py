"""SQL jobs for the fault harness, one for each family of operators: rankings, OVER, sessions, joins by time, patterns,
Python.

What they commit does not depend on the order in which inputs meet: no row is late, rows of a key differ in time, and
rankings order by a key of their input at last.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from tables import sink

from flowsql.table import StreamTableEnvironment

#: Two kinds of accumulators: views in state of their own, and a value. What is taken back must be there.
BAG: Final = """
from flowsql.table import ListView, MapView
from flowsql.table.udf import AggregateFunction

class Bag(AggregateFunction):
    def create_accumulator(self):
        return [MapView(), ListView(), 0]

    def accumulate(self, kept, k, total):
        kept[0][k] = total
        kept[1].add(total)
        kept[2] += total

    def retract(self, kept, k, total):
        if kept[0][k] == total:
            kept[0].remove(k)
        totals = list(kept[1].get())
        totals.remove(total)
        kept[1].clear()
        kept[1].add_all(totals)
        kept[2] -= total

    def get_value(self, kept):
        return f"{sorted(kept[0].items())} {sorted(kept[1])} {kept[2]}"

    def get_result_type(self):
        return "STRING"

    def get_accumulator_type(self):
        return "ROW<totals MAP<INT, INT>, numbers ARRAY<INT>, n INT>"
"""


def _insert(environment: StreamTableEnvironment, *statements: str) -> None:
    """One job of several INSERTs."""
    together = environment.create_statement_set()
    for statement in statements:
        together.add_insert_sql(statement)
    together.execute().wait()


def top_n(environment: StreamTableEnvironment, folder: Path) -> None:
    """Rankings over rows, over sums that only grow, and over totals that fall, too; the newest row of a key."""
    sink(environment, folder, "appended", "k INT, id BIGINT, n INT, r BIGINT", "changelog")
    sink(environment, folder, "grown", "part INT, k INT, total INT, r BIGINT", "changelog")
    sink(environment, folder, "retracted", "part INT, k INT, total INT", "changelog")
    sink(environment, folder, "newest", "k INT, part INT, ts TIMESTAMP(3)", "changelog")
    ranked = "SELECT *, ROW_NUMBER() OVER (PARTITION BY {} ORDER BY {}) AS r FROM {}"
    by_part = "part", "total DESC, k"
    rows = ranked.format("k", "n DESC, id", "left_rows")
    grown = ranked.format(*by_part, "(SELECT MOD(k, 4) AS part, k, COUNT(*) AS total FROM left_rows GROUP BY k)")
    # One in four rows: each of them moves rows to other places.
    falling = "(SELECT MOD(k, 4) AS part, k, SUM(n - 500) AS total FROM left_rows WHERE id % 4 = 0 GROUP BY k)"
    retracted = ranked.format(*by_part, falling)
    newest = ranked.format("k, part", "ts DESC", "(SELECT k, MOD(n, 10) AS part, ts FROM left_rows)")
    _insert(
        environment,
        f"INSERT INTO appended SELECT k, id, n, r FROM ({rows}) WHERE r <= 5",
        f"INSERT INTO grown SELECT part, k, CAST(total AS INT), r FROM ({grown}) WHERE r <= 3",
        f"INSERT INTO retracted SELECT part, k, total FROM ({retracted}) WHERE r <= 3",
        f"INSERT INTO newest SELECT k, part, ts FROM ({newest}) WHERE r = 1",
    )


def over(environment: StreamTableEnvironment, folder: Path) -> None:
    """Sums and extremes over rows before and over time before, of few keys: each batch visits the rows of all."""
    sink(environment, folder, "by_rows", "id BIGINT, total INT, least INT, c BIGINT")
    sink(environment, folder, "by_time", "id BIGINT, total INT, most INT, c BIGINT")
    values = "SELECT id, SUM(n) OVER w, {}(n) OVER w, COUNT(*) OVER w FROM left_rows WHERE k < 6"
    window = "WINDOW w AS (PARTITION BY k ORDER BY ts {} PRECEDING AND CURRENT ROW)"
    a_second = "RANGE BETWEEN INTERVAL '1' SECOND"
    _insert(
        environment,
        f"INSERT INTO by_rows {values.format('MIN')} {window.format('ROWS BETWEEN 9')}",
        f"INSERT INTO by_time {values.format('MAX')} {window.format(a_second)}",
    )


def session(environment: StreamTableEnvironment, folder: Path) -> None:
    """Aggregates of sessions, which merge while they are open."""
    sink(environment, folder, "o", "s TIMESTAMP(3), e TIMESTAMP(3), k INT, c BIGINT, total INT, least STRING")
    environment.execute_sql(
        "INSERT INTO o SELECT window_start, window_end, k, COUNT(*), SUM(n), MIN(txt) FROM "
        "TABLE(SESSION(TABLE left_rows PARTITION BY k, DESCRIPTOR(ts), INTERVAL '0.200' SECOND)) WHERE k < 20 "
        "GROUP BY window_start, window_end, k"
    ).wait()


def interval_join(environment: StreamTableEnvironment, folder: Path) -> None:
    """Rows of both sides that are near in time; those without a partner once none can come."""
    sink(environment, folder, "o", "id BIGINT, other BIGINT")
    environment.execute_sql(
        "INSERT INTO o SELECT l.id, r.id FROM left_rows AS l FULL JOIN right_rows AS r ON l.k = r.k "
        "AND r.ts BETWEEN l.ts - INTERVAL '0.060' SECOND AND l.ts + INTERVAL '0.040' SECOND AND l.n > r.n"
    ).wait()


def temporal_join(environment: StreamTableEnvironment, folder: Path) -> None:
    """Rows with the version of their time: of a table with a key, and of a view that keeps the newest row."""
    sink(environment, folder, "of_table", "id BIGINT, version BIGINT, n INT")
    sink(environment, folder, "of_view", "id BIGINT, version BIGINT, n INT")
    # A version that comes after a newer one is none: several readers of a file would make other histories.
    serial = "right_rows /*+ OPTIONS('scan.parallelism' = '1') */"
    numbered = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS r FROM {serial}"
    newest = environment.sql_query(f"SELECT id, k, n, ts FROM ({numbered}) WHERE r = 1")
    environment.create_temporary_view("versioned", newest)
    joined = "SELECT l.id, v.id, v.n FROM left_rows AS l {} FOR SYSTEM_TIME AS OF l.ts AS v ON l.k = v.k"
    _insert(
        environment,
        f"INSERT INTO of_table {joined.format('LEFT JOIN versions')} AND l.n > v.n",
        f"INSERT INTO of_view {joined.format('JOIN versioned')}",
    )


def match(environment: StreamTableEnvironment, folder: Path) -> None:
    """Patterns with conditions over earlier rows: matches that take a while, and ones that time rules out."""
    sink(environment, folder, "dips", "k INT, s BIGINT, low INT, e BIGINT, c BIGINT")
    sink(environment, folder, "runs", "k INT, s TIMESTAMP(3), total INT, e TIMESTAMP(3)")
    dips = (
        "SELECT * FROM left_rows MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
        "MEASURES A.id AS s, LAST(B.n) AS low, C.id AS e, COUNT(B.n) AS c AFTER MATCH SKIP PAST LAST ROW "
        "PATTERN (A B+ C) DEFINE B AS B.n < COALESCE(LAST(B.n, 1), A.n), C AS C.n > LAST(B.n))"
    )
    runs = (
        "SELECT * FROM right_rows MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
        "MEASURES A.ts AS s, SUM(B.n) AS total, C.ts AS e AFTER MATCH SKIP TO NEXT ROW "
        "PATTERN (A B*? C) WITHIN INTERVAL '1' SECOND DEFINE A AS A.n < 200, B AS SUM(B.n) < 1500, C AS C.txt > A.txt)"
    )
    _insert(environment, f"INSERT INTO dips {dips}", f"INSERT INTO runs {runs}")


def python_aggregate(environment: StreamTableEnvironment, folder: Path) -> None:
    """A Python aggregate function with views over the changes of another aggregate."""
    sink(environment, folder, "o", "part INT, held STRING", "changelog")
    environment.execute_sql(f"CREATE TEMPORARY SYSTEM FUNCTION bag AS $$\n{BAG}$$ LANGUAGE PYTHON")
    environment.execute_sql(
        "INSERT INTO o SELECT MOD(total, 3), bag(k, total) FROM "
        "(SELECT k, SUM(n) AS total FROM left_rows WHERE id % 10 = 0 GROUP BY k) GROUP BY MOD(total, 3)"
    ).wait()


def left_join(environment: StreamTableEnvironment, folder: Path) -> None:
    """Two aggregates meet in keys that change: rows find partners, lose them, and stand alone again."""
    sink(environment, folder, "o", "k INT, c BIGINT, other INT, d BIGINT", "changelog")
    counts = "(SELECT k, COUNT(*) AS c FROM {}_rows WHERE id % 4 = 0 GROUP BY k)"
    environment.execute_sql(
        "INSERT INTO o SELECT l.k, l.c, r.k, r.c "
        f"FROM {counts.format('left')} AS l LEFT JOIN {counts.format('right')} AS r ON MOD(l.c, 40) = MOD(r.c, 40)"
    ).wait()


OPERATOR_JOBS: Final[dict[str, Callable[[StreamTableEnvironment, Path], None]]] = {
    "top-n": top_n,
    "over": over,
    "session": session,
    "interval-join": interval_join,
    "temporal-join": temporal_join,
    "match": match,
    "python-aggregate": python_aggregate,
    "left-join": left_join,
}
