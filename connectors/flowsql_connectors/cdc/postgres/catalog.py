"""Tables of a database that a scan captures, and the types of their columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from flowsql_connectors.jdbc.native import NativeColumn
from flowsql_connectors.jdbc.postgres import PostgresDialect, logical_type
from flowsql_core.record import record

_DIALECT: Final = PostgresDialect()
_TABLES: Final = """
SELECT n.nspname, c.relname, c.oid::int8, c.relkind = 'p', has_table_privilege(c.oid, 'SELECT'),
       has_schema_privilege(n.oid, 'USAGE')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND n.nspname <> 'information_schema'
  AND n.nspname NOT LIKE 'pg!_%' ESCAPE '!'
ORDER BY 1, 2
"""
_COLUMNS: Final = """
SELECT a.attrelid::int8, a.attname, a.atttypid::int8, a.atttypmod, a.attnotnull, a.attgenerated <> '',
       COALESCE(array_position(i.indkey::int2[], a.attnum) + 1, 0),
       CASE WHEN a.attcollation NOT IN (0, 100) THEN
         (SELECT quote_ident(x.nspname) || '.' || quote_ident(l.collname)
          FROM pg_collation l JOIN pg_namespace x ON x.oid = l.collnamespace WHERE l.oid = a.attcollation) END
FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE a.attrelid = ANY(%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1, a.attnum
"""
_TYPES: Final = """
SELECT o.type, o.modifier, format_type(o.type::oid, o.modifier), COALESCE(e.typname, b.typname, y.typname),
       (y.typelem <> 0 AND y.typlen = -1), CASE WHEN y.typtype = 'd' THEN y.typtypmod ELSE o.modifier END
FROM unnest(%s::int8[], %s::int4[]) AS o(type, modifier)
JOIN pg_type y ON y.oid = o.type
LEFT JOIN pg_type b ON y.typtype = 'd' AND b.oid = y.typbasetype
LEFT JOIN pg_type e ON y.typelem <> 0 AND y.typlen = -1 AND e.oid = y.typelem
"""

#: Runs a query with parameters.
Ask = Callable[..., list[tuple[Any, ...]]]
#: Of a column in the catalog and in the log: object id and modifier of its type.
TypeId = tuple[int, int]


@record
class SourceColumn:
    """A column. ``generated``: the log does not have it. ``collation``: quoted, where it is not the database's."""

    native: NativeColumn
    type_id: TypeId
    generated: bool
    collation: str | None


@record
class SourceTable:
    """A table. ``partitioned``: its rows are in others."""

    schema: str
    name: str
    oid: int
    partitioned: bool
    readable: bool
    columns: Mapping[str, SourceColumn]

    @property
    def id(self) -> str:
        """``schema.table``."""
        return f"{self.schema}.{self.name}"

    @property
    def quoted(self) -> str:
        """The name as SQL has it."""
        return f"{_DIALECT.quote(self.schema)}.{_DIALECT.quote(self.name)}"

    @property
    def key(self) -> tuple[str, ...]:
        """Columns of the primary key, in its order."""
        keyed = [column.native for column in self.columns.values() if column.native.key]
        return tuple(native.name for native in sorted(keyed, key=lambda native: native.key))


def tables_like(ask: Ask, schema: re.Pattern[str], name: re.Pattern[str]) -> list[SourceTable]:
    """Tables whose whole names match, sorted."""
    found = [row for row in ask(_TABLES) if schema.fullmatch(row[0]) and name.fullmatch(row[1])]
    columns: dict[int, dict[str, SourceColumn]] = {oid: {} for _, _, oid, *_ in found}
    described = ask(_COLUMNS, list(columns)) if found else []
    types = types_of(ask, {(type_, modifier) for _, _, type_, modifier, *_ in described})
    for oid, column, type_, modifier, required, generated, key, collation in described:
        spelled, logical = types[type_, modifier]
        native = NativeColumn(column, spelled, logical, not required, key)
        columns[oid][column] = SourceColumn(native, (type_, modifier), generated, collation)
    return [
        SourceTable(schema_name, table, oid, partitioned, selects and uses, columns[oid])
        for schema_name, table, oid, partitioned, selects, uses in found
    ]


def types_of(ask: Ask, ids: set[TypeId]) -> dict[TypeId, tuple[str, Any]]:
    """How types are spelled, and the SQL types that hold their values; None where only their texts have one."""
    if not ids:
        return {}
    ordered: Sequence[TypeId] = sorted(ids)
    rows = ask(_TYPES, [type_ for type_, _ in ordered], [modifier for _, modifier in ordered])
    return {
        (type_, modifier): (spelled, logical_type(base, is_array, of_base))
        for type_, modifier, spelled, base, is_array, of_base in rows
    }
