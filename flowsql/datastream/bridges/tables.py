"""Between tables and streams: the plan of a table as a part of a stream's job, and streams as what its scans read.

The planner plans a table as always; where it ends in a stream, or begins with one, its scan or sink is of the connector
``datastream``. :class:`TablePart` copies the planned operators into a job and puts conversions of whole batches in the
place of these ends, so that table and stream are one job: row times, watermarks and kinds of changes go through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flowsql.common.row import Row
from flowsql.common.typeinfo import ExternalTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation
from flowsql.datastream.bridges.columns import column_maker, column_values, epoch_ms, objects
from flowsql.datastream.plan.operators import BatchMap
from flowsql.datastream.plan.transformations import Wishes
from flowsql_connectors.datastream import IDENTIFIER, SOURCE_WATERMARK, STREAM, UTC_TIME
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch, RowTimes
from flowsql_core.config import LOCAL_TIME_ZONE, RUNTIME_MODE, RuntimeMode
from flowsql_core.errors import ExecutionError, InternalError, NotSupportedYetError
from flowsql_core.graph.job import FORWARD, JobGraph, OperatorNode
from flowsql_core.graph.specs import (
    CalcSpec,
    OperatorSpec,
    ScanSpec,
    SinkSpec,
    TableSpec,
    WatermarkAssignerSpec,
)
from flowsql_core.graph.stream_specs import VALUE, BatchMapSpec
from flowsql_core.row import RowKind
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Schema, is_rowtime

if TYPE_CHECKING:
    from flowsql.datastream.plan.graph import PlanBuilder


@dataclass(frozen=True, slots=True)
class SourceStream:
    """A stream that a table reads.

    ``number``: of its transformation. ``type``: of its values. ``columns``: of the table, which are the fields of the
    values by name or, for tuples and single values, by their names ``f0``, ``f1`` ...
    """

    number: int
    type: TypeInformation
    changelog: bool = False


@dataclass(frozen=True, slots=True)
class RowForm:
    """How rows of a table become rows of a stream.

    ``time``: the column whose value is the timestamp and no field; None for the row time attribute, which stays one.
    ``required``: fields that must not be NULL.
    ``zone``: a TIMESTAMP_LTZ is a ``datetime`` in this zone; None: it is an ``Instant``.
    """

    time: str | None = None
    required: frozenset[str] = frozenset()
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class TablePart:
    """A planned table as a part of a job.

    ``graph``: what the planner made. ``sources``: the streams that its scans name, by their option ``stream``.
    ``schema``: of the rows that leave it, where they leave as a stream. ``form``: what these look like.
    """

    graph: JobGraph
    sources: tuple[tuple[str, SourceStream], ...]
    schema: Schema = ()
    form: RowForm = RowForm()

    @property
    def streams(self) -> tuple[int, ...]:
        """Transformations that stand before the part."""
        wanted = set(scanned_streams(self.graph))
        return tuple(source.number for key, source in self.sources if key in wanted)

    def embed(self, builder: PlanBuilder, wishes: Wishes, same_mode: bool = True) -> int:
        """Copy all operators into a job; the number of the last one, whose rows are the stream's.

        ``same_mode`` False: the part only hands rows on to another engine, in batch mode.

        Raises:
            NotSupportedYetError: the table was planned for another runtime mode than the streams.
        """
        mode = dict(self.graph.configuration).get(RUNTIME_MODE.key, "").strip().lower()
        if same_mode and (mode == RuntimeMode.BATCH.value) is not builder.settings.batch:
            raise NotSupportedYetError(
                "tables and streams of different runtime modes in one job",
                hint="set_runtime_mode(STREAMING or BATCH) of the stream environment, before its tables",
            )
        copied = _Copy(self, builder)
        last = copied.run(wishes)
        builder.plan.resources.update(self.graph.resources)
        for key, value in self.graph.configuration:
            builder.configuration.setdefault(key, value)
        return last


def scanned_streams(graph: JobGraph) -> list[str]:
    """The streams that a planned job reads, by their option ``stream``."""
    specs = (node.spec for vertex in graph.vertices for node in vertex.operators)
    return [_stream_of(spec.table) for spec in specs if isinstance(spec, ScanSpec) and _is_stream(spec.table)]


def _is_stream(table: TableSpec) -> bool:
    return table.option("connector") == IDENTIFIER


def _stream_of(table: TableSpec) -> str:
    return table.option(STREAM.key) or ""


class _Copy:
    """One embedding."""

    def __init__(self, part: TablePart, builder: PlanBuilder) -> None:
        self._part = part
        self._builder = builder
        self._sources = dict(part.sources)
        #: Number of an operator in the plan's job -> in the job that is built.
        self._numbers: dict[int, int] = {}
        #: Operators whose rows still come straight from a stream that brings its own watermarks.
        self._marked: set[int] = set()

    def run(self, wishes: Wishes) -> int:
        graph = self._part.graph
        last = 0
        for vertex in graph.vertices:
            for node in vertex.operators:
                last = self._operator(node, vertex.parallelism, wishes)
                self._numbers[node.id] = last
            for link in vertex.chain:
                self._connect(link.source, link.target, link.input_index, FORWARD, link.tag)
            for edge in graph.inputs_of(vertex.id):
                self._connect(edge.source, vertex.head.id, edge.input_index, edge.partitioning, edge.tag)
        return last

    def _connect(self, source: int, target: int, input_index: int, partitioning: Any, tag: str | None) -> None:
        origin = self._builder.origin(self._numbers[source], partitioning, tag)
        self._builder.connect(origin, self._numbers[target], input_index)

    def _operator(self, node: OperatorNode, parallelism: int, wishes: Wishes) -> int:
        match node.spec:
            case ScanSpec(table=table) if _is_stream(table):
                return self._scan(node, node.spec, parallelism)
            case SinkSpec(table=table) if _is_stream(table):
                named = replace(node, name=f"TableToDataStream(fields=[{_names(self._part.schema)}])")
                return self._mapped(named, rows_of(self._part.schema, self._part.form), parallelism, wishes)
            case WatermarkAssignerSpec() if self._reads_marked(node):
                self._marked.add(node.id)
                return self._mapped(node, _with_row_time(node.spec), parallelism)
            case CalcSpec() if self._reads_marked(node):
                self._marked.add(node.id)
        return self._add(node, node.spec, parallelism)

    def _add(
        self,
        node: OperatorNode,
        spec: OperatorSpec,
        parallelism: int,
        wishes: Wishes | None = None,
        inputs: int | None = None,
    ) -> int:
        return self._builder.operator(
            spec,
            node.name.partition("(")[0],
            self._builder.own_uid(node.uid),
            parallelism,
            node.number_of_inputs if inputs is None else inputs,
            output=node.output,
            wishes=replace(wishes or Wishes(), description=node.name),
            kind="Operator",
        )

    def _mapped(self, node: OperatorNode, function: BatchMap, parallelism: int, wishes: Wishes | None = None) -> int:
        key = f"bridge-{len(self._builder.plan.resources)}"
        self._builder.plan.resources[key] = function
        return self._add(node, BatchMapSpec(key), parallelism, wishes, 1)

    def _scan(self, node: OperatorNode, spec: ScanSpec, parallelism: int) -> int:
        source = self._sources[_stream_of(spec.table)]
        if spec.table.option(SOURCE_WATERMARK.key) == "true":
            self._marked.add(node.id)
        named = replace(node, name=f"DataStreamToTable(fields=[{_names(spec.output)}])")
        zone = dict(self._part.graph.configuration).get(LOCAL_TIME_ZONE.key, "UTC")
        number = self._mapped(named, columns_of_values(spec, source, zone), parallelism)
        origins = self._builder.add(source.number)
        self._builder.connect(self._builder.merge(origins, parallelism), number, 0)
        return number

    def _reads_marked(self, node: OperatorNode) -> bool:
        graph = self._part.graph
        before = {link.source for vertex in graph.vertices for link in vertex.chain if link.target == node.id}
        before |= {
            edge.source for vertex in graph.vertices if vertex.head.id == node.id for edge in graph.inputs_of(vertex.id)
        }
        return bool(before) and before <= self._marked


def _names(schema: Schema) -> str:
    return ", ".join(column.name for column in schema)


def columns_of_values(spec: ScanSpec, source: SourceStream, zone: str) -> BatchMap:
    """Values of a stream to the columns of a scan: physical ones of its projection, then row times as they are asked.

    ``zone``: the session's, whose clock a row time without a zone shows.
    """
    columns = [spec.table.columns[index] for index in spec.projection]
    makers = [column_maker(column) for column in columns]
    values_of = _field_reader(source.type, [column.name for column in columns])
    times = [
        (to_arrow(column.type), "UTC" if key == UTC_TIME else zone)
        for key, column in zip(spec.metadata, spec.output[len(columns) :], strict=True)
    ]

    def convert(batch: ChangelogBatch) -> ChangelogBatch:
        values = batch.columns[VALUE].values.tolist()
        fields = values_of(values)
        made: list[Any] = [make(list(field)) for make, field in zip(makers, fields, strict=True)]
        made += [time_column(batch, type_, clock) for type_, clock in times]
        kinds = _kinds(values, source.changelog)
        return ChangelogBatch(tuple(made), batch.num_rows, kinds, None, batch.track)

    return convert


def _field_reader(type_: TypeInformation, names: Sequence[str]) -> Callable[[list[Any]], list[list[Any]]]:
    """Reads the fields under names from many values, a list for each."""
    inner = type_.type_info if isinstance(type_, ExternalTypeInfo) else type_
    match inner:
        case RowTypeInfo():
            known = inner.get_field_names()
        case TupleTypeInfo():
            known = [f"f{index}" for index in range(len(inner.get_field_types()))]
        case _:
            return lambda values: [values for _ in names]
    places = [known.index(name) for name in names]
    return lambda values: [[value[place] for value in values] for place in places]


def _kinds(values: list[Any], changelog: bool) -> Any:
    """The kinds of changes of rows; None where all are inserts.

    Raises:
        ExecutionError: a row of an insert-only stream takes something back.
    """
    found = [value.get_row_kind() for value in values if isinstance(value, Row)]
    if len(found) < len(values) or not any(found):
        return None
    if not changelog:
        kind = next(kind for kind in found if kind is not RowKind.INSERT)
        raise ExecutionError(
            "unexpected-change",
            "Error during input conversion. Conversion expects insert-only records but DataStream API record "
            f"contains: {kind.name}",
            hint="make the table with from_changelog_stream",
        )
    return np.array(found, dtype=np.uint8)


def time_column(batch: ChangelogBatch, type_: pa.TimestampType, zone: str) -> Any:
    """The timestamps of the records, NULL where there is none; a type without a zone shows the clock of ``zone``."""
    times = batch.row_times
    if times is None:
        return pa.nulls(batch.num_rows, type_)
    mask = None if times.valid is None else ~times.valid
    moments = pa.array(times.values_ms, pa.int64(), mask=mask)
    if type_.tz is None and zone != "UTC":
        return pc.local_timestamp(moments.cast(pa.timestamp("ms", tz=zone))).cast(type_)
    return moments.cast(pa.timestamp("ms", tz=type_.tz)).cast(type_)


def _with_row_time(spec: WatermarkAssignerSpec) -> BatchMap:
    """In the place of a watermark assigner: the stream's own watermarks stay."""

    def check(batch: ChangelogBatch) -> ChangelogBatch:
        if batch.columns[spec.rowtime_index].null_count:
            raise ExecutionError(
                "null-rowtime",
                "Rowtime timestamp is not defined. Please make sure that a proper TimestampAssigner is defined and the "
                "stream environment uses the EventTime time characteristic.",
                hint="assign_timestamps_and_watermarks with a timestamp assigner before the stream becomes a table",
            )
        return batch

    return check


def rows_of(schema: Schema, form: RowForm = RowForm()) -> BatchMap:
    """Columns of a table to :class:`Row` values with their kinds; a row time becomes their timestamps.

    Raises (when a batch is converted):
        ExecutionError: a required field is NULL.
    """
    fields = [index for index, column in enumerate(schema) if column.name != form.time]
    names = tuple(schema[index].name for index in fields)
    times = [i for i, column in enumerate(schema) if column.name == form.time] if form.time else _rowtimes(schema)
    if len(times) > 1:
        raise InternalError("a stream of rows with several row times")
    zone = None
    if form.zone is not None:
        from flowsql_runtime.python.values_in import tzinfo_of  # with all of Python's functions

        zone = tzinfo_of(form.zone)

    def convert(batch: ChangelogBatch) -> ChangelogBatch:
        for index in fields:
            if schema[index].name in form.required and batch.columns[index].null_count:
                raise ExecutionError(
                    "null-in-not-null",
                    f"Column '{schema[index].name}' is NOT NULL, however, a null value is being written into it.",
                    hint="declare it nullable in the schema of the stream",
                )
        columns = [column_values(batch.columns[index], schema[index].type, zone) for index in fields]
        values = zip(*columns, strict=True) if columns else iter([()] * batch.num_rows)
        if batch.kinds is None:
            rows = [Row.of_names(names, value) for value in values]
        else:
            kinds = [RowKind(kind) for kind in batch.kinds.tolist()]
            rows = [Row.of_names(names, value, kind) for value, kind in zip(values, kinds, strict=True)]
        row_times = RowTimes(*epoch_ms(batch.columns[times[0]])) if times else None
        return ChangelogBatch((objects(rows),), batch.num_rows, None, row_times, batch.track)

    return convert


def _rowtimes(schema: Schema) -> list[int]:
    return [index for index, column in enumerate(schema) if is_rowtime(column.type)]
