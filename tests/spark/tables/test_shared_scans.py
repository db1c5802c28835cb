"""Tables that many INSERTs of a statement set read are read once, with the same rows in all of their tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import Configuration
from flowsql_planner.spark import shared_scans
from flowsql_runtime.spark import parts
from tests.spark.spark_machine import ON_SPARK, hurry

pytestmark = ON_SPARK

ROWS = 600
#: What an INSERT writes: columns (n BIGINT, s STRING).
QUERIES = (
    "SELECT k, CAST(COUNT(*) AS STRING) FROM t GROUP BY k",
    "SELECT id, UPPER(s) FROM t WHERE k = 3",
    "SELECT id, DATE_FORMAT(ts, 'mm:ss') FROM t WHERE s LIKE '%7' AND id > 100",
    "SELECT COUNT(*), MAX(`file.name`) FROM t WHERE `file.name` = '1.csv'",
    "SELECT a.id, b.s FROM t AS a JOIN t AS b ON a.id = b.k WHERE b.id < 30",
    "SELECT id, CAST(window_end AS STRING) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND)) WHERE k=1",
)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableEnvironment:
    hurry()
    monkeypatch.setattr(parts, "SMALL_BYTES", -1)
    monkeypatch.setattr(parts, "SMALLEST_PART", 5_000)
    (tmp_path / "t").mkdir()
    for file in range(2):
        lines = (f"{n},{n % 7},text {n % 100},2020-01-01 00:00:{n % 60:02}" for n in range(file, ROWS, 2))
        (tmp_path / "t" / f"{file}.csv").write_text("\n".join(lines) + "\n")
    values = {"execution.runtime-mode": "batch", "execution.batch.engine": "spark", "table.local-time-zone": "UTC"}
    made = TableEnvironment.of_configuration(Configuration(values=values))
    made.execute_sql(
        "CREATE TABLE t (id BIGINT, k BIGINT, s STRING, ts TIMESTAMP(3), `file.name` STRING NOT NULL METADATA) "
        f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path / 't'}', 'format' = 'csv')"
    )
    return made


def written(session: TableEnvironment, folder: Path, queries: tuple[str, ...]) -> tuple[list[list[str]], int]:
    """The lines of the tables that a statement set writes, and how many rows it read."""
    inserts = []
    for number, query in enumerate(queries):
        session.execute_sql(f"DROP TABLE IF EXISTS o{number}")
        session.execute_sql(
            f"CREATE TABLE o{number} (n BIGINT, s STRING) WITH ('connector' = 'filesystem', 'format' = 'csv', "
            f"'path' = '{folder / str(number)}')"
        )
        inserts.append(f"INSERT INTO o{number} {query};")
    result = session.execute_sql(f"EXECUTE STATEMENT SET BEGIN {' '.join(inserts)} END")
    result.wait()
    job = result.get_job_client()
    assert job is not None
    tables = [
        sorted(line for part in (folder / str(number)).glob("part-*") for line in part.read_text().splitlines())
        for number in range(len(queries))
    ]
    return tables, job.get_volumes().rows_read or 0


@pytest.mark.nightly
def test_all_tables_are_those_of_inserts_that_read_by_themselves(
    session: TableEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, read = written(session, tmp_path / "shared", QUERIES)
    monkeypatch.setattr(shared_scans, "FEWEST", len(QUERIES) + 1)
    apart, read_apart = written(session, tmp_path / "apart", QUERIES)
    assert shared == apart
    assert shared[3] == [f"{ROWS // 2},1.csv"]
    assert all(shared)
    # The window function stands in front of Spark, and one INSERT reads the names of files: they read for themselves.
    assert read == ROWS + len(shared[5]) + ROWS // 2
    assert read_apart > read


def test_few_inserts_read_by_themselves(session: TableEnvironment, tmp_path: Path) -> None:
    plain = QUERIES[:1] * (shared_scans.FEWEST - 1)
    assert written(session, tmp_path / "few", plain)[1] == len(plain) * ROWS
    assert written(session, tmp_path / "many", (*plain, QUERIES[0]))[1] == ROWS


def test_what_is_kept_goes(session: TableEnvironment, tmp_path: Path) -> None:
    from pyspark import SparkContext

    def kept() -> int:
        context = SparkContext._active_spark_context
        assert context is not None
        return int(context._jsc.getPersistentRDDs().size())

    written(session, tmp_path / "few", QUERIES[:1])
    before = kept()
    written(session, tmp_path / "many", QUERIES[:1] * shared_scans.FEWEST)
    inserts = " ".join(f"INSERT INTO o{number} {QUERIES[0]};" for number in range(shared_scans.FEWEST))
    assert "InMemoryTableScan" in session.explain_sql(f"STATEMENT SET BEGIN {inserts} END", "JSON_EXECUTION_PLAN")
    assert kept() == before
