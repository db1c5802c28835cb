"""The columns of a table's rows in the log: as the log tells them, or as the server has them now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from flowsql_connectors.cdc.log import CapturedTable
from flowsql_connectors.cdc.mysql.columns.column_types import base_name, is_unsigned, members_of, suits
from flowsql_connectors.cdc.mysql.columns.wire_types import Wire
from flowsql_connectors.cdc.mysql.layout import RowLayout, Wanted, layout_of
from flowsql_connectors.cdc.mysql.server import Server
from flowsql_connectors.cdc.mysql.table_map import LogColumn, TableMap, parse_table_map, table_name
from flowsql_connectors.cdc.mysql.tables import Table, TableColumn, check_columns, find_table
from flowsql_core.errors import ConnectorError

#: What a column may be in the log by the first word of its type.
_CODES: Final[Mapping[str, tuple[Wire, ...]]] = {
    "tinyint": (Wire.TINY,), "smallint": (Wire.SHORT,), "mediumint": (Wire.INT24,), "int": (Wire.LONG,),
    "bigint": (Wire.LONGLONG,), "float": (Wire.FLOAT,), "double": (Wire.DOUBLE,), "decimal": (Wire.NEWDECIMAL,),
    "bit": (Wire.BIT,), "year": (Wire.YEAR,), "date": (Wire.DATE, Wire.NEWDATE), "time": (Wire.TIME, Wire.TIME2),
    "datetime": (Wire.DATETIME, Wire.DATETIME2), "timestamp": (Wire.TIMESTAMP, Wire.TIMESTAMP2),
    "char": (Wire.STRING,), "binary": (Wire.STRING,), "varchar": (Wire.VARCHAR,), "varbinary": (Wire.VARCHAR,),
    "enum": (Wire.ENUM,), "set": (Wire.SET,), "json": (Wire.JSON, Wire.BLOB),
}  # fmt: skip

_NAMES: Final = {
    **{wire: name for name, wires in _CODES.items() for wire in wires if name not in ("binary", "varbinary")},
    Wire.JSON: "json",
    Wire.GEOMETRY: "geometry",
}
_PARTS_OF_CHARACTERS: Final = {
    Wire.STRING: ("char", "binary"), Wire.VARCHAR: ("varchar", "varbinary"), Wire.VAR_STRING: ("varchar", "varbinary"),
}  # fmt: skip


class Schemas:
    """Layouts of tables by what their table maps say.

    Args:
        tables: those that are read, as they were when the log was opened; ``captured``: the same for the source.
    """

    def __init__(
        self, server: Server, tables: Sequence[Table], captured: Sequence[CapturedTable], wanted: Wanted
    ) -> None:
        self._server = server
        self._wanted = wanted
        self._captured = captured
        self._tables = list(tables)
        self._places = {(table.database, table.name): place for place, table in enumerate(tables)}
        self._stale: set[int] = set()

    def is_read(self, database: str, table: str) -> bool:
        """Whether a table is one of those that are read."""
        return (database, table) in self._places

    def layout(self, body: bytes, where: str) -> RowLayout | None:
        """The layout that a table map tells; None: the table is not read.

        Args:
            where: the place in the log, for messages.

        Raises:
            ConnectorError: a column that is read is not there, or has another type; or nobody knows.
        """
        place = self._places.get(table_name(body))
        if place is None:
            return None
        try:
            told = parse_table_map(body, self._server.charsets, self._server.is_mariadb)
        except ValueError as error:
            raise ConnectorError("mysql-cdc-log", f"The log has a table map at {where} of {error}.") from error
        columns, primary_key = self._described(place, told, where)
        try:
            self._check(self._tables[place].id, columns)
            return layout_of(
                place, self._tables[place].id, columns, primary_key, self._captured[place].key, self._wanted
            )
        except ConnectorError as error:
            raise ConnectorError(
                error.code,
                error.message,
                hint=f"the log says so from {where} on; a table that is declared as the database now has it, in a job "
                "that begins anew, goes on",
            ) from None

    def _check(self, name: str, columns: Sequence[LogColumn]) -> None:
        """Refuse columns whose type in the log does not fit any more."""
        by_name = {column.name: column for column in columns}
        for declared in self._wanted.columns:
            there = by_name.get(declared.name)
            if there is not None and not suits(spelled(there), declared.type, self._wanted.binary_as):
                raise ConnectorError(
                    "mysql-cdc-schema",
                    f"Column '{declared.name}' of table '{name}' is {spelled(there)} in the log, which does not fit "
                    f"{declared.type.as_nullable()}.",
                )

    def changed(self) -> None:
        """Tables may be other ones from here on."""
        self._stale.update(range(len(self._tables)))

    def _described(self, place: int, told: TableMap, where: str) -> tuple[Sequence[LogColumn], Sequence[int]]:
        """The columns of rows, and which of them are the primary key."""
        if told.is_named:
            return [_with_charset(column, self._tables[place]) for column in told.columns], told.primary_key or ()
        if place in self._stale or not _is_like(self._tables[place], told):
            table = find_table(self._server, told.database, told.table)
            if not _is_like(table, told):
                raise ConnectorError(
                    "mysql-cdc-schema",
                    f"Rows of table '{told.database}.{told.table}' at {where} of the log have other columns than the "
                    "table has now, and the log does not tell their names.",
                    hint="SET GLOBAL binlog_row_metadata = 'FULL' lets changes be read that are older than the table's "
                    "columns; a job that begins anew reads it as it is now",
                )
            check_columns(table, self._wanted.columns, self._wanted.binary_as)
            self._tables[place] = table
            self._stale.discard(place)
        table = self._tables[place]
        names = [column.name for column in table.columns]
        columns = [_described(there, known) for there, known in zip(told.columns, table.columns, strict=True)]
        return columns, [names.index(column.name) for column in table.primary_key]


def _is_like(table: Table, told: TableMap) -> bool:
    """Whether a table may have such rows."""
    return len(table.columns) == len(told.columns) and all(
        there.wire.code in _CODES.get(base_name(known.spelled), (there.wire.code,))
        for there, known in zip(told.columns, table.columns, strict=True)
    )


def spelled(column: LogColumn) -> str:
    """The type of a column as MySQL spells it, as far as the log tells it."""
    wire = column.wire
    unsigned = " unsigned" if column.unsigned else ""
    if wire.code in _PARTS_OF_CHARACTERS:
        texts, others = _PARTS_OF_CHARACTERS[Wire(wire.code)]
        return f"{others if column.charset == 'binary' else texts}({wire.size})"
    match wire.code:
        case Wire.TINY:
            # The log tells no display width: every one may be a BOOLEAN.
            return f"tinyint(1){unsigned}"
        case Wire.NEWDECIMAL:
            return f"decimal({wire.precision},{wire.scale}){unsigned}"
        case Wire.BIT:
            return f"bit({wire.precision})"
        case Wire.DATETIME2 | Wire.TIMESTAMP2 | Wire.TIME2:
            return f"{_NAMES[Wire(wire.code)]}({wire.precision})"
        case Wire.BLOB:
            return "blob" if column.charset == "binary" else "text"
        case Wire.ENUM | Wire.SET:
            return _NAMES[Wire(wire.code)] + "('')"
    try:
        return _NAMES.get(Wire(wire.code), Wire(wire.code).name.lower()) + unsigned
    except ValueError:
        return f"of an unknown type ({wire.code})"


def _with_charset(column: LogColumn, table: Table) -> LogColumn:
    """A column with the character set of its members, which MariaDB does not tell."""
    if column.wire.code not in (Wire.ENUM, Wire.SET) or column.charset is not None:
        return column
    known = table.column(column.name)
    return column if known is None else replace(column, charset=known.charset)


def _described(there: LogColumn, known: TableColumn) -> LogColumn:
    """A column of the log with what the server says of it."""
    members: tuple[bytes, ...] | None = None
    charset = known.charset or "binary"
    if base_name(known.spelled) in ("enum", "set"):
        members, charset = tuple(name.encode() for name in members_of(known.spelled)), "utf8mb4"
    return LogColumn(there.wire, known.name, is_unsigned(known.spelled), charset, members)
