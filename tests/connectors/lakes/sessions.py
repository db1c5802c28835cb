"""Sessions of SQL in batch mode."""

from __future__ import annotations

from typing import Any

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import Configuration


def session(options: dict[str, str] | None = None) -> TableEnvironment:
    """A session with options."""
    given = {"execution.runtime-mode": "batch", "execution.batch.engine": "local", **(options or {})}
    return TableEnvironment.of_configuration(Configuration(values=given))


def answer(made: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    with made.execute_sql(query).collect() as found:
        return [tuple(row) for row in found]
