"""``execution.state-recovery.path`` = ``latest``: what a job goes on from, and what is refused.

A process that dies is played by a job that is cancelled and a folder that is let go; ``tests/cli/test_resume.py``
kills.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowsql.common import Configuration, JobClient, Types
from flowsql.datastream import StreamExecutionEnvironment
from flowsql.table import TableEnvironment
from flowsql_core.errors import FlowSqlError
from flowsql_runtime.checkpoint.resume_folder import ResumeFolder

ROWS = 3_000


@pytest.fixture(autouse=True)
def let_go() -> Iterator[None]:
    yield
    die()


def die() -> None:
    """The process is gone, and with it its locks."""
    for folder in list(ResumeFolder._held.values()):
        folder.release()


def session(folder: Path, **options: str) -> TableEnvironment:
    made = TableEnvironment.create()
    told = {
        "execution.checkpointing.interval": "50 ms",
        "execution.checkpointing.dir": str(folder / "state"),
        "execution.state-recovery.path": "latest",
        "flowsql.source.batch-rows": "50",
    }
    for key, value in {**told, **{key.replace("__", "-"): value for key, value in options.items()}}.items():
        if value:
            made.get_config().set(key, value)
    csv = "'connector' = 'filesystem', 'format' = 'csv', 'sink.rolling-policy.file-size' = '100b'"
    made.execute_sql(
        "CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '2000', "
        f"'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '{ROWS}')"
    )
    made.execute_sql("CREATE TABLE endless (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '500')")
    for name in ("a", "b"):
        made.execute_sql(f"CREATE TABLE {name} (n BIGINT) WITH ({csv}, 'path' = '{folder}/out/{name}')")
    made.execute_sql("CREATE TABLE sums (k BIGINT, n BIGINT) WITH ('connector' = 'blackhole')")
    return made


def start(made: TableEnvironment, statement: str = "INSERT INTO a SELECT n FROM numbers") -> JobClient:
    client = made.execute_sql(statement).get_job_client()
    assert client is not None
    return client


def cut_short(client: JobClient, checkpoints: int = 2) -> str:
    """Let a job take some checkpoints, and cancel it; where it would go on."""
    until = time.monotonic() + 60
    while client._job.metrics.checkpoints.completed < checkpoints:
        assert time.monotonic() < until
        time.sleep(0.01)
    client.cancel_and_wait()
    die()
    return client._job.last_checkpoint or ""


def rows(folder: Path, table: str = "a") -> Counter[str]:
    found: Counter[str] = Counter()
    for path in (folder / "out" / table).glob("[!.]*"):
        found.update(path.read_text().split())
    return found


WHOLE = Counter(str(n) for n in range(1, ROWS + 1))


def test_a_job_goes_on_and_ends_once(tmp_path: Path) -> None:
    first = start(session(tmp_path))
    assert first.started_from() is None
    assert not first.ended_before()
    left = cut_short(first)
    half = rows(tmp_path)
    assert half
    assert half < WHOLE
    second = start(session(tmp_path))
    assert second.started_from() == left
    assert second.get_job_id() == first.get_job_id()
    second.wait()
    assert rows(tmp_path) == WHOLE
    die()
    third = start(session(tmp_path))
    assert third.ended_before()
    third.wait()
    assert third.records_written() in (0, None)
    assert rows(tmp_path) == WHOLE


def test_checkpoints_are_retained_over_restarts_and_half_written_ones_go(tmp_path: Path) -> None:
    option = {"execution.checkpointing.num-retained": "2"}
    client = start(session(tmp_path, **option))
    cut_short(client, 3)
    home = tmp_path / "state" / client.get_job_id()
    kept = sorted(path.parent.name for path in home.glob("*/_metadata"))
    assert len(kept) == 2
    half = home / "chk-999"
    half.mkdir()
    (half / "1-0.state").write_bytes(b"cut")
    (home / "shared").mkdir(exist_ok=True)
    (home / "shared" / "orphan").write_bytes(b"nobody's")
    again = start(session(tmp_path, **option))
    assert again.started_from() == str(home / max(kept, key=lambda name: int(name[4:])))
    assert not half.exists()
    assert not (home / "shared" / "orphan").exists()
    cut_short(again, 3)
    assert [path.name for path in (tmp_path / "state").iterdir() if path.name != ".flowsql"] == [home.name]
    newer = {path.parent.name for path in home.glob("*/_metadata")}
    assert len(newer) == 2
    assert newer.isdisjoint(kept)
    start(session(tmp_path, **option)).wait()
    assert rows(tmp_path) == WHOLE
    assert not home.exists()


def test_incremental_checkpoints_go_on_with_their_files(tmp_path: Path) -> None:
    options = {
        "state.backend.type": "rocksdb",
        "execution.checkpointing.incremental": "true",
        "state.backend.rocksdb.memory.fixed-per-slot": "1",
        "state.backend.rocksdb.compaction.style": "NONE",
    }
    statement = "INSERT INTO sums SELECT n, COUNT(*) FROM endless GROUP BY n"
    first = start(session(tmp_path, **options), statement)
    cut_short(first, 4)
    home = tmp_path / "state" / first.get_job_id() / "shared"
    before = {path.name for path in home.iterdir()}
    assert before
    second = start(session(tmp_path, **options), statement)
    cut_short(second, 2)
    # Files of the dead process still count: the first checkpoint of the next one is not whole.
    assert before & {path.name for path in home.iterdir()}


def test_each_insert_of_a_script_has_its_own_place(tmp_path: Path) -> None:
    def script(until: int) -> None:
        made = session(tmp_path)
        statements = (
            "INSERT INTO a SELECT n FROM numbers WHERE n > 2900",
            "INSERT INTO b SELECT n FROM numbers",
            "INSERT INTO b SELECT -n FROM numbers",
        )
        for number, statement in enumerate(statements):
            client = start(made, statement)
            if number == until:
                cut_short(client, 1)
                return
            client.wait()
        die()

    for until in (0, 1, 1, 2, 3, 3):
        script(until)
    assert rows(tmp_path) == Counter(str(n) for n in range(2901, ROWS + 1))
    assert rows(tmp_path, "b") == WHOLE + Counter(f"-{n}" for n in range(1, ROWS + 1))


def test_equal_inserts_find_their_places_in_another_order(tmp_path: Path) -> None:
    """What an INSERT reads says which one it is."""
    made = session(tmp_path)
    ups, downs = "INSERT INTO a SELECT n FROM numbers", "INSERT INTO a SELECT -n FROM numbers"
    clients = [start(made, ups), start(made, downs)]
    for client in clients:
        while not client._job.metrics.checkpoints.completed:
            time.sleep(0.01)
        client.cancel_and_wait()
    die()
    made = session(tmp_path)
    again = [start(made, downs), start(made, ups)]
    assert [one.get_job_id() for one in again] == [one.get_job_id() for one in reversed(clients)]
    for one in again:
        one.wait()
    assert rows(tmp_path) == WHOLE + Counter(f"-{n}" for n in range(1, ROWS + 1))


def refused(made: TableEnvironment, statement: str, code: str, *told: str) -> None:
    with pytest.raises(FlowSqlError) as raised:
        start(made, statement)
    assert raised.value.code == code
    for words in told:
        assert words in raised.value.render()


def test_what_belongs_to_another_query_is_refused(tmp_path: Path) -> None:
    made = session(tmp_path)
    cut_short(start(made, "INSERT INTO sums SELECT n, COUNT(*) FROM numbers GROUP BY n"))
    refused(
        session(tmp_path), "INSERT INTO a SELECT n FROM numbers", "other-job",
        "belongs to another query: the job that writes default_catalog.default_database.sums",
        "give this one a folder of its own",
    )  # fmt: skip
    die()
    refused(
        session(tmp_path), "INSERT INTO sums SELECT n, COUNT(*) FROM (SELECT n + 1 AS n FROM numbers) GROUP BY n",
        "unclaimed-state", "belongs to another query", "GroupAggregate", "execution.state-recovery.ignore-unclaimed",
    )  # fmt: skip
    die()
    refused(session(tmp_path), "INSERT INTO sums SELECT n, n FROM endless", "unclaimed-state", "another query")
    die()
    start(session(tmp_path), "INSERT INTO sums SELECT n, COUNT(*) FROM numbers GROUP BY n").wait()
    die()
    refused(session(tmp_path), "INSERT INTO sums SELECT n, 1 FROM numbers", "other-job", "has ended, and its query was")


def test_snapshots_of_a_plain_run_are_taken_up(tmp_path: Path) -> None:
    plain = {
        "execution.state-recovery.path": "",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    }
    client = start(session(tmp_path, **plain))
    left = cut_short(client)
    refused(session(tmp_path), "INSERT INTO b SELECT n FROM numbers", "other-job", "writes default_catalog")
    die()
    again = start(session(tmp_path))
    assert again.started_from() == left
    cut_short(again)
    # It belongs to nobody: it stays.
    assert Path(left).exists()
    last = start(session(tmp_path))
    assert last.started_from() != left
    last.wait()
    assert rows(tmp_path) == WHOLE


@pytest.mark.parametrize("how", ["damaged", "gone", "all gone", "in memory", "deleted by option"])
def test_what_would_double_rows_is_refused(tmp_path: Path, how: str) -> None:
    options = {
        "in memory": {"execution.checkpointing.storage": "jobmanager"},
        "deleted by option": {
            "execution.checkpointing.externalized-checkpoint-retention": "DELETE_ON_CANCELLATION",
        },
    }.get(how, {"execution.checkpointing.num-retained": "2"})
    client = start(session(tmp_path, **options))
    newest = Path(cut_short(client, 3))
    code, told = "cannot-go-on", "From its beginning it would write once more what is visible already."
    match how:
        case "damaged":
            data = bytearray((newest / "_metadata").read_bytes())
            data[len(data) // 2] ^= 1
            (newest / "_metadata").write_bytes(data)
            code, told = "corrupt-snapshot", f"without '{newest}' the job goes on from the one before"
        case "gone" | "all gone":
            shutil.rmtree(newest.parent)
    refused(session(tmp_path, **options), "INSERT INTO a SELECT n FROM numbers", code, told)


@pytest.mark.parametrize(
    ("options", "statement", "code"),
    [
        ({"execution.runtime-mode": "batch"}, "INSERT INTO a SELECT n FROM numbers", "batch-state"),
        ({}, "SELECT n FROM endless", "query-cannot-go-on"),
        ({"execution.checkpointing.create-subdir": "false"}, "INSERT INTO a SELECT 1", "conflicting-options"),
        ({"execution.checkpointing.dir": ""}, "INSERT INTO a SELECT 1", "missing-option"),
        ({"execution.checkpointing.dir": "s3://bucket/x"}, "INSERT INTO a SELECT 1", "remote-resume-folder"),
    ],
)
def test_what_cannot_go_on_is_refused(tmp_path: Path, options: dict[str, str], statement: str, code: str) -> None:
    refused(session(tmp_path, **options), statement, code)


def test_a_query_that_ends_runs_each_time(tmp_path: Path) -> None:
    made = session(tmp_path)
    for _ in range(2):
        assert [row[0] for row in made.execute_sql("SELECT COUNT(*) FROM (VALUES 1, 2) AS t(n)").collect()][-1] == 2


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    cut_short(start(session(tmp_path)))
    (record,) = (tmp_path / "state" / ".flowsql").glob("*.json")
    text = record.read_text()
    record.write_text(text[:40])
    refused(session(tmp_path), "INSERT INTO a SELECT n FROM numbers", "resume-record", str(record), "is damaged")
    record.write_text(json.dumps({**json.loads(text), "version": 2}))
    refused(session(tmp_path), "INSERT INTO a SELECT n FROM numbers", "resume-record", "version 2")


def test_a_job_stopped_with_a_savepoint_anywhere_goes_on_from_it(tmp_path: Path) -> None:
    client = start(session(tmp_path))
    while not client._job.metrics.checkpoints.completed:
        time.sleep(0.01)
    path = client.stop_with_savepoint(False, str(tmp_path / "elsewhere")).result()
    client.wait()
    die()
    again = start(session(tmp_path))
    assert again.started_from() == path
    newer = cut_short(again)
    assert newer != path
    assert Path(path).exists()
    last = start(session(tmp_path))
    assert last.started_from() == newer
    last.wait()
    assert rows(tmp_path) == WHOLE


def test_a_program_of_streams_goes_on(tmp_path: Path) -> None:
    def program() -> JobClient:
        configuration = Configuration()
        for key, value in {
            "execution.checkpointing.interval": "30 ms",
            "execution.checkpointing.dir": str(tmp_path / "state"),
            "execution.state-recovery.path": "latest",
            "execution.runtime-mode": "STREAMING",
            "parallelism.default": "1",
        }.items():
            configuration.set_string(key, value)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        numbers = env.from_collection(list(range(40)), type_info=Types.INT()).uid("numbers")
        numbers.map(_slowly, output_type=Types.INT()).uid("slowly").print().name("told")
        return env.execute_async("streams")

    client = program()
    left = cut_short(client)
    again = program()
    assert again.started_from() == left
    again.wait()
    die()
    assert program().ended_before()


def _slowly(value: int) -> int:
    time.sleep(0.02)
    return value
