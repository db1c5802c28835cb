"""Top-N and LIMIT. Rows that tie in the order are equal in all columns: which of them is kept cannot be seen."""

from __future__ import annotations

from dataclasses import replace

from ..sql import PLAIN, Column, Relation, Sql, Type, apart, both, item, joined, same
from .maker import Maker

#: As Flink sorts where nothing is said: NULL is less than anything.
_ORDERS = (("", " ASC NULLS FIRST"), (" DESC", " DESC NULLS LAST"))


def order(maker: Maker, alias: str, columns: list[Column]) -> Sql:
    """Some columns first, then all the others."""
    first = maker.draws.some(columns, 1, 2)
    if maker.draws.often(50):
        first.reverse()
    rest = [column for column in columns if column not in first]
    items = []
    for column in [*first, *rest]:
        flink, duck = maker.draws.pick(_ORDERS)
        items.append(apart(f"{{0}}{flink}", f"{{0}}{duck}", f"{alias}.{column.name}"))
    return joined(", ", items)


def top(maker: Maker, depth: int) -> Relation:
    """The first rows of each partition."""
    below = maker.relation(depth - 1)
    columns = [column for column in below.columns if column.type in PLAIN]
    if not columns:
        return below
    maker.use("Top-N")
    number = maker.draws.name("n")
    names = {column.name: maker.draws.name("x") for column in columns}
    partition = maker.draws.some(columns, 0, 2)
    by = both("ORDER BY {0}", order(maker, "t", columns))
    if partition:
        by = both("PARTITION BY {0} {1}", ", ".join(f"t.{column.name}" for column in partition), by)
    items = [item(same(f"t.{column.name}"), names[column.name]) for column in columns]
    ranked = both(
        "(SELECT {0}, ROW_NUMBER() OVER ({1}) AS {2} FROM {3} AS t)", joined(", ", items), by, number, below.sql
    )
    # Of a growing input Flink takes the first row for final, though a better one may come.
    least = 2 if below.grows else 1
    most = least + maker.draws.below(3)
    test = f"{number} <= {most}"
    if maker.draws.often(15):
        test = f"{number} BETWEEN 2 AND {most + 1}"
    kept = [replace(column, name=names[column.name]) for column in columns]
    listed = [column.name for column in kept]
    if maker.draws.often(40):
        maker.use("Top-N with number")
        kept.append(Column(number, Type.BIGINT, most + 1))
        listed.append(number)
    sql = both(f"(SELECT {', '.join(listed)} FROM {{0}} AS t WHERE {test})", ranked)
    return replace(below.timeless(), sql=sql, columns=tuple(kept), grows=False)


def limited(maker: Maker, depth: int) -> Relation:
    """ORDER BY with LIMIT and OFFSET."""
    below = maker.relation(depth - 1)
    columns = [column for column in below.columns if column.type in PLAIN]
    if not columns:
        return below
    maker.use("LIMIT")
    names = [maker.draws.name("x") for _ in columns]
    items = [item(same(f"t.{column.name}"), name) for column, name in zip(columns, names, strict=True)]
    offset = f" OFFSET {1 + maker.draws.below(3)}" if maker.draws.often(30) else ""
    count = 2 + maker.draws.below(6)
    sql = both(
        f"(SELECT {{0}} FROM {{1}} AS t ORDER BY {{2}} LIMIT {count}{offset})",
        joined(", ", items),
        below.sql,
        order(maker, "t", columns),
    )
    kept = tuple(replace(column, name=name) for column, name in zip(columns, names, strict=True))
    return replace(below.timeless(), sql=sql, columns=kept, rows=count, changes=below.told, grows=False)
