"""What becomes of an option of Flink that no code reads: refused, or kept without effect, and why, in a sentence.

An option with a ``ConfigOption`` beside its reader never comes here. The rules go from the whole key to ever shorter
prefixes (``pipeline.``), so that each key has exactly one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final, assert_never

from flowsql.options.flink import FlinkOption
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.record import record


@record
class NotYet:
    """Refused until it is there. ``harmless``: values that ask for nothing, beside Flink's default."""

    reason: str
    hint: str | None = None
    harmless: tuple[str, ...] = ()


@record
class Never:
    """Refused: it would change answers, durability or resources, and has no place in FlowSQL."""

    reason: str
    hint: str | None = None
    harmless: tuple[str, ...] = ()


@record
class NoEffect:
    """Kept, and told about: neither answers nor durability depend on it."""

    reason: str
    harmless: tuple[str, ...] = ()


Rule = NotYet | Never | NoEffect

_ONE_PROCESS = "jobs run in one process, without JobManager and TaskManagers"
_NO_JVM = "there is no JVM"
_NO_CHECKPOINTS = "no checkpoint would follow it"
_NO_NETWORK = "the parts of a job talk within one process"
_NO_SERVER = "there is no web server yet"
_MEMORY = "state, exchanges and readers share the memory that 'flowsql.memory' allows"
_PLAN_SHAPE = "the plan is made without it, and the answers are the same"
_BATCH_TUNING = "batch mode tunes itself or is tuned by options of Spark ('spark.*')"
_NO_ASYNC_TABLE_FUNCTIONS = "asynchronous table functions are Java only; those of Python are scalar"
_LOOKUP_ORDER = "what lookups find leaves in the order of the input"
_NO_MODELS = "models are not supported yet"
_NO_ASYNC_STATE = "state is reached synchronously, a batch at a time"
_SERIALIZERS = "values are columns or pickled Python objects, without Java's serializers"
_JAVA_CLASS = "it names a class of Java, and there is no JVM"
_METRICS = "metrics are not reported to other systems yet"
_BUNDLES = "rows reach Python functions by batches, without Beam"
_LOCAL_RECOVERY = "state is recovered from the checkpoint itself"
_WHOLE_PLANS = "compiled plans hold all that they need of the catalog"
_OPERATOR_OF_FLINK = "it tunes an operator of Flink, and answers are the same without it"
_OLD_WRITERS = "it is about the writers of Flink's DataSet API"

_INTERPRETER = "functions run in the Python that runs the program"

RULES: Final[dict[str, Rule]] = {
    # Checkpoints and recovery
    "execution.checkpointing.": NotYet(_NO_CHECKPOINTS, "leave it out"),
    "execution.checkpointing.cleaner.parallel-mode": NoEffect("old checkpoints are deleted one after the other"),
    "execution.checkpointing.file-merging.": NoEffect("a subtask writes few files by itself"),
    "execution.checkpointing.interval-during-backlog": NoEffect("the interval is the same while sources catch up"),
    "execution.checkpointing.local-backup.": NoEffect(_LOCAL_RECOVERY),
    "execution.checkpointing.unaligned.interruptible-timers.": NoEffect("the timers of a batch fire together"),
    "execution.checkpointing.unaligned.max-subtasks-per-": NoEffect("each subtask keeps its own rows in flight"),
    "execution.checkpointing.unaligned.recover-output-": NoEffect("rows in flight are restored by who had them"),
    "execution.checkpointing.write-buffer-size": NoEffect("files are written in large pieces"),
    "execution.state-recovery.": NotYet("no job would begin from stored state by it", "leave it out"),
    "execution.state-recovery.approximate-local-recovery": Never(
        "it would lose or double rows, and FlowSQL recovers whole states", "leave it out"
    ),
    "execution.state-recovery.from-local": NoEffect(_LOCAL_RECOVERY),
    "pipeline.sources.pause-until-first-checkpoint": NotYet(_NO_CHECKPOINTS, "leave it out"),
    "execution.batch.job-recovery.": NoEffect("nothing is kept of a batch job that failed"),
    "execution.batch.job-recovery.enabled": NotYet("nothing is kept of a batch job that failed", "leave it out"),
    "high-availability.": NoEffect("no second process waits to take over"),
    "high-availability.type": Never(
        "no second process waits to take over",
        "say 'NONE', and let the machine start the process again",
        harmless=("none",),
    ),
    "job-result-store.": NoEffect(_ONE_PROCESS),
    "application-result-store.": NoEffect(_ONE_PROCESS),
    "completed-application-store.": NoEffect(_ONE_PROCESS),
    "cleanup-strategy.": NoEffect(_ONE_PROCESS),
    "job-event.": NoEffect(_ONE_PROCESS),
    # State
    "state.backend.rocksdb.": NoEffect("rocksdict has no call for it, or state does not need it"),
    "state.backend.forst.": NoEffect("no state backend reads it"),
    "state.changelog.": NoEffect("the state backends write snapshots, no changelog beside them"),
    "state.latency-track.": NoEffect(_METRICS),
    "state.size-track.": NoEffect(_METRICS),
    "execution.async-state.": NoEffect(_NO_ASYNC_STATE),
    "table.exec.async-state.": NoEffect(_NO_ASYNC_STATE),
    "queryable-state.": NoEffect("other processes cannot ask for state"),
    "queryable-state.enable": Never("other processes cannot ask for state", "write what is asked for into a table"),
    # Where a job runs
    "execution.": NoEffect("the program that starts a job runs it, too"),
    "execution.batch-state-backend.": NoEffect(_BATCH_TUNING),
    "execution.batch.": NoEffect(_BATCH_TUNING),
    "execution.sort": NoEffect(_BATCH_TUNING),
    "execution.job-listeners": Never(_JAVA_CLASS, "wait for the job: execute_async().get_job_execution_result()"),
    "execution.job-status-changed-listeners": Never(
        _JAVA_CLASS, "wait for the job: execute_async().get_job_execution_result()"
    ),
    "execution.program-config.": NoEffect("a program's own options count"),
    "scheduler-mode": Never("the parallelism is what 'parallelism.default' says", "leave it out"),
    "blob.": NoEffect(_ONE_PROCESS),
    "client.": NoEffect(_ONE_PROCESS),
    "cluster.": NoEffect(_ONE_PROCESS),
    "external-resource.": NoEffect("functions reach the machine's devices themselves"),
    "external-resources": NoEffect("functions reach the machine's devices themselves"),
    "heartbeat.": NoEffect(_ONE_PROCESS),
    "historyserver.": NoEffect(_NO_SERVER),
    "jobmanager.": NoEffect(_ONE_PROCESS),
    "jobstore.": NoEffect(_ONE_PROCESS),
    "kubernetes.": NoEffect("jobs run in one process, which Kubernetes may start like any other"),
    "minicluster.": NoEffect(_ONE_PROCESS),
    "pekko.": NoEffect(_NO_NETWORK),
    "process.": NoEffect("files that memory cannot hold go to 'io.tmp.dirs'"),
    "resourcemanager.": NoEffect(_ONE_PROCESS),
    "rest.": NoEffect(_NO_SERVER),
    "shuffle-service-factory.": NoEffect(_JAVA_CLASS),
    "slot.": NoEffect(_ONE_PROCESS),
    "slotmanager.": NoEffect(_ONE_PROCESS),
    "slow-task-detector.": NoEffect(_ONE_PROCESS),
    "sql-gateway.": NoEffect("there is no SQL gateway yet"),
    "task.cancellation.": NoEffect("a task is cancelled between two batches, without interrupts"),
    "taskmanager.": NoEffect(_ONE_PROCESS),
    "taskmanager.memory.": NoEffect(_MEMORY),
    "taskmanager.network.": NoEffect(_NO_NETWORK),
    "taskmanager.network.memory.": NoEffect(_MEMORY),
    "web.": NoEffect(_NO_SERVER),
    "yarn.": NoEffect("jobs run in one process, without YARN"),
    "flink.": NoEffect("there is no Hadoop client: the keys go to none"),
    "zookeeper.": NoEffect("no second process waits to take over"),
    # Java
    "classloader.": NoEffect(_NO_JVM),
    "compiler.": NoEffect("it belonged to Flink's DataSet API"),
    "env.": NoEffect("the process is started by whoever calls it, and " + _NO_JVM),
    "jmx.": NoEffect(_NO_JVM),
    "plugin.": NoEffect(_NO_JVM),
    "security.": NoEffect(_NO_NETWORK),
    "security.context.": NoEffect(_JAVA_CLASS),
    "security.delegation.": NoEffect("connectors bring their own credentials"),
    "security.kerberos.": NoEffect("connectors bring their own credentials"),
    "security.module.": NoEffect(_JAVA_CLASS),
    "user.": NoEffect("artifacts are Python packages: pip installs them"),
    # Files
    "fs.": NoEffect(_OLD_WRITERS),
    "fs.allowed-fallback-filesystems": NoEffect("files are reached by pyarrow and fsspec, without Hadoop"),
    "fs.default-scheme": Never("a path without a scheme is one of this machine", "write the scheme into the path"),
    "sink.": NoEffect("a commit that failed fails the job"),
    "source.": NoEffect("readers are asked for one batch after the other"),
    # Metrics
    "events.": NoEffect(_METRICS),
    "metrics.": NoEffect(_METRICS),
    "traces.": NoEffect(_METRICS),
    # Jobs
    "pipeline.auto-generate-uids": NotYet(
        "operators without a uid get one",
        "leave it out; name operators with uid() where their state is to be found again",
    ),
    "pipeline.cached-files": NotYet("files are not handed out to functions", "open the file in the function's open()"),
    "pipeline.cep.": NoEffect(_OPERATOR_OF_FLINK),
    "pipeline.classpaths": NoEffect(_NO_JVM + "; connectors are Python packages"),
    "pipeline.closure-cleaner-level": NoEffect("functions of Python are pickled as they are"),
    "pipeline.force-": NoEffect(_SERIALIZERS),
    "pipeline.generic-types": NoEffect(_SERIALIZERS),
    "pipeline.jars": NoEffect(_NO_JVM + "; connectors are Python packages"),
    "pipeline.jobvertex-parallelism-overrides": Never(
        "the ids of its vertices are those of Flink's plan", "use set_parallelism() of the operator"
    ),
    "pipeline.operator-chaining.chain-operators-with-different-max-parallelism": NoEffect(
        "operators of different key groups never share a task"
    ),
    "pipeline.serialization-config": NoEffect(_SERIALIZERS),
    "pipeline.vertex-": NoEffect("it is about the names of operators only"),
    "pipeline.watermark-alignment.": NoEffect("sources know of each other at once"),
    # Python
    "python.": NoEffect(_BUNDLES),
    "python.client.executable": NoEffect(_INTERPRETER),
    "python.executable": Never(
        _INTERPRETER, "start the program with that interpreter", harmless=(sys.executable, "python")
    ),
    "python.files": NotYet(
        "functions import what the program can import", "put the files on PYTHONPATH, or use env.add_python_file()"
    ),
    "python.job-options": NoEffect(_BUNDLES),
    "python.logging.": NoEffect("functions log with the program's own logging"),
    "python.profile.": NoEffect("profile the program itself: functions run in it"),
    "python.pythonpath": NotYet(
        "functions import what the program can import", "set PYTHONPATH before the program is started"
    ),
    "python.requirements": NotYet(
        "functions use the packages of the Python that runs the program", "pip install them before it is started"
    ),
    "python.systemenv.enabled": NoEffect("functions see the program's environment variables"),
    # Tables
    "materialized-table.": NoEffect("materialized tables are not supported yet"),
    "table.catalog-modification.listeners": Never(_JAVA_CLASS, "leave it out"),
    "table.column-expansion-strategy": NotYet("SELECT * shows all columns", "name the columns"),
    "table.exec.async-table.": NoEffect(_NO_ASYNC_TABLE_FUNCTIONS),
    "table.exec.async-lookup.": NoEffect(_LOOKUP_ORDER),
    "table.exec.async-ml-predict.": NoEffect(_NO_MODELS),
    "table.exec.async-vector-search.": NoEffect(_NO_MODELS),
    "table.exec.deduplicate.insert-update-after-sensitive-enabled": NotYet(
        "a first row is always written as an insert", "leave it out"
    ),
    "table.exec.delta-join.": NoEffect(_OPERATOR_OF_FLINK),
    "table.exec.legacy-cast-behaviour": Never(
        "casts that fail do so as in Flink since 1.15", "use TRY_CAST where NULL is wanted"
    ),
    "table.exec.local-hash-agg.": NoEffect(_PLAN_SHAPE),
    "table.exec.operator-fusion-codegen.": NoEffect(_PLAN_SHAPE),
    "table.exec.rank.": NoEffect(_OPERATOR_OF_FLINK),
    "table.exec.resource.": NoEffect(_MEMORY),
    "table.exec.simplify-operator-name-enabled": NoEffect("it is about the names of operators only"),
    "table.exec.sink.keyed-shuffle": NotYet(
        "rows of one key may come from several subtasks to a sink", "set 'parallelism.default' to 1", harmless=("NONE",)
    ),
    "table.exec.sink.rowtime-inserter": NotYet("rows of a stream carry their row time", "leave it out"),
    "table.exec.sink.upsert-materialize-strategy.": NoEffect(_OPERATOR_OF_FLINK),
    "table.exec.sort.": NoEffect(_BATCH_TUNING),
    "table.exec.sort.default-limit": NotYet("ORDER BY without LIMIT gives all rows", "write LIMIT into the query"),
    "table.exec.spill-compression.": NoEffect("files that memory cannot hold are always compressed"),
    "table.exec.uid.": NoEffect("operators of SQL are found again by what they compute"),
    "table.exec.unbounded-over.": NoEffect(_OPERATOR_OF_FLINK),
    "table.exec.window-agg.": NoEffect(_OPERATOR_OF_FLINK),
    "table.generated-code.": NoEffect("no Java code is generated"),
    "table.legacy-nested-row-nullability": Never("NOT NULL of fields counts, as in Flink since 2.2", "leave it out"),
    "table.optimizer.": NoEffect(_PLAN_SHAPE),
    "table.plan.compile.catalog-objects": NotYet(_WHOLE_PLANS, "say 'ALL'"),
    "table.plan.restore.catalog-objects": NotYet(_WHOLE_PLANS, "say 'ALL'"),
    "table.resources.download-dir": NoEffect(_NO_JVM + ", so no jars are downloaded"),
    "table.rtas-ctas.": NotYet(
        "CREATE TABLE AS leaves the table behind when the job fails", "drop the table then, or say 'false'"
    ),
    "table.sql-dialect": Never(
        "other dialects are parsed in Java, FlowSQL reads Flink's own SQL",
        "what functions of Hive did, CREATE FUNCTION ... LANGUAGE PYTHON does",
    ),
}


def rule_of(key: str) -> Rule | None:
    """The rule of the whole key, or else of its longest prefix that has one."""
    return next((RULES[key[:length]] for length in range(len(key), 0, -1) if key[:length] in RULES), None)


def warning_of(option: FlinkOption, key: str, wanted: object, value: str) -> str | None:
    """The sentence that a user is told who sets an option that nothing reads; None where there is nothing to tell.

    Args:
        option: the option of the table.
        key: the key as the user wrote it: with words for placeholders, or with the name of an entry of a map.
        wanted: the value, as ``FlinkOption.parse`` gives it.
        value: its text.

    Raises:
        BindError: it must not be accepted without effect.
    """
    rule = rule_of(option.key)
    if rule is None or _folded(wanted) in [_folded(value) for value in _asking_nothing(option, rule)]:
        return None
    match rule:
        case NotYet(reason, hint):
            raise NotSupportedYetError(f"'{key}' = '{value}': {reason}", hint=hint)
        case Never(reason, hint):
            raise BindError("option-refused", f"'{key}' = '{value}' is refused: {reason}.", hint=hint)
        case NoEffect(reason):
            return f"'{key}' has no effect: {reason}."
        case _:
            assert_never(rule)


def _asking_nothing(option: FlinkOption, rule: Rule) -> Iterator[object]:
    """Values that FlowSQL follows anyway: Flink's default, or no text where there is none, and those of the rule."""
    if option.default or option.kind in ("string", "map") or option.kind.endswith("[]"):
        yield option.parse(option.default)
    yield from map(option.parse, rule.harmless)


def _folded(value: object) -> object:
    """Words of options count in any case."""
    return value.lower() if isinstance(value, str) else value
