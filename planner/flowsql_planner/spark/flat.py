"""Printed queries without needless nesting: the shapes that Spark's own rules look for.

The compiler prints a SELECT for each node of a plan. Spark merges most of them again, but not all: it reorders only
joins that no projection parts, and pulls only those conditions out of a correlated query that stand right below its
aggregate.
Names of items in FROM are different ones in the whole of a statement, so that a column may be replaced wherever it is.
"""

from __future__ import annotations

from flowsql_planner.spark import sql
from flowsql_planner.spark.sql import SqlNode

_PLAIN = frozenset({"expressions", "from_", "joins", "where"})


def flat(query: SqlNode) -> SqlNode:
    """The query, changed in place, the innermost SELECT first."""
    selects = list(query.find_all(sql.exp().Select))
    for select in reversed(selects):
        while _take_in_from(select):
            pass
        for join in select.args.get("joins") or []:
            _take_in_join(select, join)
        _become_aggregate(select)
    return query


def _take_in_from(outer: SqlNode) -> bool:
    """``SELECT .. FROM (SELECT columns FROM x WHERE y) AS t WHERE z``  =>  ``SELECT .. FROM x WHERE y AND z``."""
    source = outer.args.get("from_")
    inner = _plain_query(source.this) if source is not None else None
    if inner is None:
        return False
    joins = outer.args.get("joins") or []
    if (inner.args.get("where") or inner.args.get("joins")) and not all(map(_keeps_left_rows, joins)):
        return False
    _replace_columns(outer, source.this.alias, inner)
    outer.set("from_", inner.args["from_"])
    outer.set("joins", [*(inner.args.get("joins") or []), *joins])
    _add_condition(outer, inner)
    return True


def _take_in_join(outer: SqlNode, join: SqlNode) -> None:
    """``JOIN (SELECT columns FROM x WHERE y) AS t``  =>  ``JOIN x``, the condition behind an inner join alone."""
    inner = _plain_query(join.this)
    if inner is None or inner.args.get("joins"):
        return
    joins = outer.args["joins"]
    inward = not join.side and join.kind != "SEMI" and all(map(_keeps_left_rows, joins))
    if inner.args.get("where") and not inward:
        return
    _replace_columns(outer, join.this.alias, inner)
    join.set("this", inner.args["from_"].this)
    _add_condition(outer, inner)


def _become_aggregate(outer: SqlNode) -> None:
    """``SELECT f(t.c0) FROM (SELECT SUM(x) AS c0 FROM y GROUP BY z) t``  =>  ``SELECT f(SUM(x)) FROM y GROUP BY z``."""
    if {name for name, value in outer.args.items() if value} != {"expressions", "from_"}:
        return
    if sql.is_aggregate(outer) or outer.find(sql.exp().Window):
        return
    source = outer.args["from_"].this
    inner = source.this if isinstance(source, sql.exp().Subquery) else None
    if inner is None or not sql.is_aggregate(inner):
        return
    columns = [node for item in outer.expressions for node in item.find_all(sql.exp().Column)]
    asked = any(node.table == source.alias for node in columns)
    queries = any(item.find(sql.exp().Select) for item in outer.expressions)
    grouped = inner.args.get("group")
    if queries or (grouped.args.get("grouping_sets") if grouped is not None else not asked):
        # Without groups there is one row, whatever is asked of it; queries see columns, and no aggregates.
        return
    _replace_columns(outer, source.alias, inner)
    for name in ("from_", "joins", "where", "group"):
        outer.set(name, inner.args.get(name))
    sql.mark_aggregate(outer)


def _plain_query(source: SqlNode) -> SqlNode | None:
    """The query of an item of FROM that chooses columns and rows, and does nothing else."""
    e = sql.exp()
    if not isinstance(source, e.Subquery) or not isinstance(source.this, e.Select) or sql.is_aggregate(source.this):
        return None
    inner = source.this
    if any(value and name not in _PLAIN for name, value in inner.args.items()) or inner.args.get("from_") is None:
        return None
    return inner if all(isinstance(item.unalias(), e.Column) for item in inner.expressions) else None


def _keeps_left_rows(join: SqlNode) -> bool:
    """Whether rows of the left side may as well be chosen behind the join."""
    return join.side not in ("RIGHT", "FULL")


def _replace_columns(outer: SqlNode, alias: str, inner: SqlNode) -> None:
    """Everywhere in the outer query: what the columns of an item of FROM are made of."""
    items = {item.alias: item.unalias() for item in inner.expressions}
    for node in list(outer.find_all(sql.exp().Column)):
        if node.table == alias:
            node.replace(items[node.name].copy())


def _add_condition(outer: SqlNode, inner: SqlNode) -> None:
    """What the inner query asks of its rows stands in front."""
    first, second = inner.args.get("where"), outer.args.get("where")
    if first is not None:
        both = first.this if second is None else sql.binary("AND", first.this, second.this)
        outer.set("where", sql.exp().Where(this=both))
