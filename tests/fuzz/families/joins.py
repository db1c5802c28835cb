"""Regular joins of all kinds, and subqueries, which become semi and anti joins and joins with single values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..expressions import reference
from ..sql import PLAIN, Column, Relation, Sql, Type, both, item, only, same, select, streaming_only
from .maker import Maker

#: Flink joins each row with a count of the query's rows, which a stream without rows never tells.
IN_VALUE: Final = "IN as a value: no row where its query has none"

HINTS: Final = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP")

KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


def chosen(maker: Maker, sides: Sequence[tuple[str, Relation]]) -> tuple[list[Sql], list[Column]]:
    """Columns of both sides under new names."""
    items, columns = [], []
    for alias, relation in sides:
        for column in maker.draws.some(relation.columns, 1, 3):
            name = maker.draws.name("x")
            items.append(item(same(f"{alias}.{column.name}"), name))
            columns.append(replace(column, name=name))
    return items, columns


def pairs(maker: Maker, left: Relation, right: Relation) -> list[tuple[str, str]]:
    """Columns of one type, one of each side."""
    types = [
        (one, other)
        for one in left.without_times().columns
        for other in right.without_times().columns
        if one.type is other.type and one.type in PLAIN
    ]
    # Keys have few values, so that rows meet.
    types.sort(key=lambda pair: not (pair[0].name.endswith("_k") and pair[1].name.endswith("_k")))
    return [(f"l.{one.name}", f"r.{other.name}") for one, other in types]


def equality(maker: Maker, left: Relation, right: Relation) -> Sql | None:
    """A condition that has an equal pair; None, where no types are equal."""
    found = pairs(maker, left, right)
    if not found:
        return None
    one, other = maker.draws.pick(found[:1] if maker.draws.often(40) else found)
    sign = "IS NOT DISTINCT FROM" if maker.draws.often(10) else "="
    return both(f"{{0}} {sign} {{1}}", one, other)


def join(maker: Maker, depth: int) -> Relation:
    """Two relations joined."""
    left, right = maker.relation(depth - 1), maker.relation(maker.draws.below(depth))
    return _joined(maker, left, right)


def self_join(maker: Maker, depth: int) -> Relation:
    """A relation that is named, joined to itself."""
    one = maker.defined(maker.relation(depth - 1))
    maker.use("self join")
    return _joined(maker, one, one)


def _joined(maker: Maker, left: Relation, right: Relation) -> Relation:
    if not maker.fits(left, right):
        return left
    kind = maker.draws.pick(KINDS)
    on = equality(maker, left, right)
    if on is None or maker.draws.often(8):
        if left.rows * right.rows > 1200 or kind == "FULL JOIN":
            return left
        on = _test(maker, left, right, 0)
        maker.use(f"{kind} without keys")
    elif maker.draws.often(30):
        on = both("{0} AND {1}", on, _test(maker, left, right, 0))
    maker.use(kind)
    items, columns = chosen(maker, [("l", left), ("r", right)])
    rest = both(f"FROM {{0}} AS l {kind} {{1}} AS r ON {{2}}", left.sql, right.sql, on)
    if maker.draws.often(20):
        rest = both("{0} WHERE {1}", rest, _test(maker, left, right, 1))
    sql = _hinted(maker, select(items, rest))
    grows = kind == "JOIN" and left.grows and right.grows
    rows = left.rows * right.rows + left.rows + right.rows
    made = replace(left.timeless(), sql=sql, columns=tuple(columns), rows=rows, grows=grows)
    return replace(made, changes=told_by_both(left, right))


def told_by_both(left: Relation, right: Relation) -> int:
    """Changes of a join: those of each side for each row of the other one."""
    return left.told * right.rows + right.told * left.rows + left.told + right.told


def _hinted(maker: Maker, sql: Sql) -> Sql:
    """Some queries say how batch mode is to join; streaming makes nothing of it, and DuckDB is not told."""
    if not maker.draws.often(25):
        return sql
    hint = maker.draws.pick(HINTS)
    maker.use(hint)
    hinted = f"(SELECT /*+ {hint}({maker.draws.pick('rl')}) */ "
    return replace(sql, flink=sql.flink.replace("(SELECT ", hinted, 1))


def _test(maker: Maker, left: Relation, right: Relation, depth: int) -> Sql:
    return maker.expressions(("l", left.without_times()), ("r", right.without_times())).test(depth)


def lateral(maker: Maker, depth: int) -> Relation:
    """Each row beside the rows of a query that names it."""
    left, right = maker.relation(depth - 1), maker.relation(maker.draws.below(depth))
    found = pairs(maker, left, right)
    if not found or not maker.fits(left, right):
        return left
    maker.use("LATERAL")
    one, other = maker.draws.pick(found[:1] if maker.draws.often(40) else found)
    kind, on = maker.draws.pick([("CROSS JOIN", ""), ("LEFT JOIN", " ON TRUE")])
    name = maker.draws.name("x")
    column = maker.draws.pick(right.columns)
    inner = both(
        f"(SELECT r.{column.name} AS {name} FROM {{0}} AS r WHERE {other} = {one} AND {{1}})",
        right.sql,
        maker.expressions(("r", right.without_times())).test(0),
    )
    items, columns = chosen(maker, [("l", left)])
    items.append(item(same(f"s.{name}"), name))
    columns.append(replace(column, name=name))
    sql = select(items, both(f"FROM {{0}} AS l {kind} LATERAL {{1}} AS s{on}", left.sql, inner))
    rows = left.rows * right.rows + left.rows
    grows = kind == "CROSS JOIN" and left.grows and right.grows
    made = replace(left.timeless(), sql=sql, columns=tuple(columns), rows=rows, grows=grows)
    return replace(made, changes=told_by_both(left, right))


def filtered_by_query(maker: Maker, depth: int) -> Relation:
    """IN, EXISTS and comparisons with all rows of a query, or with none: semi and anti joins."""
    left, right = maker.relation(depth - 1), maker.relation(maker.draws.below(depth))
    found = pairs(maker, left, right)
    if not found or not maker.few(told_by_both(left, right)):
        return left
    one, other = maker.draws.pick(found[:1] if maker.draws.often(40) else found)
    inner = maker.expressions(("r", right)).test(0)
    outer = maker.expressions(("l", left)).test(0)
    test = maker.draws.pick(
        [
            ("IN", "{0} IN (SELECT {1} FROM {2} AS r WHERE {3})"),
            ("EXISTS", "EXISTS (SELECT 1 FROM {2} AS r WHERE {1} = {0} AND {3})"),
            ("NOT EXISTS", "NOT EXISTS (SELECT 1 FROM {2} AS r WHERE {1} = {0} AND {3})"),
            ("NOT IN", "{0} NOT IN (SELECT {1} FROM {2} AS r WHERE {3})"),
            ("NOT IN", "{0} NOT IN (SELECT {1} FROM {2} AS r WHERE {1} IS NOT NULL)"),
            ("IN OR", "({0} IN (SELECT {1} FROM {2} AS r WHERE {3}) OR {4})"),
            ("IN AND", "{0} IN (SELECT {1} FROM {2} AS r WHERE {3}) AND {4}"),
            ("EXISTS all", "EXISTS (SELECT 1 FROM {2} AS r WHERE {3})"),
        ]
    )
    maker.use(test[0])
    condition = both(test[1], one, other, right.sql, inner, outer)
    if test[0] == "IN OR":
        condition = streaming_only(IN_VALUE, only(IN_VALUE, "{0}", condition))
    sql = both("(SELECT * FROM {0} AS l WHERE {1})", left.sql, condition)
    grows = left.grows and right.grows and test[0] in ("IN", "EXISTS", "IN AND", "EXISTS all")
    made = replace(left.timeless(), sql=_without_mark(left, sql), grows=grows)
    return replace(made, changes=told_by_both(left, right))


def _without_mark(relation: Relation, sql: Sql) -> Sql:
    """``*`` is columns of the relation, without the watermark that the twin has."""
    if not relation.marked:
        return sql
    listed = ", ".join(f"l.{column.name}" for column in relation.columns)
    return replace(sql, duck=None if sql.duck is None else sql.duck.replace("(SELECT *", f"(SELECT {listed}", 1))


def with_scalar_query(maker: Maker, depth: int) -> Relation:
    """A value of a query beside each row."""
    left, right = maker.relation(depth - 1), maker.relation(maker.draws.below(depth))
    found = pairs(maker, left, right)
    numbers = [column for column in right.columns if column.type in (Type.INT, Type.BIGINT)]
    if not found or not numbers or not maker.few(told_by_both(left, right)):
        return left
    maker.use("scalar query")
    one, other = maker.draws.pick(found)
    number = maker.draws.pick(numbers)
    value = reference("r", number).sql
    kind = maker.draws.below(4)
    bound = number.bound
    if kind == 0:
        query = both("(SELECT MAX({0}) FROM {1} AS r)", value, right.sql)
    elif kind == 1:
        query = both("(SELECT MIN({0}) FROM {1} AS r WHERE {2} = {3})", value, right.sql, other, one)
    elif kind == 2:
        query, bound = both("(SELECT COUNT(*) FROM {1} AS r WHERE {2} = {3})", value, right.sql, other, one), right.rows
    else:
        # A value of three states: NULL where the query has NULL.
        query = only(IN_VALUE, "({3} IN (SELECT {2} FROM {1} AS r))", value, right.sql, other, one)
        query, bound = streaming_only(IN_VALUE, query), 0
    type_ = {2: Type.BIGINT, 3: Type.BOOLEAN}.get(kind, number.type)
    name = maker.draws.name("x")
    items, columns = chosen(maker, [("l", left)])
    items.append(item(query, name))
    columns.append(Column(name, type_, bound))
    sql = select(items, both("FROM {0} AS l", left.sql))
    return replace(left.timeless(), sql=sql, columns=tuple(columns), changes=told_by_both(left, right), grows=False)
