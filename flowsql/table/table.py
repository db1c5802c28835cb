"""``Table``: a query with a name for its rows; run, shown, explained or written somewhere."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from flowsql.table.result import ResolvedSchema, TableResult
from flowsql_core.errors import NotSupportedYetError

if TYPE_CHECKING:
    from flowsql.table.environment import TableEnvironment
    from flowsql_core.span import Source
    from flowsql_planner.bind.operations import Query


class ExplainDetail(enum.Enum):
    """What ``explain`` adds to the plans."""

    ESTIMATED_COST = "ESTIMATED_COST"
    CHANGELOG_MODE = "CHANGELOG_MODE"
    JSON_EXECUTION_PLAN = "JSON_EXECUTION_PLAN"
    PLAN_ADVICE = "PLAN_ADVICE"


class Table:
    """The rows of a query, not run yet. Made by :meth:`TableEnvironment.sql_query`."""

    def __init__(self, environment: TableEnvironment, query: Query, source: Source) -> None:
        self._environment = environment
        self._query = query
        self.source = source

    def get_resolved_schema(self) -> ResolvedSchema:
        """Names and types of the columns."""
        return ResolvedSchema(self._query.schema)

    def print_schema(self) -> None:
        """Write names and types to standard output."""
        print(self.get_resolved_schema())

    def execute(self) -> TableResult:
        """Start the job; its rows come through the result."""
        return self._environment.execute_sql(self.source.text)

    def execute_insert(self, target: str, overwrite: bool = False) -> TableResult:
        """Write the rows to a table; ``wait()`` on the result waits for the end."""
        return self._environment.execute_sql(self.insert_text(target, overwrite))

    def insert_text(self, target: str, overwrite: bool = False) -> str:
        """The INSERT statement that ``execute_insert`` runs."""
        return f"INSERT {'OVERWRITE' if overwrite else 'INTO'} {target}\n{self.source.text.strip().rstrip(';')}"

    def explain(self, *details: ExplainDetail) -> str:
        """The plans as text."""
        return self._environment.explain_sql(self.source.text, *details)

    def print_explain(self, *details: ExplainDetail) -> None:
        """Write the plans to standard output."""
        print(self.explain(*details))

    def to_arrow(self) -> Any:
        """Run the query and return its rows as a ``pyarrow.Table``.

        Raises:
            NotSupportedYetError: the answer takes rows back; read the changes with ``execute().collect()``.
        """
        import pyarrow as pa

        from flowsql_core.types.arrow import arrow_schema

        result = self.execute()
        schema = arrow_schema(self._query.schema)
        batches = []
        try:
            for batch in result.batches():
                if batch.kinds is not None and batch.kinds.any():
                    raise NotSupportedYetError(
                        "an updating result as an Arrow table",
                        hint="use batch mode, or execute().collect() for the changes",
                    )
                batches.append(pa.RecordBatch.from_arrays(list(batch.columns), schema=schema))
        finally:
            result.cancel()
        return pa.Table.from_batches(batches, schema)

    def to_pandas(self) -> Any:
        """Run the query and return its rows as a pandas ``DataFrame`` (needs pandas)."""
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        columns = ", ".join(f"{column.name} {column.type}" for column in self._query.schema)
        return f"Table({columns})"
