"""SHOW JOBS, DESCRIBE JOB, STOP JOB in a session."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowsql.common import JobStatus, Row, RowKind
from flowsql.common.job_client import JobClient
from flowsql.table import TableEnvironment
from flowsql_core.errors import BindError, ExecutionError

from ..cold_state import BACKENDS, COLD, ColdOperators

UNKNOWN = "0" * 32
#: What ``COLD`` changes, as it is without.
HASHMAP = {"state.backend.type": "hashmap", "state.backend.rocksdb.memory.fixed-per-slot": "0 b"}


@pytest.fixture
def session(tmp_path: Path) -> TableEnvironment:
    environment = TableEnvironment.create()
    environment.execute_sql(
        "CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000', "
        "'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '1000000')"
    )
    environment.execute_sql("CREATE TABLE hole (n BIGINT) WITH ('connector' = 'blackhole')")
    return environment


@pytest.fixture
def job(session: TableEnvironment) -> Iterator[JobClient]:
    client = session.execute_sql("INSERT INTO hole SELECT COUNT(*) FROM numbers").get_job_client()
    assert client is not None
    yield client
    client.cancel_and_wait()


def rows(session: TableEnvironment, statement: str) -> list[list[object]]:
    return [list(row) for row in session.execute_sql(statement).collect()]


def test_show_jobs_has_flinks_columns(session: TableEnvironment, job: JobClient) -> None:
    schema = session.execute_sql("SHOW JOBS").get_resolved_schema()
    assert schema.get_column_names() == ["job id", "job name", "status", "start time"]
    assert [str(type_) for type_ in schema.get_column_data_types()][:3] == ["STRING"] * 3
    assert "LTZ" in str(schema.get_column_data_types()[3]).upper()
    found = {row[0]: row for row in rows(session, "SHOW JOBS")}
    assert found[job.get_job_id()][1:3] == ["insert-into_default_catalog.default_database.hole", "RUNNING"]


def test_describe_job_is_its_line_in_the_sessions_zone(session: TableEnvironment, job: JobClient) -> None:
    utc = rows(session, f"DESCRIBE JOB '{job.get_job_id()}'")
    assert [row[0] for row in utc] == [job.get_job_id()]
    printed = []
    for zone in ("UTC", "Asia/Tokyo"):
        session.execute_sql(f"SET 'table.local-time-zone' = '{zone}'")
        text = io.StringIO()
        session.execute_sql(f"DESC JOB '{job.get_job_id().upper()}'").print(text)
        printed.append(text.getvalue())
    assert printed[0] != printed[1]
    with pytest.raises(ExecutionError, match=f"Described job {UNKNOWN} does not exist in the cluster."):
        session.execute_sql(f"DESCRIBE JOB '{UNKNOWN}'")


def test_stop_job_cancels(session: TableEnvironment, job: JobClient) -> None:
    statement = f"STOP JOB '{job.get_job_id()}'"
    assert rows(session, statement) == [["OK"]]
    job.wait(20)
    assert job.get_job_status() is JobStatus.CANCELED
    # As in Flink: once more is no error.
    assert rows(session, statement) == [["OK"]]
    with pytest.raises(ExecutionError, match="CANCELED: there is nothing to save"):
        session.execute_sql(f"{statement} WITH SAVEPOINT")


@pytest.mark.parametrize("drain", ["", " WITH DRAIN"])
def test_stop_job_with_savepoint_answers_its_path(
    session: TableEnvironment, job: JobClient, tmp_path: Path, drain: str
) -> None:
    statement = f"STOP JOB '{job.get_job_id()}' WITH SAVEPOINT{drain}"
    with pytest.raises(ExecutionError, match="No folder for the savepoint is known"):
        session.execute_sql(statement)
    session.execute_sql(f"SET 'execution.checkpointing.savepoint-dir' = '{tmp_path}'")
    result = session.execute_sql(statement)
    assert result.get_resolved_schema().get_column_names() == ["savepoint path"]
    [[path]] = [list(row) for row in result.collect()]
    assert Path(str(path)).parent == tmp_path
    assert Path(str(path), "_metadata").is_file()
    assert job.get_job_status() is JobStatus.FINISHED
    with pytest.raises(
        ExecutionError, match=f"Flink job \\({job.get_job_id()}\\) was not canceled, but instead FINISH"
    ):
        session.execute_sql(f"STOP JOB '{job.get_job_id()}'")


def test_a_query_goes_on_from_the_savepoint_that_stopped_it(session: TableEnvironment, tmp_path: Path) -> None:
    session.execute_sql(f"SET 'execution.checkpointing.savepoint-dir' = '{tmp_path}'")
    query = "SELECT COUNT(*) AS n FROM numbers"
    first = session.execute_sql(query)
    client = first.get_job_client()
    assert client is not None
    answers = first.collect()
    seen = [next(answers)[0] for _ in range(3)]
    [[path]] = rows(session, f"STOP JOB '{client.get_job_id()}' WITH SAVEPOINT")
    seen += [row[0] for row in answers]
    session.execute_sql(f"SET 'execution.state-recovery.path' = '{path}'")
    with session.execute_sql(query).collect() as going_on:
        following = next(going_on)
    assert (following.get_row_kind(), following[0]) == (RowKind.UPDATE_BEFORE, seen[-1])


@pytest.mark.parametrize(
    ("backends", "parallelism"),
    [(("hashmap", "rocksdb"), (1, 3)), (("rocksdb", "hashmap"), (3, 2)), (("rocksdb", "rocksdb"), (2, 4))],
    ids=lambda value: "-".join(map(str, value)),
)
def test_a_savepoint_goes_on_on_the_other_backend_at_another_parallelism(
    session: TableEnvironment,
    tmp_path: Path,
    backends: tuple[str, str],
    parallelism: tuple[int, int],
    cold_operators: ColdOperators,
) -> None:
    """Aggregates with retraction over 3,000 numbers that come slowly; the job is stopped, and goes on fast."""
    session.execute_sql(f"SET 'execution.checkpointing.savepoint-dir' = '{tmp_path}'")
    session.execute_sql(
        "CREATE TABLE three_thousand (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '300', "
        "'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '3000')"
    )
    query = (
        "SELECT c, COUNT(*) AS many, MIN(k) AS k, COUNT(DISTINCT s) AS d FROM "
        "(SELECT MOD(n, 300) AS k, COUNT(*) AS c, SUM(n) AS s FROM three_thousand GROUP BY MOD(n, 300)) GROUP BY c"
    )
    table: Counter[tuple[object, ...]] = Counter()

    def count(row: Row) -> None:
        table[tuple(row)] += 1 if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER) else -1

    def configure(place: int) -> None:
        for key in COLD:
            session.get_config().set(key, BACKENDS[backends[place]].get(key, HASHMAP[key]))
        session.get_config().set("parallelism.default", str(parallelism[place]))

    configure(0)
    first = session.execute_sql(query)
    client = first.get_job_client()
    assert client is not None
    answers = first.collect()
    for _ in range(100):
        count(next(answers))
    [[path]] = rows(session, f"STOP JOB '{client.get_job_id()}' WITH SAVEPOINT")
    for row in answers:
        count(row)
    assert +table != Counter({(10, 300, 0, 300): 1}), "there is something left to do"
    assert bool(cold_operators.written()) == (backends[0] == "rocksdb")
    cold_operators.clear()
    configure(1)
    session.execute_sql("ALTER TABLE three_thousand SET ('rows-per-second' = '100000')")
    session.execute_sql(f"SET 'execution.state-recovery.path' = '{path}'")
    with session.execute_sql(query).collect() as going_on:
        for row in going_on:
            count(row)
    assert +table == Counter({(10, 300, 0, 300): 1})
    assert bool(cold_operators.written()) == (backends[1] == "rocksdb")


def test_wrong_ids_are_told_with_flinks_texts(session: TableEnvironment) -> None:
    with pytest.raises(ExecutionError, match=f"Could not find Flink job \\({UNKNOWN}\\)"):
        session.execute_sql(f"STOP JOB '{UNKNOWN}'")
    for statement in ("STOP JOB 'x'", "DESCRIBE JOB 'x'", "STOP JOB 'x' WITH SAVEPOINT"):
        with pytest.raises(BindError, match='Cannot parse JobID from "x"'):
            session.execute_sql(statement)


def test_whoever_waits_for_a_cancelled_insert_hears_of_it(session: TableEnvironment) -> None:
    result = session.execute_sql("INSERT INTO hole SELECT n FROM numbers")
    client = result.get_job_client()
    assert client is not None
    session.execute_sql(f"STOP JOB '{client.get_job_id()}'")
    with pytest.raises(ExecutionError, match="Job was cancelled"):
        result.wait()
