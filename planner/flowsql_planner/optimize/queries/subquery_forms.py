"""What replaces a query inside of an expression: joins below, and an expression over their columns.

Source: Calcite's ``SubQueryRemoveRule``, from which Flink's plans come.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from flowsql_compute.functions.aggregate import resolve_aggregate
from flowsql_compute.functions.registry import resolve_call, resolve_case
from flowsql_core.errors import PlanError
from flowsql_core.expr import AggregateCall, Call, Cast, Expr, InputRef, Literal
from flowsql_core.graph.specs import JoinKind
from flowsql_core.span import Span
from flowsql_core.types.logical import BIGINT, BOOLEAN, Column, LogicalType
from flowsql_planner.logical.correlation import is_correlated
from flowsql_planner.logical.internal_calls import EXISTS, IN_QUERY, SCALAR, SOME_QUERY
from flowsql_planner.logical.nodes import Aggregate, Apply, Filter, Project, Rel, Sort, Values
from flowsql_planner.logical.rewrite import join_schema, ref, refs

_TRUE: Final = Literal(True, BOOLEAN.as_nullable(False))
_FALSE: Final = Literal(False, BOOLEAN.as_nullable(False))
_UNKNOWN: Final = Literal(None, BOOLEAN)
_OPPOSITE: Final = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "<>": "=", "=": "<>"}


class Wanted(enum.Enum):
    """What of a condition counts."""

    #: TRUE, FALSE or unknown.
    VALUE = "value"
    #: Whether it is TRUE.
    TRUTH = "truth"
    #: Whether it is TRUE, of a whole filter: rows without an answer may go.
    FILTER = "filter"
    #: Whether it is TRUE, asked by IS TRUE.
    IS_TRUE = "is true"


@dataclass(slots=True)
class Attached:
    """A plan beside which the queries of expressions stand: each adds columns on the right. ``span``: of the query."""

    rel: Rel
    span: Span | None = None

    def join(self, right: Rel, kind: JoinKind, parameters: tuple[Expr, ...], condition: Expr | None = None) -> int:
        """Put the answer of a query beside the rows; the place of its first column."""
        width = len(self.rel.schema)
        schema = join_schema(self.rel.schema, right.schema, kind)
        self.rel = Apply(self.rel, right, kind, parameters, condition, schema, self.span)
        return width

    def column(self, index: int) -> InputRef:
        """A column that was added."""
        return ref(self.rel.schema, index)


# Semi and anti joins


def semi_join(rel: Rel, call: Call, negated: bool) -> Rel:
    """The rows for which [NOT] EXISTS or [NOT] IN is TRUE."""
    made = Attached(rel, call.span)
    width = len(rel.schema)
    kind = JoinKind.ANTI if negated else JoinKind.SEMI
    plan = call.option("plan")
    if call.function == EXISTS:
        plan = bare_exists(plan)
        if not is_correlated(plan):
            found = _any_row(plan)
            made.join(found, kind, (), InputRef(width, found.schema[0].type))
        else:
            made.join(plan, kind, call.args)
        return made.rel
    operands, parameters, plan = operands_of(call)
    columns = rel.schema + plan.schema
    parts = [_equal(operand, ref(columns, width + i), negated) for i, operand in enumerate(operands)]
    made.join(plan, kind, parameters, _all(parts))
    return made.rel


def _equal(left: Expr, right: Expr, or_unknown: bool) -> Expr:
    """``a = b``; for NOT IN also where that is unknown, so that no such row passes."""
    equal = resolve_call("=", (left, right))
    unknown = [resolve_call("IS NULL", (side,)) for side in (left, right) if side.type.nullable]
    return resolve_call("OR", (*unknown, equal)) if or_unknown and unknown else equal


def bare_exists(plan: Rel) -> Rel:
    """The query of EXISTS without what does not change whether it has rows."""
    match plan:
        case Project(input=source):
            return bare_exists(source)
        case Sort(input=source, offset=0, fetch=fetch) if fetch is None or fetch > 0:
            return bare_exists(source)
    return plan


def has_rows(plan: Rel) -> bool:
    """Whether a query has a row whatever its tables hold."""
    match bare_exists(plan):
        case Aggregate(grouping=(), grouping_sets=None, window=None):
            return True
        case Values(rows=rows):
            return bool(rows)
    return False


def _any_row(plan: Rel) -> Rel:
    """One row: whether a query has any."""
    marked = Project(plan, (_TRUE,), ("i",))
    least = _aggregate(marked, (("MIN", (0,), "m"),))
    return Project(least, (resolve_call("IS NOT NULL", (ref(least.schema, 0),)),), ("$f0",))


def operands_of(call: Call) -> tuple[tuple[Expr, ...], tuple[Expr, ...], Rel]:
    """The operands of IN or SOME, what the query reads of the row, and the query.

    Casts that only make types equal go: comparisons cast what they compare, and NOT IN is no equality to cast for.
    """
    plan: Rel = call.option("plan")
    width = len(plan.schema)
    operands = tuple(_uncast(operand) for operand in call.args[:width])
    if isinstance(plan, Project) and all(isinstance(_uncast(expr), InputRef) for expr in plan.exprs):
        exprs = tuple(_uncast(expr) for expr in plan.exprs)
        plan = plan.input if exprs == refs(plan.input.schema) else replace(plan, exprs=exprs)
    return operands, call.args[width:], plan


def _uncast(expr: Expr) -> Expr:
    return expr.operand if isinstance(expr, Cast) and expr.implicit else expr


# Joins that keep the row


def attach(made: Attached, call: Call, wanted: Wanted, negated: bool = False) -> Expr:
    """Put a query beside the rows; what stands for ``call``, or for NOT of it, in the expression."""
    match call.function:
        case "$SCALAR" if call.function == SCALAR:
            return _attach_scalar(made, call)
        case "$EXISTS" if call.function == EXISTS:
            return _attach_exists(made, call, wanted, negated)
        case "$IN" if call.function == IN_QUERY:
            return _attach_in(made, call, wanted, negated)
    assert call.function == SOME_QUERY
    return _attach_some(made, call, wanted, negated)


def _attach_scalar(made: Attached, call: Call) -> Expr:
    plan = call.option("plan")
    if not _has_one_row(plan):
        plan = _aggregate(plan, (("SINGLE_VALUE", (0,), "$f0"),))
    return made.column(made.join(plan, JoinKind.LEFT, call.args))


def _has_one_row(plan: Rel) -> bool:
    match plan:
        case Aggregate(grouping=(), grouping_sets=None, window=None):
            return True
        case Values(rows=rows):
            return len(rows) <= 1
        case Project(input=source) | Filter(input=source):
            return _has_one_row(source)
    return False


def _attach_exists(made: Attached, call: Call, wanted: Wanted, negated: bool) -> Expr:
    plan = call.option("plan")
    if has_rows(plan):
        return _FALSE if negated else _TRUE
    marked = _distinct(Project(bare_exists(plan), (_TRUE,), ("i",)))
    if wanted is Wanted.FILTER and not negated:
        made.join(marked, JoinKind.INNER, call.args)
        return _TRUE
    found = made.column(made.join(marked, JoinKind.LEFT, call.args))
    return resolve_call("IS NULL" if negated else "IS NOT NULL", (found,))


def _attach_in(made: Attached, call: Call, wanted: Wanted, negated: bool) -> Expr:
    """IN as CASE: FALSE of no rows; unknown for a NULL operand; TRUE where one is equal; unknown where one is NULL."""
    operands, parameters, plan = operands_of(call)
    distinct = _distinct(plan)
    if wanted is Wanted.FILTER and not negated:
        width = len(made.rel.schema)
        columns = made.rel.schema + plan.schema
        equal = [_equal(operand, ref(columns, width + i), False) for i, operand in enumerate(operands)]
        made.join(distinct, JoinKind.INNER, parameters, _all(equal))
        return _TRUE
    nullable = any(operand.type.nullable for operand in operands) or any(c.type.nullable for c in plan.schema)
    counted = None
    if nullable and len(operands) > 1 and (negated or wanted is Wanted.VALUE):
        raise PlanError(
            "row-in-value",
            "IN of rows that may hold NULL is a condition of WHERE that AND joins to others, and no value",
            call.span,
            "write WHERE (a, b) [NOT] IN (...), or EXISTS with IS NOT DISTINCT FROM",
        )
    if nullable and (negated or wanted is not Wanted.IS_TRUE):
        counted = made.join(_counts(plan), JoinKind.LEFT if parameters else JoinKind.INNER, parameters)
    marked = Project(distinct, (*refs(distinct.schema), _TRUE), (*(c.name for c in plan.schema), "i"))
    width = len(made.rel.schema)
    columns = made.rel.schema + marked.schema
    equal = [_equal(operand, ref(columns, width + i), False) for i, operand in enumerate(operands)]
    found = made.column(made.join(marked, JoinKind.LEFT, parameters, _all(equal)) + len(operands))
    is_found = resolve_call("IS NOT NULL", (found,))
    known = [resolve_call("IS NOT NULL", (operand,)) for operand in operands if operand.type.nullable]
    rows = None if counted is None else made.column(counted)
    not_null = None if counted is None else made.column(counted + 1)
    is_empty = [] if rows is None else [resolve_call("=", (rows, _number(0)))]
    if wanted is not Wanted.VALUE:
        if not negated:
            return _all([*(resolve_call("IS NOT TRUE", (part,)) for part in is_empty), is_found, *known])
        complete = [] if rows is None or not_null is None else [resolve_call(">=", (not_null, rows))]
        missing = _all([resolve_call("IS NULL", (found,)), *complete, *known])
        return _any([*is_empty, missing])
    conditions, results = [*is_empty], [_FALSE for _ in is_empty]
    if known:
        conditions.append(resolve_call("NOT", (_all(known),)))
        results.append(_UNKNOWN)
    conditions.append(is_found)
    results.append(_TRUE)
    if rows is not None and not_null is not None:
        conditions.append(resolve_call("<", (not_null, rows)))
        results.append(_UNKNOWN)
    value = resolve_case(tuple(conditions), tuple(results), _FALSE)
    return resolve_call("NOT", (value,)) if negated else value


def _attach_some(made: Attached, call: Call, wanted: Wanted, negated: bool) -> Expr:
    (operand,), parameters, plan = operands_of(call)
    operator = str(call.option("comparison"))
    source = _distinct(plan) if operator == "<>" else plan
    best = "MIN" if operator in (">", ">=") else "MAX"
    right: Rel = _aggregate(source, ((best, (0,), "m"), ("COUNT", (), "c"), ("COUNT", (0,), "d")))
    if parameters:
        right = Project(right, (*refs(right.schema), _TRUE), ("m", "c", "d", "trueLiteral"))
    first = made.join(right, JoinKind.LEFT if parameters else JoinKind.INNER, parameters)
    extreme, rows, known = (made.column(first + place) for place in range(3))
    empty = [resolve_call("=", (rows, _number(0)))]
    if parameters:
        empty.insert(0, resolve_call("IS NULL", (made.column(first + 3),)))
    compared = resolve_call(operator, (operand, extreme))
    opposite = resolve_call(_OPPOSITE[operator], (operand, extreme))
    present = resolve_call("IS NOT NULL", (operand,))
    has_nulls = resolve_call(">", (rows, known))
    if operator == "<>":
        return _different(wanted, negated, _Different(empty, compared, opposite, present, has_nulls, rows, known))
    if wanted is not Wanted.VALUE:
        if negated:
            return _any([*empty, _all([opposite, resolve_call("<=", (rows, known))])])
        return _all([resolve_call("<>", (rows, _number(0))), compared])
    value = resolve_case(
        (_any(empty), resolve_call("IS TRUE", (compared,)), has_nulls), (_FALSE, _TRUE, _UNKNOWN), compared
    )
    return resolve_call("NOT", (value,)) if negated else value


@dataclass(slots=True)
class _Different:
    """The parts of ``x <> SOME (q)``, whose distinct values are counted."""

    empty: list[Expr]
    compared: Expr
    opposite: Expr
    present: Expr
    has_nulls: Expr
    rows: Expr
    known: Expr


def _different(wanted: Wanted, negated: bool, parts: _Different) -> Expr:
    """``x <> SOME (q)``: TRUE where there are two values, or one that is another."""
    one = resolve_call("=", (parts.known, _number(1)))
    several = resolve_call(">", (parts.known, _number(1)))
    if wanted is not Wanted.VALUE:
        if negated:
            only = _all([one, parts.opposite, resolve_call("=", (parts.known, parts.rows))])
            return _any([*parts.empty, only])
        some = resolve_call("<>", (parts.rows, _number(0)))
        return _all([some, parts.present, _any([several, parts.compared])])
    unknown = resolve_call("OR", (parts.compared, _UNKNOWN))
    value = resolve_case(
        (_any(parts.empty), resolve_call("NOT", (parts.present,)), several, parts.has_nulls),
        (_FALSE, _UNKNOWN, _TRUE, unknown),
        parts.compared,
    )
    return resolve_call("NOT", (value,)) if negated else value


# Plans


def _distinct(plan: Rel) -> Aggregate:
    return Aggregate(plan, tuple(range(len(plan.schema))), (), plan.schema)


def _counts(plan: Rel) -> Rel:
    """How many rows a query has, and how many of them have no NULL."""
    if not any(column.type.nullable for column in plan.schema):
        counted = _aggregate(plan, (("COUNT", (), "c"),))
        return Project(counted, (ref(counted.schema, 0), ref(counted.schema, 0)), ("c", "ck"))
    # Of several columns nobody asks for the second number.
    return _aggregate(plan, (("COUNT", (), "c"), ("COUNT", (0,), "ck")))


def _aggregate(plan: Rel, calls: Sequence[tuple[str, tuple[int, ...], str]]) -> Aggregate:
    """An aggregate without groups: functions over columns, each with the name of its result."""
    made = []
    for function, columns, name in calls:
        args = tuple(ref(plan.schema, index) for index in columns)
        type_: LogicalType = BIGINT.as_nullable(False)
        if function != "COUNT":
            type_ = resolve_aggregate(function, tuple(arg.type for arg in args), False, None, grouped=False).result_type
        made.append(AggregateCall(function, args, type_, name))
    return Aggregate(plan, (), tuple(made), tuple(Column(call.name, call.type) for call in made))


def _number(value: int) -> Literal:
    return Literal(value, BIGINT.as_nullable(False))


def _all(parts: Sequence[Expr]) -> Expr:
    return parts[0] if len(parts) == 1 else resolve_call("AND", tuple(parts))


def _any(parts: Sequence[Expr]) -> Expr:
    return parts[0] if len(parts) == 1 else resolve_call("OR", tuple(parts))
