"""The INSERT that a ``JdbcSink`` is told, as what it asks for: a table, its columns, and the key of upserts."""

from __future__ import annotations

from typing import Any, NoReturn

from flowsql_core.errors import NotSupportedYetError
from flowsql_core.record import record


@record
class InsertTarget:
    """``table`` as it is named; ``columns`` in the order of the values; ``key``: empty where rows are appended."""

    table: str
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()


def insert_target(sql: str) -> InsertTarget:
    """Read ``INSERT INTO t (a, b) VALUES (?, ?) [ON CONFLICT (a) DO UPDATE SET b = EXCLUDED.b]``.

    Raises:
        NotSupportedYetError: it is another statement.
    """
    import sqlglot
    from sqlglot import expressions as e

    try:
        found = sqlglot.parse_one(sql, read="postgres")
    except sqlglot.errors.ParseError:
        _refuse(sql)
    if not (isinstance(found, e.Insert) and isinstance(found.this, e.Schema) and isinstance(found.this.this, e.Table)):
        _refuse(sql)
    columns = tuple(column.name for column in found.this.expressions)
    values = found.expression
    rows = values.expressions if isinstance(values, e.Values) else []
    marks = rows[0].expressions if len(rows) == 1 else []
    if len(marks) != len(columns) or not all(isinstance(mark, e.Placeholder) for mark in marks):
        _refuse(sql)
    if any(found.args.get(part) for part in ("overwrite", "ignore", "returning", "with_", "alternative")):
        _refuse(sql)
    conflict = found.args.get("conflict")
    table = ".".join(part.name for part in found.this.this.parts)
    return InsertTarget(table, columns, () if conflict is None else _key(conflict, columns, sql))


def _key(conflict: Any, columns: tuple[str, ...], sql: str) -> tuple[str, ...]:
    """The columns of ON CONFLICT, if every other column takes the new row's value."""
    from sqlglot import expressions as e

    key = tuple(column.name for one in conflict.args.get("conflict_keys") or () for column in one.find_all(e.Column))
    key = key or tuple(one.name for one in conflict.args.get("conflict_keys") or ())
    taken = {
        one.this.name
        for one in conflict.expressions
        if isinstance(one, e.EQ)
        and isinstance(one.expression, e.Column)
        and one.expression.table.lower() == "excluded"
        and one.expression.name == one.this.name
    }
    updates = conflict.args.get("action") is not None and conflict.args["action"].name.upper() == "DO UPDATE"
    if not (updates and key and set(key) <= set(columns) and len(taken) == len(conflict.expressions)):
        _refuse(sql)
    if taken | set(key) != set(columns):
        _refuse(sql)
    return key


def _refuse(sql: str) -> NoReturn:
    raise NotSupportedYetError(
        f"JdbcSink with the statement {' '.join(sql.split())!r}",
        hint="INSERT INTO t (a, b) VALUES (?, ?), for upserts with ON CONFLICT (a) DO UPDATE SET b = EXCLUDED.b of "
        "every other column",
    )
