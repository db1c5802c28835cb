"""Lineage of what was bound: queries, INSERTs and statement sets."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.errors import BindError, PlanError
from flowsql_core.interpreter.large_stack import with_room
from flowsql_planner.bind import operations as op
from flowsql_planner.lineage.flow import lineage_of
from flowsql_planner.lineage.model import Lineage
from flowsql_planner.logical.nodes import Rel


def lineage_of_operation(operation: op.Operation) -> list[Lineage]:
    """The lineage of a query, or of each INSERT.

    Raises:
        BindError: the statement moves no rows.
        PlanError: it is nested too deeply.
    """
    match operation:
        case op.Query(rel):
            return lineage_of_roots([rel])
        case op.Insert(rel):
            return lineage_of_roots([rel])
        case op.StatementSet(inserts):
            return lineage_of_roots([insert.rel for insert in inserts])
        case op.CreateTableAs(insert=insert):
            return lineage_of_roots([insert.rel])
    raise BindError("no-lineage", "Only queries and INSERTs have a lineage.")


def lineage_of_roots(roots: Sequence[Rel]) -> list[Lineage]:
    """The lineage of plans.

    Raises:
        PlanError: one is nested too deeply.
    """
    try:
        return with_room(lambda: [lineage_of(root) for root in roots])
    except RecursionError:
        message = "The statement is nested too deeply to be followed"
        raise PlanError("nested-too-deeply", message, roots[0].span, "split it with views or WITH") from None
