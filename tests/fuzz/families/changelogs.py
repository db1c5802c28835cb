"""Changes as rows, and back: TO_CHANGELOG and FROM_CHANGELOG. What they add up to is the table that they came from."""

from __future__ import annotations

from dataclasses import replace

from ..sql import PLAIN, Column, Relation, Sql, Type, both, item, joined, same
from .maker import Maker


def _listed(below: Relation) -> Sql:
    """The columns by name: the twin of rows that may be late has one more."""
    return both("(SELECT {0} FROM {1} AS t)", ", ".join(f"t.{column.name}" for column in below.columns), below.sql)


def _told(below: Relation) -> Sql:
    """The changes as rows; the twin's are the rows themselves."""
    rows = _listed(below)
    return replace(rows, flink=f"(SELECT * FROM TO_CHANGELOG(input => {rows.flink}))")


def round_trip(maker: Maker, depth: int) -> Relation:
    """The changes of a relation as rows, and made changes again."""
    below = maker.relation(depth - 1)
    maker.use("FROM_CHANGELOG")
    told = _told(below)
    sql = replace(told, flink=f"(SELECT * FROM FROM_CHANGELOG(input => {told.flink}))")
    return replace(below.timeless(), sql=sql, grows=False)


def net(maker: Maker, depth: int) -> Relation:
    """How often each row is there, from the changes as rows: those that come less those that go."""
    below = maker.relation(depth - 1)
    kept = maker.draws.some([column for column in below.columns if column.type in PLAIN], 1, 3)
    if not kept:
        return below
    maker.use("TO_CHANGELOG")
    names = [maker.draws.name("k") for _ in kept]
    count = maker.draws.name("g")
    keys = joined(", ", [item(same(f"t.{column.name}"), name) for column, name in zip(kept, names, strict=True)])
    by = ", ".join(f"t.{column.name}" for column in kept)
    told = _told(below)
    net_rows = "SUM(CASE WHEN t.op IN ('INSERT', 'UPDATE_AFTER') THEN CAST(1 AS BIGINT) ELSE CAST(-1 AS BIGINT) END)"
    flink = f"(SELECT {keys.flink}, {net_rows} AS {count} FROM {told.flink} AS t GROUP BY {by} HAVING {net_rows} <> 0)"
    duck = (
        None if told.duck is None else f"(SELECT {keys.duck}, COUNT(*) AS {count} FROM {told.duck} AS t GROUP BY {by})"
    )
    columns = [replace(column, name=name) for column, name in zip(kept, names, strict=True)]
    columns.append(Column(count, Type.BIGINT, below.rows))
    return replace(below.timeless(), sql=replace(told, flink=flink, duck=duck), columns=tuple(columns), grows=False)
