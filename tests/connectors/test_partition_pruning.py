"""Files of partitions that no wanted row can stand in are not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError
from tests.spark.spark_machine import ON_SPARK, hurry

#: Partitions (dt, k, f): their folders hold a row each, with the number of the folder.
FOLDERS = (
    "dt=2020-01-01/k=1/f=a%3Db",
    "dt=2020-01-02/k=2/f=b",
    "dt=2020-01-03/k=3/f=__DEFAULT_PARTITION__",
    "dt=2020-01-04/k=__DEFAULT_PARTITION__/f=B",
)

CASES = [
    ("k = 2", [1], 1),
    ("k <> 2", [0, 2], 2),
    ("k IS NULL", [3], 1),
    ("k + 1 IN (2, 4)", [0, 2], 2),
    ("f IS NULL OR f LIKE 'a%'", [0, 2], 2),
    ("UPPER(f) = 'B'", [1, 3], 2),
    ("dt >= DATE '2020-01-03' AND id > 2", [3], 2),
    ("dt BETWEEN DATE '2020-01-02' AND DATE '2020-01-03' AND k > 2", [2], 1),
    ("k > 7", [], 0),
    # A column of the files beside one of the folders says nothing of a whole folder.
    ("k = id + 1", [0, 1, 2], 4),
    # Not every part of a disjunction speaks of folders.
    ("k = 1 OR id = 3", [0, 3], 4),
    # 10 / k fails for no k of these.
    ("10 / k > 4", [0, 1], 2),
]


def environment(folder: Path, **options: str) -> TableEnvironment:
    made = TableEnvironment.of_configuration(Configuration(values=options))
    made.execute_sql(
        "CREATE TABLE t (id BIGINT, dt DATE, k INT, f STRING) PARTITIONED BY (dt, k, f) "
        f"WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'csv')"
    )
    return made


def write_rows(folder: Path) -> None:
    for number, name in enumerate(FOLDERS):
        (folder / name).mkdir(parents=True)
        (folder / name / "part").write_text(f"{number}\n")


def asked(session: TableEnvironment, condition: str) -> tuple[list[int], int | None]:
    """The ids, and how many rows were read."""
    result = session.execute_sql(f"SELECT id FROM t WHERE {condition}")
    ids = sorted(number for batch in result.batches() for number in batch.columns[0].to_pylist())
    job = result.get_job_client()
    assert job is not None
    job.wait(30)
    return ids, job.get_volumes().rows_read


@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize(("condition", "ids", "read"), CASES, ids=[case[0] for case in CASES])
def test_at_home(mode: str, condition: str, ids: list[int], read: int, tmp_path: Path) -> None:
    write_rows(tmp_path)
    options = {"execution.runtime-mode": mode, "execution.batch.engine": "local"}
    assert asked(environment(tmp_path, **options), condition) == (ids, read)


def test_a_folder_that_cannot_be_judged_is_read(tmp_path: Path) -> None:
    write_rows(tmp_path)
    (tmp_path / "dt=2020-01-05" / "k=seven" / "f=x").mkdir(parents=True)
    (tmp_path / "dt=2020-01-05" / "k=seven" / "f=x" / "part").write_text("9\n")
    with pytest.raises(FlowSqlError, match="Partition value 'seven' of column 'k' is no INT"):
        asked(environment(tmp_path), "k = 2")


def test_a_null_of_spark_needs_its_name(tmp_path: Path) -> None:
    write_rows(tmp_path)
    folder = tmp_path / "dt=2020-01-05" / "k=__HIVE_DEFAULT_PARTITION__" / "f=x"
    folder.mkdir(parents=True)
    (folder / "part").write_text("9\n")
    with pytest.raises(FlowSqlError, match="is no INT") as caught:
        asked(environment(tmp_path), "k = 2")
    assert "'partition.default-name' = '__HIVE_DEFAULT_PARTITION__'" in (caught.value.hint or "")


def test_what_is_left_out_may_be_unreadable(tmp_path: Path) -> None:
    write_rows(tmp_path)
    (tmp_path / FOLDERS[0] / "part").write_text("no number\n")
    assert asked(environment(tmp_path), "k = 2") == ([1], 1)
    with pytest.raises(FlowSqlError, match="no number"):
        asked(environment(tmp_path), "k < 3")


class TestOnSpark:
    pytestmark = ON_SPARK

    def test_in_tasks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from flowsql_runtime.spark import parts

        hurry()
        monkeypatch.setattr(parts, "SMALL_BYTES", -1)
        write_rows(tmp_path)
        (tmp_path / FOLDERS[0] / "part").write_text("no number\n")
        session = environment(tmp_path, **{"execution.runtime-mode": "batch", "execution.batch.engine": "spark"})
        assert asked(session, "k = 2 OR f = 'B'") == ([1, 3], 2)
        result = session.execute_sql("SELECT COUNT(*) FROM t WHERE k = 2")
        assert [number for batch in result.batches() for number in batch.columns[0].to_pylist()] == [1]
        job = result.get_job_client()
        assert job is not None
        assert job.get_volumes().bytes_read == 2
