"""Parquet tables that Spark reads by itself, and those that it must not."""

from __future__ import annotations

import importlib.util
from decimal import Decimal
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError
from flowsql_runtime.spark import parts
from flowsql_runtime.spark.sessions.current import spark_host


def load(name: str) -> ModuleType:
    """A module that stands beside this one."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


machine = load("spark_machine")
pytestmark = machine.ON_SPARK

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5], pa.int64()),
        "Name": pa.array(["a", "ä", None, "a", "b"]),
        "d": pa.array([float("nan"), -0.0, 0.0, None, 2.5]),
        "f": pa.array([1.5, None, float("inf"), float("nan"), -1.0], pa.float32()),
        "p": pa.array(
            [Decimal("1.50"), None, Decimal("-2.25"), Decimal("0.00"), Decimal("99999.99")], pa.decimal128(7, 2)
        ),
        "born": pa.array([0, None, -200_000, 18_000, 1], pa.date32()),
        "b": pa.array([True, None, False, True, False]),
        "x": pa.array([b"\x00", b"", None, b"ab", b"\xff"]),
        "t": pa.array([1, -1, None, 127, -128], pa.int8()),
    }
)
COLUMNS = "id BIGINT, Name STRING, d DOUBLE, f FLOAT, p DECIMAL(7, 2), born DATE, b BOOLEAN, x BYTES, t TINYINT"

OPTIONS = {"execution.runtime-mode": "batch", "execution.batch.engine": "spark", "table.local-time-zone": "UTC"}


def session_over(path: Path, columns: str = COLUMNS, more: str = "") -> TableEnvironment:
    machine.hurry()
    made = TableEnvironment.of_configuration(Configuration(values=OPTIONS))
    made.execute_sql(
        f"CREATE TABLE t ({columns}) {more} WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'parquet')"
    )
    return made


def rows(session: TableEnvironment, sql: str) -> list[str]:
    with session.execute_sql(sql).collect() as found:
        return [str(tuple(row)) for row in found]


QUERIES = [
    "SELECT id, Name, d, f, p, born, b, x, t, COUNT(*) OVER () AS n FROM t ORDER BY id",
    "SELECT Name, COUNT(*) AS n, SUM(p) AS p, MAX(born) AS m, MIN(t) AS t FROM t WHERE id > 1 GROUP BY Name ORDER BY 1",
    "SELECT a.id, c.id FROM t a JOIN t c ON a.d = c.d ORDER BY 1, 2",
    "SELECT COUNT(*) AS n FROM t WHERE d > 1.5",
    "SELECT COUNT(*) AS n FROM t WHERE NOT (d > 1e0) OR f >= 1e0",
    "SELECT COUNT(*) AS n FROM t WHERE UPPER(Name) = 'A'",
]


def test_spark_reads_what_it_reads_exactly(tmp_path: Path, staged: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t").mkdir()
    # One row a group: least and greatest values of each are those of a single row.
    pq.write_table(ROWS.slice(0, 3), tmp_path / "t" / "one.parquet", row_group_size=1)
    pq.write_table(ROWS.slice(3), tmp_path / "t" / "two.parquet", compression="zstd")
    (tmp_path / "t" / "_not.parquet").write_bytes(b"")
    session = session_over(tmp_path / "t")
    direct = [rows(session, query) for query in QUERIES]
    assert not staged
    monkeypatch.setattr(parts, "readable_by_spark", lambda *_: None)
    assert [rows(session, query) for query in QUERIES] == direct
    assert len(staged) == len(QUERIES)
    assert direct[3] == ["(2,)"]


@pytest.mark.nightly
def test_views_stand_as_long_as_the_files_are_the_same(tmp_path: Path, staged: list[str]) -> None:
    pq.write_table(ROWS, tmp_path / "t.parquet")
    session = session_over(tmp_path / "t.parquet")
    count = "SELECT COUNT(*) AS n, SUM(id) AS s FROM t WHERE id > 1"
    assert rows(session, count) == ["(4, 14)"]
    assert rows(session, count) == ["(4, 14)"]
    pq.write_table(ROWS.slice(0, 3), tmp_path / "t.parquet")
    assert rows(session, count) == ["(2, 5)"]
    spark = spark_host(Configuration(values=OPTIONS)).session
    standing = [view.name for view in spark.catalog.listTables() if view.name.startswith("flowsql_own_")]
    assert len(standing) == len(set(standing))
    assert not [view.name for view in spark.catalog.listTables() if view.name.startswith("flowsql_input_")]
    for number in range(70):
        pq.write_table(pa.table({f"c{number}": [number]}), tmp_path / f"{number}.parquet")
        session.execute_sql(
            f"CREATE TABLE t{number} (c{number} BIGINT) WITH ('connector' = 'filesystem', 'format' = 'parquet', "
            f"'path' = '{tmp_path}/{number}.parquet')"
        )
        assert rows(session, f"SELECT c{number} FROM t{number} WHERE c{number} >= 0") == [f"({number},)"]
    standing = [view.name for view in spark.catalog.listTables() if view.name.startswith("flowsql_own_")]
    assert len(standing) == 64
    assert not staged


def test_how_texts_stood_in_memory_does_not_matter(tmp_path: Path, staged: list[str]) -> None:
    answers = []
    for name, type_ in (
        ("plain", pa.string()), ("large", pa.large_string()), ("view", pa.string_view()),
        ("dictionary", pa.dictionary(pa.int32(), pa.string())),
    ):  # fmt: skip
        table = ROWS.set_column(1, "Name", ROWS["Name"].cast(type_))
        pq.write_table(table, tmp_path / f"{name}.parquet")
        answers.append(rows(session_over(tmp_path / f"{name}.parquet"), QUERIES[1]))
    assert answers == [answers[0]] * 4
    assert not staged


def test_files_of_other_types_are_read_by_flowsql(tmp_path: Path, staged: list[str]) -> None:
    pq.write_table(ROWS.set_column(0, "id", ROWS["id"].cast(pa.int32())), tmp_path / "narrow.parquet")
    found = rows(session_over(tmp_path / "narrow.parquet"), "SELECT SUM(id) AS s, COUNT(Name) AS n FROM t")
    assert (found, len(staged)) == (["(15, 4)"], 1)
    pq.write_table(ROWS.drop_columns(["Name"]), tmp_path / "few.parquet")
    found = rows(session_over(tmp_path / "few.parquet"), "SELECT SUM(id) AS s, COUNT(Name) AS n FROM t")
    assert (found, len(staged)) == (["(15, 0)"], 2)


def write_partitions(folder: Path, names: list[str], table: pa.Table = ROWS) -> None:
    for number, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        pq.write_table(table.slice(number, 1), folder / name / "part.parquet")


PARTITIONED = COLUMNS + ", k STRING, n INT, dt DATE"
BY = "PARTITIONED BY (k, n, dt)"
IN_PARTITIONS = [
    "SELECT id, k, n, dt, Name FROM t ORDER BY id",
    "SELECT k, COUNT(*) AS c FROM t GROUP BY k ORDER BY k",
    "SELECT id FROM t WHERE k = 'a/b' OR n IS NULL ORDER BY id",
    "SELECT id, n + 1 AS m FROM t WHERE n > -5 AND dt < DATE '2021-01-01' ORDER BY id",
    "SELECT MAX(n) AS n, MIN(dt) AS dt FROM t WHERE UPPER(k) = 'B'",
]


def test_spark_reads_partitions(tmp_path: Path, staged: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = "__DEFAULT_PARTITION__"
    names = ["k=a%2Fb/n=1/dt=2020-01-01", f"k=b/n=-7/dt={nothing}", f"k={nothing}/n={nothing}/dt=0001-01-01"]
    write_partitions(tmp_path / "t", [*names, "k=01/n=0/dt=2021-12-31", "k=b/n=2147483647/dt=2020-02-29"])
    session = session_over(tmp_path / "t", PARTITIONED, BY)
    direct = [rows(session, query) for query in IN_PARTITIONS]
    assert not staged
    monkeypatch.setattr(parts, "readable_by_spark", lambda *_: None)
    assert [rows(session, query) for query in IN_PARTITIONS] == direct
    assert staged
    assert direct[1] == ["(None, 1)", "('01', 1)", "('a/b', 1)", "('b', 2)"]
    assert direct[4] == ["(2147483647, datetime.date(2020, 2, 29))"]


def test_spark_leaves_partitions_out(tmp_path: Path, staged: list[str]) -> None:
    write_partitions(tmp_path / "t", [f"k=b/n={n}/dt=2020-01-0{n + 1}" for n in range(5)])
    session = session_over(tmp_path / "t", PARTITIONED, BY)
    result = session.execute_sql("SELECT COUNT(*), SUM(id) FROM t WHERE n = 2 OR dt > DATE '2020-01-04'")
    assert [batch.columns[1].to_pylist() for batch in result.batches()] == [[8]]
    job = result.get_job_client()
    assert job is not None
    assert job.get_volumes().rows_read == 2
    assert not staged


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("k=a/n=01/dt=2020-01-01", ROWS),
        ("k=a/n=3000000000/dt=2020-01-01", ROWS),
        ("k=a/n=1/dt=2020-1-1", ROWS),
        ("k=/n=1/dt=2020-01-01", ROWS),
        ("k=__HIVE_DEFAULT_PARTITION__/n=1/dt=2020-01-01", ROWS),
        ("n=1/k=a/dt=2020-01-01", ROWS),
        ("k=a/more/n=1/dt=2020-01-01", ROWS),
        ("k=a/n=1/dt=2020-01-01", ROWS.append_column("K", ROWS["Name"])),
    ],
)
def test_partitions_of_odd_names_are_read_by_flowsql(
    tmp_path: Path, staged: list[str], name: str, table: pa.Table
) -> None:
    write_partitions(tmp_path / "t", [name], table)
    session = session_over(tmp_path / "t", PARTITIONED, BY)
    text = name.partition("k=")[2].partition("/")[0]
    if "3000000000" in name:
        with pytest.raises(FlowSqlError, match="Partition value"):
            rows(session, "SELECT k, n, dt, id FROM t")
    else:
        day = "datetime.date(2020, 1, 1)"
        assert rows(session, "SELECT k, n, dt, id FROM t") == [f"({text!r}, 1, {day}, 1)"]
    assert staged


def test_moments_are_read_by_flowsql(tmp_path: Path, staged: list[str]) -> None:
    pq.write_table(pa.table({"ts": pa.array([0, 1], pa.timestamp("ms"))}), tmp_path / "m.parquet")
    session = session_over(tmp_path / "m.parquet", "ts TIMESTAMP(3)")
    assert rows(session, "SELECT COUNT(DISTINCT ts) AS n FROM t") == ["(2,)"]
    assert len(staged) == 1


def test_what_is_wrong_with_a_file_is_said_by_flowsql(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"no parquet")
    with pytest.raises(FlowSqlError, match="no readable parquet file"):
        rows(session_over(tmp_path / "t.parquet"), "SELECT COUNT(*) AS n FROM t")
    with pytest.raises(FlowSqlError, match="missing"):
        rows(session_over(tmp_path / "missing.parquet"), "SELECT COUNT(*) AS n FROM t")


def test_files_by_name_are_read_as_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(ROWS, "t.parquet")
    Path("a.csv").write_text("id;seen;ok\n1;2024-05-01T10:00:00+02:00;true\nNA;NA;NA\n3;2024-05-01T10:00:00.5Z;false\n")
    Path("e.jsonl").write_text('{"id": 1, "l": [1, 2.5]}\n{"id": 3, "u": {"n": "x"}}\n')
    sql = (
        "SELECT t.id, t.Name, t.p, a.seen, a.ok, e.l, e.u.n FROM 't.parquet' LEFT JOIN 'a.csv' ON t.id = a.id "
        "LEFT JOIN 'e.jsonl' e ON t.id = e.id ORDER BY t.id"
    )
    machine.hurry()
    on_spark = TableEnvironment.of_configuration(Configuration(values=OPTIONS))
    at_home = TableEnvironment.of_configuration(Configuration(values={**OPTIONS, "execution.batch.engine": "local"}))
    assert rows(on_spark, sql) == rows(at_home, sql)
    assert rows(on_spark, "SELECT COUNT(*), SUM(id), COUNT(ok) FROM 'a.csv'") == ["(3, 4, 2)"]
