"""Rows and bytes that a statement moved, as the engine that ran it counted them."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import Configuration
from flowsql_runtime.metrics.volumes import Volumes, size_text
from flowsql_runtime.spark import parts
from flowsql_runtime.spark.measured import PlanNode, volumes_of
from tests.spark.spark_machine import ON_SPARK, hurry

ROWS = 10_000


def environment(engine: str, folder: Path, **options: str) -> TableEnvironment:
    values = {"execution.runtime-mode": "batch", "execution.batch.engine": engine, **options}
    made = TableEnvironment.of_configuration(Configuration(values=values))
    for name, format_ in (("t", "csv"), ("p", "parquet"), ("o", "csv")):
        made.execute_sql(
            f"CREATE TABLE {name} (id BIGINT, k INT, s STRING) WITH ('connector' = 'filesystem', "
            f"'path' = '{folder / name}', 'format' = '{format_}')"
        )
    return made


def write_rows(folder: Path) -> int:
    (folder / "t").mkdir()
    for file in range(2):
        lines = (f"{n},{n % 10},text {n % 100}" for n in range(file, ROWS, 2))
        (folder / "t" / f"{file}.csv").write_text("\n".join(lines) + "\n")
    return stored(folder / "t")


def stored(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if not path.name.startswith("."))


def of_insert(session: TableEnvironment, sql: str) -> Volumes:
    result = session.execute_sql(sql)
    result.wait()
    job = result.get_job_client()
    assert job is not None
    return job.get_volumes()


def of_query(session: TableEnvironment, sql: str) -> tuple[int, Volumes]:
    result = session.execute_sql(sql)
    rows = sum(batch.num_rows for batch in result.batches())
    job = result.get_job_client()
    assert job is not None
    job.wait(30)
    return rows, job.get_volumes()


def check_engine(session: TableEnvironment, folder: Path, stored_bytes: int) -> None:
    """What both engines count alike."""
    copied = of_insert(session, "INSERT INTO p SELECT * FROM t")
    assert (copied.rows_read, copied.bytes_read) == (ROWS, stored_bytes)
    assert (copied.rows_written, copied.bytes_written) == (ROWS, stored(folder / "p"))
    assert copied.bytes_spilled == 0
    summed = of_insert(session, "INSERT INTO o SELECT MAX(id), k, MAX(UPPER(s)) FROM t GROUP BY k")
    assert (summed.rows_read, summed.bytes_read) == (ROWS, stored_bytes)
    assert (summed.rows_written, summed.bytes_written) == (10, stored(folder / "o"))
    rows, asked = of_query(session, "SELECT * FROM (VALUES (1), (2)) AS v(a)")
    assert (rows, asked.rows_read, asked.bytes_read, asked.rows_written) == (2, 2, 0, 0)


def test_at_home(tmp_path: Path) -> None:
    stored_bytes = write_rows(tmp_path)
    session = environment("local", tmp_path, **{"parallelism.default": "2"})
    check_engine(session, tmp_path, stored_bytes)
    rows, joined = of_query(session, "SELECT a.id FROM p AS a JOIN p AS b ON a.id = b.id")
    assert rows == ROWS
    # Of a columnar file the columns that are asked for; the scan is shared by both sides.
    assert joined.rows_read == ROWS
    assert 0 < (joined.bytes_read or 0) < stored(tmp_path / "p")
    assert (joined.bytes_shuffled or 0) > 0
    assert joined.rows_shuffled is None


def test_what_memory_cannot_hold_at_home(tmp_path: Path) -> None:
    write_rows(tmp_path)
    session = environment("local", tmp_path, **{"flowsql.memory": "16 mb"})
    query = "SELECT a.id, b.s FROM t AS a JOIN t AS b ON a.k = b.k AND a.id < 900 ORDER BY 2, 1"
    rows, sorted_rows = of_query(session, query)
    assert rows == 900 * ROWS // 10
    assert (sorted_rows.bytes_spilled or 0) > 1_000_000


@pytest.mark.parametrize("in_tasks", [True, False])
class TestOnSpark:
    pytestmark = ON_SPARK

    def test_what_spark_counts(self, in_tasks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        hurry()
        if in_tasks:
            monkeypatch.setattr(parts, "SMALL_BYTES", -1)
            monkeypatch.setattr(parts, "SMALLEST_PART", 20_000)
        stored_bytes = write_rows(tmp_path)
        session = environment("spark", tmp_path)
        check_engine(session, tmp_path, stored_bytes)
        few = of_insert(session, "INSERT INTO o SELECT COUNT(*), k, MAX(s) FROM t WHERE k < 5 GROUP BY k")
        # Readers apply the filter.
        assert few.rows_read == ROWS // 2
        assert (few.rows_shuffled or 0) >= 5
        assert (few.bytes_shuffled or 0) > 0
        rows, joined = of_query(session, "SELECT a.id FROM p AS a JOIN p AS b ON a.id = b.id")
        assert (rows, joined.rows_read) == (ROWS, 2 * ROWS)
        assert joined.bytes_read == 2 * stored(tmp_path / "p")


def node(name: str, *inputs: PlanNode, **counts: int) -> PlanNode:
    return PlanNode(name, counts, inputs)


def test_nodes_of_a_plan() -> None:
    numbers = node("WholeStageCodegen (1)", node("Range", numOutputRows=4), pipelineTime=7)
    read = node("MapInArrow", numbers, pythonNumRowsReceived=500)
    scan = node("Scan parquet ", numOutputRows=70, filesSize=900)
    exchange = node("Exchange", read, shuffleRecordsWritten=11, shuffleBytesWritten=120)
    join = node("SortMergeJoin", node("Sort", exchange, spillSize=5), node("Sort", scan, spillSize=3), numOutputRows=1)
    written = node("MapInArrow", join, pythonNumRowsReceived=1)
    found = volumes_of([written, node("Project", node("Scan OneRowRelation", numOutputRows=1))])
    assert found == Volumes(570, 900, None, None, 11, 120, 8)
    # What is kept, and not told where it came from, makes the sums unknown; what was shuffled is known.
    unseen = volumes_of([node("Exchange", node("InMemoryTableScan", numOutputRows=9), shuffleRecordsWritten=2)])
    assert (unseen.rows_read, unseen.bytes_read, unseen.rows_shuffled) == (None, None, 2)


def test_the_text() -> None:
    assert str(Volumes(1, 999, 1_000_000, 12_340_000, None, 5_000, 0)) == (
        "1 row (999 bytes) read, 1,000,000 rows (12.3 MB) written, 5.0 kB shuffled"
    )
    assert str(Volumes(0, 0, 0, 0, 0, 0, 2_500_000_000)) == "0 rows (0 bytes) read, 2.5 GB spilled"
    assert str(Volumes()) == "no rows are counted"
    assert size_text(1_500_000_000_000) == "1,500.0 GB"
    assert Volumes(rows_read=3).as_dict()["rows_read"] == 3
    assert set(Volumes().as_dict().values()) == {None}
