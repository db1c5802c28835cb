"""FOR SYSTEM_TIME AS OF a constant: a table as it was, where its connector keeps that."""

from __future__ import annotations

from typing import Final

from flowsql_compute.eval.compile import fold
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.time.machine_zone import machine_zone
from flowsql_compute.functions.registry import resolve_cast
from flowsql_connectors import registry
from flowsql_core.catalog import CatalogTable
from flowsql_core.config import LOCAL_TIME_ZONE
from flowsql_core.errors import BindError
from flowsql_core.expr import Literal
from flowsql_core.types.logical import TimestampLtzType, TimestampType
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.scope import Scope
from flowsql_planner.bind.query.period import no_moment, time_travel
from flowsql_planner.catalog.schema import Options, table_spec

_NANOS_OF_MS: Final = 1_000_000


def bind_moment(context: BindContext, node: ast.TableRef) -> Options:
    """Options that make the scan of a table give what it held at the constant of FOR SYSTEM_TIME AS OF.

    Raises:
        BindError: it is no table that keeps this, or the time is no constant.
    """
    assert node.period is not None
    found = None if isinstance(node.name, ast.FileName) else context.lookup(context.qualify(node.name))
    if found is None or not isinstance(found.value, CatalogTable):
        raise time_travel(node)
    bound = ExpressionBinder(context, Scope(), "FOR SYSTEM_TIME AS OF").bind(node.period)
    if not isinstance(bound.type, TimestampType | TimestampLtzType):
        raise no_moment(bound, node.period.span)
    moment = resolve_cast(bound, TimestampLtzType(precision=3, nullable=bound.type.nullable), False, node.period.span)
    constant = fold(moment, EvalContext(zone=_zone(context)))
    if not isinstance(constant, Literal) or constant.value is None:
        raise BindError(
            "time-travel",
            "FOR SYSTEM_TIME AS OF takes a constant here: what the table held then is read once",
            node.period.span,
            "TIMESTAMP '2026-01-31 12:00:00'",
        )
    options = registry.as_of(table_spec(found.path, found.value), constant.value // _NANOS_OF_MS)
    if options is None:
        raise time_travel(node)
    return options


def _zone(context: BindContext) -> str:
    name = context.config.get(LOCAL_TIME_ZONE)
    return machine_zone() if name == LOCAL_TIME_ZONE.default else name
