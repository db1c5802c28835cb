"""Connections of SQLAlchemy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.engine.reflection import ObjectKind
from sqlalchemy.exc import NoSuchTableError, SQLAlchemyError

from flowsql_connectors.jdbc.address import is_query
from flowsql_connectors.jdbc.alchemy import lookups, writing
from flowsql_connectors.jdbc.alchemy.errors import said
from flowsql_connectors.jdbc.alchemy.expressions import select
from flowsql_connectors.jdbc.alchemy.kinds import FILES, NAMED_WITH_SCHEMA
from flowsql_connectors.jdbc.alchemy.types import logical_type
from flowsql_connectors.jdbc.alchemy.values import arrays, parameters
from flowsql_connectors.jdbc.arrays import positions
from flowsql_connectors.jdbc.database import Changes, Database, Selection, Target
from flowsql_connectors.jdbc.native import NativeColumn
from flowsql_core.errors import ConnectorError
from flowsql_core.types import logical as t

_BATCH_ROWS: Final = 16_384
#: Integers of one statement; all databases take so many.
_NUMBERS: Final = 500
#: Queries of one statement, a power of two.
_QUERIES: Final = 128
#: What a row of such a query begins with.
_NUMBER: Final = t.Column("number", t.INT)


class AlchemyDatabase(Database):
    """A connection of SQLAlchemy to a database whose dialect's name is ``kind``."""

    def __init__(self, kind: str, connection: Any, auto_commit: bool, shown: str, zone: str) -> None:
        self._kind = kind
        self._connection = connection
        self._auto_commit = auto_commit
        self.shown = shown
        self._zone = zone
        #: Columns of tables that were asked for, and their types in SQLAlchemy's words.
        self._known: dict[str, tuple[dict[str, NativeColumn], dict[str, Any]]] = {}
        self._statements: dict[Any, Any] = {}
        self._changes: dict[Target, tuple[Any, list[Any]]] = {}

    def find_columns(self, table: str) -> dict[str, NativeColumn]:
        """By SQLAlchemy's inspector."""
        if is_query(table):
            raise ConnectorError(
                "database", f"'table-name' is a query, which is read at jdbc:postgresql alone and not at {self.shown}."
            )
        schema, _, name = table.rpartition(".")
        with said(f"Table '{table}' at {self.shown}"):
            try:
                found = sa.inspect(self._connection).get_columns(name, schema=schema or None)
            except NoSuchTableError:
                found = []
            finally:
                self._end()
        keys = self._keys(lambda inspector: inspector.get_pk_constraint(name, schema=schema or None)) if found else {}
        columns = self._described(found, keys)
        self._known[table] = columns, {column["name"]: column["type"] for column in found}
        return columns

    def tables(self) -> dict[str, dict[str, NativeColumn]]:
        """Tables and views of the default schema; of PostgreSQL tables of all schemas, as in Flink."""
        if self._kind not in NAMED_WITH_SCHEMA:
            return self._tables(None, ObjectKind.ANY)
        with said(self.shown):
            try:
                schemas = sa.inspect(self._connection).get_schema_names()
            finally:
                self._end()
        found: dict[str, dict[str, NativeColumn]] = {}
        for schema in sorted(schemas):
            if schema != "information_schema" and not schema.startswith("pg_"):
                found |= {
                    f"{schema}.{name}": columns for name, columns in self._tables(schema, ObjectKind.TABLE).items()
                }
        return found

    def _tables(self, schema: str | None, kind: ObjectKind) -> dict[str, dict[str, NativeColumn]]:
        with said(self.shown):
            try:
                found = sa.inspect(self._connection).get_multi_columns(schema=schema, kind=kind)
            finally:
                self._end()
        keys = self._keys(lambda inspector: inspector.get_multi_pk_constraint(schema=schema, kind=kind))
        return {
            place[1]: self._described(columns, keys.get(place) or {})
            for place, columns in sorted(found.items(), key=lambda item: item[0][1])
        }

    def _keys(self, ask: Any) -> Any:
        """Primary keys. Not every dialect tells them."""
        try:
            return ask(sa.inspect(self._connection))
        except (SQLAlchemyError, NotImplementedError):
            return {}
        finally:
            self._end()

    def _described(self, columns: Sequence[Mapping[str, Any]], key: Mapping[str, Any]) -> dict[str, NativeColumn]:
        places = {name: at for at, name in enumerate(key.get("constrained_columns") or (), 1)}
        return {
            column["name"]: NativeColumn(
                column["name"],
                self._spelled(column["type"]),
                logical_type(column["type"], self._kind),
                bool(column.get("nullable", True)),
                places.get(column["name"], 0),
            )
            for column in columns
        }

    def _spelled(self, type_: Any) -> str:
        try:
            return str(type_.compile(dialect=self._connection.dialect)).lower()
        except SQLAlchemyError:
            return "of a type that SQLAlchemy does not know"

    def databases(self) -> list[str]:
        """The one that the URL names."""
        named = self._connection.engine.url.database or ""
        return [Path(named).name if self._kind in FILES else named]

    def table_bytes(self, table: str) -> int | None:
        """Of a file, the whole of it."""
        path = Path(self._connection.engine.url.database or "")
        return path.stat().st_size if self._kind in FILES and path.is_file() else None

    def scan(self, wanted: Selection, batch_rows: int) -> Iterator[Sequence[Any]]:
        """A batch at a time, where the driver does not fetch all of the answer first."""
        statement = select(wanted, self._there(wanted.table)[0], self._kind)
        options = {"yield_per": batch_rows or _BATCH_ROWS}
        with said(self.shown):
            result = self._connection.execute(statement, execution_options=options)
            try:
                for rows in result.partitions():
                    yield arrays(rows, wanted.output, self._zone)
            finally:
                result.close()
                if self._auto_commit:
                    self._end()

    def _there(self, table: str) -> tuple[dict[str, NativeColumn], dict[str, Any]]:
        if table not in self._known:
            self.columns(table)
        return self._known[table]

    def find(
        self,
        table: str,
        native: Sequence[NativeColumn],
        columns: t.Schema,
        keys: Sequence[int],
        values: Sequence[Any],
    ) -> tuple[Any, Sequence[Any]]:
        """Integers by IN, of which the found rows tell which they have; others by a query a key in one statement."""
        with said(f"Table '{table}' at {self.shown}"):
            try:
                if len(keys) == 1 and isinstance(columns[keys[0]].type, t.IntegerType):
                    return self._by_number(table, native, columns, keys[0], values[0])
                return self._one_by_one(table, native, columns, keys, values)
            finally:
                self._end()

    def _by_number(
        self, table: str, native: Sequence[NativeColumn], columns: t.Schema, key: int, values: Any
    ) -> tuple[Any, Sequence[Any]]:
        statement = lookups.by_number(table, native, columns, key, self._kind)
        asked = parameters(values, self._kind)
        rows: list[Any] = []
        for start in range(0, len(asked), _NUMBERS):
            part = {lookups.KEYS: asked[start : start + _NUMBERS]}
            rows += self._connection.execute(statement, part).fetchall()
        found = arrays(rows, columns, self._zone)
        given, there = np.asarray(values, np.int64), np.asarray(found[key], np.int64)
        rising = np.argsort(given)
        return _in_order(rising[np.searchsorted(given[rising], there)], found, len(given))

    def _one_by_one(
        self, table: str, native: Sequence[NativeColumn], columns: t.Schema, keys: Sequence[int], values: Sequence[Any]
    ) -> tuple[Any, Sequence[Any]]:
        asked = [parameters(array, self._kind) for array in values]
        count = len(asked[0])
        rows: list[Any] = []
        starts: list[Any] = []
        for start in range(0, count, _QUERIES):
            part = [column[start : start + _QUERIES] for column in asked]
            # Statements of a few lengths, which are made once: the last key stands for those beyond the end.
            length = 1 << (len(part[0]) - 1).bit_length()
            compiled = self._compiled(
                (table, tuple(native), columns, tuple(keys), length),
                lambda length=length: lookups.one_by_one(table, native, columns, keys, length, self._kind),
            )
            sent = {
                lookups.parameter(number, at): column[min(number, len(column) - 1)]
                for at, column in enumerate(part)
                for number in range(length)
            }
            found = self._connection.exec_driver_sql(compiled.string, _one(compiled, sent)).fetchall()
            starts.append(np.full(len(found), start))
            rows += found
        numbers, *columns_found = arrays(rows, (_NUMBER, *columns), self._zone)
        return _in_order(np.concatenate(starts) + np.asarray(numbers), columns_found, count)

    def _compiled(self, key: Any, make: Any) -> Any:
        if key not in self._statements:
            self._statements[key] = make().compile(dialect=self._connection.dialect)
        return self._statements[key]

    def write(self, target: Target, changes: Changes) -> None:
        """Statements that are executed with many rows each, in one transaction."""
        with said(f"Table '{target.table}' at {self.shown}"):
            try:
                deleting, statements = self._changing(target)
                if changes.delete_count:
                    self._many(deleting, dict(zip(target.keys, changes.deleted, strict=True)))
                if changes.row_count:
                    rows = dict(enumerate(changes.rows))
                    for compiled in statements:
                        self._many(compiled, rows)
                self._connection.commit()
            except BaseException:
                self._end()
                raise

    def _changing(self, target: Target) -> tuple[Any, list[Any]]:
        """Statements that delete and write rows, compiled once."""
        if target not in self._changes:
            types = self._there(target.table)[1] if target.keys else {}
            deleting = writing.deleting(target, self._kind) if target.keys else None
            statements = writing.writing(target, types, self._kind)
            dialect = self._connection.dialect
            self._changes[target] = (
                None if deleting is None else deleting.compile(dialect=dialect),
                [statement.compile(dialect=dialect) for statement in statements],
            )
        return self._changes[target]

    def _many(self, compiled: Any, columns: Mapping[int, Any]) -> None:
        """A statement with the rows of arrays, by their places."""
        values = {writing.parameter(at): parameters(array, self._kind) for at, array in columns.items()}
        order = compiled.positiontup
        if order is not None:
            rows: list[Any] = list(zip(*(values[name] for name in order), strict=True))
        else:
            # The driver wants a mapping a row.
            names = [name for name in values if name in compiled.binds]
            rows = [dict(zip(names, row, strict=True)) for row in zip(*(values[name] for name in names), strict=True)]
        self._connection.exec_driver_sql(compiled.string, rows)

    def _end(self) -> None:
        """End the transaction that a question began."""
        with suppress(SQLAlchemyError):
            self._connection.rollback()

    def close(self) -> None:
        """Whatever state the connection is in."""
        with suppress(SQLAlchemyError):
            self._connection.close()


def _one(compiled: Any, values: Mapping[str, Any]) -> Any:
    """Parameters of one execution, as the driver wants them."""
    order = compiled.positiontup
    return values if order is None else tuple(values[name] for name in order)


def _in_order(numbers: Any, rows: Sequence[Any], count: int) -> tuple[Any, Sequence[Any]]:
    """Rows in the order of their keys, of which there are ``count``; those of further numbers are left out."""
    order = np.argsort(numbers, kind="stable")
    order = order[: np.searchsorted(numbers[order], count)]
    places = pa.array(order)
    return positions(numbers[order]), [array.take(places) for array in rows]
