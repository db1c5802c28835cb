"""Tables that FlowSQL reads and writes inside of Spark's tasks: the same rows, errors and files as in the driver."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flowsql.table import DataTypes
from flowsql.table.session.environment import TableEnvironment
from flowsql.table.udf import udf
from flowsql_core.config import Configuration
from flowsql_core.errors import ExecutionError, FlowSqlError
from flowsql_runtime.spark import parts
from tests.spark.spark_machine import ON_SPARK, hurry

pytestmark = ON_SPARK

OPTIONS = {"execution.runtime-mode": "batch", "execution.batch.engine": "spark", "table.local-time-zone": "UTC"}
COLUMNS = "id BIGINT, s STRING, d DECIMAL(7, 2), ts TIMESTAMP(3), f DOUBLE, born DATE, clock TIME(3)"


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> TableEnvironment:
    """A session whose tables are read in tasks, however small they are, a few rows each."""
    hurry()
    monkeypatch.setattr(parts, "SMALL_BYTES", -1)
    monkeypatch.setattr(parts, "SMALLEST_PART", 64)
    monkeypatch.setattr(parts, "LARGEST_PART", 64)
    return TableEnvironment.of_configuration(Configuration(values=OPTIONS))


def rows(session: TableEnvironment, sql: str) -> list[tuple[object, ...]]:
    with session.execute_sql(sql).collect() as found:
        return [tuple(row) for row in found]


def table(session: TableEnvironment, name: str, path: Path, columns: str, more: str = "'format' = 'csv'") -> None:
    session.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{path}', {more})")


def visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith((".", "_")))


def write_csv(folder: Path, files: int = 5, count: int = 40) -> None:
    folder.mkdir()
    for file in range(files):
        lines = [
            f'{n},"s {n % 3}",{n}.25,2020-01-01 00:00:{n % 60:02}.5,{n / 8},2020-02-{n % 28 + 1:02},10:00:{n % 60:02}'
            for n in range(file * count, (file + 1) * count)
        ]
        (folder / f"{file}.csv").write_text("\n".join(lines) + "\n")


QUERIES = (
    "SELECT COUNT(*), SUM(id), SUM(d), MIN(ts), MAX(born), MAX(clock) FROM t",
    "SELECT s, COUNT(*) AS n, SUM(f) AS f FROM t WHERE id > 10 AND UPPER(s) <> 'S 0' GROUP BY s ORDER BY s",
    "SELECT a.id, b.s FROM t a JOIN t b ON a.id = b.id + 190 ORDER BY a.id",
    # Over NaN the first value decides.
    "SELECT CAST(MIN(g) AS STRING), CAST(MAX(h) AS STRING) FROM (SELECT f / f AS g, (199 - f) / (199 - f) AS h FROM t)",
    "SELECT id, ts, clock FROM t ORDER BY id LIMIT 3",
)


@pytest.mark.parametrize("query", QUERIES)
def test_parts_of_files_are_all_rows_in_their_order(
    session: TableEnvironment, tmp_path: Path, staged: list[str], query: str
) -> None:
    write_csv(tmp_path / "t")
    table(session, "t", tmp_path / "t", COLUMNS)
    found = rows(session, query)
    assert not staged, "rows went through the driver"
    local = TableEnvironment.of_configuration(Configuration(values={**OPTIONS, "execution.batch.engine": "local"}))
    table(local, "t", tmp_path / "t", COLUMNS)
    assert found == rows(local, query)


def test_partition_columns_metadata_and_nested_types(
    session: TableEnvironment, tmp_path: Path, staged: list[str]
) -> None:
    for key in ("a", "b"):
        (tmp_path / "t" / f"k={key}").mkdir(parents=True)
        values = pa.table(
            {
                "id": pa.array([1, 2], pa.int32()),
                "tags": pa.array([["x", None], []]),
                "r": pa.array([{"m": 0}, None], pa.struct([("m", pa.timestamp("ms"))])),
            }
        )
        pq.write_table(values, tmp_path / "t" / f"k={key}" / "one.parquet")
    session.execute_sql(
        "CREATE TABLE t (id BIGINT, tags ARRAY<STRING>, r ROW<m TIMESTAMP(3)>, k STRING, file STRING METADATA FROM "
        f"'file.name') PARTITIONED BY (k) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/t', "
        "'format' = 'parquet', 'parquet.utc-timezone' = 'true')"
    )
    question = "SELECT k, id, CARDINALITY(tags), CAST(r.m AS STRING), file, COUNT(*) OVER () FROM t ORDER BY k, id"
    moment = "1970-01-01 00:00:00.000"
    assert rows(session, question) == [
        ("a", 1, 2, moment, "one.parquet", 4),
        ("a", 2, 0, None, "one.parquet", 4),
        ("b", 1, 2, moment, "one.parquet", 4),
        ("b", 2, 0, None, "one.parquet", 4),
    ]
    assert not staged


def test_a_bad_row_is_named_as_in_the_driver(
    session: TableEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_csv(tmp_path / "t", files=2)
    (tmp_path / "t" / "0.csv").write_text("1,a\n2,b\nx,c\n")
    (tmp_path / "t" / "1.csv").write_text("4,d\n")
    table(session, "t", tmp_path / "t", "id INT, s STRING")
    reports = []
    for small in (-1, 1 << 20):
        monkeypatch.setattr(parts, "SMALL_BYTES", small)
        with pytest.raises(FlowSqlError) as caught:
            rows(session, "SELECT s, SUM(id) FROM t GROUP BY s")
        reports.append((type(caught.value), caught.value.code, caught.value.message))
    assert reports[0] == reports[1]
    assert "0.csv" in reports[0][2]
    assert "Spark" not in caught.value.render()


def test_rows_that_cannot_be_read_are_left_out_or_kept_aside(session: TableEnvironment, tmp_path: Path) -> None:
    write_csv(tmp_path / "t", files=1)
    (tmp_path / "t" / "0.csv").write_text("1,a\nx,b\n3,c\n")
    table(session, "t", tmp_path / "t", "id INT, s STRING", "'format' = 'csv', 'csv.ignore-parse-errors' = 'true'")
    assert rows(session, "SELECT SUM(id) FROM t") == [(4,)]
    letters = f"'format' = 'csv', 'on-error' = 'dead-letter', 'on-error.dead-letter.path' = '{tmp_path}/dead'"
    table(session, "u", tmp_path / "t", "id INT, s STRING", letters)
    assert rows(session, "SELECT SUM(id) FROM u") == [(4,)]
    assert "eCxi" in "".join(path.read_text() for path in visible(tmp_path / "dead"))


def test_tasks_write_and_the_driver_shows_all_at_once(
    session: TableEnvironment, tmp_path: Path, staged: list[str]
) -> None:
    write_csv(tmp_path / "t")
    table(session, "t", tmp_path / "t", COLUMNS)
    out = tmp_path / "out"
    session.execute_sql(
        "CREATE TABLE o (s STRING, n BIGINT, born DATE) PARTITIONED BY (s) WITH ('connector' = 'filesystem', "
        f"'path' = '{out}', 'format' = 'parquet', 'sink.partition-commit.policy.kind' = 'success-file')"
    )
    session.execute_sql("INSERT INTO o SELECT s, COUNT(*), born FROM t GROUP BY s, born").wait()
    assert {path.parent.name for path in visible(out)} == {"s=s 0", "s=s 1", "s=s 2"}
    assert len(list(out.rglob("_SUCCESS"))) == 3
    assert rows(session, "SELECT COUNT(*), SUM(n) FROM o") == [(84, 200)]
    session.execute_sql("INSERT OVERWRITE o PARTITION (s = 's 1') SELECT COUNT(*), MAX(born) FROM t").wait()
    assert rows(session, "SELECT s, COUNT(*), SUM(n) FROM o GROUP BY s ORDER BY s") == [
        ("s 0", 28, 67),
        ("s 1", 1, 200),
        ("s 2", 28, 66),
    ]
    assert not staged
    assert not [path for path in out.rglob(".*") if "inprogress" in path.name]


def test_an_order_is_that_of_one_file(session: TableEnvironment, tmp_path: Path) -> None:
    write_csv(tmp_path / "t")
    table(session, "t", tmp_path / "t", COLUMNS)
    table(session, "o", tmp_path / "out", "id BIGINT, s STRING")
    session.execute_sql("INSERT INTO o SELECT id, LOWER(s) FROM t ORDER BY id DESC").wait()
    (part,) = visible(tmp_path / "out")
    assert [int(line.split(",")[0]) for line in part.read_text().splitlines()] == list(range(199, -1, -1))


def test_sink_options_deal_the_rows_out(session: TableEnvironment, tmp_path: Path) -> None:
    write_csv(tmp_path / "t")
    table(session, "t", tmp_path / "t", COLUMNS)
    table(session, "two", tmp_path / "two", "id BIGINT", "'format' = 'csv', 'sink.parallelism' = '2'")
    session.execute_sql("INSERT INTO two SELECT id FROM t").wait()
    assert len(visible(tmp_path / "two")) == 2
    for projected in ("s", "LOWER(s)"):
        out = tmp_path / f"by {len(projected)}"
        session.execute_sql("DROP TABLE IF EXISTS o")
        session.execute_sql(
            "CREATE TABLE o (id BIGINT, s STRING) PARTITIONED BY (s) WITH ('connector' = 'filesystem', "
            f"'path' = '{out}', 'format' = 'csv', 'sink.shuffle-by-partition.enable' = 'true')"
        )
        session.execute_sql(f"INSERT INTO o SELECT id, {projected} FROM t").wait()
        assert len(visible(out)) == 3
    assert rows(session, "SELECT COUNT(*) FROM o") == [(200,)]


def test_inserts_of_a_set_are_seen_together_or_not_at_all(session: TableEnvironment, tmp_path: Path) -> None:
    write_csv(tmp_path / "t")
    table(session, "t", tmp_path / "t", COLUMNS)
    table(session, "good", tmp_path / "good", "id BIGINT")
    table(session, "bad", tmp_path / "bad", "id INT")
    statements = session.create_statement_set()
    statements.add_insert_sql("INSERT INTO good SELECT id FROM t")
    statements.add_insert_sql("INSERT INTO bad SELECT CAST(s AS INT) FROM t")
    with pytest.raises(ExecutionError, match=r"s [012]"):
        statements.execute().wait()
    assert not visible(tmp_path / "good") + visible(tmp_path / "bad")
    hidden = [path for name in ("good", "bad") for path in (tmp_path / name).rglob(".*")]
    assert not hidden


def test_an_insert_of_no_rows_empties_what_it_overwrites(session: TableEnvironment, tmp_path: Path) -> None:
    write_csv(tmp_path / "t")
    table(session, "t", tmp_path / "t", COLUMNS)
    table(session, "o", tmp_path / "out", "id BIGINT")
    session.execute_sql("INSERT INTO o SELECT id FROM t").wait()
    assert visible(tmp_path / "out")
    session.execute_sql("INSERT OVERWRITE o SELECT id FROM t WHERE id < 0").wait()
    assert not visible(tmp_path / "out")


def test_python_functions_run_in_tasks_with_the_modules_of_the_program(
    session: TableEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside_the_script.py").write_text("def twice(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    write_csv(tmp_path / "t")
    table(session, "t", tmp_path / "t", COLUMNS)
    driver = os.getpid()

    @udf(result_type=DataTypes.BIGINT())
    def f(x: int) -> int:
        import beside_the_script

        assert os.getpid() != driver
        return int(beside_the_script.twice(x))

    session.create_temporary_function("f", f)
    counted = "(SELECT s, COUNT(*) AS n FROM t GROUP BY s)"
    question = f"SELECT s, SUM(y) AS y FROM (SELECT s, f(n) AS y FROM {counted}) GROUP BY s ORDER BY s"
    assert rows(session, question) == [("s 0", 134), ("s 1", 134), ("s 2", 132)]


def test_a_function_that_cannot_be_sent_is_named(session: TableEnvironment, tmp_path: Path) -> None:
    lock = threading.Lock()

    @udf(result_type=DataTypes.BIGINT())
    def locked(x: int) -> int:
        with lock:
            return x

    session.create_temporary_function("locked", locked)
    counted = "(SELECT k, COUNT(*) AS n FROM (VALUES ('a'), ('b')) AS t(k) GROUP BY k)"
    with pytest.raises(ExecutionError, match=r"cannot be sent to Spark's tasks: TypeError: cannot pickle .*lock"):
        rows(session, f"SELECT SUM(y) AS y FROM (SELECT locked(n) AS y FROM {counted})")


def test_a_worker_that_dies_leaves_nothing(session: TableEnvironment, tmp_path: Path) -> None:
    write_csv(tmp_path / "t")
    table(session, "t", tmp_path / "t", COLUMNS)
    table(session, "o", tmp_path / "out", "id BIGINT")

    @udf(result_type=DataTypes.BIGINT())
    def die(x: int) -> int:
        if x == 150:
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    session.create_temporary_function("die", die)
    with pytest.raises(FlowSqlError, match="Spark failed"):
        session.execute_sql("INSERT INTO o SELECT die(id) FROM t").wait()
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert rows(session, "SELECT COUNT(*) FROM t") == [(200,)]


def test_expectations_are_judged_and_counted_in_tasks(session: TableEnvironment, tmp_path: Path) -> None:
    write_csv(tmp_path / "in")
    table(session, "t", tmp_path / "in", COLUMNS)
    expected = (
        "id BIGINT, d DECIMAL(7, 2), CONSTRAINT `even` CHECK (id % 2 = 0) ON VIOLATION DROP, "
        "CONSTRAINT low CHECK (d < 100) ON VIOLATION WARN"
    )
    table(session, "o", tmp_path / "out", expected, "'format' = 'json'")
    result = session.execute_sql("INSERT INTO o SELECT id, d FROM t")
    result.wait()
    job = result.get_job_client()
    assert job is not None
    counts = {each.name: (each.passed, each.dropped, each.warned) for each in job.expectations()}
    assert counts == {"even": (100, 100, 0), "low": (50, 0, 50)}
    assert job.records_written() == 100
    assert len(visible(tmp_path / "out")) > 1
    assert sorted(rows(session, "SELECT id FROM o")) == [(n,) for n in range(0, 200, 2)]
    session.execute_sql("ALTER TABLE o MODIFY CONSTRAINT low CHECK (d < 100)")
    with pytest.raises(ExecutionError, match="expects 'low' of its rows") as failed:
        session.execute_sql("INSERT INTO o SELECT id, d FROM t WHERE id = 150").wait()
    assert failed.value.code == "expectation-violated"
    assert "row: d = 150.25, id = 150" in failed.value.render()
    assert sorted(rows(session, "SELECT id FROM o")) == [(n,) for n in range(0, 200, 2)]
