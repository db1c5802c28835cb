"""Rows of a test: texts to columns of a table's types and back, and the table that changes make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.row import SHORT_STRINGS
from flowsql_core.types.logical import Schema, without_attribute

if TYPE_CHECKING:
    from flowsql.table.session.environment import TableEnvironment

#: Texts of the cells of a row.
Row = tuple[str, ...]

#: How a NULL is written.
NULL: Final = "NULL"
_MOST_ROWS: Final = 500


def typed_batch(
    session: TableEnvironment,
    schema: Schema,
    names: Sequence[str],
    rows: Sequence[Sequence[str | None]],
    kinds: Sequence[str] | None = None,
) -> ChangelogBatch:
    """Rows of texts as columns of a schema, cast as CAST does; columns that are not named are NULL.

    Args:
        session: evaluates the casts.
        names: of the columns of ``rows``.
        rows: None is NULL.
        kinds: of change, as ``+I``; None: all are inserts.

    Raises:
        BindError: a column that there is not, or a kind that is none.
        FlowSqlError: a text that is no value of its column's type.
    """
    pieces = []
    for start in range(0, max(len(rows), 1), _MOST_ROWS):
        values = ", ".join(
            "(" + ", ".join("CAST(NULL AS STRING)" if cell is None else _literal(cell) for cell in row) + ")"
            for row in rows[start : start + _MOST_ROWS]
        )
        pieces.append(batch_of_values(session, schema, names, f"VALUES {values}" if values else ""))
    columns = [list(parts) for parts in zip(*(piece.columns for piece in pieces), strict=True)]
    return ChangelogBatch.of([_joined(parts) for parts in columns], _kinds(kinds), num_rows=len(rows))


def batch_of_values(session: TableEnvironment, schema: Schema, names: Sequence[str], values: str) -> ChangelogBatch:
    """``VALUES (...), (...)`` as columns of a schema; see :func:`typed_batch`. No text: no rows."""
    import pyarrow as pa

    from flowsql_core.types.arrow import to_arrow

    known = [column.name for column in schema]
    given = list(names) or known
    for name in given:
        if name not in known:
            raise BindError(
                "column-not-found", f"There is no column '{name}'.", hint=f"the columns are {', '.join(known)}"
            )
    if not values:
        return ChangelogBatch.of([pa.nulls(0, to_arrow(column.type)) for column in schema], num_rows=0)
    items = []
    for column in schema:
        type_ = without_attribute(column.type).as_nullable()
        source = f"v.`c{given.index(column.name)}`" if column.name in given else "NULL"
        items.append(f"CAST({source} AS {type_})")
    heads = ", ".join(f"`c{place}`" for place in range(len(given)))
    batches = _answer(session, f"SELECT {', '.join(items)} FROM ({values}) AS v({heads})")
    columns = zip(*(batch.columns for batch in batches), strict=True)
    return ChangelogBatch.of(
        [_joined(list(parts)) for parts in columns], num_rows=sum(batch.num_rows for batch in batches)
    )


def moment_ms(session: TableEnvironment, expression: str) -> int:
    """Milliseconds since 1970 of an expression of TIMESTAMP, as a clock in UTC shows it."""
    (batch,) = _answer(session, f"SELECT CAST({expression} AS TIMESTAMP(3)) AS m")
    found = batch.columns[0].cast("int64")[0].as_py()
    if found is None:
        raise BindError("moment-is-null", "The moment is NULL.")
    return int(found)


def _answer(session: TableEnvironment, query: str) -> list[ChangelogBatch]:
    """The rows of a query that the test did not write: errors bear no places in it.

    Raises:
        BindError: what is wrong.
    """
    try:
        return [batch for batch in session.execute_sql(query).batches() if batch.num_rows]
    except FlowSqlError as error:
        raise BindError(error.code, error.message, hint=error.hint) from error


def texts_of(batch: ChangelogBatch, schema: Schema) -> tuple[list[str], list[Row]]:
    """Kinds of change and cells of some rows; cells as the command line prints them, NULL as ``NULL``."""
    from flowsql.table.values.tableau import cells_of

    cells = [
        cells_of(data, column, NULL, "UTC").to_pylist() for column, data in zip(schema, batch.columns, strict=False)
    ]
    kinds = [0] * batch.num_rows if batch.kinds is None else list(batch.kinds)
    return [SHORT_STRINGS[kind] for kind in kinds], list(zip(*cells, strict=True))


def materialized(batches: Sequence[ChangelogBatch], schema: Schema, key: Sequence[int]) -> list[Row]:
    """The rows that changes leave. Without ``-U`` in front of it, ``+U`` replaces the row of its key."""
    rows: dict[int, Row] = {}
    by_cells: dict[Row, list[int]] = {}
    by_key: dict[Row, int] = {}
    number = 0
    has_before = any(batch.kinds is not None and (batch.kinds == 1).any() for batch in batches)
    upserts = bool(key) and not has_before
    for batch in batches:
        for kind, cells in zip(*texts_of(batch, schema), strict=True):
            identity = tuple(cells[place] for place in key)
            old = by_key.pop(identity, None) if upserts else None
            if kind in ("-U", "-D") and old is None and by_cells.get(cells):
                old = by_cells[cells].pop()
            if old is not None:
                gone = rows.pop(old)
                if old in by_cells.get(gone, ()):
                    by_cells[gone].remove(old)
            if kind in ("+I", "+U"):
                rows[number] = cells
                by_cells.setdefault(cells, []).append(number)
                if upserts:
                    by_key[identity] = number
                number += 1
    return list(rows.values())


def _kinds(kinds: Sequence[str] | None) -> Any:
    import numpy as np

    if kinds is None:
        return None
    for kind in kinds:
        if kind not in SHORT_STRINGS:
            raise BindError("bad-kind", f"'{kind}' is no kind of change.", hint="+I, -U, +U or -D")
    made = np.array([SHORT_STRINGS.index(kind) for kind in kinds], np.uint8)
    return None if not made.any() else made


def _joined(parts: list[Any]) -> Any:
    import pyarrow as pa

    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _literal(text: str) -> str:
    return "CAST('" + text.replace("'", "''") + "' AS STRING)"
