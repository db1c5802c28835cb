"""Every option of ``docs/options.md`` does something: a table of options and what is seen when they are set.

An observation runs twice, with the option at its default and set, and must differ. An option without a line here fails.
"""

from __future__ import annotations

import io
import random
import re
import tempfile
import time
import zipfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flowsql.cli.main import main
from flowsql.option_homes import OPTION_HOMES
from flowsql.session_zone import session_zone
from flowsql.table.session.environment import TableEnvironment
from flowsql_connectors.file_systems.s3 import open_s3
from flowsql_connectors.formats.format import EncodeContext
from flowsql_connectors.formats.protobuf.factory import ProtobufFormatFactory
from flowsql_connectors.options import OptionValues
from flowsql_core.config import LOCAL_TIME_ZONE, Configuration
from flowsql_core.errors import ConnectorError, FlowSqlError
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.specs import ScanSpec, TableSpec, WatermarkAlignment
from flowsql_core.span import Source
from flowsql_grammar import parse_statement
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.statement import bind_statement
from flowsql_planner.planner import Planner
from flowsql_runtime.checkpoint.manifest import Manifest
from flowsql_runtime.checkpoint.settings import CheckpointSettings, RecoverySettings
from flowsql_runtime.checkpoint.trust import check_trusted
from flowsql_runtime.cluster.deploy import blocking_edges, make_spill_space
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.cluster.master import JobMaster
from flowsql_runtime.cluster.restart import strategy_of
from flowsql_runtime.operators.source import ScanOperator
from flowsql_runtime.spark.sessions.settings import settings_of
from flowsql_runtime.spark.streaming.input import BatchedSources
from flowsql_runtime.spark.streaming.job import trigger_of
from flowsql_runtime.state.rocksdb.backend import RocksDBBackend
from flowsql_runtime.state.rocksdb.database import Database
from flowsql_runtime.state.rocksdb.local_files import LocalFiles
from flowsql_runtime.state.rocksdb.settings import LOG_FOLDER, SWEEP_PIECE, RocksDBSettings
from flowsql_runtime.state.stores import StoredColumn
from flowsql_runtime.task.trigger import reads_what_is_there
from flowsql_runtime.testing.harness import OperatorHarness
from flowsql_runtime.time.alignment import AlignedSource, AlignmentGroups

from .. import sqlite_lookup
from ..cli.shell.terminal import shell
from ..runtime.fake_connector import FakeStore, install
from ..runtime.graphs import NUMBERS

RESULT_MODE = "sql-client.execution.result-mode"
#: A query that waits for files which never come.
SILENT = f"""
CREATE TABLE nothing (a INT) WITH ('connector' = 'filesystem', 'path' = '{Path(__file__).parent}', 'format' = 'csv',
'source.path.regex-pattern' = '.*[.]nosuch', 'source.monitor-interval' = '1 s'); SELECT a FROM nothing
"""

#: A stream whose state grows for ever.
GROWING = """
CREATE TABLE endless (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1');
SELECT a, MAX(a) FROM endless GROUP BY a
"""

#: Values under which an option is set beside those that it is looked at with.
Options = dict[str, str]

STRICT = "CREATE TABLE strict (n INT NOT NULL) WITH ('connector' = 'print')"

TABLES = (
    STRICT,
    "CREATE TABLE clicks (id INT, who STRING, n INT, ts TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED, "
    "WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'datagen', 'number-of-rows' = '10')",
    "CREATE TABLE plain (a INT, b INT) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '/nowhere')",
    "CREATE TABLE looked (id INT, n INT) WITH ('connector' = 'sqlite', 'path' = '/nowhere', 'table' = 't')",
    "CREATE TABLE nothing (who STRING, c BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH ('connector' = 'blackhole')",
    "CREATE TABLE changes (who STRING, PRIMARY KEY (who) NOT ENFORCED) WITH ('connector' = 'filesystem', 'format' = "
    "'debezium-json', 'path' = '/nowhere')",
    "CREATE TABLE keyed (who STRING, c BIGINT, PRIMARY KEY (c) NOT ENFORCED) WITH ('connector' = 'blackhole')",
)

LOOKUP = (
    "SELECT c.id FROM (SELECT *, PROCTIME() AS pt FROM clicks) AS c "
    "JOIN looked FOR SYSTEM_TIME AS OF c.pt AS l ON c.id = l.id"
)
COUNTED = "SELECT who, COUNT(*) AS c FROM clicks GROUP BY who"
GROUPED = "SELECT who, COUNT(DISTINCT n) AS c FROM clicks GROUP BY who"
WINDOWED = "SELECT who, COUNT(*) AS c FROM clicks GROUP BY who, TUMBLE(ts, INTERVAL '1' MINUTE)"
LATE_ANSWERS = {"table.exec.emit.late-fire.enabled": "true", "table.exec.emit.late-fire.delay": "0 s"}
MINI_BATCH = {"table.exec.mini-batch.enabled": "true", "table.exec.mini-batch.allow-latency": "1 s"}


def session(options: Options) -> TableEnvironment:
    sqlite_lookup.provide()
    environment = TableEnvironment.create()
    config = environment.get_config().set("table.local-time-zone", "UTC")
    for key, value in options.items():
        config.set(key, value)
    for table in TABLES:
        environment.execute_sql(table)
    return environment


def graph(sql: str, options: Options) -> JobGraph:
    """The job of a query."""
    environment = session(options)
    configuration = environment.configuration.with_layer({LOCAL_TIME_ZONE.key: session_zone(environment.configuration)})
    source = Source(sql)
    bound: Any = bind_statement(parse_statement(source), BindContext(environment.catalogs, configuration, source))
    return Planner(configuration).plan_query(bound, object())


def outcome(work: Callable[[], Any]) -> Any:
    """What work answers, or how it fails."""
    try:
        return work()
    except FlowSqlError as error:
        return f"{error.code}: {error.message}"


def job_of(sql: str) -> Callable[[Options], Any]:
    """The job graph, without the options that it carries along."""
    return lambda options: outcome(lambda: replace(graph(sql, options), configuration=()))


def described(options: Options) -> str:
    """What is said of a type of messages that no file describes."""
    table = TableSpec(("c", "d", "t"), (), ())
    format_ = ProtobufFormatFactory().create(OptionValues({"protobuf.message-class-name": "x.Y"}), table)
    return str(outcome(lambda: format_.message_encoder((), EncodeContext(options))))


def plan_of(sql: str) -> Callable[[Options], Any]:
    """What EXPLAIN prints."""
    return lambda options: outcome(lambda: session(options).execute_sql(f"EXPLAIN {sql}").text())


def tasks_of(look: Callable[[JobMaster], Any]) -> Callable[[Options], Any]:
    """A deployed job that is not started."""

    def observe(options: Options) -> Any:
        run = LocalCluster()._master(graph(GROUPED, {"parallelism.default": "2", **options}), None, None, None, None)
        return look(run)

    return observe


def rows_of(sql: str) -> Callable[[Options], Any]:
    """Rows in the batches in which they come."""

    def observe(options: Options) -> Any:
        def run() -> Any:
            result = session(options).execute_sql(sql)
            return [[str(column.to_pylist()) for column in batch.columns] for batch in result.batches()]

        return outcome(run)

    return observe


def command(sql: str, *words: str) -> Callable[[Options], Any]:
    """What the command prints."""

    def observe(options: Options) -> Any:
        out, err = io.StringIO(), io.StringIO()
        quiet = {"sql-client.display.print-time-cost": "false", **options}
        with redirect_stdout(out), redirect_stderr(err):
            code = main([*(f"-D{key}={value}" for key, value in quiet.items()), *words, "-c", sql])
        return code, out.getvalue(), err.getvalue()

    return observe


def in_the_shell(line: str, shown: str = "") -> Callable[[Options], Any]:
    """What the shell shows behind a line, and what the cursor's keys do there."""

    def observe(options: Options) -> Any:
        quiet = {"sql-client.display.print-time-cost": "false", **options}
        words = [word for key, value in quiet.items() for word in ("-D", f"{key}={value}")]
        with tempfile.TemporaryDirectory() as folder, shell(Path(folder), *words, NO_COLOR="") as terminal:
            terminal.wait_for("Flow SQL>")
            terminal.enter("\\c")
            terminal.wait_for("default_database")
            terminal.enter(line)
            terminal.wait_for(shown)
            terminal.press("Escape")
            terminal.type("x")
            time.sleep(0.8)
            screen = terminal.screen()
            colors = {cell.fg for row in terminal._screen.buffer.values() for cell in row.values()}
            return re.sub(r"[\d:.]+ ", "", screen), colors

    return observe


def backends(run: JobMaster) -> list[str]:
    """Classes of the state of the job's operators."""
    return sorted({type(node.operator.ctx.state).__name__ for task in run.job._tasks for node in task._chain.operators})


def rocksdb_settings(options: Options) -> Any:
    """What the options say to the backend, but not to RocksDB."""
    found = RocksDBSettings.of(Configuration(values=options), 1 << 30, 1)
    return found.folders, found.get(LOG_FOLDER), found.get(SWEEP_PIECE)


def rocksdb_files(options: Options) -> Any:
    """What RocksDB wrote down, and how large its filters and batches are."""

    def look() -> Any:
        found = RocksDBSettings.of(Configuration(values=options), 1 << 30, 1)
        with tempfile.TemporaryDirectory() as folder:
            database = Database(found, lambda: LocalFiles(folder))
            database.write([b"%d" % number for number in range(1000)], [b"value"] * 1000, [])
            assert database.path is not None
            written = max(database.path.glob("OPTIONS-*")).read_text()
            cache = re.findall(r"capacity : \d+", (database.path / "LOG").read_text())
            filters = re.findall(r"filter block size=\d+", database.table_properties())
            database.close()
        settled = [line for line in written.splitlines() if "session_id" not in line and "host" not in line]
        return settled, cache, filters, database.batches, found.resident_bytes

    return outcome(look)


def rocksdb_checkpoint(options: Options) -> Any:
    """What a checkpoint leaves in files of RocksDB, and how many of them are written at a time."""
    with tempfile.TemporaryDirectory() as folder:
        values = {"state.backend.rocksdb.memory.fixed-per-slot": "1", "io.tmp.dirs": folder, **options}
        backend = RocksDBBackend(RocksDBSettings.of(Configuration(values=values), 1 << 30, 1))
        backend.column_store("c", index := backend.key_index([pa.int64()]), [StoredColumn("v", pa.int64())])
        index.find_or_insert(index.encode([pa.array([1, 2, 3])]))
        backend.settle()
        snapshot = backend.snapshot_async(native=True)
        rows, native = snapshot.tables()["c"].num_rows, snapshot.native()
        snapshot.release()
        backend.close()
    return rows, native if native is None else (len(native.shared), native.threads)


ROCKSDB_INCREMENTAL = {"execution.checkpointing.incremental": "true"}
ROCKSDB_BUFFERS = {"state.backend.rocksdb.writebuffer.count": "4"}
ROCKSDB_BLOOM = {"state.backend.rocksdb.use-bloom-filter": "true"}
ROCKSDB_UNBOUNDED = {"state.backend.rocksdb.memory.managed": "false"}


def configured(look: Callable[[Configuration], Any]) -> Callable[[Options], Any]:
    return lambda options: outcome(lambda: look(Configuration(values=options)))


def latency(options: Options) -> Any:
    from flowsql_runtime.metrics.latency import LatencyTracking

    return LatencyTracking.of(Configuration(values=options))


def spill_folders(options: Options) -> Any:
    space = make_spill_space(graph("SELECT 1", {}), Configuration(values=options), "job")
    return None if space is None else space.folders


def blocking(options: Options) -> Any:
    made = graph(GROUPED, {"parallelism.default": "2"})
    return blocking_edges(made, Configuration(values=options))


def restarts_in_part(options: Options) -> bool:
    """Whether parts of a job whose exchanges block can start again by themselves."""
    made = replace(graph(GROUPED, {"parallelism.default": "2"}), configuration=tuple(options.items()))
    return LocalCluster()._master(made, None, None, None, None)._failover is not None


def catalog_store(options: Options) -> Any:
    from flowsql_planner.catalog.store import make_store

    return outcome(lambda: type(make_store(Configuration(values=options))).__name__)


def overwrites(options: Options) -> Any:
    """Whether a compiled plan may replace a file that is there."""
    from flowsql.table.session.plan_files import may_write

    return outcome(lambda: may_write(__file__, False, Configuration(values=options), None))


def variable_in_sql(options: Options) -> object:
    """Whether a variable of the program can be read."""
    numbers = pa.table({"n": [1, 2]})
    environment = TableEnvironment(Configuration(values=options))
    try:
        return environment.sql_query("SELECT n FROM numbers").get_schema().get_field_names(), numbers.num_rows
    except FlowSqlError as error:
        return error.message


def is_over_at_once(options: Options) -> bool:
    """Whether an INSERT whose rows come slowly has ended when it returns."""
    environment = session(options)
    environment.execute_sql(
        "CREATE TABLE slow (n INT) WITH ('connector' = 'datagen', 'number-of-rows' = '20', 'rows-per-second' = '50')"
    )
    environment.execute_sql("CREATE TABLE away (n INT) WITH ('connector' = 'blackhole')")
    result = environment.execute_sql("INSERT INTO away SELECT n FROM slow")
    job = result.get_job_client()
    assert job is not None
    is_over = job.is_over()
    result.wait()
    return is_over


FILE_FUNCTION = """CREATE TEMPORARY FUNCTION told AS $$
import os

def told(x: int) -> str:
    return open('data/note.txt').read() if os.path.exists('data/note.txt') else 'nothing'
$$ LANGUAGE PYTHON"""

FUNCTION = """CREATE TEMPORARY FUNCTION told AS $$
import os
from flowsql.table.udf import ScalarFunction, udf

class Told(ScalarFunction):
    def open(self, context):
        self.mine = context.get_job_parameter('mine', 'none')

    def eval(self, x):
        return f'{self.mine} {os.getpid()}'

told = udf(Told(), result_type='STRING')
$$ LANGUAGE PYTHON"""
PANDAS_FUNCTION = """CREATE TEMPORARY FUNCTION told AS $$
from flowsql.table.udf import udf
told = udf(lambda x: x * 0 + len(x), result_type='INT', func_type='pandas')
$$ LANGUAGE PYTHON"""


#: It fails twice for each row, and tells how many calls went on at once.
ASYNC_FUNCTION = """CREATE TEMPORARY FUNCTION told AS $$
import asyncio, collections
from flowsql.table.udf import AsyncScalarFunction, udf

class Told(AsyncScalarFunction):
    def open(self, context):
        self.at_once = self.most = 0
        self.failed = collections.Counter()

    async def eval(self, x):
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0.02)
        self.at_once -= 1
        if self.failed[x] < 2:
            self.failed[x] += 1
            raise ValueError
        return self.most

told = udf(Told(), result_type='INT')
$$ LANGUAGE PYTHON"""


def asynchronous(options: Options) -> Any:
    """How many calls of a function went on at once, or how it failed."""
    return outcome(lambda: max(functions(ASYNC_FUNCTION)(options)))


PYTHON_AGGREGATE = """CREATE TEMPORARY FUNCTION total AS $$
from flowsql.table.udf import AggregateFunction, udaf
class Total(AggregateFunction):
    def create_accumulator(self):
        return [0]
    def accumulate(self, accumulator, value):
        accumulator[0] += value
    def get_value(self, accumulator):
        return accumulator[0]
total = udaf(Total(), result_type='INT', accumulator_type='ARRAY<INT>')
$$ LANGUAGE PYTHON"""


def functions(definition: str) -> Callable[[Options], Any]:
    """What a Python function is told."""

    def observe(options: Options) -> Any:
        environment = session(options)
        environment.execute_sql(definition)
        with environment.execute_sql("SELECT told(id) FROM clicks").collect() as rows:
            return [row[0] for row in rows]

    return observe


def with_archive(options: Options) -> Any:
    """What a function finds in an archive, where options name the folder in which its file appears."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "notes.zip"
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr("note.txt", "here")
        given = {key: f"{path}#{value}" if key == "python.archives" else value for key, value in options.items()}
        return functions(FILE_FUNCTION)(given)


def current_place(options: Options) -> tuple[str, str]:
    """Catalog and database that a session starts with."""
    environment = TableEnvironment.of_configuration(Configuration(values=options))
    return environment.get_current_catalog(), environment.get_current_database()


def bundles(options: Options) -> int:
    """How often a Python aggregate tells its result, over ten rows that take half a second."""
    environment = session(options)
    environment.execute_sql(PYTHON_AGGREGATE)
    environment.execute_sql(
        "CREATE TEMPORARY TABLE slow (n INT) WITH ('connector' = 'datagen', 'rows-per-second' = '20', "
        "'number-of-rows' = '10', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '10')"
    )
    with environment.execute_sql("SELECT total(n) FROM slow").collect() as rows:
        return sum(1 for _ in rows)


def outputs(run: JobMaster) -> list[str]:
    nodes = [node for task in run.job._tasks for node in task._chain.operators]
    return [type(node.output).__name__ for node in nodes]


def targets(run: JobMaster) -> list[str]:
    nodes = [node for task in run.job._tasks for node in task._chain.operators]
    return [type(target).__name__ for node in nodes for target in node.output._all]


def budget(options: Options) -> int:
    cluster = LocalCluster()
    cluster._master(graph("SELECT 1", options), None, None, None, None)
    assert cluster.budget is not None
    return cluster.budget.total_bytes


def checkpoints(options: Options) -> Any:
    return outcome(lambda: CheckpointSettings.of(Configuration(values=options)))


def paused(options: Options) -> Any:
    """What a reader of two splits does that is to pause the one that it has begun, and cannot."""
    with pytest.MonkeyPatch.context() as patch:
        install(patch, FakeStore({"a": [(1, "x"), (2, "x")], "b": [(1, "y")]}))
        scan = OperatorHarness(ScanSpec(TableSpec(("c", "d", "t"), NUMBERS, ()), (0, 1), NUMBERS), parameters=options)
        source = scan.operators[0]
        assert isinstance(source, ScanOperator)
        progress = source.ctx.progress
        progress.aligned = AlignedSource(
            WatermarkAlignment("g", 0), AlignmentGroups(), "s", {"a": 0}, progress.unfinished, lambda after_ms: None
        )
        progress.aligned.look()
        return outcome(source.emit_next)


def recovery(options: Options) -> RecoverySettings:
    return RecoverySettings.of(Configuration(values=options))


def waits(error: BaseException, times: int, apart_ms: int = 0) -> Callable[[Options], list[int | None]]:
    """What the restart strategy answers to failures one behind another."""

    def observe(options: Options) -> list[int | None]:
        strategy = strategy_of(Configuration(values=options), True, random.Random(1))
        return [strategy.delay_ms(number * apart_ms, error) for number in range(times)]

    return observe


UNALIGNED = "execution.checkpointing.unaligned.enabled"
LOST = ConnectorError("lost", "The other side is gone.", retryable=True)
EXPONENTIAL = {"restart-strategy.type": "exponential-delay"}
BLOCKED = {"execution.runtime-mode": "batch", "execution.batch-shuffle-mode": "ALL_EXCHANGES_BLOCKING"}
RATE = {"restart-strategy.type": "failure-rate"}
FIXED = {"restart-strategy.type": "fixed-delay"}


def opened_s3(options: Options) -> object:
    """How a bucket would be reached; nothing is asked of it."""
    try:
        return open_s3("bucket", options).__reduce__()[1]
    except ValueError as error:
        return str(error)


def trusted(options: Options) -> Any:
    """Whether a snapshot with Python objects is taken from an object store."""
    manifest = Manifest(1, "savepoint", 0, "", "", {}, objects=True)
    configuration = Configuration(values=dict(options))
    return outcome(lambda: check_trusted("s3://bucket/chk-1", manifest, graph(GROUPED, options), configuration))


@dataclass(frozen=True)
class Effect:
    """Set to ``value``, the observation differs from that ``without`` it. ``beside``: options set in both."""

    value: str
    observe: Callable[[Options], Any]
    beside: Options | None = None


TWICE = f"SELECT a.who FROM ({GROUPED}) AS a JOIN ({GROUPED}) AS b ON a.who = b.who"
PROJECTIONS = "SELECT a FROM plain UNION ALL SELECT b FROM plain"

EFFECTS: dict[str, Effect] = {
    "protobuf.descriptor-files": Effect("/nowhere.desc", described),
    "execution.target": Effect("spark", plan_of("SELECT who, COUNT(*) FROM clicks GROUP BY who")),
    "flowsql.spark.max-bytes-per-batch": Effect("7 mb", lambda o: BatchedSources(graph(GROUPED, o))._file_options()),
    "flowsql.spark.max-files-per-batch": Effect("7", lambda o: BatchedSources(graph(GROUPED, o))._file_options()),
    "s3.access-key": Effect("key", opened_s3, {"s3.secret-key": "secret", "s3.region": "eu-west-1"}),
    "s3.secret-key": Effect("secret", opened_s3, {"s3.access-key": "key", "s3.region": "eu-west-1"}),
    "s3.endpoint": Effect("http://localhost:1", opened_s3, {"s3.region": "eu-west-1"}),
    "s3.path.style.access": Effect("true", opened_s3, {"s3.region": "eu-west-1"}),
    "s3.region": Effect("eu-west-1", opened_s3, {"s3.endpoint": "http://localhost:1"}),
    "flowsql.python-variables": Effect("false", variable_in_sql),
    "flowsql.spark.trigger": Effect("7 s", lambda options: trigger_of(Configuration(values=options))),
    "execution.batch.engine": Effect("spark", plan_of("SELECT who FROM clicks"), {"execution.runtime-mode": "batch"}),
    "execution.batch.local-threshold": Effect(
        "0", plan_of("SELECT who, COUNT(*) FROM clicks GROUP BY who"), {"execution.runtime-mode": "batch"}
    ),
    "execution.batch-shuffle-mode": Effect("ALL_EXCHANGES_BLOCKING", blocking, {"execution.runtime-mode": "batch"}),
    "execution.buffer-timeout.enabled": Effect(
        "false", tasks_of(lambda r: [w.timeout_ms for t in r.job._tasks for w in t.writers])
    ),
    "execution.buffer-timeout.interval": Effect(
        "7 ms", tasks_of(lambda r: [w.timeout_ms for t in r.job._tasks for w in t.writers])
    ),
    "execution.checkpointing.checkpoints-after-tasks-finish": Effect("false", checkpoints),
    "execution.checkpointing.create-subdir": Effect("false", checkpoints),
    "execution.checkpointing.data-inline-threshold": Effect("1 mb", checkpoints),
    "execution.checkpointing.aligned-checkpoint-timeout": Effect("1 s", checkpoints, {UNALIGNED: "true"}),
    "execution.checkpointing.unaligned.enabled": Effect("true", checkpoints),
    "execution.checkpointing.dir": Effect("/tmp/c", checkpoints),
    "execution.checkpointing.externalized-checkpoint-retention": Effect("RETAIN_ON_CANCELLATION", checkpoints),
    "execution.checkpointing.interval": Effect("1 s", checkpoints),
    "execution.checkpointing.max-concurrent-checkpoints": Effect("2", checkpoints),
    "execution.checkpointing.min-pause": Effect("1 s", checkpoints),
    "execution.checkpointing.mode": Effect("AT_LEAST_ONCE", checkpoints),
    "execution.checkpointing.num-retained": Effect("3", checkpoints),
    "execution.checkpointing.savepoint-dir": Effect("/tmp/s", checkpoints),
    "execution.checkpointing.snapshot-compression": Effect("true", checkpoints),
    "execution.checkpointing.storage": Effect("filesystem", checkpoints),
    "execution.checkpointing.timeout": Effect("1 min", checkpoints),
    "execution.checkpointing.tolerable-failed-checkpoints": Effect("2", checkpoints),
    "execution.state-recovery.claim-mode": Effect("CLAIM", recovery),
    "execution.state-recovery.trusted": Effect("true", trusted),
    "execution.state-recovery.ignore-unclaimed-state": Effect("true", recovery),
    "execution.state-recovery.path": Effect(
        "/nowhere", lambda options: outcome(lambda: tasks_of(lambda r: len(r.job._tasks))(options))
    ),
    "pipeline.watermark-alignment.allow-unaligned-source-splits": Effect("true", paused),
    "restart-strategy.type": Effect("fixed-delay", waits(LOST, 3)),
    "restart-strategy.fixed-delay.attempts": Effect("2", waits(LOST, 3), FIXED),
    "restart-strategy.fixed-delay.delay": Effect("5 s", waits(LOST, 3), FIXED),
    "restart-strategy.failure-rate.max-failures-per-interval": Effect("2", waits(LOST, 3), RATE),
    "restart-strategy.failure-rate.failure-rate-interval": Effect("1 s", waits(LOST, 3, 2_000), RATE),
    "restart-strategy.failure-rate.delay": Effect("5 s", waits(LOST, 3), RATE),
    "restart-strategy.exponential-delay.initial-backoff": Effect("5 s", waits(LOST, 3), EXPONENTIAL),
    "restart-strategy.exponential-delay.max-backoff": Effect("1 s", waits(LOST, 9), EXPONENTIAL),
    "restart-strategy.exponential-delay.backoff-multiplier": Effect("3", waits(LOST, 3), EXPONENTIAL),
    "restart-strategy.exponential-delay.reset-backoff-threshold": Effect("1 s", waits(LOST, 4, 9_000), EXPONENTIAL),
    "restart-strategy.exponential-delay.jitter-factor": Effect("0", waits(LOST, 3), EXPONENTIAL),
    "restart-strategy.exponential-delay.attempts-before-reset-backoff": Effect("2", waits(LOST, 3), EXPONENTIAL),
    "execution.runtime-mode": Effect("batch", command("SELECT 1")),
    "flowsql.chain-single-partition": Effect("false", job_of(GROUPED)),
    "flowsql.debug": Effect("true", tasks_of(outputs)),
    "flowsql.memory": Effect("512 mb", budget),
    "flowsql.network.batch-rows": Effect(
        "99", tasks_of(lambda r: [w._target_rows for t in r.job._tasks for w in t.writers])
    ),
    "flowsql.network.channel-memory": Effect(
        "1 mb", tasks_of(lambda r: [c.capacity_bytes for t in r.job._tasks for w in t.writers for c in w._channels])
    ),
    "flowsql.print.format": Effect("jsonl", command(f"{STRICT}; INSERT INTO strict VALUES (1)")),
    "flowsql.trigger": Effect("available-now", lambda options: reads_what_is_there(options)),
    "flowsql.state-recovery.changed-state": Effect("rebuild", recovery),
    "flowsql.source.batch-rows": Effect("3", lambda options: len(rows_of("SELECT id FROM clicks")(options))),
    "jobmanager.execution.failover-strategy": Effect("full", restarts_in_part, {**BLOCKED, **FIXED}),
    "io.tmp.dirs": Effect("/tmp", spill_folders),
    "metrics.latency.granularity": Effect("subtask", latency, {"metrics.latency.interval": "1 s"}),
    "metrics.latency.history-size": Effect("5", latency, {"metrics.latency.interval": "1 s"}),
    "metrics.latency.interval": Effect("1 s", latency),
    "parallelism.default": Effect("3", job_of(GROUPED)),
    "pipeline.auto-watermark-interval": Effect("5 s", job_of("SELECT ts FROM clicks")),
    "pipeline.global-job-parameters": Effect("mine:yours", functions(FUNCTION)),
    "pipeline.max-parallelism": Effect("64", job_of(GROUPED)),
    "pipeline.name": Effect("mine", job_of(GROUPED)),
    "pipeline.object-reuse": Effect("true", tasks_of(targets)),
    "pipeline.operator-chaining.enabled": Effect("false", job_of(GROUPED)),
    "python.archives": Effect("data", with_archive),
    "python.execution-mode": Effect("process", functions(FUNCTION)),
    "python.fn-execution.arrow.batch.size": Effect("3", functions(PANDAS_FUNCTION)),
    "python.fn-execution.bundle.size": Effect("1", bundles),
    "python.fn-execution.bundle.time": Effect("10", bundles),
    "spark.remote": Effect("sc://there:15002", lambda options: settings_of(Configuration(values=options)).remote),
    "spark.master": Effect(
        "local[7]", lambda options: settings_of(Configuration(values=options)).options["spark.master"]
    ),
    "sql-client.display.color-schema": Effect("DARK", in_the_shell("SELECT")),
    "sql-client.display.show-line-numbers": Effect("true", in_the_shell("SELECT")),
    "sql-client.editing-mode": Effect("VI", in_the_shell("SELECT 1")),
    "sql-client.execution.max-table-result.rows": Effect(
        "1", in_the_shell("SELECT n FROM (VALUES (1), (2)) AS v(n);", "complete"), {RESULT_MODE: "table"}
    ),
    "sql-client.execution.result-mode": Effect("CHANGELOG", in_the_shell("SELECT 1;", "1")),
    "sql-client.display.print-volumes": Effect("true", command("SELECT 1")),
    "sql-client.display.explain-silence": Effect("200 ms", command(SILENT, "--timeout", "1.5")),
    "sql-client.display.warn-growing-state": Effect("false", command(GROWING, "--timeout", "0.5")),
    "sql-client.display.print-time-cost": Effect("true", command("SELECT 1")),
    "sql-client.verbose": Effect("true", command("SELECT nowhere")),
    "table.catalog-store.file.path": Effect("/nowhere", catalog_store, {"table.catalog-store.kind": "file"}),
    "table.catalog-store.kind": Effect("file", catalog_store, {"table.catalog-store.file.path": "/nowhere"}),
    "table.display.max-column-width": Effect("5", command("SELECT CAST('a long text' AS STRING)")),
    "table.builtin-catalog-name": Effect("mine", current_place),
    "table.builtin-database-name": Effect("mine", current_place),
    "table.dml-sync": Effect("true", is_over_at_once),
    "table.dynamic-table-options.enabled": Effect(
        "false", job_of("SELECT id FROM clicks /*+ OPTIONS('number-of-rows' = '3') */")
    ),
    "table.exec.mini-batch.allow-latency": Effect(
        "9 s", job_of(GROUPED), {**MINI_BATCH, "table.exec.mini-batch.size": "9"}
    ),
    "state.backend.type": Effect("rocksdb", tasks_of(backends)),
    "state.backend.rocksdb.predefined-options": Effect("FLASH_SSD_OPTIMIZED", rocksdb_files),
    "state.backend.rocksdb.writebuffer.size": Effect("3 mb", rocksdb_files),
    "state.backend.rocksdb.writebuffer.count": Effect("5", rocksdb_files),
    "state.backend.rocksdb.writebuffer.number-to-merge": Effect("2", rocksdb_files, ROCKSDB_BUFFERS),
    "state.backend.rocksdb.compaction.style": Effect("UNIVERSAL", rocksdb_files),
    "state.backend.rocksdb.compaction.level.use-dynamic-size": Effect("true", rocksdb_files),
    "state.backend.rocksdb.compaction.level.target-file-size-base": Effect("1 mb", rocksdb_files),
    "state.backend.rocksdb.compaction.level.max-size-level-base": Effect("1 mb", rocksdb_files),
    "state.backend.rocksdb.compaction.filter.periodic-compaction-time": Effect("77 s", rocksdb_files),
    "state.backend.rocksdb.compaction.filter.query-time-after-num-entries": Effect("7", rocksdb_settings),
    "state.backend.rocksdb.thread.num": Effect("3", rocksdb_files),
    "state.backend.rocksdb.files.open": Effect("100", rocksdb_files),
    "state.backend.rocksdb.use-bloom-filter": Effect("true", rocksdb_files),
    "state.backend.rocksdb.bloom-filter.bits-per-key": Effect("20", rocksdb_files, ROCKSDB_BLOOM),
    "state.backend.rocksdb.bloom-filter.block-based-mode": Effect("true", rocksdb_files),
    "state.backend.rocksdb.block.cache-size": Effect("3 mb", rocksdb_files, ROCKSDB_UNBOUNDED),
    "state.backend.rocksdb.block.blocksize": Effect("8 kb", rocksdb_files),
    "state.backend.rocksdb.block.metadata-blocksize": Effect("8 kb", rocksdb_files),
    "state.backend.rocksdb.memory.partitioned-index-filters": Effect("true", rocksdb_files),
    "state.backend.rocksdb.compression.per.level": Effect("LZ4_COMPRESSION", rocksdb_files),
    "state.backend.rocksdb.write-batch-size": Effect("1 kb", rocksdb_files),
    "state.backend.rocksdb.log.dir": Effect("/tmp", rocksdb_settings),
    "state.backend.rocksdb.log.max-file-size": Effect("1 mb", rocksdb_files),
    "state.backend.rocksdb.log.file-num": Effect("9", rocksdb_files),
    "execution.checkpointing.incremental": Effect("true", rocksdb_checkpoint),
    "state.backend.rocksdb.checkpoint.transfer.thread.num": Effect("2", rocksdb_checkpoint, ROCKSDB_INCREMENTAL),
    "state.backend.rocksdb.localdir": Effect("/state", rocksdb_settings),
    "state.backend.rocksdb.memory.managed": Effect("false", rocksdb_files),
    "state.backend.rocksdb.memory.fixed-per-slot": Effect("7 mb", rocksdb_files),
    "state.backend.rocksdb.memory.fixed-per-tm": Effect("7 mb", rocksdb_files),
    "state.backend.rocksdb.memory.write-buffer-ratio": Effect("0.9", rocksdb_files),
    "state.backend.rocksdb.timer-service.factory": Effect("HEAP", rocksdb_files),
    "taskmanager.memory.managed.size": Effect("7 mb", rocksdb_files),
    "table.exec.mini-batch.enabled": Effect(
        "true", job_of(GROUPED), {"table.exec.mini-batch.allow-latency": "1 s", "table.exec.mini-batch.size": "9"}
    ),
    "table.exec.deduplicate.mini-batch.compact-changes-enabled": Effect(
        "true",
        job_of(
            "SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY ts DESC) AS place FROM clicks) "
            "WHERE place = 1"
        ),
        {**MINI_BATCH, "table.exec.mini-batch.size": "9"},
    ),
    "table.exec.mini-batch.size": Effect("17", job_of(GROUPED), {**MINI_BATCH, "table.exec.mini-batch.size": "9"}),
    "table.exec.async-lookup.buffer-capacity": Effect("7", job_of(LOOKUP)),
    "table.exec.async-lookup.timeout": Effect("7 s", job_of(LOOKUP)),
    "table.exec.async-scalar.max-concurrent-operations": Effect("3", asynchronous),
    "table.exec.async-scalar.timeout": Effect("10 ms", asynchronous),
    "table.exec.async-scalar.retry-strategy": Effect("NO_RETRY", asynchronous),
    "table.exec.async-scalar.max-attempts": Effect("1", asynchronous),
    "table.exec.async-scalar.retry-delay": Effect("1 h", asynchronous, {"table.exec.async-scalar.timeout": "2 s"}),
    "table.exec.interval-join.min-cleanup-interval": Effect(
        "1 min",
        job_of(
            "SELECT a.id FROM clicks AS a JOIN clicks AS b "
            "ON a.id = b.id AND a.ts BETWEEN b.ts AND b.ts + INTERVAL '1' HOUR"
        ),
    ),
    "table.exec.emit.allow-lateness": Effect("1 min", job_of(WINDOWED), LATE_ANSWERS),
    "table.exec.emit.early-fire.delay": Effect("0 s", job_of(WINDOWED), {"table.exec.emit.early-fire.enabled": "true"}),
    "table.exec.emit.early-fire.enabled": Effect("true", job_of(WINDOWED), {"table.exec.emit.early-fire.delay": "0 s"}),
    "table.exec.emit.late-fire.delay": Effect(
        "0 s",
        job_of(WINDOWED),
        {"table.exec.emit.late-fire.enabled": "true", "table.exec.emit.allow-lateness": "9 s"},
    ),
    "table.exec.emit.late-fire.enabled": Effect(
        "true", job_of(WINDOWED), {"table.exec.emit.late-fire.delay": "0 s", "table.exec.emit.allow-lateness": "9 s"}
    ),
    "__table.exec.sort.non-temporal.enabled__": Effect("true", job_of("SELECT id FROM clicks ORDER BY id")),
    "table.exec.resource.default-parallelism": Effect("3", job_of(GROUPED), {"parallelism.default": "2"}),
    "table.exec.sink.nested-constraint-enforcer": Effect(
        "ROWS",
        command(
            "CREATE TABLE deep (r ROW<n INT NOT NULL>) WITH ('connector' = 'print'); "
            "INSERT INTO deep SELECT ROW(CAST(NULL AS INT))"
        ),
    ),
    "table.exec.sink.not-null-enforcer": Effect(
        "DROP", command(f"{STRICT}; INSERT INTO strict SELECT CAST(NULL AS INT)")
    ),
    "table.exec.sink.type-length-enforcer": Effect(
        "TRIM_PAD", rows_of("SELECT UPPER(c) FROM (SELECT CAST('straße' AS CHAR(6)) AS c FROM clicks)")
    ),
    "table.exec.sink.require-on-conflict": Effect("false", plan_of(f"CHANGELOG_MODE INSERT INTO keyed {GROUPED}")),
    "table.exec.sink.upsert-materialize": Effect("NONE", plan_of(f"CHANGELOG_MODE INSERT INTO keyed {GROUPED}")),
    "table.exec.source.cdc-events-duplicate": Effect("true", plan_of("SELECT * FROM changes")),
    "table.exec.disabled-operators": Effect(
        "HashAgg", plan_of(GROUPED), {"execution.runtime-mode": "batch", "execution.batch.engine": "local"}
    ),
    "table.exec.source.idle-timeout": Effect("3 s", job_of("SELECT ts FROM clicks")),
    "table.exec.state.ttl": Effect("1 h", job_of(GROUPED)),
    "flowsql.regex.timeout": Effect("1 ms", rows_of(f"SELECT REGEXP_EXTRACT('{'a' * 22}b', '(?=(a|aa)+$)a')")),
    "table.local-time-zone": Effect("Asia/Tokyo", rows_of("SELECT CAST(TO_TIMESTAMP_LTZ(0, 3) AS STRING)")),
    "table.optimizer.agg-phase-strategy": Effect(
        "ONE_PHASE", job_of(COUNTED), {**MINI_BATCH, "table.exec.mini-batch.size": "9", "parallelism.default": "2"}
    ),
    "table.optimizer.delta-join.strategy": Effect("FORCE", plan_of(TWICE)),
    "table.optimizer.non-deterministic-update.strategy": Effect(
        "TRY_RESOLVE",
        plan_of("INSERT INTO keyed SELECT UUID(), COUNT(*) FROM clicks GROUP BY who ON CONFLICT DO DEDUPLICATE"),
    ),
    "table.optimizer.distinct-agg.split.bucket-num": Effect(
        "7", plan_of(GROUPED), {"table.optimizer.distinct-agg.split.enabled": "true"}
    ),
    "table.optimizer.distinct-agg.split.enabled": Effect(
        "true", plan_of(GROUPED), {**MINI_BATCH, "table.exec.mini-batch.size": "9"}
    ),
    "table.optimizer.incremental-agg-enabled": Effect(
        "false",
        plan_of(GROUPED),
        {**MINI_BATCH, "table.exec.mini-batch.size": "9", "table.optimizer.distinct-agg.split.enabled": "true"},
    ),
    "table.optimizer.multi-join.enabled": Effect("true", job_of(TWICE)),
    "table.optimizer.reuse-source-enabled": Effect("false", plan_of(PROJECTIONS)),
    "table.optimizer.reuse-sub-plan-enabled": Effect("false", job_of(TWICE)),
    "table.plan.force-recompile": Effect("true", overwrites),
}


@pytest.mark.parametrize("key", sorted(OPTION_HOMES))
def test_an_option_has_an_effect(key: str) -> None:
    assert key in EFFECTS, f"'{key}' needs a line in this file that shows what it does, or must be refused"
    effect = EFFECTS[key]
    beside = effect.beside or {}
    assert effect.observe({**beside, key: effect.value}) != effect.observe(beside)


def test_there_is_nothing_to_show_that_is_no_option() -> None:
    assert set(EFFECTS) <= set(OPTION_HOMES)
