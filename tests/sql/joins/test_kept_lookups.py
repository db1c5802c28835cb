"""Jobs with lookups behind updates: what is taken back is what was told, although the table answers each time anew."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from flowsql.table import TableEnvironment

from ... import sqlite_lookup

EVENTS: list[tuple[Any, Any, str]] = [
    (None, (1, 10, "a"), "c"),
    (None, (2, 20, "b"), "c"),
    ((1, 10, "a"), (1, 20, "c"), "u"),
    ((2, 20, "b"), None, "d"),
    ((9, 20, "z"), None, "d"),
    ((1, 20, "c"), (1, None, "d"), "u"),
    ((1, None, "d"), (1, 5, "e"), "u"),
]


@pytest.fixture
def environment(tmp_path: Path) -> TableEnvironment:
    """``dim``: a view of 100 keys with another number in each answer. ``cdc``: the events; ``pairs``: 300 rows."""
    sqlite_lookup.provide()
    path = tmp_path / "dim.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE numbers (k INTEGER)")
        database.executemany("INSERT INTO numbers VALUES (?)", [(key,) for key in range(100)])
        database.execute("CREATE VIEW dim AS SELECT k, abs(random()) AS n, k AS rowid FROM numbers")
    names = ("id", "k", "v")
    lines = [
        {side: row and dict(zip(names, row, strict=True)) for side, row in [("before", old), ("after", new)]}
        | {"op": op}
        for old, new, op in EVENTS
    ]
    (tmp_path / "cdc.json").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (tmp_path / "pairs").mkdir()
    for part in range(2):
        rows = "".join(f"{row * 7 % 11},{row % 13}\n" for row in range(part, 300, 2))
        (tmp_path / "pairs" / f"{part}.csv").write_text(rows, encoding="utf-8")
    made = TableEnvironment.create()
    made.get_config().set("table.optimizer.non-deterministic-update.strategy", "TRY_RESOLVE")
    made.get_config().set("flowsql.source.batch-rows", "16")
    files = f"'connector' = 'filesystem', 'path' = '{tmp_path}"
    for declared, with_ in [
        (
            "cdc (id INT, k INT, v STRING, p AS PROCTIME(), PRIMARY KEY (id) NOT ENFORCED)",
            "/cdc.json', 'format' = 'debezium-json'",
        ),
        ("cdcn (id INT, k INT, v STRING, p AS PROCTIME())", "/cdc.json', 'format' = 'debezium-json'"),
        ("pairs (a INT, b INT)", "/pairs', 'format' = 'csv'"),
    ]:
        made.execute_sql(f"CREATE TABLE {declared} WITH ({files}{with_})")
    made.execute_sql(
        f"CREATE TABLE dim (k INT, n BIGINT) WITH ('connector' = 'sqlite', 'path' = '{path}', 'table' = 'dim')"
    )
    return made


def changes(environment: TableEnvironment, sql: str) -> list[tuple[Any, ...]]:
    """Kind and values of each row of an answer."""
    with environment.execute_sql(sql).collect() as rows:
        return [(str(row.get_row_kind()), *row) for row in rows]


def left_over(found: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """The table that changes add up to."""
    table: Counter[tuple[Any, ...]] = Counter()
    for kind, *row in found:
        table[tuple(row)] += 1 if kind in ("+I", "+U") else -1
    return Counter({row: count for row, count in table.items() if count})


@pytest.mark.parametrize("source", ["cdc", "cdcn"])
def test_changes_are_flinks(environment: TableEnvironment, source: str) -> None:
    """Kinds, order and rows of Flink 2.3 over the same events; ``9`` goes and never came."""
    sql = f"SELECT c.id, c.v, d.k, d.n FROM {source} c LEFT JOIN dim FOR SYSTEM_TIME AS OF c.p AS d ON c.k = d.k"
    found = changes(environment, sql)
    assert [row[:4] for row in found] == [
        ("+I", 1, "a", 10), ("+I", 2, "b", 20), ("-D", 1, "a", 10), ("+U", 1, "c", 20), ("-D", 2, "b", 20),
        ("-D", 9, "z", None), ("-D", 1, "c", 20), ("+U", 1, "d", None), ("-D", 1, "d", None), ("+U", 1, "e", 5),
    ]  # fmt: skip
    assert left_over(found) == Counter({(9, "z", None, None): -1, found[-1][1:]: 1})
    inner = changes(environment, sql.replace("LEFT ", ""))
    assert [row[:4] for row in inner] == [row[:4] for row in found if row[3] is not None]
    assert left_over(inner) == Counter({inner[-1][1:]: 1})


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_aggregates_beside_a_table_that_changes(environment: TableEnvironment, parallelism: int, backend: str) -> None:
    """One row a key is left, also where the next aggregate looks for it by the number that was found."""
    environment.get_config().set("parallelism.default", str(parallelism)).set("state.backend.type", backend)
    counted = "(SELECT a, CAST(COUNT(*) AS INT) AS c, PROCTIME() AS p FROM pairs GROUP BY a) AS s"
    joined = f"{counted} JOIN dim FOR SYSTEM_TIME AS OF s.p AS d ON s.c = d.k"
    table = left_over(changes(environment, f"SELECT s.a, s.c, d.n FROM {joined}"))
    wanted = Counter(row * 7 % 11 for row in range(300))
    assert sorted(row[:2] for row in table) == sorted(wanted.items())
    assert set(table.values()) == {1}
    grouped = left_over(changes(environment, f"SELECT d.n, COUNT(DISTINCT s.a), SUM(s.c) FROM {joined} GROUP BY d.n"))
    assert sum(row[1] for row in grouped) == len(wanted)
    assert sum(row[2] for row in grouped) == sum(wanted.values())


@pytest.mark.parametrize("parallelism", ["1", "2"])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_nested_columns_are_kept_and_are_keys(
    environment: TableEnvironment, tmp_path: Path, backend: str, parallelism: str
) -> None:
    """Without an upsert key all columns of the input tell a row; batches of one row go through state."""
    for option, value in [("state.backend.type", backend), ("parallelism.default", parallelism)]:
        environment.get_config().set(option, value)
    environment.get_config().set("flowsql.source.batch-rows", "1")
    rows = [{"k": key % 3, "l": [key, None], "r": {"x": key, "y": {"z": "t"}} if key % 2 else None} for key in range(9)]
    events = [{"after": row, "op": "c"} for row in rows] + [{"before": row, "op": "d"} for row in rows[2:]]
    (tmp_path / "nested.json").write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    (tmp_path / "table.json").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    columns = "k INT, l ARRAY<INT>, r ROW<x INT, y ROW<z STRING>>"
    for table, format_ in [("nested", "debezium-json"), ("table", "json")]:
        environment.execute_sql(
            f"CREATE TABLE n_{table} ({columns}, p AS PROCTIME()) WITH ('connector' = 'filesystem', 'path' = "
            f"'{tmp_path}/{table}.json', 'format' = '{format_}')"
        )
    found = changes(
        environment,
        "SELECT n.k, n.l, n.r, d.l, d.r FROM n_nested n JOIN n_table FOR SYSTEM_TIME AS OF n.p AS d ON n.k = d.k",
    )
    texts = Counter[str]()
    for kind, *row in found:
        texts[str(row)] += 1 if kind == "+I" else -1
    assert Counter(row[0] for row in found) == {"+I": 27, "-D": 21}
    assert sorted(+texts) == sorted(texts.elements())
    assert len(list(texts.elements())) == 6
    assert min(texts.values()) == 0


@pytest.mark.parametrize("size", ["1", "16"])
def test_equal_rows_without_a_key_share_what_is_kept(environment: TableEnvironment, tmp_path: Path, size: str) -> None:
    """Flink 2.3: each that comes replaces it, the first that goes takes it, and the next one finds nothing."""
    row = {"id": 1, "k": 10, "v": "a"}
    events = [
        {"after": row, "op": "c"},
        {"after": row, "op": "c"},
        {"before": row, "op": "d"},
        {"before": row, "op": "d"},
    ]
    (tmp_path / "cdc.json").write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    environment.get_config().set("flowsql.source.batch-rows", size)
    sql = "SELECT c.id, d.k, d.n FROM cdcn c LEFT JOIN dim FOR SYSTEM_TIME AS OF c.p AS d ON c.k = d.k"
    found = changes(environment, sql)
    assert [row[0] for row in found] == ["+I", "+I", "-D", "-D"]
    assert found[2][1:] == found[1][1:]
    assert found[3] == ("-D", 1, None, None)
    inner = changes(environment, sql.replace("LEFT ", ""))
    assert [row[0] for row in inner] == ["+I", "+I", "-D"]


def test_without_the_option_rows_are_looked_up_again(environment: TableEnvironment) -> None:
    """That is what the tests above would find if nothing were kept."""
    environment.get_config().set("table.optimizer.non-deterministic-update.strategy", "IGNORE")
    found = changes(
        environment, "SELECT c.id, c.v, d.n FROM cdc c JOIN dim FOR SYSTEM_TIME AS OF c.p AS d ON c.k = d.k"
    )
    assert len(left_over(found)) > 1
