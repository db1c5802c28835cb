"""FOR SYSTEM_TIME AS OF: which time of a left row a table is read at."""

from __future__ import annotations

from flowsql_core.errors import BindError
from flowsql_core.expr import Expr, InputRef, input_refs
from flowsql_core.graph.specs import JoinKind
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types.logical import TimestampLtzType, TimestampType, is_proctime, is_rowtime, is_time_attribute
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.scope import Scope
from flowsql_planner.logical.nodes import Rel


@record
class Period:
    """``column``: the time attribute of the left rows, an index into them."""

    column: InputRef

    @property
    def period(self) -> int:
        """The column's index."""
        return self.column.index

    def version_time(self, right: Rel) -> int | None:
        """The row time of the table that is read; None where rows are read at the processing time, or there is none."""
        if is_proctime(self.column.type):
            return None
        times = [index for index, column in enumerate(right.schema) if is_rowtime(column.type)]
        return times[0] if times else None


def bind_period(context: BindContext, node: ast.Expression, left: Scope, right: ast.TableRef, kind: JoinKind) -> Period:
    """The time attribute that a temporal join names.

    Raises:
        BindError: it is none of the left table, or the join is not an inner or left one.
    """
    if kind not in (JoinKind.INNER, JoinKind.LEFT):
        raise BindError(
            "temporal-join-kind",
            f"Unknown join type {kind.name}",
            right.span,
            "a table FOR SYSTEM_TIME AS OF may be joined by JOIN and LEFT JOIN",
        )
    found = ExpressionBinder(context, left, "FOR SYSTEM_TIME AS OF").bind(node)
    if not isinstance(found.type, TimestampType | TimestampLtzType):
        raise no_moment(found, node.span)
    if not input_refs(found):
        raise time_travel(right)
    if not isinstance(found, InputRef) or not is_time_attribute(found.type):
        raise BindError(
            "temporal-join-time",
            "Temporal table join currently only supports 'FOR SYSTEM_TIME AS OF' left table's time attribute field",
            node.span,
            "name a row time (a column with a WATERMARK) or a processing time (AS PROCTIME()) of the left table",
        )
    return Period(found)


def no_moment(found: Expr, span: Span) -> BindError:
    """The error for a time that is none."""
    return BindError(
        "temporal-join-time",
        f"The system time period specification expects Timestamp type but is '{found.type.as_nullable()}'",
        span,
    )


def time_travel(node: ast.TableRef) -> BindError:
    """FOR SYSTEM_TIME AS OF a constant of a table that keeps no old rows, or in a join."""
    span: Span = node.span
    return BindError(
        "time-travel",
        f"The catalog of table '{node.name}' keeps no older versions of its tables",
        span,
        "FOR SYSTEM_TIME AS OF takes the time attribute of the table that this one is joined to",
    )
