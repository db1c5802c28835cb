"""Rows of a table as they are now: queries, and their answers by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_compute.eval.distinct import map_distinct
from flowsql_connectors.cdc.mysql.columns.column_types import AS_BYTES, base_name, digits_of, is_unsigned, natural_types
from flowsql_connectors.cdc.mysql.columns.fit import fitted
from flowsql_connectors.cdc.mysql.columns.geometry import geometry_text
from flowsql_connectors.cdc.mysql.columns.moments import durations_of_texts
from flowsql_connectors.cdc.mysql.columns.values import bit_values, set_members
from flowsql_connectors.cdc.mysql.layout import Wanted
from flowsql_connectors.cdc.mysql.server import Server
from flowsql_connectors.cdc.mysql.tables import Table, TableColumn
from flowsql_connectors.cdc.mysql.texts import read_texts
from flowsql_connectors.jdbc.mysql import MySqlDialect
from flowsql_core.arrow import compute as pc
from flowsql_core.record import record
from flowsql_core.types import logical as t

_QUOTE: Final = MySqlDialect().quote
_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
_BYTES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
#: Dates without a month or a day, which MySQL may hold.
_NO_DATE: Final = r"^\d{4}-(?:00|\d\d-00)"
#: Blanks of a JSON document outside of its texts.
_BLANKS: Final = r'("(?:[^"\\]|\\.)*")|\s+'


@record
class SnapshotColumn:
    """A column of a query: what is asked, and what it is read as."""

    there: TableColumn
    declared: t.Column

    @property
    def expression(self) -> str:
        """The SQL that gives its values."""
        name, type_ = _QUOTE(self.there.name), base_name(self.there.spelled)
        if type_ in ("bit", "float"):
            # Of FLOAT all digits.
            return f"{name} + 0" if type_ == "bit" else f"{name} * 1e0"
        return name

    @property
    def is_bytes(self) -> bool:
        """Whether the server sends bytes."""
        return base_name(self.there.spelled) in _BYTES or self.is_geometry

    @property
    def is_geometry(self) -> bool:
        """Whether the values are geometries, as the server keeps them."""
        return (
            base_name(self.there.spelled) not in _BYTES
            and self.there.charset is None
            and natural_types(self.there.spelled, AS_BYTES) == (t.STRING,)
            and base_name(self.there.spelled) not in ("decimal", "json")
        )


def snapshot_columns(table: Table, declared: Sequence[t.Column]) -> list[SnapshotColumn]:
    """Columns of a table that has all declared ones."""
    found = []
    for column in declared:
        there = table.column(column.name)
        assert there is not None
        found.append(SnapshotColumn(there, column))
    return found


def read_rows(server: Server, query: str, columns: Sequence[SnapshotColumn], wanted: Wanted) -> tuple[int, list[Any]]:
    """The rows of a query as arrays in the declared types, and how many there are."""
    types = [pa.binary() if column.is_bytes else pa.string() for column in columns] or [pa.string()]
    parts: list[list[Any]] = [[] for _ in types]
    count = 0
    for batch in read_texts(server.database.connection, query, types, server.shown):
        count += len(batch[0])
        for part, array in zip(parts, batch, strict=True):
            part.append(array)
    arrays = [pa.chunked_array(part, type_).combine_chunks() for part, type_ in zip(parts, types, strict=True)]
    return count, [
        fitted(_native(array, column, wanted), column.declared, wanted.zone, wanted.binary_as)
        for array, column in zip(arrays, columns, strict=False)
    ]


def _native(texts: Any, column: SnapshotColumn, wanted: Wanted) -> Any:
    """Values as the log has them."""
    spelled, declared = column.there.spelled, column.declared.type
    name, digits = base_name(spelled), digits_of(spelled)
    if column.is_geometry:
        return map_distinct(texts, geometry_text, pa.string())
    if name in _INTEGERS:
        whole = texts.cast(pa.uint64() if name == "bigint" and is_unsigned(spelled) else pa.int64())
        return pc.equal(whole, pa.scalar(1, whole.type)) if isinstance(declared, t.BooleanType) else whole
    if name == "bit":
        words, valid = values_and_validity(texts.cast(pa.uint64()))
        size = ((digits[0] if digits else 1) + 7) // 8
        return bit_values(words.view(np.int64), valid, size, isinstance(declared, t.BooleanType))
    if name == "decimal" and not isinstance(declared, t.CharacterType):
        natural = natural_types(spelled)[0]
        assert isinstance(natural, t.DecimalType)
        return texts.cast(pa.decimal128(natural.precision, natural.scale))
    if name in ("float", "double"):
        return texts.cast(pa.float64())
    if name in ("date", "datetime", "timestamp"):
        texts = pc.if_else(pc.match_substring_regex(texts, _NO_DATE), pa.scalar(None, pa.string()), texts)
        if name == "date":
            return texts.cast(pa.date32())
        return texts.cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC" if name == "timestamp" else None))
    if name == "time" and not isinstance(declared, t.CharacterType):
        return durations_of_texts(texts)
    if name == "set" and isinstance(declared, t.ArrayType):
        return set_members(texts)
    if name == "json" and wanted.legacy_json:
        return pc.replace_substring_regex(texts, _BLANKS, r"\1")
    return texts
