"""TemporalJoin at the processing time -> LookupJoin: the table is asked for the keys of each row."""

from __future__ import annotations

from flowsql_connectors.spi.lookup import LookupTableSource
from flowsql_core.config import parse_bool, parse_duration_ms
from flowsql_core.errors import BindError, NotSupportedYetError, PlanError
from flowsql_core.expr import Call, Expr, InputRef, Literal, conjunction, conjuncts
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.graph.time_join_specs import AsyncLookup, LookupKey
from flowsql_core.span import Span
from flowsql_core.types.logical import BooleanType, CharacterType, Schema
from flowsql_planner.error_position import errors_at
from flowsql_planner.logical.nodes import TemporalJoin
from flowsql_planner.logical.rewrite import refs, retype_expr
from flowsql_planner.physical.calc import make_calc, make_filter
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.equi_condition import split_condition
from flowsql_planner.physical.nodes import Calc, LookupJoin, Physical, TableSourceScan, WatermarkAssignerNode
from flowsql_planner.physical.nodes.joins.lookup import Retry, plain_columns
from flowsql_planner.physical.options import ASYNC_CAPACITY, ASYNC_TIMEOUT_MS


def plan_lookup_join(rel: TemporalJoin, left: Physical, right: Physical, context: PlanContext) -> Physical:
    """A join with a table that can look up.

    Raises:
        BindError: the right input is no table, or no column of it is given by an equality.
        NotSupportedYetError: its connector or format cannot look up.
    """
    table = _without_time(right, rel.span)
    scan = table.inputs[0] if isinstance(table, Calc) else table
    assert isinstance(scan, TableSourceScan)
    spec = ScanSpec(scan.table, scan.projection, scan.schema, scan.metadata, (), None)
    source = context.source(spec, scan.span)
    if not isinstance(source, LookupTableSource) or not source.changelog_mode.insert_only:
        raise NotSupportedYetError(f"a lookup in table '{scan.table.name}'", rel.span)
    with errors_at(scan.span):
        source.partial_cache()
    projections = table.projections if isinstance(table, Calc) else refs(scan.schema)
    filter_ = table.condition if isinstance(table, Calc) else None
    columns = left.schema + table.schema
    condition = None if rel.condition is None else retype_expr(rel.condition, columns)
    equi = split_condition(condition, len(left.schema))
    plain = plain_columns(projections)
    keys: dict[int, LookupKey] = {}
    rest = list(equi.rest)
    for own, other, null_safe in zip(equi.left, equi.right, equi.null_safe, strict=True):
        below = plain.get(other)
        if below is None or below in keys or null_safe:
            name = "IS NOT DISTINCT FROM" if null_safe else "="
            rest.append(_equality(name, columns, own, len(left.schema) + other))
        else:
            keys[below] = LookupKey(below, left=own)
    for column, constant in _constants(filter_, rest, len(left.schema), plain):
        keys.setdefault(column, LookupKey(column, constant=constant))
    if not keys:
        raise BindError(
            "temporal-join",
            f"Temporal table join requires an equality condition on fields of table [{scan.table.name}].",
            rel.span,
            "join by columns of the table, or compare them with constants",
        )
    hints = {key.removeprefix("LOOKUP."): value for key, value in rel.hints if key.startswith("LOOKUP.")}
    given = frozenset(keys)
    return LookupJoin(
        inputs=(left,),
        schema=tuple(rel.schema),
        kind=rel.kind,
        scan=spec,
        keys=tuple(keys[column] for column in sorted(keys)),
        unique=any(key <= given for key in scan.upsert_keys()),
        projections=projections,
        filter=filter_,
        condition=condition,
        rest=conjunction(tuple(rest)),
        retry=_retry(hints),
        asynchronous=_asynchronous(hints, context) if source.concurrent else None,
        unordered=hints.get("output-mode", "").lower() == "allow_unordered",
        bounded=context.bounded,
        span=rel.span,
    )


def _retry(hints: dict[str, str]) -> Retry | None:
    if "max-attempts" not in hints:
        return None
    return Retry(int(hints["max-attempts"]), parse_duration_ms(hints["fixed-delay"]))


def _asynchronous(hints: dict[str, str], context: PlanContext) -> AsyncLookup | None:
    """As the hint says, else as the options do; None where the hint wants one request at a time."""
    if "async" in hints and not parse_bool(hints["async"]):
        return None
    configuration = context.configuration
    capacity, timeout = hints.get("capacity"), hints.get("timeout")
    if capacity is not None and int(capacity) < 1:
        raise PlanError("bad-hint", f"'capacity' of a LOOKUP hint is {capacity}: it takes 1 request at a time or more")
    return AsyncLookup(
        configuration.get(ASYNC_CAPACITY) if capacity is None else int(capacity),
        configuration.get(ASYNC_TIMEOUT_MS) if timeout is None else parse_duration_ms(timeout),
    )


def _without_time(node: Physical, span: Span | None) -> Physical:
    """A scan, or one Calc over a scan: what is looked up has no watermarks."""
    match node:
        case TableSourceScan():
            return node
        case WatermarkAssignerNode(inputs=(source,)):
            return _without_time(source, span)
        case Calc(inputs=(source,)):
            below = _without_time(source, span)
            schema = below.schema
            if node.condition is not None:
                below = make_filter(below, retype_expr(node.condition, schema), node.span)
            projections = tuple(retype_expr(expr, schema) for expr in node.projections)
            return make_calc(below, projections, tuple(node.names), node.span)
    raise BindError(
        "temporal-join",
        "Processing-time temporal join is not supported yet.",
        span,
        "FOR SYSTEM_TIME AS OF a processing time takes a table that can be looked up; of views take the row time",
    )


def _equality(name: str, columns: Schema, a: int, b: int) -> Expr:
    args = tuple(InputRef(index, columns[index].type) for index in (a, b))
    return Call(name, args, BooleanType(nullable=any(arg.type.nullable for arg in args)))


def _constants(filter_: Expr | None, rest: list[Expr], width: int, plain: dict[int, int]) -> list[tuple[int, Literal]]:
    """Columns of the scan that a filter on the table, or the condition, compares with a constant of their type."""
    found = []
    for part in conjuncts(filter_):
        pair = _constant(part)
        if pair is not None:
            found.append(pair)
    for part in rest:
        pair = _constant(part)
        if pair is not None and pair[0] >= width and pair[0] - width in plain:
            found.append((plain[pair[0] - width], pair[1]))
    return found


def _constant(part: Expr) -> tuple[int, Literal] | None:
    match part:
        case Call(
            function="=",
            args=(InputRef() as column, Literal() as value) | (Literal() as value, InputRef() as column),
        ):
            texts = isinstance(column.type, CharacterType) and isinstance(value.type, CharacterType)
            if value.value is not None and (texts or column.type.as_nullable() == value.type.as_nullable()):
                return column.index, value
    return None
