"""``flowsql.memory`` bounds what batch mode holds: measured, over inputs several times larger, with DuckDB's answers.

Each query runs in a process of its own (``peak_memory.py``). What its memory grows by at most, less what a plain copy
of the table grows by (readers, the sink's open files), is compared with the budget. The long form (``nightly``) has
larger inputs, and parallelism 2, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tests.nightly import by_night

COLUMNS = "k BIGINT, g BIGINT, n BIGINT, s STRING"
MB = 1 << 20
#: What a query may take beyond the budget and beyond what reading the table and writing it again takes.
ALLOWANCE = 12 * MB
#: What FlowSQL and DuckDB both run. ``k`` has 20 rows a value, ``g`` has a quarter of all rows under one value.
QUERIES = {
    "scan": "SELECT n, k, s FROM t",
    "sort": "SELECT n, k, s FROM t ORDER BY n, k, s",
    "hash join": "SELECT a.n, b.s FROM t a JOIN u b ON a.k = b.k",
    "left hash join": "SELECT a.n, b.s FROM t a LEFT JOIN u b ON a.k = b.k AND a.n < b.n",
    "sort-merge join": "SELECT /*+ SHUFFLE_MERGE(a) */ a.n, b.s FROM t a JOIN u b ON a.k = b.k",
    "hash aggregate": "SELECT n, COUNT(*) AS c, SUM(k) AS m, MIN(g) AS l FROM t GROUP BY n",
    "sort aggregate": "SELECT n, MAX(s) AS m, COUNT(*) AS c FROM t GROUP BY n",
    "few groups": "SELECT g, MAX(s) AS m, SUM(n) AS c FROM t GROUP BY g",
    "over": "SELECT n, SUM(n) OVER (PARTITION BY k ORDER BY n, s) AS m, "
    "RANK() OVER (PARTITION BY k ORDER BY n) AS r FROM t",
    "over of a large partition": "SELECT n, SUM(k) OVER (PARTITION BY g ORDER BY n, k) AS m, "
    "LAG(n) OVER (PARTITION BY g ORDER BY n, k) AS l FROM t",
    "over without partition": "SELECT n, SUM(k) OVER (ORDER BY n, k) AS m, ROW_NUMBER() OVER (ORDER BY n, k) AS r, "
    "COUNT(*) OVER (ORDER BY n, k ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS c, "
    "NTILE(9) OVER (ORDER BY n, k) AS b, "
    "MAX(k) OVER (ORDER BY n, k ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING) AS x FROM t",
    "distinct": "SELECT DISTINCT n, s FROM t",
    "distinct values": "SELECT g, COUNT(DISTINCT n) AS c, COUNT(DISTINCT k) AS m, SUM(n) AS l FROM t GROUP BY g",
}
#: Columns of each answer, for the sink.
ANSWERS = {
    "scan": "n BIGINT, k BIGINT, s STRING",
    "sort": "n BIGINT, k BIGINT, s STRING",
    "hash join": "n BIGINT, s STRING",
    "left hash join": "n BIGINT, s STRING",
    "sort-merge join": "n BIGINT, s STRING",
    "hash aggregate": "n BIGINT, c BIGINT, m BIGINT, l BIGINT",
    "sort aggregate": "n BIGINT, m STRING, c BIGINT",
    "few groups": "g BIGINT, m STRING, c BIGINT",
    "over": "n BIGINT, m BIGINT, r BIGINT",
    "over of a large partition": "n BIGINT, m BIGINT, l BIGINT",
    "over without partition": "n BIGINT, m BIGINT, r BIGINT, c BIGINT, b BIGINT, x BIGINT",
    "distinct": "n BIGINT, s STRING",
    "distinct values": "g BIGINT, c BIGINT, m BIGINT, l BIGINT",
}


def write_tables(folder: Path, rows: int) -> None:
    """``t`` and ``u`` with about 50 bytes a row in memory."""
    folder.mkdir()
    with duckdb.connect() as connection:
        for name, count, salt in (("t", rows, 1), ("u", rows // 20, 2)):
            connection.execute(
                f"COPY (SELECT (hash(i * 4 + {salt}) % {rows // 20})::BIGINT AS k, "
                f"CASE WHEN i % 4 = 0 THEN 7 ELSE (hash(i * 4 + 3) % 1000)::BIGINT END AS g, "
                f"(hash(i) % {rows * 4})::BIGINT AS n, 'some text of row ' || (hash(i + 5) % {rows}) AS s "
                f"FROM range({count}) r(i)) TO '{folder}/{name}.parquet' (ROW_GROUP_SIZE 20000)"
            )


def statements(tables: Path, out: Path, name: str) -> list[str]:
    made = [
        f"CREATE TABLE {table} ({COLUMNS}) WITH ('connector' = 'filesystem', 'path' = '{tables}/{table}.parquet', "
        "'format' = 'parquet')"
        for table in ("t", "u")
    ]
    options = f"'connector' = 'filesystem', 'path' = '{out}', 'format' = 'parquet'"
    sink = f"CREATE TABLE answer ({ANSWERS[name]}) WITH ({options})"
    return [*made, sink, f"INSERT INTO answer {QUERIES[name]}"]


def measure(folder: Path, tables: Path, name: str, budget: int, parallelism: int) -> int:
    """Growth in bytes; the answer stands in ``folder/large``."""
    options = {
        "execution.runtime-mode": "batch",
        "execution.batch.engine": "local",
        "parallelism.default": str(parallelism),
        "flowsql.memory": f"{budget} b",
        "io.tmp.dirs": str(folder / "tmp"),
    }
    given = {
        "options": options,
        "small": statements(tables / "small", folder / "few", name),
        "large": statements(tables / "large", folder / "large", name),
    }
    (folder / "query.json").write_text(json.dumps(given), encoding="utf-8")
    script = Path(__file__).with_name("peak_memory.py")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        # What is freed goes back, so that what is held is measured and not what an allocator keeps.
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_TRIM_THRESHOLD_": "65536",
    }
    done = subprocess.run(
        [sys.executable, script, folder], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
    growth: int = json.loads((folder / "report.json").read_text(encoding="utf-8"))["growth"]
    return growth


def check_answer(folder: Path, tables: Path, name: str) -> None:
    """As DuckDB's, as a multiset; sorted rows in their order."""
    with duckdb.connect() as connection:
        for table in ("t", "u"):
            connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{tables}/large/{table}.parquet')")
        written = (path for path in (folder / "large").rglob("*") if path.is_file())
        files = [str(path) for path in written if not path.name.startswith((".", "_"))]
        connection.execute(f"CREATE TABLE got AS SELECT * FROM read_parquet({files})")
        connection.execute(f"CREATE TABLE wanted AS {QUERIES[name]}")
        for one, other in (("got", "wanted"), ("wanted", "got")):
            missing = connection.sql(f"SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other} LIMIT 3").fetchall()
            assert not missing, f"{one} has {missing}"
        if name == "sort":
            assert len(files) == 1
            order = connection.sql(
                "SELECT COUNT(*) FROM (SELECT n, LAG(n) OVER (ORDER BY rowid) AS l FROM got) WHERE l > n"
            ).fetchall()
            assert order == [(0,)]


def check(folder: Path, tables: Path, name: str, budget: int, parallelism: int) -> None:
    (folder / "scan").mkdir()
    (folder / "query").mkdir()
    scan = measure(folder / "scan", tables, "scan", budget, parallelism)
    growth = measure(folder / "query", tables, name, budget, parallelism) - scan
    check_answer(folder / "query", tables, name)
    assert growth < budget + ALLOWANCE, f"{name} took {growth / MB:.0f} MB with a budget of {budget / MB:.0f} MB"
    assert not list(folder.rglob("*.arrows")), "files are left"


def small_and_large(folder: Path, rows: int) -> Path:
    write_tables(folder / "small", 2_000)
    write_tables(folder / "large", rows)
    return folder


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_and_large(tmp_path_factory.mktemp("memory"), 600_000)


#: A query of each way to hold rows back runs with every change; ``make chaos`` runs the others.
OFTEN = ("hash join", "over of a large partition", "sort aggregate")


@pytest.mark.parametrize(
    "name",
    by_night((name for name in QUERIES if name != "scan"), lambda name: name in OFTEN),
)
def test_memory_is_bounded(name: str, tables: Path, tmp_path: Path) -> None:
    # 32 MB of rows.
    check(tmp_path, tables, name, 8 * MB, 1)


@pytest.fixture(scope="module")
def large_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_and_large(tmp_path_factory.mktemp("memory"), 5_000_000)


@pytest.mark.nightly
@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("name", [name for name in QUERIES if name != "scan"])
def test_memory_is_bounded_over_large_inputs(name: str, parallelism: int, large_tables: Path, tmp_path: Path) -> None:
    # 270 MB of rows.
    check(tmp_path, large_tables, name, 48 * MB, parallelism)
