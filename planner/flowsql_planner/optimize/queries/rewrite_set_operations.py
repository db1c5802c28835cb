"""INTERSECT and EXCEPT as joins; with ALL as counts of equal rows, repeated."""

from __future__ import annotations

from flowsql_compute.functions.aggregate import resolve_aggregate
from flowsql_compute.functions.registry import implicit_cast, resolve_call
from flowsql_core.expr import AggregateCall, Call, Cast, Expr, InputRef, Literal, conjunction
from flowsql_core.graph.specs import REPLICATE_ROWS, JoinKind
from flowsql_core.types.logical import BIGINT, BOOLEAN, ArrayType, Column, Field, LogicalType, RowType, Schema
from flowsql_planner.logical.nodes import Aggregate, Correlate, Filter, Project, Rel, SetOperation, SetOperator, Union
from flowsql_planner.logical.rewrite import correlate_schema, ref, refs
from flowsql_planner.optimize.queries.decorrelation import joined

_NUMBER = BIGINT.as_nullable(False)


def rewrite_set_operations(rel: Rel) -> Rel | None:
    """a INTERSECT b  =>  Aggregate(Join(SEMI, a, b)); a EXCEPT b  =>  Aggregate(Join(ANTI, a, b)).

    With ALL, rows of both sides are marked and counted together, and each comes as often as its counts say: a row less
    on one side takes one away. Source: Flink's ``ReplaceIntersectWithSemiJoinRule``, ``RewriteIntersectAllRule`` and
    their like for EXCEPT.
    """
    if not isinstance(rel, SetOperation):
        return None
    if rel.all:
        return _intersect_all(rel) if rel.operator is SetOperator.INTERSECT else _except_all(rel)
    width = len(rel.schema)
    kind = JoinKind.SEMI if rel.operator is SetOperator.INTERSECT else JoinKind.ANTI
    left, right = (_as_nullable_as(side, rel.schema) for side in (rel.left, rel.right))
    columns = left.schema + right.schema
    equal = [_same(ref(columns, index), ref(columns, width + index)) for index in range(width)]
    join = joined(left, right, kind, conjunction(tuple(equal)))
    return Aggregate(join, tuple(range(width)), (), _renamed(join.schema, rel.schema), span=rel.span)


def _as_nullable_as(side: Rel, schema: Schema) -> Rel:
    """A side whose NOT NULL columns are cast where the other side's may be NULL."""
    if all(own.type.nullable or not column.type.nullable for own, column in zip(side.schema, schema, strict=True)):
        return side
    exprs = tuple(
        Cast(own, own.type.as_nullable(), implicit=True) if column.type.nullable and not own.type.nullable else own
        for own, column in zip(refs(side.schema), schema, strict=True)
    )
    return Project(side, exprs, tuple(column.name for column in side.schema))


def _same(left: Expr, right: Expr) -> Expr:
    nullable = left.type.nullable or right.type.nullable
    return resolve_call("IS NOT DISTINCT FROM" if nullable else "=", (left, right))


def _renamed(columns: Schema, names: Schema) -> Schema:
    return tuple(Column(name.name, column.type) for name, column in zip(names, columns, strict=True))


def _intersect_all(rel: SetOperation) -> Rel:
    here, nothing = Literal(True, BOOLEAN.as_nullable(False)), Literal(None, BOOLEAN)
    names = ("vcol_left_marker", "vcol_right_marker")
    marked = _marked(rel, ((here, nothing), (nothing, here)), names, BOOLEAN)
    width = len(rel.schema)
    counts = [
        AggregateCall("COUNT", (ref(marked.schema, width + i),), _NUMBER, f"vcol_{side}_cnt")
        for i, side in enumerate(("left", "right"))
    ]
    grouped = _grouped(rel, marked, counts)
    left, right = ref(grouped.schema, width), ref(grouped.schema, width + 1)
    one = Literal(1, _NUMBER)
    on_both = resolve_call("AND", (resolve_call(">=", (left, one)), resolve_call(">=", (right, one))))
    less = resolve_call("IF", (resolve_call(">", (left, right)), right, left))
    return _repeated(rel, Filter(grouped, on_both, rel.span), less, "$f0")


def _except_all(rel: SetOperation) -> Rel:
    plus, minus = Literal(1, _NUMBER), Literal(-1, _NUMBER)
    marked = _marked(rel, ((plus,), (minus,)), ("vcol_marker",), _NUMBER)
    width = len(rel.schema)
    type_ = resolve_aggregate("SUM", (_NUMBER,), False, None, grouped=True).result_type
    grouped = _grouped(rel, marked, [AggregateCall("SUM", (ref(marked.schema, width),), type_, "sum_vcol_marker")])
    total = ref(grouped.schema, width)
    positive = resolve_call(">", (total, Literal(0, _NUMBER)))
    return _repeated(rel, Filter(grouped, positive, rel.span), total, "sum_vcol_marker")


def _marked(
    rel: SetOperation, markers: tuple[tuple[Literal, ...], ...], names: tuple[str, ...], type_: LogicalType
) -> Union:
    """The rows of both sides, each with the markers of its side."""
    sides = tuple(
        Project(side, (*refs(side.schema), *marks), (*(column.name for column in rel.schema), *names), rel.span)
        for side, marks in zip((rel.left, rel.right), markers, strict=True)
    )
    return Union(sides, (*rel.schema, *(Column(name, type_) for name in names)), rel.span)


def _grouped(rel: SetOperation, marked: Union, calls: list[AggregateCall]) -> Aggregate:
    schema = (*rel.schema, *(Column(call.name, call.type) for call in calls))
    return Aggregate(marked, tuple(range(len(rel.schema))), tuple(calls), schema, span=rel.span)


def _repeated(rel: SetOperation, counted: Rel, times: Expr, name: str) -> Project:
    """Each row as often as it is counted."""
    width = len(rel.schema)
    times = implicit_cast(times, BIGINT)
    columns = refs(counted.schema)[:width]
    chosen = Project(counted, (times, *columns), (name, *(column.name for column in rel.schema)), rel.span)
    row = RowType(fields=tuple(Field(column.name, column.type) for column in rel.schema), nullable=False)
    copies = Call(REPLICATE_ROWS, refs(chosen.schema), ArrayType(element=row, nullable=False))
    made = Correlate(chosen, copies, rel.schema, correlate_schema(chosen.schema, rel.schema, False), span=rel.span)
    copied: tuple[InputRef, ...] = refs(made.schema)[width + 1 :]
    return Project(made, copied, tuple(column.name for column in rel.schema), rel.span)
