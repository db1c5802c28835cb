"""DataFrames of Spark as tables, and answers as DataFrames.

A frame is a global temporary view: all sessions of one Spark see it, each with settings of its own, and Spark has
analysed it under the settings of the session that made it.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Mapping
from typing import Any, Final

from flowsql_connectors.inline import InlineEnumerator, InlineReader, InlineRows
from flowsql_connectors.options import ConnectorOption, OptionSet
from flowsql_connectors.spi.source import ReaderContext, SourceFactory, SourceReader, SplitEnumerator, TableSource
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.graph.spark import SparkView
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.types import logical as t
from flowsql_runtime.spark.rows import answer_batches
from flowsql_runtime.spark.sessions.host import SparkHost

IDENTIFIER: Final = "spark-frame"
VIEW = ConnectorOption("view", str, "", "Name of the global temporary view.")

_OPTIONS = OptionSet(required=(VIEW,))
#: Frames of the program by their view.
_frames: dict[str, _Frame] = {}

_TYPES: Final[dict[str, t.LogicalType]] = {
    "boolean": t.BOOLEAN,
    "byte": t.TINYINT,
    "short": t.SMALLINT,
    "integer": t.INT,
    "long": t.BIGINT,
    "float": t.FLOAT,
    "double": t.DOUBLE,
    "string": t.STRING,
    "binary": t.BYTES,
    "date": t.DATE,
    "timestamp": t.TimestampLtzType(precision=6),
    "timestamp_ntz": t.TimestampType(precision=6),
}


class _Frame:
    """A frame, and its rows once somebody other than Spark has asked for them."""

    def __init__(self, frame: Any, columns: t.Schema) -> None:
        self.frame = frame
        self.columns = columns
        self._lock = threading.Lock()
        self._rows: InlineRows | None = None

    def rows(self) -> InlineRows:
        """All rows, in memory."""
        with self._lock:
            if self._rows is None:
                self._rows = InlineRows(list(answer_batches(self.frame.toArrow(), self.columns)))
            return self._rows


def register_frame(frame: Any) -> tuple[str, t.Schema]:
    """The view of a frame, and its columns.

    Raises:
        BindError: it is no DataFrame, or an unbounded one, or has a column that no type of SQL holds.
    """
    kind = type(frame)
    if kind.__name__ != "DataFrame" or not kind.__module__.startswith("pyspark.sql"):
        raise BindError("not-a-frame", f"from_spark() takes a DataFrame of pyspark, not a {kind.__name__}.")
    if frame.isStreaming:
        raise BindError(
            "unbounded-frame",
            "from_spark() takes a bounded DataFrame; this one reads a stream.",
            hint="a stream is read by a table of FlowSQL: CREATE TABLE ... WITH (...)",
        )
    fields = frame.schema.fields
    names = [field.name for field in fields]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BindError(
            "column-twice",
            f"from_spark(): the DataFrame has two columns '{twice}'.",
            hint="give them names of their own: frame.toDF(...)",
        )
    columns = tuple(t.Column(field.name, _type_of(field.dataType, field.name, field.nullable)) for field in fields)
    view = f"flowsql_frame_{secrets.token_hex(8)}"
    frame.createOrReplaceGlobalTempView(view)
    _frames[view] = _Frame(frame, columns)
    return view, columns


def forget_frames(views: list[str]) -> None:
    """Drop the views of frames that no table reads any more."""
    for view in views:
        known = _frames.pop(view, None)
        if known is not None:
            # Its session may have ended, and the view with it.
            with contextlib.suppress(Exception):
                _drop(known.frame.sparkSession, view)


def view_of_frame(host: SparkHost, view: SparkView) -> Any:
    """The rows of a frame in the session of a job, with columns c0, c1, ...

    Raises:
        ConnectorError: the session belongs to another Spark, or the frame was forgotten.
    """
    try:
        whole = host.session.table(f"global_temp.{view.name}")
        names = whole.columns
    except Exception as error:
        raise ConnectorError(
            "spark-frame",
            "The DataFrame of a table is not known to the Spark that runs the statement.",
            hint="hand its session in: TableEnvironment.create(settings, spark=session)",
        ) from error
    numbered = whole.toDF(*(f"f{place}" for place in range(len(names))))
    places = [names.index(name) for name in view.names]
    return numbered.select(*(numbered[f"f{place}"].alias(f"c{index}") for index, place in enumerate(places)))


def as_program_sees(host: SparkHost, frame: Any, columns: t.Schema) -> Any:
    """An answer as a DataFrame of the program's session, its columns by their names.

    Args:
        host: where the answer is made.
        frame: columns c0, c1, ...
        columns: of the answer.
    """
    view = f"flowsql_answer_{secrets.token_hex(8)}"
    frame.createOrReplaceGlobalTempView(view)
    session = host.program_session
    made = session.table(f"global_temp.{view}").toDF(*(column.name for column in columns))
    if not host.is_remote:
        # The frame holds what the view stands for; over Connect it names the view until it has run.
        _drop(session, view)
    return made


def refuse_strange(columns: t.Schema) -> None:
    """Refuse columns of which Spark would see what stands for them.

    Raises:
        BindError: Spark has no such type.
    """
    for column in columns:
        if _is_strange(column.type):
            raise BindError(
                "no-spark-type",
                f"to_spark(): Spark has no type for the column '{column.name}' ({column.type.as_nullable()}).",
                hint=f"cast it in the query: CAST(`{column.name}` AS STRING)",
            )


def _is_strange(type_: t.LogicalType) -> bool:
    match type_:
        case t.TimeType() | t.YearMonthIntervalType() | t.DayTimeIntervalType() | t.VariantType() | t.BitmapType():
            return True
        case t.TimestampType(precision=digits) | t.TimestampLtzType(precision=digits):
            return digits > 6
    return False


def _drop(session: Any, view: str) -> None:
    session.catalog.dropGlobalTempView(view)


def _type_of(type_: Any, column: str, nullable: bool = True) -> t.LogicalType:
    """The type of SQL with the same values as one of Spark."""
    name = str(type_.typeName())
    made = _TYPES.get(name)
    if made is None:
        match name:
            case "decimal":
                made = t.DecimalType(precision=type_.precision, scale=type_.scale)
            case "char" | "varchar":
                made = t.STRING
            case "array":
                made = t.ArrayType(element=_type_of(type_.elementType, column, type_.containsNull))
            case "map":
                value = _type_of(type_.valueType, column, type_.valueContainsNull)
                made = t.MapType(key=_type_of(type_.keyType, column, nullable=False), value=value)
            case "struct":
                fields = [t.Field(one.name, _type_of(one.dataType, column, one.nullable)) for one in type_.fields]
                made = t.RowType(fields=tuple(fields))
            case _:
                raise BindError(
                    "no-sql-type",
                    f"from_spark(): there is no type for the column '{column}' ({type_.simpleString()}).",
                    hint="cast it in Spark, or leave the column out",
                )
    return made.as_nullable(nullable)


class FrameSource(TableSource):
    """A frame whose rows leave Spark: for statements that FlowSQL's own runtime carries out."""

    def __init__(self, scan: ScanSpec) -> None:
        self._view = _OPTIONS.check(scan.table).get(VIEW)
        self._columns = scan.projection

    def supports_projection(self) -> bool:
        """Spark leaves columns out."""
        return True

    def create_enumerator(self) -> SplitEnumerator:
        """All rows, as one split with a position."""
        return InlineEnumerator(self._rows().count, 1)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader of the rows that left Spark."""
        return InlineReader(self._rows(), self._columns)

    def _rows(self) -> InlineRows:
        known = _frames.get(self._view)
        if known is None:
            raise ConnectorError(
                "spark-frame", "The DataFrame of a table is gone.", hint="call from_spark() in this program again"
            )
        return known.rows()


class FrameSourceFactory(SourceFactory):
    """Makes sources of frames."""

    identifier = IDENTIFIER

    def options(self, table: TableSpec) -> OptionSet:
        """The view."""
        return _OPTIONS

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A source of a frame."""
        return FrameSource(scan)

    def spark_view(self, table: TableSpec) -> str | None:
        """The view."""
        return _OPTIONS.check(table).get(VIEW)
