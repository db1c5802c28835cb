"""The first rows of each group, asked for with LATERAL, become a ranking.

Source: Flink's ``CorrelateSortToRankRule``.
"""

from __future__ import annotations

from flowsql_core.expr import Call, Expr, InputRef, conjuncts
from flowsql_core.graph.specs import JoinKind
from flowsql_planner.logical.correlation import outer_call, slot_of
from flowsql_planner.logical.nodes import Aggregate, Apply, Filter, Project, Rank, Rel, Sort, SortKey
from flowsql_planner.logical.rewrite import ref, transform_up


def rank_correlated_sorts(root: Rel) -> Rel:
    """Apply(DISTINCT k of x, ORDER BY o LIMIT n of x where k is that of the row)  =>  Rank(x by k, o, 1 to n).

    Rows whose key is NULL are ranked too, as in Flink, although no comparison finds them.
    """
    return transform_up(root, _ranked)


def _ranked(rel: Rel) -> Rel:
    match rel:
        case Apply(
            left=Aggregate(calls=(), grouping_sets=None, window=None, input=Project() as chosen) as keys,
            right=Sort(offset=0, fetch=int() as last, input=Project(input=Filter() as filter_) as read) as sort,
            kind=JoinKind.INNER,
            condition=None,
        ) if chosen.input == filter_.input:
            partition = _partition(rel, keys, chosen, filter_)
            columns = _columns(read)
            if partition is None or columns is None:
                return rel
            order = tuple(SortKey(columns[key.index], key.descending, key.nulls_first) for key in sort.keys)
            ranked = Rank(filter_.input, tuple(sorted(partition)), order, 1, last, span=sort.span)
            exprs = tuple(ref(ranked.schema, index) for index in (*partition, *columns))
            return Project(ranked, exprs, tuple(column.name for column in rel.schema), rel.span)
        case _:
            return rel


def _partition(rel: Apply, keys: Aggregate, chosen: Project, filter_: Filter) -> tuple[int, ...] | None:
    """Columns of the rows that are the columns of the left side; None where others are compared."""
    found: dict[int, int] = {}
    for part in conjuncts(filter_.condition):
        compared = _compared(part)
        if compared is None:
            return None
        column, slot = compared
        parameter = rel.parameters[slot]
        if not isinstance(parameter, InputRef):
            return None
        key = chosen.exprs[keys.grouping[parameter.index]]
        if not isinstance(key, InputRef) or key.index != column:
            return None
        found[parameter.index] = column
    width = len(rel.left.schema)
    return tuple(found[index] for index in range(width)) if found.keys() == set(range(width)) else None


def _compared(part: Expr) -> tuple[int, int] | None:
    """The column and the parameter that a condition holds equal."""
    match part:
        case Call(function="=", args=(InputRef(index=column), other) | (other, InputRef(index=column))):
            outer = outer_call(other)
            return None if outer is None else (column, slot_of(outer))
        case _:
            return None


def _columns(read: Project) -> tuple[int, ...] | None:
    columns = [expr.index for expr in read.exprs if isinstance(expr, InputRef)]
    return tuple(columns) if len(columns) == len(read.exprs) else None
