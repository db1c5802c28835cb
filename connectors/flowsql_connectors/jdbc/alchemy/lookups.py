"""Statements that find rows by keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import NullType

from flowsql_connectors.jdbc.alchemy.expressions import expression, read, table_of
from flowsql_connectors.jdbc.native import NativeColumn
from flowsql_core.types import logical as t

#: The parameter with all keys of :func:`by_number`.
KEYS = "flowsql_keys"


def _columns(table: Any, native: Sequence[NativeColumn], columns: t.Schema, kind: str) -> list[Any]:
    return [read(table.c[there.name], there, column.type, kind) for there, column in zip(native, columns, strict=True)]


def by_number(table: str, native: Sequence[NativeColumn], columns: t.Schema, key: int, kind: str) -> Any:
    """The columns of all rows that have one of many integers."""
    source = table_of(table, (there.name for there in native))
    wanted = sa.bindparam(KEYS, expanding=True, type_=NullType())
    return sa.select(*_columns(source, native, columns, kind)).where(source.c[native[key].name].in_(wanted))


def one_by_one(
    table: str, native: Sequence[NativeColumn], columns: t.Schema, keys: Sequence[int], count: int, kind: str
) -> Any:
    """A query a key, so that the database compares as it does with constants: the number of the key, and the columns.

    The parameters are :func:`parameter`.
    """
    source = table_of(table, (there.name for there in native))
    found = _columns(source, native, columns, kind)
    compared = [
        # Where only texts have a type, these are compared.
        expression(source.c[native[key].name], native[key], t.STRING, kind)
        if native[key].type is None
        else source.c[native[key].name]
        for key in keys
    ]
    labelled = [column.label(f"flowsql_c{at}") for at, column in enumerate(found)]
    queries = []
    for number in range(count):
        met = [column == sa.bindparam(parameter(number, at), type_=NullType()) for at, column in enumerate(compared)]
        queries.append(sa.select(sa.literal_column(str(number)).label("flowsql_n"), *labelled).where(*met))
    return sa.union_all(*queries) if count > 1 else queries[0]


def parameter(number: int, at: int) -> str:
    """The name of a parameter: which key, and which of its columns."""
    return f"flowsql_k{number}_{at}"
