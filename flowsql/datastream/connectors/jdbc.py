"""``JdbcSink``: rows of a stream into a table of a database, written as a ``jdbc`` table writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from flowsql.common.public_api import public_api
from flowsql.common.typeinfo import TypeInformation
from flowsql.datastream.bridges.columns import columns_of
from flowsql.datastream.connectors.base import Sink, SinkFunctionOf
from flowsql.datastream.connectors.jdbc_statement import InsertTarget, insert_target
from flowsql.datastream.connectors.rows_into import columns_of_rows
from flowsql.datastream.formats.row_type import row_type
from flowsql.datastream.plan.operators import BatchMap
from flowsql_core.catalog import ANONYMOUS
from flowsql_core.graph.specs import SinkSpec, TableSpec
from flowsql_core.row import INSERT_ONLY
from flowsql_core.types.logical import Column, Schema

__all__ = ["JdbcConnectionOptions", "JdbcExecutionOptions", "JdbcSink"]


class JdbcConnectionOptions:
    """Where the database is. Made by :class:`JdbcConnectionOptionsBuilder`, which is one of its names."""

    def __init__(self, options: Mapping[str, str]) -> None:
        #: Those of a table.
        self.options = dict(options)

    def get_db_url(self) -> str | None:
        """The address."""
        return self.options.get("url")

    def get_driver_name(self) -> str | None:
        """The class of a driver of Java; FlowSQL needs none."""
        return self.options.get("driver")

    def get_user_name(self) -> str | None:
        """Who writes."""
        return self.options.get("username")

    def get_password(self) -> str | None:
        """The password."""
        return self.options.get("password")

    @public_api
    class JdbcConnectionOptionsBuilder:
        """Makes :class:`JdbcConnectionOptions`; an address is needed."""

        def __init__(self) -> None:
            self._options: dict[str, str] = {}

        def with_url(self, url: str) -> Self:
            """``jdbc:postgresql://host:port/database`` and the like, or a URL of SQLAlchemy."""
            return self._set("url", url)

        def with_driver_name(self, driver_name: str) -> Self:
            """The class of a driver of Java that fits the address."""
            return self._set("driver", driver_name)

        def with_user_name(self, user_name: str) -> Self:
            """Who writes."""
            return self._set("username", user_name)

        def with_password(self, password: str) -> Self:
            """The password."""
            return self._set("password", password)

        def build(self) -> JdbcConnectionOptions:
            """The options.

            Raises:
                TypeError: there is no address.
            """
            if "url" not in self._options:
                raise TypeError("with_url(...) is missing")
            return JdbcConnectionOptions(self._options)

        def _set(self, key: str, text: str) -> Self:
            self._options[key] = text
            return self


class JdbcExecutionOptions:
    """How rows are gathered. Made by :meth:`builder` or :meth:`defaults`."""

    def __init__(self, batch_size: int, batch_interval_ms: int, max_retries: int) -> None:
        self._batch_size = batch_size
        self._batch_interval_ms = batch_interval_ms
        self._max_retries = max_retries

    def get_batch_interval_ms(self) -> int:
        """How long rows wait; 0: until there are enough, or a checkpoint comes."""
        return self._batch_interval_ms

    def get_batch_size(self) -> int:
        """Rows that are written at once."""
        return self._batch_size

    def get_max_retries(self) -> int:
        """How often a write that failed is tried again."""
        return self._max_retries

    @property
    def options(self) -> dict[str, str]:
        """Those of a table."""
        return {
            "sink.buffer-flush.max-rows": str(self._batch_size),
            "sink.buffer-flush.interval": f"{self._batch_interval_ms} ms",
            "sink.max-retries": str(self._max_retries),
        }

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        """5,000 rows, no interval, 3 retries."""
        return JdbcExecutionOptions.Builder().build()

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        """Begin with the defaults."""
        return JdbcExecutionOptions.Builder()

    @public_api
    class Builder:
        """Makes :class:`JdbcExecutionOptions`."""

        def __init__(self) -> None:
            self._size, self._interval_ms, self._retries = 5_000, 0, 3

        def with_batch_size(self, size: int) -> Self:
            """Rows that are written at once."""
            self._size = size
            return self

        def with_batch_interval_ms(self, interval_ms: int) -> Self:
            """How long rows wait at most."""
            self._interval_ms = interval_ms
            return self

        def with_max_retries(self, max_retries: int) -> Self:
            """How often a write that failed is tried again."""
            if max_retries < 0:
                raise ValueError("max_retries must not be negative")
            self._retries = max_retries
            return self

        def build(self) -> JdbcExecutionOptions:
            """The options."""
            return JdbcExecutionOptions(self._size, self._interval_ms, self._retries)


class _RowsIntoTable(Sink):
    def __init__(self, target: InsertTarget, columns: Schema, options: Mapping[str, str]) -> None:
        self._columns = columns
        table = {"connector": "jdbc", "table-name": target.table, **options}
        spec = TableSpec((ANONYMOUS, "", "JdbcSink"), columns, tuple(table.items()), primary_key=target.key)
        key = tuple(place for place, column in enumerate(columns) if column.name in target.key)
        self._spec = SinkSpec(spec, columns, INSERT_ONLY, upsert_key=key)

    def columns_of_values(self, type_: TypeInformation) -> BatchMap:
        """The fields of the rows."""
        return columns_of_rows(type_, self._columns, "JdbcSink")

    def spec(self) -> SinkSpec:
        """The writing operator."""
        return self._spec


@public_api
class JdbcSink(SinkFunctionOf):
    """Writes rows by an INSERT, at least once; with ON CONFLICT each key's newest row stands in the table."""

    @staticmethod
    def sink(
        sql: str,
        type_info: TypeInformation,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """What ``add_sink`` takes.

        Args:
            sql: ``INSERT INTO t (a, b) VALUES (?, ?)``, for upserts with an ON CONFLICT that updates all other columns.
            type_info: of the rows: a field for each question mark.

        Raises:
            NotSupportedYetError: the statement is another one.
            TypeError: there are more or fewer fields than question marks.
        """
        target = insert_target(sql)
        fields = columns_of(row_type(type_info))
        if len(fields) != len(target.columns):
            raise TypeError(f"The statement has {len(target.columns)} question marks, the type {len(fields)} fields.")
        columns = tuple(Column(name, field.type) for name, field in zip(target.columns, fields, strict=True))
        gathered = jdbc_execution_options or JdbcExecutionOptions.defaults()
        return JdbcSink(_RowsIntoTable(target, columns, {**jdbc_connection_options.options, **gathered.options}))
