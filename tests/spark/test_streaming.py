"""Streams on Spark: answers over several batches, checkpoints, restarts at bad moments, refusals."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from flowsql.datastream import StreamExecutionEnvironment
from flowsql.table import DataTypes
from flowsql.table.session.environment import TableEnvironment
from flowsql.table.udf import udf
from flowsql_core.config import Configuration
from flowsql_core.errors import BindError, ExecutionError, FlowSqlError, NotSupportedYetError
from flowsql_runtime.cluster.job import JobStatus
from flowsql_runtime.spark.streaming import job as streaming_job
from tests.spark.killed_streams import QUERIES, play
from tests.spark.spark_machine import ON_SPARK, hurry

HERE = Path(__file__).parent
START = datetime(2024, 1, 1)
#: A row whose time closes every window of those before it; nothing of it is compared.
END = "999999,end,0,2030-01-01 00:00:00.000\n"


def blocks(name: str) -> list[list[str]]:
    text = (HERE / name).read_text()
    found = [[line for line in block.splitlines() if not line.startswith("#")] for block in text.split("\n\n")]
    return [block for block in found if block]


STREAMS = {block[0].split()[0]: (block[0].split()[1], block[1]) for block in blocks("streams.txt")}


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., TableEnvironment]:
    """A session over the tables ``a`` and ``b`` in ``tmp_path``."""
    hurry()

    def made(**options: str) -> TableEnvironment:
        values = {
            "execution.target": "spark",
            "execution.checkpointing.dir": str(tmp_path / "checkpoint"),
            "flowsql.spark.max-files-per-batch": "1",
            "parallelism.default": "2",
            "table.local-time-zone": "UTC",
            **options,
        }
        environment = TableEnvironment.of_configuration(Configuration(values=values))
        for name in "ab":
            environment.execute_sql(
                f"CREATE TABLE {name} (id INT, k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' "
                f"SECOND) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{tmp_path / name}')"
            )
        environment.execute_sql("CREATE TEMPORARY VIEW counts AS SELECT k, COUNT(*) AS n FROM a GROUP BY k")
        environment.execute_sql(
            "CREATE TEMPORARY VIEW latest AS SELECT id, k, v, ts FROM "
            "(SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS r FROM b) WHERE r = 1"
        )
        return environment

    return made


def write(folder: Path, files: int, rows: int, seed: int = 5) -> None:
    """Rows in files that follow each other, in names and ages."""
    folder.mkdir()
    rng = random.Random(seed)
    each = rows // files
    for file in range(files):
        lines = [
            f"{n},k{rng.randrange(8)},{rng.randrange(1000)},"
            f"{(START + timedelta(milliseconds=n * 100 + rng.randrange(900))).isoformat(' ', 'milliseconds')}\n"
            for n in range(file * each, (file + 1) * each)
        ]
        add(folder, f"{file}.csv", "".join(lines))


def add(folder: Path, name: str, text: str) -> None:
    """A file that is younger than all others."""
    count = len(list(folder.iterdir()))
    path = folder / name
    path.write_text(text)
    os.utime(path, (1_700_000_000 + count, 1_700_000_000 + count))


def sink(environment: TableEnvironment, name: str, query: str, path: Path, kind: str) -> None:
    """A table of JSON lines, or of changes, for a query."""
    schema = environment.sql_query(query).get_schema()
    types = [str(found).replace(" *ROWTIME*", "").replace(" NOT NULL", "") for found in schema.get_field_data_types()]
    columns = ", ".join(f"{column} {type_}" for column, type_ in zip(schema.get_field_names(), types, strict=True))
    format_ = "json" if kind == "rows" else "debezium-json"
    environment.execute_sql(
        f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = '{format_}')"
    )


def told(path: Path) -> Counter[str]:
    """The rows that a sink's files add up to, without those of :data:`END`."""
    found: Counter[str] = Counter()
    for file in path.glob("part-*"):
        for line in file.read_text().splitlines():
            body = json.loads(line)
            if "after" not in body:
                found[json.dumps(body, sort_keys=True)] += 1
            elif body["op"] == "c":
                found[json.dumps(body["after"], sort_keys=True)] += 1
            else:
                found[json.dumps(body["before"], sort_keys=True)] -= 1
    ends = ("999999", '"end"', "2030-01", "2029-12")
    return Counter({row: count for row, count in found.items() if count and not any(end in row for end in ends)})


def compare(
    make: Callable[..., TableEnvironment], folder: Path, names: list[str], on_spark: dict[str, str] | None = None
) -> None:
    """Run streams in one statement set here and on Spark, three files of each table in three batches."""
    for table in "ab":
        write(folder / table, 3, 900)
        add(folder / table, "end.csv", END)
    # With more readers than one it would hang on their race which rows of a table come last.
    for target, parallelism in (("local", "1"), ("spark", "2")):
        more = on_spark or {} if target == "spark" else {}
        environment = make(**{"execution.target": target, "parallelism.default": parallelism, **more})
        statements = environment.create_statement_set()
        for name in names:
            kind, query = STREAMS[name]
            sink(environment, f"o_{name}", query, folder / target / name, kind)
            statements.add_insert_sql(f"INSERT INTO o_{name} {query}")
        statements.execute().wait()
    for name in names:
        expected, found = told(folder / "local" / name), told(folder / "spark" / name)
        assert expected, name
        assert found == expected, name


@pytest.mark.parametrize("block", blocks("refused_streams.txt"), ids=lambda block: block[1].partition(" in ")[0])
def test_what_spark_cannot_run_is_refused_where_it_stands(
    make: Callable[..., TableEnvironment], tmp_path: Path, block: list[str]
) -> None:
    query, refused, place = block
    environment = make()
    for name, columns, rest in (
        ("p", "id INT, pt AS PROCTIME()", ""),
        ("compacted", "id INT", ", 'auto-compaction' = 'true'"),
    ):
        environment.execute_sql(
            f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'format' = 'csv', "
            f"'path' = '{tmp_path / name}'{rest})"
        )
    environment.execute_sql(
        "CREATE TABLE committed (id INT, k STRING) PARTITIONED BY (k) WITH ('connector' = 'filesystem', 'format' = "
        f"'csv', 'path' = '{tmp_path / 'c'}', 'sink.partition-commit.policy.kind' = 'success-file')"
    )
    with pytest.raises(NotSupportedYetError) as caught:
        environment.execute_sql(query)
    assert caught.value.message == f"not supported yet: {refused}"
    assert caught.value.at is not None
    assert query[caught.value.at.start :].startswith(place)
    assert not (tmp_path / "checkpoint").exists()


def test_options_that_do_not_fit_are_refused(make: Callable[..., TableEnvironment]) -> None:
    with pytest.raises(BindError, match=r"needs a checkpoint, and 'execution\.checkpointing\.dir' is not set"):
        make(**{"execution.checkpointing.dir": ""}).execute_sql("SELECT id FROM a")
    with pytest.raises(BindError, match=r"'state\.backend\.type' = 'rocksdb' is refused for a stream on Spark"):
        make(**{"state.backend.type": "rocksdb"}).execute_sql("SELECT id FROM a")
    with pytest.raises(BindError, match=r"'execution\.state-recovery\.path' is refused for a stream on Spark"):
        make(**{"execution.state-recovery.path": "/nowhere"}).execute_sql("SELECT id FROM a")
    with pytest.raises(BindError, match=r"Could not parse value 'soon' for key 'flowsql\.spark\.trigger'"):
        make(**{"flowsql.spark.trigger": "soon"})


def test_what_is_no_statement_is_refused(make: Callable[..., TableEnvironment], tmp_path: Path) -> None:
    environment = make(**{"execution.target": "local"})
    environment.execute_sql("CREATE TABLE o (id INT) WITH ('connector' = 'blackhole')")
    environment.execute_sql(f"COMPILE PLAN '{tmp_path / 'plan.json'}' FOR INSERT INTO o SELECT id FROM a")
    environment.execute_sql("SET 'execution.target' = 'spark'")
    with pytest.raises(NotSupportedYetError, match="EXECUTE PLAN in a stream on Spark"):
        environment.execute_sql(f"EXECUTE PLAN '{tmp_path / 'plan.json'}'")
    streams = StreamExecutionEnvironment.get_execution_environment()
    streams.configuration.set("execution.target", "spark")
    streams.from_collection([1]).print()
    with pytest.raises(NotSupportedYetError, match="a program of DataStreams on Spark"):
        streams.execute()


def test_explain_shows_the_stages(make: Callable[..., TableEnvironment]) -> None:
    text = make().explain_sql("SELECT n, COUNT(*) FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY k) GROUP BY n")
    assert text.partition("== Spark Stages ==\n")[2].strip().splitlines() == [
        "Stage 1, 2 tasks",
        "  Source: a[1] -> WatermarkAssigner -> Calc",
        "Stage 2, 2 tasks",
        "  GroupAggregate -> Calc",
        "    HASH of 1 column from Source: a[1] -> WatermarkAssigner -> Calc",
        "Stage 3, 2 tasks",
        "  GroupAggregate",
        "    HASH of 1 column from GroupAggregate -> Calc",
        "Stage 4, 1 task",
        "  Sink",
        "    GLOBAL from GroupAggregate",
    ]


class OnSpark:
    """Tests with a session."""

    pytestmark = ON_SPARK


class TestOnSpark(OnSpark):
    """With a session of Spark."""

    def test_answers_are_those_of_flowsqls_own_runtime(
        self, make: Callable[..., TableEnvironment], tmp_path: Path
    ) -> None:
        compare(make, tmp_path, list(STREAMS))

    @pytest.mark.nightly
    def test_mini_batches_end_with_the_batch(self, make: Callable[..., TableEnvironment], tmp_path: Path) -> None:
        mini_batches = {
            "table.exec.mini-batch.enabled": "true",
            "table.exec.mini-batch.allow-latency": "1 h",
            "table.exec.mini-batch.size": "1000000",
        }
        compare(make, tmp_path, ["groups", "groups_of_groups", "distinct", "last_rows", "tumble"], mini_batches)

    def test_a_run_goes_on_behind_the_one_before(self, make: Callable[..., TableEnvironment], tmp_path: Path) -> None:
        """Whatever moment it broke off at: before its snapshot, and between that and what its sinks show."""
        write(tmp_path / "a", 2, 400)
        kind, query = STREAMS["groups"]

        def run(breaking: str | None = None) -> None:
            environment = make()
            sink(environment, "o", query, tmp_path / "out", kind)
            with pytest.MonkeyPatch.context() as patch:
                if breaking is not None:
                    owner, name = breaking.split(".")
                    patch.setattr(getattr(streaming_job, owner), name, broken)
                environment.execute_sql(f"INSERT INTO o {query}").wait()

        def broken(*_: object) -> None:
            raise ExecutionError("broken", "broken on purpose")

        run()
        before = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
        add(tmp_path / "a", "2.csv", "400,k1,5,2024-01-01 00:01:00.000\n")
        for breaking in ("StreamCheckpoint.publish", "BatchedSinks.commit"):
            with pytest.raises(ExecutionError, match="broken on purpose"):
                run(breaking)
            assert {path.name: path.read_text() for path in (tmp_path / "out").glob("part-*")} == before
        # Spark notes a batch as done behind everything else.
        run()
        shutil.rmtree(tmp_path / "checkpoint" / "spark" / "commits")
        (tmp_path / "checkpoint" / "spark" / "commits").mkdir()
        run()
        after = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
        assert {name: after.pop(name) for name in before} == before
        (text,) = after.values()
        (taken_out, put_in) = map(json.loads, text.splitlines())
        assert (taken_out["op"], put_in["op"]) == ("d", "c")
        assert put_in["after"]["n"] == taken_out["before"]["n"] + 1
        assert sorted(path.name for path in (tmp_path / "checkpoint").glob("chk-*")) == ["chk-2", "chk-3"]

        environment = make()
        sink(environment, "o", query, tmp_path / "out", kind)
        other = environment.execute_sql(f"INSERT INTO o {query.replace('MAX', 'MIN')}")
        with pytest.raises(ExecutionError, match="is of another statement"):
            other.wait()
        shutil.rmtree(tmp_path / "checkpoint" / "chk-3")
        add(tmp_path / "a", "3.csv", "401,k1,5,2024-01-01 00:01:00.000\n")
        with pytest.raises(ExecutionError, match=r"Spark begins batch 4, and the newest snapshot in .* of batch 2"):
            run()

    def test_rows_reach_the_program(
        self, make: Callable[..., TableEnvironment], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Through print and collect, behind a Python function, of files with odd names in folders."""

        @udf(result_type=DataTypes.STRING())
        def shout(text: str) -> str:
            return text.upper() + "!"

        folder = tmp_path / "a"
        folder.mkdir()
        (folder / "b c").mkdir()
        (folder / "b c" / "50%25 [ü].csv").write_text("1,x,10,2024-01-01 00:00:00\n")
        (folder / "_hidden.csv").write_text("2,y,10,2024-01-01 00:00:00\n")
        environment = make(**{"flowsql.spark.max-bytes-per-batch": "1 mb"})
        environment.create_temporary_function("shout", shout)
        environment.execute_sql("CREATE TABLE p (id INT, k STRING) WITH ('connector' = 'print')")
        written = environment.execute_sql("INSERT INTO p SELECT id, shout(k) FROM a")
        written.wait()
        job = written.get_job_client()
        assert job is not None
        assert str(job.get_volumes()) == "1 row read"
        assert capsys.readouterr().out == "1> +I[1, X!]\n"
        environment = make(**{"execution.checkpointing.dir": str(tmp_path / "other")})
        with environment.execute_sql("SELECT id, COUNT(*) FROM a GROUP BY id").collect() as rows:
            assert [tuple(row) for row in rows] == [(1, 1)]
        (folder / "bad.csv").write_text("no number,x,10,2024-01-01 00:00:00\n")
        with pytest.raises(FlowSqlError, match="no number") as caught:
            list(environment.execute_sql("SELECT id, COUNT(*) FROM a GROUP BY id").collect())
        assert "Source: a" in str(caught.value.operator) or "TableSourceScan" in str(caught.value.operator)

    def test_datagen_gives_rows_until_the_job_is_cancelled(
        self, make: Callable[..., TableEnvironment], tmp_path: Path
    ) -> None:
        environment = make(**{"flowsql.spark.trigger": "200 ms"})
        environment.execute_sql(
            "CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000', "
            "'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '1000000')"
        )
        sink(environment, "o", "SELECT n FROM g", tmp_path / "out", "rows")
        job = environment.execute_sql("INSERT INTO o SELECT n FROM g").get_job_client()
        assert job is not None
        deadline = time.monotonic() + 60
        while len(told(tmp_path / "out")) < 2000 and time.monotonic() < deadline:
            time.sleep(0.1)
        with pytest.raises(ExecutionError, match="where no savepoints are taken"):
            job.trigger_savepoint(str(tmp_path / "savepoint"))
        job.cancel_and_wait()
        assert job.get_job_status() is JobStatus.CANCELED
        found = told(tmp_path / "out")
        assert sorted(json.loads(row)["n"] for row in found) == list(range(len(found)))
        assert set(found.values()) == {1}
        assert len(found) % 1000 == 0
        assert len(found) >= 2000

    @pytest.mark.nightly
    def test_a_killed_driver_changes_nothing(self, tmp_path: Path) -> None:
        play(tmp_path, "changes", kills=1, rows=4_000, files=4, keys=100)

    @pytest.mark.nightly
    @pytest.mark.parametrize("kind", sorted(QUERIES))
    def test_many_killed_drivers_change_nothing(self, tmp_path: Path, kind: str) -> None:
        keys = 100_000 if kind == "changes" else 200
        play(tmp_path, kind, kills=20, rows=1_000_000, files=100, keys=keys)


def test_streams_of_flowsqls_own_runtime_load_nothing_of_spark(tmp_path: Path) -> None:
    import subprocess

    program = """
import sys
from flowsql.table.session.environment import TableEnvironment
environment = TableEnvironment.create()
environment.get_config().set("execution.target", "local")
assert len(list(environment.execute_sql("SELECT 1").collect())) == 1
assert not any(name.partition(".")[0] in ("pyspark", "py4j") for name in sys.modules)
assert not any(".spark." in name and "graph" not in name for name in sys.modules)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
