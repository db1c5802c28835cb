"""``SparkJob``: a bounded statement as Spark runs it. Written by the planner, read by ``flowsql_runtime.spark``.

Three kinds of steps in this order: jobs of FlowSQL that hand rows to Spark (of tables, read as Flink reads them, or of
an answer of Spark that functions of FlowSQL take further), one query of Spark for each answer, and jobs that take an
answer further (into a table, or through such functions). Jobs run inside of Spark's tasks where they can. Columns
travel in Arrow; ``carried`` says what stands for types that Spark lacks.
"""

from __future__ import annotations

import enum
from dataclasses import field

from flowsql_core.config import (
    RUNTIME_MODE,
    Configuration,
    RuntimeMode,
    option,
    parse_duration_ms,
    parse_enum,
    parse_memory_bytes,
    parse_text,
)
from flowsql_core.expr import Expr
from flowsql_core.graph.job import JobGraph
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types import logical as t

#: Resource of a staging job: what takes its rows (``accept(batch)``, ``finish()``).
STAGE_RESOURCE = "stage"
#: Resource of a job over an answer of Spark: its rows, ``flowsql_connectors.handed.HandedRows``.
ROWS_RESOURCE = "spark-rows"
#: Most fractional digits that Spark's timestamps have.
SPARK_DIGITS = 6


class BatchEngine(enum.Enum):
    """``execution.batch.engine``."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


BATCH_ENGINE = option(
    "execution.batch.engine",
    parse_enum(BatchEngine),
    BatchEngine.AUTO,
    "Where batch mode runs: local (FlowSQL's own runtime), spark, or auto: local where no operator waits for rows, "
    "where all inputs are known and small, and where Spark or Java is missing; else Spark.",
)
LOCAL_THRESHOLD = option(
    "execution.batch.local-threshold",
    parse_memory_bytes,
    64 << 20,
    "With the engine 'auto' queries whose inputs are known and together smaller run in FlowSQL's own runtime; 0: none.",
)


class ExecutionTarget(enum.Enum):
    """``execution.target``."""

    LOCAL = "local"
    SPARK = "spark"


EXECUTION_TARGET = option(
    "execution.target",
    parse_enum(ExecutionTarget),
    ExecutionTarget.LOCAL,
    "Where streaming mode runs: local (FlowSQL's own runtime, in this process) or spark (Structured Streaming, batch "
    "by batch). Batch mode has 'execution.batch.engine'.",
)


def streams_on_spark(configuration: Configuration) -> bool:
    """Whether statements are streams on Spark."""
    batch = configuration.get(RUNTIME_MODE) is RuntimeMode.BATCH
    return not batch and configuration.get(EXECUTION_TARGET) is ExecutionTarget.SPARK


#: ``flowsql.spark.trigger``: read what is there, and stop.
AVAILABLE_NOW = "available-now"


def _trigger(text: str) -> str:
    found = text.strip().lower()
    if found != AVAILABLE_NOW:
        try:
            parse_duration_ms(found)
        except ValueError:
            raise ValueError(f"expected '{AVAILABLE_NOW}' or a duration, e.g. '10 s'") from None
    return found


def _at_least_zero(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError("expected a number of at least 0")
    return number


SPARK_TRIGGER = option(
    "flowsql.spark.trigger",
    _trigger,
    AVAILABLE_NOW,
    "Of streams on Spark: 'available-now' takes what is there and ends, and the next run goes on behind it; a duration "
    "(10 s) begins a batch so often, and the statement goes on until it is cancelled.",
)
SPARK_BATCH_FILES = option(
    "flowsql.spark.max-files-per-batch",
    _at_least_zero,
    1_000,
    "Of streams on Spark: files of a table in one batch at most; 0: all that are there.",
)
SPARK_BATCH_BYTES = option(
    "flowsql.spark.max-bytes-per-batch",
    parse_memory_bytes,
    0,
    "Of streams on Spark: bytes of a table's files in one batch, about, instead of max-files-per-batch; 0: that one "
    "counts.",
)
SPARK_MASTER = option(
    "spark.master",
    parse_text,
    "",
    "Spark master; empty: local, as many threads as parallelism.default or, at 1, as there are cores. "
    "Any other spark.* key goes to the session, too.",
)

SPARK_REMOTE = option(
    "spark.remote",
    parse_text,
    "",
    "Address of a Spark Connect server that batch mode runs on, sc://host:port; empty: this program has its own Spark.",
)


@record
class KernelFunction:
    """A function of Spark's session that computes an expression with FlowSQL's kernels, batch by batch.

    ``expr`` is over the arguments; ``names``: columns that they come from, for errors. ``type_text``: what it gives, as
    Spark writes it.
    """

    name: str
    expr: Expr
    arguments: tuple[t.LogicalType, ...]
    names: tuple[str, ...]
    type_text: str


@record
class SparkQuery:
    """One answer. ``then``: the job that takes its rows further; None: they go to who asked.

    ``is_written``: the columns are those of the table that the job writes.
    """

    sql: str
    columns: t.Schema
    then: JobGraph | None = None
    is_written: bool = False


@record
class ParquetFiles:
    """Files of a table that Spark may read by itself, if they hold exactly the types of the table.

    ``path`` and ``pattern`` (a regular expression) as the table's options give them; ``names``: what the columns of the
    input are called in the files. ``others``: names and Spark types of the table's other columns: Spark tells by the
    share of a file that it reads whether an input is small. ``partition_keys``: those of the table, in the order of the
    folders ``key=value`` that hold them; ``default_name`` stands there for NULL.
    """

    path: str
    pattern: str | None
    names: tuple[str, ...]
    others: tuple[tuple[str, str], ...] = ()
    partition_keys: tuple[str, ...] = ()
    default_name: str = ""


@record
class SparkView:
    """A global temporary view of Spark that holds the rows of a table; ``names``: what the columns are called there."""

    name: str
    names: tuple[str, ...]


@record
class SparkReader:
    """A reader of Spark that gives the rows of a table.

    ``format`` and ``options`` are its own; ``name``: what the rows are called where they are, for errors. ``names``:
    what the columns of the input are called there. ``bounds``: a column with its least and greatest value: rows beyond
    are not the table's, nor those without a value.
    """

    format: str
    options: tuple[tuple[str, str], ...]
    name: str
    names: tuple[str, ...] = ()
    bounds: tuple[str, str, str] | None = None


@record
class StagedInput:
    """Rows that a job of FlowSQL hands to Spark.

    ``view``: the name that the queries read. ``ddl``: the columns as Spark knows them, ``c0 INT, c1 STRING``. ``job``:
    its collect sink asks for the resource ``STAGE_RESOURCE``. ``source``: the query whose answer the job reads; it
    reads views that stand before this one. ``keys``: rows of the source that are equal in these columns must meet in
    one task, of none all of them; None: any task may take any row. ``placed``: the last column of the source, which is
    not one of its ``columns``, is the order in which a task gets its rows. ``own``: what Spark reads
    instead where it can. ``shared``: several answers read it.
    """

    view: str
    columns: t.Schema
    ddl: str
    job: JobGraph
    source: SparkQuery | None = None
    keys: tuple[int, ...] | None = None
    placed: bool = False
    own: ParquetFiles | SparkView | SparkReader | None = None
    shared: bool = False


@record
class SparkJob:
    """A whole statement.

    ``folder``: for files of this job alone. ``subqueries``: places of queries in expressions. ``kernels``: what the
    queries call.
    """

    name: str
    inputs: tuple[StagedInput, ...]
    queries: tuple[SparkQuery, ...]
    folder: str
    configuration: tuple[tuple[str, str], ...] = ()
    subqueries: tuple[Span, ...] = field(default=(), compare=False, repr=False)
    kernels: tuple[KernelFunction, ...] = ()

    def views(self) -> tuple[str, ...]:
        """Names of the views of its inputs."""
        return tuple(staged.view for staged in self.inputs)

    def every_query(self) -> tuple[SparkQuery, ...]:
        """All that Spark is asked, in order."""
        return (*(staged.source for staged in self.inputs if staged.source is not None), *self.queries)


def carried(type_: t.LogicalType) -> t.LogicalType:
    """The type that stands for one that Spark lacks, with the same order and the same equality; others as they are.

    TIME is its milliseconds, an interval its milliseconds or months, a timestamp of more than six digits its
    nanoseconds. A VARIANT is its text and a BITMAP its bytes, which nobody may compare.
    """
    match type_:
        case t.TimeType() | t.YearMonthIntervalType():
            return t.INT.as_nullable(type_.nullable)
        case t.DayTimeIntervalType():
            return t.BIGINT.as_nullable(type_.nullable)
        case t.VariantType():
            return t.STRING.as_nullable(type_.nullable)
        case t.BitmapType():
            return t.BYTES.as_nullable(type_.nullable)
        case t.TimestampType(precision=digits) | t.TimestampLtzType(precision=digits) if digits > SPARK_DIGITS:
            return t.BIGINT.as_nullable(type_.nullable)
    return type_
