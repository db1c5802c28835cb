"""Places in the files of a project."""

from __future__ import annotations

from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.record import record
from flowsql_core.span import Source, Span


@record
class Place:
    """Where a statement, or a name in it, stands."""

    source: Source
    span: Span

    def __str__(self) -> str:
        return f"{self.source.name}:{self.source.position(self.span.start)[0]}"

    def error(self, code: str, message: str, hint: str | None = None) -> FlowSqlError:
        """What is wrong there."""
        return BindError(code, message, self.span, hint).within(self.source)

    def located(self, error: FlowSqlError) -> FlowSqlError:
        """An error that knows no place, as one of this place."""
        return error if error.at is not None else self.error(error.code, error.message, error.hint)
