"""``StreamTableEnvironment``: a session whose tables may read streams, and become streams, of one environment."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, cast

from flowsql.common.public_api import public_api
from flowsql.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types, row_type_of
from flowsql.configuration import set_options
from flowsql.datastream.bridges.columns import columns_of, type_of_columns
from flowsql.datastream.bridges.declared_schema import (
    attribute_name,
    check_metadata,
    declared,
    named_fields,
    produced,
    schema_of_fields,
)
from flowsql.datastream.bridges.tables import RowForm, SourceStream, TablePart, scanned_streams
from flowsql.datastream.data_stream import DataStream
from flowsql.datastream.plan.graph import to_job_graph
from flowsql.datastream.plan.transformations import TableTransformation, Wishes
from flowsql.datastream.stream_execution_environment import StreamExecutionEnvironment
from flowsql.table.expression import Expression
from flowsql.table.expressions import col
from flowsql.table.session.environment import TableEnvironment, located
from flowsql.table.session.execute import StatementExecutor
from flowsql.table.table import Table
from flowsql_connectors.datastream import IDENTIFIER, MODE, PARALLELISM, SOURCE_WATERMARK, STREAM, mode_text
from flowsql_core.catalog import ANONYMOUS, CatalogTable, ObjectPath, TableColumn
from flowsql_core.errors import BindError, NotSupportedYetError, PlanError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.row import ALL_CHANGES, INSERT_ONLY, ChangelogMode, RowKind
from flowsql_core.types.logical import Column, is_rowtime, without_attribute
from flowsql_planner.bind import operations as op
from flowsql_planner.logical.nodes import Sink

if TYPE_CHECKING:
    from flowsql.common.job_client import JobClient
    from flowsql.common.row import Row
    from flowsql.table.environment_settings import EnvironmentSettings
    from flowsql.table.schema import Schema
    from flowsql_core.config import Configuration
    from flowsql_core.graph.job import JobGraph
    from flowsql_core.span import Source
    from flowsql_grammar import ast
    from flowsql_planner.catalog.manager import CatalogManager


class _StreamExecutor(StatementExecutor):
    """Puts streams into the place of the scans that read them, before a job starts."""

    def __init__(
        self, catalogs: CatalogManager, configuration: Configuration, environment: StreamExecutionEnvironment
    ) -> None:
        super().__init__(catalogs, configuration)
        self._environment = environment
        #: Streams that tables read, by the option ``stream`` of those tables.
        self.streams: dict[str, SourceStream] = {}

    def part(self, query: op.Query, name: str, mode: ChangelogMode, form: RowForm) -> TablePart:
        """The plan of a query whose rows become a stream.

        Raises:
            PlanError: the query makes changes that ``mode`` does not have, or has no plan.
        """
        schema = query.schema
        if any(is_rowtime(column.type) for column in schema):
            kept = self._planner().row_times(query)
            schema = tuple(
                column if index in kept or not is_rowtime(column.type) else _plain(column)
                for index, column in enumerate(schema)
            )
        rowtimes = [column.name for column in schema if is_rowtime(column.type)]
        if len(rowtimes) > 1:
            raise BindError(
                "several-rowtimes",
                f"The query contains more than one rowtime attribute column [{', '.join(rowtimes)}] for converting to "
                "DataStream.",
                hint="cast all but one of them to TIMESTAMP",
            )
        columns = tuple(map(_plain, schema))
        options = (("connector", IDENTIFIER), (MODE.key, mode_text(mode)))
        table = TableSpec((ANONYMOUS, ANONYMOUS, name), columns, options)
        sink = Sink(query.rel, table, name, span=query.span)
        try:
            graph = self._planner().plan((sink,), name)
        except PlanError as error:
            if error.code == "unsupported-changelog" and self._is_batch():
                # In batch mode the rows would be final: that needs an engine which knows the end.
                raise NotSupportedYetError("this query as a stream in batch mode", error.at) from None
            raise
        return TablePart(super()._with_rows(graph), tuple(self.streams.items()), schema, form)

    def sinks_part(self, inserts: Sequence[op.Insert]) -> TablePart:
        """The plan of INSERTs that a job of streams takes in.

        Raises:
            PlanError: they have no plan.
        """
        graph = self._planner().plan_inserts(tuple(inserts))
        return TablePart(super()._with_rows(graph), tuple(self.streams.items()))

    def _with_rows(self, graph: JobGraph) -> JobGraph:
        graph = super()._with_rows(graph)
        if not scanned_streams(graph):
            return graph
        part = TablePart(graph, tuple(self.streams.items()))
        builder = self._environment.new_builder()
        for number in part.streams:
            builder.add(number)
        part.embed(builder, Wishes(), same_mode=not (self._is_batch() and builder.settings.batch))
        options = dict(self._environment.configuration.items()) | dict(graph.configuration)
        return to_job_graph(builder.plan, graph.name, builder.settings, tuple(options.items()))

    def _submit(self, graph: JobGraph) -> JobClient:
        # One memory budget for the jobs of both environments.
        self._cluster = self._environment.cluster
        return super()._submit(graph)


def _plain(column: Column) -> Column:
    return Column(column.name, without_attribute(column.type))


@public_api
class StreamTableEnvironment(TableEnvironment):
    """A session of SQL and Table API beside a :class:`StreamExecutionEnvironment`.

    What a table writes (``execute_insert``, ``execute_sql``) runs at once, with the streams that it reads. What becomes
    a stream runs with ``execute`` of the stream environment.
    """

    def __init__(self, environment: StreamExecutionEnvironment, configuration: Configuration) -> None:
        super().__init__(configuration)
        self._environment = environment
        self._stream_executor = _StreamExecutor(self.catalogs, configuration, environment)
        self._executor = self._stream_executor
        self._converted = 0

    @staticmethod
    def create(  # type: ignore[override] # as in PyFlink, the stream environment comes first
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: EnvironmentSettings | Any = None,
    ) -> StreamTableEnvironment:
        """A session whose options are the stream environment's, with the settings on top."""
        if stream_execution_environment is None and environment_settings is None:
            raise ValueError(
                "No argument found, the param 'stream_execution_environment' or 'environment_settings' is required."
            )
        environment = stream_execution_environment or StreamExecutionEnvironment.get_execution_environment()
        values: dict[str, str] = {}
        if environment_settings is not None:
            options: Any = environment_settings
            if hasattr(options, "get_configuration"):
                options = options.get_configuration()
            values = options.to_dict() if hasattr(options, "to_dict") else dict(options.items())
        layer = set_options(environment.configuration.with_layer(), values.items())
        return StreamTableEnvironment(environment, layer.with_layer())

    # From streams

    def from_data_stream(self, data_stream: DataStream, *fields_or_schema: Expression | Schema) -> Table:
        """The values of a stream as an insert-only table: fields of rows and tuples are its columns.

        Args:
            data_stream: its type must be declared.
            fields_or_schema: a :class:`Schema`, which may have computed columns, a ``rowtime`` metadata column and a
                watermark (``SOURCE_WATERMARK()`` takes the stream's); or names for the columns, in order.

        Raises:
            NotSupportedYetError: the stream's values have no SQL type.
        """
        if fields_or_schema and all(isinstance(field, Expression) for field in fields_or_schema):
            return self._named(data_stream, cast("Sequence[Expression]", fields_or_schema))
        if len(fields_or_schema) > 1:
            raise ValueError(f"Invalid arguments for 'fields': {fields_or_schema!r}")
        schema = cast("Schema | None", fields_or_schema[0] if fields_or_schema else None)
        return self._table(data_stream, schema, INSERT_ONLY)

    def from_changelog_stream(
        self, data_stream: DataStream, schema: Schema | None = None, changelog_mode: ChangelogMode | None = None
    ) -> Table:
        """The rows of a stream as changes of a table, each of the kind that it bears.

        Args:
            data_stream: of rows.
            schema: as for :meth:`from_data_stream`; a primary key too.
            changelog_mode: the kinds that occur; all unless told. In upsert mode, which takes a primary key, the last
                row of each key is kept, to tell what an update replaces.
        """
        if row_type_of(data_stream.get_type()) is None:
            raise BindError(
                "not-a-changelog",
                "DataStream API expects rows for a changelog: the stream's type is "
                f"{data_stream.get_type()!r}, not a row type.",
            )
        mode = changelog_mode or ALL_CHANGES
        if mode.upsert and (schema is None or schema.key is None):
            raise BindError(
                "upsert-without-key",
                "The stream is a changelog that contains 'UPDATE_AFTER' but no 'UPDATE_BEFORE'. This requires defining "
                "a primary key constraint on the table.",
                hint="Schema.new_builder().primary_key(...)",
            )
        return self._table(data_stream, schema, mode)

    def create_temporary_view(
        self, view_path: str, table_or_data_stream: Table | DataStream, *fields_or_schema: Expression | Schema
    ) -> None:
        """Give a table, or a stream as :meth:`from_data_stream` takes it, a name for SQL."""
        if isinstance(table_or_data_stream, DataStream):
            table_or_data_stream = self.from_data_stream(table_or_data_stream, *fields_or_schema)
        super().create_temporary_view(view_path, table_or_data_stream)

    def _table(self, stream: DataStream, schema: Schema | None, mode: ChangelogMode, nullable: bool = False) -> Table:
        if stream.environment is not self._environment:
            raise BindError("other-environment", "The stream belongs to a different StreamExecutionEnvironment.")
        stream = stream.values()
        self._converted += 1
        key = f"stream-{self._converted}"
        self._stream_executor.streams[key] = SourceStream(stream.number, stream.get_type(), mode != INSERT_ONLY)
        options = {
            "connector": IDENTIFIER,
            STREAM.key: key,
            MODE.key: mode_text(mode),
            PARALLELISM.key: str(self._environment.parallelism_of(stream)),
        }
        name = f"*anonymous_{IDENTIFIER}_source${self._next_anonymous()}*"
        names = None
        if schema is None:
            fields = columns_of(stream.get_type(), nullable)
            columns = tuple(TableColumn(column.name, column.type) for column in fields)
            path = ObjectPath(ANONYMOUS, ANONYMOUS, name)
            self.catalogs.create(path, CatalogTable(columns, tuple(options.items())), temporary=True, replace=True)
        else:
            names = self._declare(name, schema, columns_of(stream.get_type(), nullable), options)
        table = self._table_at((ANONYMOUS, ANONYMOUS, name), f"from_data_stream({name})")
        if names is None:
            return table
        return table.select(*(col(own) for own in names))

    def _declare(
        self, name: str, schema: Schema, physical: Sequence[Column], options: dict[str, str]
    ) -> tuple[str, ...] | None:
        """A table of a declared schema; the columns that the program sees, None for all."""
        check_metadata(schema)
        declaration = declared(f"`{ANONYMOUS}`.`{ANONYMOUS}`.`{name}`", schema, physical)
        if declaration.source_watermark:
            options[SOURCE_WATERMARK.key] = "true"
        with_ = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        # The stream's own watermarks are no expression that the planner knows.
        given = schema.without_watermarks() if declaration.source_watermark else schema
        self._define(f"{declaration.text} WITH ({with_})", given)
        return declaration.names

    def _named(self, stream: DataStream, given: Sequence[Expression]) -> Table:
        """Fields by name where the expressions name fields, else new names by position; time attributes among them."""
        fields = named_fields(given, [column.name for column in columns_of(stream.get_type())])
        attributes = any(field.attribute is not None for field in fields)
        table = self._table(stream, schema_of_fields(fields) if attributes else None, INSERT_ONLY, nullable=True)
        return table.select(
            *(col(attribute_name(field) if field.own is None else field.own).alias(field.wanted) for field in fields)
        )

    # Into the job of the streams

    def attach(self, statement: ast.StatementSet, source: Source) -> None:
        """Add INSERTs to the job that ``execute`` of the stream environment runs."""
        with located(source):
            inserts = self._stream_executor.bind(statement, source)
            assert isinstance(inserts, op.StatementSet)
            part = self._stream_executor.sinks_part(inserts.inserts)
        recorder = self._environment.recorder
        made = TableTransformation(recorder.next_id(), Types.PICKLED_BYTE_ARRAY(), part)
        recorder.sinks.append(recorder.add(made))

    # To streams

    def to_data_stream(self, table: Table) -> DataStream:
        """The rows of an insert-only table as a stream of :class:`Row`; a row time becomes their timestamps.

        Raises:
            PlanError: the table takes rows back; see :meth:`to_changelog_stream`.
        """
        return self._stream(table, INSERT_ONLY)

    def to_changelog_stream(
        self, table: Table, target_schema: Schema | None = None, changelog_mode: ChangelogMode | None = None
    ) -> DataStream:
        """The changes of a table as a stream of :class:`Row`, each with its kind.

        Args:
            table: insert-only or updating.
            target_schema: names and types of the rows' fields; the table's unless told. A ``rowtime`` metadata column
                is the timestamp and no field.
            changelog_mode: the kinds that may occur; all unless told.
        """
        if target_schema is not None:
            made = produced(table, target_schema)
            return self._stream(made.table, changelog_mode or ALL_CHANGES, made.time, made.required)
        return self._stream(table, changelog_mode or ALL_CHANGES)

    def to_append_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """The rows of an insert-only table as rows or tuples of a type, by position; else their first field."""
        fields = isinstance(type_info, RowTypeInfo | TupleTypeInfo)
        return self._typed(self._stream(table, INSERT_ONLY), type_info, tuple if fields else _only_field)

    def to_retract_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """The changes of a table as pairs: True adds the row behind it, False takes it back."""
        if not isinstance(type_info, RowTypeInfo | TupleTypeInfo):
            raise TypeError(f"the type of the rows is a row or tuple type, not {type_info!r}")
        change = _changed_row if isinstance(type_info, RowTypeInfo) else _changed_tuple
        return self._typed(self._stream(table, ALL_CHANGES), Types.TUPLE([Types.BOOLEAN(), type_info]), change)

    @staticmethod
    def _typed(stream: DataStream, type_: TypeInformation, function: Any) -> DataStream:
        return stream.map(function, type_).name("SinkConversion")

    def _stream(
        self, table: Table, mode: ChangelogMode, time: str | None = None, required: Collection[str] = ()
    ) -> DataStream:
        self.require_own(table._environment, "to_data_stream")
        from flowsql_grammar import ast

        self._converted += 1
        name = f"*anonymous_{IDENTIFIER}_sink${self._converted}*"
        statement = ast.QueryStatement(table._query, span=table._query.span)
        with located(table.source):
            query = self._stream_executor.bind(statement, table.source)
            assert isinstance(query, op.Query)
            part = self._stream_executor.part(query, name, mode, RowForm(time, frozenset(required)))
        recorder = self._environment.recorder
        fields = tuple(column for column in query.schema if column.name != time)
        made = TableTransformation(recorder.next_id(), type_of_columns(fields), part)
        return DataStream(self._environment, recorder.add(made))


def _only_field(row: Row) -> Any:
    return row[0]


def _adds(row: Row) -> bool:
    return row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)


def _changed_row(row: Row) -> Any:
    return _adds(row), row


def _changed_tuple(row: Row) -> Any:
    return _adds(row), tuple(row)
