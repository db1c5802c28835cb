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
from flowsql_runtime.spark.errors import failed_by_itself
from flowsql_runtime.spark.frame_columns import plain_frame
from flowsql_runtime.spark.rows import answer_batches
from flowsql_runtime.spark.sessions.host import SparkHost

IDENTIFIER: Final = "spark-frame"
VIEW = ConnectorOption("view", str, "", "Name of the global temporary view.")

_OPTIONS = OptionSet(required=(VIEW,))
#: Frames of the program by their view.
_frames: dict[str, _Frame] = {}


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
                try:
                    table = self.frame.toArrow()
                except Exception as error:
                    raise failed_by_itself(error) from error
                self._rows = InlineRows(list(answer_batches(table, self.columns)))
            return self._rows


def register_frame(frame: Any) -> tuple[str, t.Schema, tuple[str, ...]]:
    """Return the view of a frame, its columns, and the names of those that hold VARIANTs as JSON texts.

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
    plain = plain_frame(frame)
    view = f"flowsql_frame_{secrets.token_hex(8)}"
    plain.frame.createOrReplaceGlobalTempView(view)
    _frames[view] = _Frame(plain.frame, plain.columns)
    return view, plain.columns, plain.variants


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
