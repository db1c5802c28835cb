"""GROUP BY, with DISTINCT, FILTER, HAVING and GROUPING SETS, and aggregates without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ..expressions import LARGEST, Expressions, reference
from ..sql import (
    PLAIN,
    Column,
    Expression,
    Relation,
    Sql,
    Type,
    apart,
    arrived,
    both,
    item,
    joined,
    only,
    same,
    streaming_only,
)
from .maker import Maker

NO_ROWS: Final = "aggregates of no rows"


def call(maker: Maker, expressions: Expressions, relation: Relation) -> Expression:
    """An aggregate call, mostly without FILTER."""
    made = _call(maker, expressions, relation)
    # FILTER stands behind one call: the twin of AVG is none.
    if (made.sql.duck or "").startswith("(") or not maker.draws.often(20):
        return made
    maker.use("FILTER")
    return replace(made, sql=both("{0} FILTER (WHERE {1})", made.sql, expressions.test()))


def _call(maker: Maker, expressions: Expressions, relation: Relation) -> Expression:
    rows = relation.rows
    counted = Expression(same("COUNT(*)"), Type.BIGINT, rows)
    kind = maker.draws.below(9)
    if kind == 0:
        return counted
    if kind <= 2:
        number = expressions.number(1)
        if number.bound * rows > LARGEST:
            return counted
        distinct = "DISTINCT " if maker.draws.often(20) else ""
        maker.use(f"SUM {distinct}".strip())
        return Expression(both(f"SUM({distinct}{{0}})", number.sql), number.type, number.bound * rows)
    if kind == 3:
        type_ = maker.draws.pick([Type.INT, Type.BIGINT])
        number = expressions.of(type_, 1)
        maker.use("AVG")
        duck = "CAST(TRUNC(CAST(SUM({0}) AS DOUBLE) / COUNT({0})) AS BIGINT)"
        if maker.draws.often(20):
            duck = duck.replace("({0}", "(DISTINCT {0}")
            return Expression(apart("AVG(DISTINCT {0})", f"({duck})", number.sql), type_, number.bound)
        return Expression(apart("AVG({0})", f"({duck})", number.sql), type_, number.bound)
    if kind == 4:
        one = expressions.of(maker.draws.pick(expressions.types(PLAIN)), 1)
        maker.use("COUNT DISTINCT")
        return Expression(both("COUNT(DISTINCT {0})", one.sql), Type.BIGINT, rows)
    if kind == 5:
        return Expression(both("COUNT({0})", expressions.any(1).sql), Type.BIGINT, rows)
    if kind == 6 and relation.ordered and relation.grows:
        column = maker.draws.pick(relation.columns)
        if column.type in PLAIN:
            word = maker.draws.pick(["FIRST_VALUE", "LAST_VALUE"])
            maker.use(word)
            sql = arrived(f"{word}({{0}})", f"t.{column.name}")
            return Expression(sql, column.type, column.bound)
    type_ = maker.draws.pick([each for each in expressions.types(PLAIN) if each is not Type.BOOLEAN] or [Type.INT])
    one = expressions.of(type_, 1)
    word = maker.draws.pick(["MIN", "MAX"])
    maker.use(word)
    return Expression(both(f"{word}({{0}})", one.sql), type_, one.bound)


def calls(maker: Maker, below: Relation, most: int = 3) -> tuple[list[Sql], list[Column]]:
    """Aggregates as items of a SELECT list."""
    items, columns = [], []
    for _ in range(1 + maker.draws.below(most)):
        made = call(maker, maker.expressions(("t", below)), below)
        name = maker.draws.name("g")
        items.append(item(made.sql, name))
        columns.append(Column(name, made.type, made.bound))
    return items, columns


def _keys(maker: Maker, below: Relation, least: int, most: int) -> list[Expression]:
    plain = [column for column in below.columns if column.type in PLAIN]
    found = [reference("t", column) for column in maker.draws.some(plain, least, most)]
    if maker.draws.often(20):
        made = maker.expressions(("t", below)).any(1)
        # A key that reads no column may be a literal, which Flink's GROUP BY takes for nothing.
        if "t." in made.sql.flink:
            found.append(made)
    return list({key.sql.flink: key for key in found}.values())


def _named(maker: Maker, keys: list[Expression]) -> tuple[list[Sql], list[Column]]:
    names = [maker.draws.name("k") for _ in keys]
    items = [item(key.sql, name) for key, name in zip(keys, names, strict=True)]
    return items, [Column(name, key.type, key.bound) for key, name in zip(keys, names, strict=True)]


def grouped(maker: Maker, depth: int) -> Relation:
    """GROUP BY one to three keys."""
    below = maker.relation(depth - 1)
    keys = _keys(maker, below, 1, 2)
    if not keys:
        return below
    maker.use("GROUP BY")
    key_items, key_columns = _named(maker, keys)
    items, columns = calls(maker, below)
    having = same("")
    if maker.draws.often(25):
        maker.use("HAVING")
        over = call(maker, maker.expressions(("t", below)), below)
        test = maker.draws.pick(["{0} IS NOT NULL", "COUNT(*) > 1", "{0} IS DISTINCT FROM {0}", "COUNT(*) <> 2"])
        having = both(f" HAVING {test}", over.sql)
    sql = both(
        "(SELECT {0} FROM {1} AS t GROUP BY {2}{3})",
        joined(", ", [*key_items, *items]),
        below.sql,
        joined(", ", [key.sql for key in keys]),
        having,
    )
    return replace(below.timeless(), sql=sql, columns=(*key_columns, *columns), grows=False)


def total(maker: Maker, depth: int) -> Relation:
    """Aggregates of all rows.

    Without rows a stream has no answer, unless the planner knows that there are none; DuckDB has one row. Only with
    HAVING are they one.
    """
    below = maker.relation(depth - 1)
    maker.use("total")
    items, columns = calls(maker, below)
    listed = joined(", ", items)
    if maker.draws.often(70):
        sql = both("(SELECT {0} FROM {1} AS t HAVING COUNT(*) > 0)", listed, below.sql)
    else:
        sql = only(NO_ROWS, "(SELECT {0} FROM {1} AS t)", listed, below.sql)
        sql = streaming_only(NO_ROWS, sql)
    return replace(below.timeless(), sql=sql, columns=tuple(columns), rows=1, changes=below.told, grows=False)


def grouping_sets(maker: Maker, depth: int) -> Relation:
    """GROUPING SETS, ROLLUP and CUBE."""
    below = maker.relation(depth - 1)
    plain = [column for column in below.columns if column.type in PLAIN]
    keys = [reference("t", column) for column in maker.draws.some(plain, 2, 3)]
    if len(keys) < 2:
        return below
    word = maker.draws.pick(["ROLLUP", "CUBE", "GROUPING SETS"])
    maker.use(word)
    key_items, key_columns = _named(maker, keys)
    items, columns = calls(maker, below, 2)
    listed = joined(", ", [key.sql for key in keys])
    sets = {
        "ROLLUP": both("ROLLUP ({0})", listed),
        "CUBE": both("CUBE ({0})", listed),
        "GROUPING SETS": both("GROUPING SETS (({0}), ({1}), ({2}))", listed, keys[0].sql, keys[1].sql),
    }[word]
    chosen = joined(", ", [*key_items, *items])
    # The set of all rows may have a row even where there are none.
    having = "" if word == "GROUPING SETS" else " HAVING COUNT(*) > 0"
    sql = both(
        f"(SELECT {{0}} FROM {{1}} AS t GROUP BY {{2}}{having})",
        chosen,
        below.sql,
        sets,
    )
    made = replace(below.timeless(), sql=sql, columns=(*key_columns, *columns), grows=False)
    return replace(made, rows=8 * below.rows, changes=8 * below.told)
