"""Projections, filters, set operations and UNNEST."""

from __future__ import annotations

from dataclasses import replace

from ..expressions import LARGEST, LITERALS
from ..sql import PLAIN, Column, Relation, Sql, Type, apart, both, item, joined, same, select
from .maker import Maker


def projection(maker: Maker, depth: int) -> Relation:
    """SELECT of columns and expressions, mostly with WHERE."""
    below = maker.relation(depth - 1)
    maker.use("SELECT")
    expressions = maker.expressions(("t", below))
    items: list[Sql] = []
    columns: list[Column] = []
    for column in maker.draws.some(below.columns, 1, len(below.columns)):
        name = maker.draws.name("x")
        items.append(item(same(f"t.{column.name}"), name))
        columns.append(replace(column, name=name))
    for _ in range(maker.draws.below(3)):
        made = expressions.any()
        name = maker.draws.name("x")
        items.append(item(made.sql, name))
        columns.append(made.column(name))
    if maker.draws.often(70):
        maker.use("WHERE")
        rest = both("FROM {0} AS t WHERE {1}", below.sql, expressions.tests(1, 2))
    else:
        rest = both("FROM {0} AS t", below.sql)
    made_of = replace(below.timeless(), ordered=below.ordered)
    return replace(made_of, sql=select(items, rest), columns=tuple(columns))


def with_time(maker: Maker, below: Relation) -> Relation:
    """A filter or a projection that keeps the row time."""
    expressions = maker.expressions(("t", below))
    if maker.draws.often(50):
        maker.use("WHERE")
        sql = both("(SELECT * FROM {0} AS t WHERE {1})", below.sql, expressions.test())
        return replace(below, sql=sql, bare=False)
    maker.use("SELECT")
    items, columns, time = [], [], None
    for column in below.columns:
        name = maker.draws.name("x")
        if column.name == below.time:
            time = name
        items.append(item(same(f"t.{column.name}"), name))
        columns.append(replace(column, name=name))
    made = expressions.any()
    name = maker.draws.name("x")
    items.append(item(made.sql, name))
    columns.append(made.column(name))
    if below.marked:
        sql = select(items, both("FROM {0} AS t", below.sql))
        # DuckDB's twin hands the watermark before each row on.
        marked = select([*items, same("t.wm_ AS wm_")], both("FROM {0} AS t", below.sql))
        sql = replace(sql, duck=marked.duck)
    else:
        sql = select(items, both("FROM {0} AS t", below.sql))
    return replace(below, sql=sql, columns=tuple(columns), time=time, bare=False)


def alike(maker: Maker, types: list[Type], relation: Relation, names: list[str]) -> Sql:
    """A query that gives values of these types."""
    expressions = maker.expressions(("t", relation))
    items = []
    for type_, name in zip(types, names, strict=True):
        target = "VARCHAR" if type_ is Type.STRING else type_.value
        cast = "VARCHAR" if type_ is Type.STRING else "TIMESTAMP" if type_ is Type.TIMESTAMP else target
        flink = "STRING" if type_ is Type.STRING else type_.value
        value = apart(f"CAST({{0}} AS {flink})", f"CAST({{0}} AS {cast})", expressions.of(type_, 1).sql)
        items.append(item(value, name))
    return both("SELECT {0} FROM {1} AS t", joined(", ", items), relation.sql)


def _compound(maker: Maker, depth: int, word: str, all_grow: bool) -> Relation:
    left, right = maker.relation(depth - 1), maker.relation(depth - 1)
    maker.use(word)
    types = [maker.draws.pick([*LITERALS]) for _ in range(1 + maker.draws.below(3))]
    names = [maker.draws.name("x") for _ in types]
    sql = both(f"({{0}} {word} {{1}})", alike(maker, types, left, names), alike(maker, types, right, names))
    columns = tuple(Column(name, type_, LARGEST) for name, type_ in zip(names, types, strict=True))
    # With ALL each change of a row tells all rows that are equal to it anew.
    again = left.rows + right.rows if word in ("INTERSECT ALL", "EXCEPT ALL") else 1
    return Relation(
        sql,
        columns,
        left.rows + right.rows,
        changes=again * (left.told + right.told),
        grows=all_grow and left.grows and right.grows,
    )


def union(maker: Maker, depth: int) -> Relation:
    """UNION ALL."""
    return _compound(maker, depth, "UNION ALL", all_grow=True)


def set_operation(maker: Maker, depth: int) -> Relation:
    """UNION, INTERSECT and EXCEPT, with ALL and without."""
    word = maker.draws.pick(["UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
    return _compound(maker, depth, word, all_grow=False)


def distinct(maker: Maker, depth: int) -> Relation:
    """SELECT DISTINCT."""
    below = maker.relation(depth - 1)
    kept = maker.draws.some([column for column in below.columns if column.type in PLAIN], 1, 3)
    if not kept:
        return below
    maker.use("DISTINCT")
    names = [maker.draws.name("x") for _ in kept]
    items = [item(same(f"t.{column.name}"), name) for column, name in zip(kept, names, strict=True)]
    sql = both("(SELECT DISTINCT {0} FROM {1} AS t)", joined(", ", items), below.sql)
    columns = tuple(replace(column, name=name) for column, name in zip(kept, names, strict=True))
    return replace(below.timeless(), sql=sql, columns=columns, grows=below.grows)


def unnest(maker: Maker, depth: int) -> Relation:
    """A join with the elements of an array."""
    below = maker.relation(depth - 1)
    alias, element = maker.draws.name("u"), maker.draws.name("x")
    arrays = [same(f"t.{column.name}") for column in below.of(Type.ARRAY)]
    numbers = below.of(Type.INT)
    if numbers:
        ones = [maker.draws.pick(numbers).name for _ in range(2)]
        arrays.append(apart("ARRAY[{0}, 3, {1}]", "[{0}, 3, {1}]", *(f"t.{name}" for name in ones)))
    if not arrays or below.rows > 300:
        return below
    maker.use("UNNEST")
    array = maker.draws.pick(arrays)
    kept = maker.draws.some(below.columns, 1, len(below.columns))
    names = [maker.draws.name("x") for _ in kept]
    items = [item(same(f"t.{column.name}"), name) for column, name in zip(kept, names, strict=True)]
    items.append(item(same(f"{alias}.{element}"), element))
    columns = [replace(column, name=name) for column, name in zip(kept, names, strict=True)]
    columns.append(Column(element, Type.INT, LARGEST))
    kind = maker.draws.pick(["CROSS JOIN", "LEFT JOIN"])
    condition = " ON TRUE" if kind == "LEFT JOIN" else ""
    rest = apart(
        f"FROM {{0}} AS t {kind} UNNEST({{1}}) AS {alias} ({element}){condition}",
        f"FROM {{0}} AS t {kind} LATERAL (SELECT UNNEST({{1}}) AS {element}) AS {alias}{condition}",
        below.sql,
        array,
    )
    made = replace(below.timeless(), ordered=below.ordered)
    return replace(made, sql=select(items, rest), columns=tuple(columns), rows=3 * below.rows, changes=3 * below.told)
