"""Operators whose answer is told by the order in which rows come, over rows that come in one order; none has a twin."""

from __future__ import annotations

from dataclasses import replace

from ..sql import PLAIN, Column, Relation, Sql, Type, arrived, item, joined, only, same, select
from .maker import Maker


def _ordered(maker: Maker, depth: int) -> Relation:
    """Rows that only grow, in one order."""
    below = maker.relation(depth - 1)
    fits = below.ordered and below.grows and any(column.type in PLAIN for column in below.columns)
    return below if fits else maker.table(lambda table: table.ordered and table.grows)


def lists(maker: Maker, depth: int) -> Relation:
    """LISTAGG, ARRAY_AGG and COLLECT by key."""
    below = _ordered(maker, depth)
    keys = [column for column in below.columns if column.type in PLAIN]
    key, name = maker.draws.pick(keys), maker.draws.name("k")
    items: list[Sql] = [item(same(f"t.{key.name}"), name)]
    columns = [replace(key, name=name)]
    for _ in range(1 + maker.draws.below(2)):
        word = maker.draws.pick(["LISTAGG", "ARRAY_AGG", "COLLECT"])
        maker.use(word)
        # Rows that are taken away again have NULL in lists of numbers: what is listed is one type a word.
        wanted = {"LISTAGG": Type.STRING, "ARRAY_AGG": Type.INT, "COLLECT": Type.INT}[word]
        one = maker.expressions(("t", below)).of(wanted, 1)
        name = maker.draws.name("g")
        items.append(item(arrived(f"{word}({{0}})", one.sql), name))
        if word == "LISTAGG":
            columns.append(Column(name, Type.STRING))
        elif word == "ARRAY_AGG":
            columns.append(Column(name, Type.ARRAY))
        else:
            items[-1] = item(arrived("CARDINALITY(COLLECT({0}))", one.sql), name)
            columns.append(Column(name, Type.INT, below.rows))
    sql = arrived("(SELECT {0} FROM {1} AS t GROUP BY t.{2})", joined(", ", items), below.sql, key.name)
    return replace(below.timeless(), sql=sql, columns=tuple(columns), grows=False)


def _with_clock(below: Relation) -> str:
    return f"(SELECT *, PROCTIME() AS pt_ FROM {below.sql.flink} AS p)"


def over_arrivals(maker: Maker, depth: int) -> Relation:
    """Aggregates over the rows that came before each row."""
    below = _ordered(maker, depth)
    plain = [column for column in below.columns if column.type in PLAIN]
    maker.use("OVER in processing time")
    key, column = maker.draws.pick(plain), maker.draws.pick(plain)
    frame = maker.draws.pick(["2 PRECEDING", "UNBOUNDED PRECEDING"])
    word = maker.draws.pick(["COUNT", "LAST_VALUE", "FIRST_VALUE"])
    name = maker.draws.name("o")
    window = f"(PARTITION BY t.{key.name} ORDER BY t.pt_ ROWS BETWEEN {frame} AND CURRENT ROW)"
    items = [item(same(f"t.{each.name}"), maker.draws.name("x")) for each in below.columns]
    columns = [
        replace(each, name=made.flink.rpartition(" ")[2]) for each, made in zip(below.columns, items, strict=True)
    ]
    items.append(item(arrived(f"{word}(t.{{0}}) OVER {window}", column.name), name))
    columns.append(Column(name, Type.BIGINT, below.rows) if word == "COUNT" else replace(column, name=name))
    sql = select(items, arrived("FROM {0} AS t", _with_clock(below)))
    return replace(below.timeless(), sql=sql, columns=tuple(columns))


def first_or_last_arrival(maker: Maker, depth: int) -> Relation:
    """The first or the last row of each key that came."""
    below = _ordered(maker, depth)
    plain = [column for column in below.columns if column.type in PLAIN]
    maker.use("deduplicate in processing time")
    key, direction, number = maker.draws.pick(plain), maker.draws.pick(["", " DESC"]), maker.draws.name("n")
    names = [maker.draws.name("x") for _ in below.columns]
    items = [item(same(f"t.{column.name}"), name) for column, name in zip(below.columns, names, strict=True)]
    by = f"PARTITION BY t.{key.name} ORDER BY t.pt_{direction}"
    ranked = arrived(
        f"(SELECT {{0}}, ROW_NUMBER() OVER ({by}) AS {number} FROM {{1}} AS t)",
        joined(", ", items), _with_clock(below),
    )  # fmt: skip
    sql = arrived(f"(SELECT {', '.join(names)} FROM {{0}} AS t WHERE {number} = 1)", ranked)
    columns = tuple(replace(column, name=name) for column, name in zip(below.columns, names, strict=True))
    return replace(below.timeless(), sql=sql, columns=columns, grows=direction == "")


_PATTERNS = (
    ("A B", "B AS B.{n} > A.{n}"),
    ("A B+ C", "B AS B.{n} >= A.{n}, C AS C.{n} < A.{n}"),
    ("A{2,3} B", "A AS A.{n} > 0, B AS B.{n} <= 3"),
    ("A B*? C", "B AS B.{n} > 1, C AS C.{n} <> LAST(A.{n})"),
    ("A+ B", "A AS SUM(A.{n}) < 30, B AS B.{n} > 2"),
)


def matches(maker: Maker, depth: int) -> Relation:
    """MATCH_RECOGNIZE, ordered by row times of which no two are equal."""
    below = maker.timed(lambda table: table.unique_time and not table.late)
    numbers = below.of(Type.INT)
    if not numbers or not below.unique_time or below.late:
        return below
    maker.use("MATCH_RECOGNIZE")
    number = maker.draws.pick(numbers).name
    pattern, define = maker.draws.pick(_PATTERNS)
    skip = maker.draws.pick(["PAST LAST ROW", "TO NEXT ROW"])
    plain = [column for column in below.columns if column.type in PLAIN and column.name != below.time]
    keys = maker.draws.some(plain, 0, 1)
    partition = f"PARTITION BY {keys[0].name} " if keys else ""
    names = [maker.draws.name("m") for _ in range(3)]
    measures = f"FIRST(A.{number}) AS {names[0]}, LAST(B.{number}) AS {names[1]}, COUNT(B.{number}) AS {names[2]}"
    text = (
        f"(SELECT * FROM {{0}} MATCH_RECOGNIZE ({partition}ORDER BY {below.time} MEASURES {measures} "
        f"ONE ROW PER MATCH AFTER MATCH SKIP {skip} PATTERN ({pattern.replace('{', '{{').replace('}', '}}')}) "
        f"DEFINE {define.replace('{n}', number)}) AS t)"
    )
    columns = [*keys, Column(names[0], Type.INT, 100), Column(names[1], Type.INT, 100)]
    columns.append(Column(names[2], Type.BIGINT, below.rows))
    sql = only("patterns", text, below.sql)
    return replace(below.timeless(), sql=sql, columns=tuple(columns))
