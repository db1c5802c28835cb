"""``StatementSet``: several INSERTs as one job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from flowsql.table.environment import TableEnvironment
    from flowsql.table.result import TableResult
    from flowsql.table.table import Table


class StatementSet:
    """Collects INSERTs; ``execute`` runs them together, reading a shared source once."""

    def __init__(self, environment: TableEnvironment) -> None:
        self._environment = environment
        self._inserts: list[str] = []

    def add_insert_sql(self, statement: str) -> Self:
        """Add an INSERT statement."""
        self._inserts.append(statement.strip().rstrip(";"))
        return self

    def add_insert(self, target: str, table: Table, overwrite: bool = False) -> Self:
        """Add an INSERT of a table's rows."""
        self._inserts.append(table.insert_text(target, overwrite))
        return self

    def explain(self) -> str:
        """The plans of the whole set."""
        return self._environment.execute_sql(f"EXPLAIN {self._text()}").text()

    def execute(self) -> TableResult:
        """Start the job; the set is empty again afterwards."""
        result = self._environment.execute_sql(f"EXECUTE {self._text()}")
        self._inserts.clear()
        return result

    def _text(self) -> str:
        return "STATEMENT SET BEGIN\n" + "".join(f"{insert};\n" for insert in self._inserts) + "END"
