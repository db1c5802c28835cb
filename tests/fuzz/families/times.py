"""Operators that need a row time: interval and temporal joins, OVER, first and last rows; and lookups."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ..sql import (
    NUMBERS,
    PLAIN,
    Column,
    Relation,
    Sql,
    Type,
    apart,
    both,
    item,
    joined,
    only,
    same,
    select,
    streaming_only,
)
from .joins import KINDS, chosen, equality
from .maker import Maker

LATE: Final = "late rows in OVER"


def interval_join(maker: Maker, depth: int) -> Relation:
    """Rows joined that are near in time."""
    left, right = (maker.timed(lambda table: not table.late) for _ in range(2))
    equal = equality(maker, left, right)
    if equal is None or not maker.fits(left, right):
        return left
    kind = maker.draws.pick(KINDS)
    maker.use(f"interval {kind}")
    one, other = f"l.{left.time}", f"r.{right.time}"
    times = maker.draws.pick(
        [
            f"{other} BETWEEN {one} - INTERVAL '2' SECOND AND {one} + INTERVAL '3' SECOND",
            f"{one} >= {other} - INTERVAL '1' SECOND AND {one} < {other} + INTERVAL '4' SECOND",
            f"{other} > {one} AND {other} <= {one} + INTERVAL '5' SECOND",
        ]
    )
    on = both("{0} AND {1}", equal, times)
    if maker.draws.often(20):
        on = both("{0} AND {1}", on, maker.expressions(("l", left), ("r", right)).test(0))
    items, columns = chosen(maker, [("l", left), ("r", right)])
    rest = both(f"FROM {{0}} AS l {kind} {{1}} AS r ON {{2}}", left.sql, right.sql, on)
    count = left.rows * right.rows + left.rows + right.rows
    return replace(left.timeless(), sql=select(items, rest), columns=tuple(columns), rows=count)


def temporal_join(maker: Maker, depth: int) -> Relation:
    """Each row beside the version of its key at its time."""
    left = maker.timed(lambda table: not table.late)
    right = maker.versions()
    assert right.versions is not None
    keys = [column for column in left.columns if column.type is right.column(right.versions).type]
    if not keys:
        return left
    maker.use("temporal join")
    kind = maker.draws.pick(["JOIN", "LEFT JOIN"])
    key = maker.draws.pick(keys)
    items, columns = chosen(maker, [("l", left), ("r", right)])
    equal = both("l.{0} = r.{1}", key.name, right.versions)
    flink = both(f"FROM {{0}} AS l {kind} {{1}} FOR SYSTEM_TIME AS OF l.{left.time} AS r ON {{2}}",
                 left.sql, right.sql, equal)  # fmt: skip
    if right.unique_time:
        rest = apart(
            flink.flink.replace("{", "{{").replace("}", "}}"),
            f"FROM {{0}} AS l ASOF {kind} {{1}} AS r ON {{2}} AND l.{left.time} >= r.{right.time}",
            left.sql,
            right.sql,
            equal,
        )
    else:
        rest = only("versions of one time", "{0}", flink)
    return replace(left.timeless(), sql=select(items, rest), columns=tuple(columns))


def lookup_join(maker: Maker, depth: int) -> Relation:
    """Each row beside what a table holds when it comes: files do not change."""
    left = maker.timed(lambda table: table.bare)
    right = maker.table(lambda table: table.grows and not table.late)
    equal = equality(maker, left, right)
    if equal is None or "DISTINCT" in equal.flink or not maker.fits(left, right):
        return left
    maker.use("lookup join")
    kind = maker.draws.pick(["JOIN", "LEFT JOIN"])
    items, columns = chosen(maker, [("l", left), ("r", right)])
    rest = apart(
        f"FROM (SELECT *, PROCTIME() AS pt_ FROM {{0}}) AS l {kind} {{1}} FOR SYSTEM_TIME AS OF l.pt_ AS r ON {{2}}",
        f"FROM {{0}} AS l {kind} {{1}} AS r ON {{2}}",
        left.sql,
        right.sql,
        equal,
    )
    count = left.rows * right.rows + left.rows
    return replace(left.timeless(), sql=select(items, rest), columns=tuple(columns), rows=count)


_FRAMES = (
    ("", "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", False),
    ("RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW",) * 2 + (False,),
    ("ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",) * 2 + (True,),
    ("ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",) * 2 + (True,),
)


def _over_calls(maker: Maker, below: Relation, window: str) -> tuple[list[Sql], list[Column]]:
    items, columns = [], []
    for _ in range(1 + maker.draws.below(3)):
        name = maker.draws.name("o")
        column = maker.draws.pick([each for each in below.columns if each.type in PLAIN])
        words = ["COUNT", "COUNT"]
        if column.type in NUMBERS and column.bound * below.rows < 900_000:
            words = ["SUM", "SUM", "COUNT", "MIN", "MAX"]
        elif column.type is not Type.BOOLEAN:
            words = ["MIN", "MAX", "COUNT"]
        word = maker.draws.pick(words)
        type_ = Type.BIGINT if word == "COUNT" else column.type
        bound = {"COUNT": below.rows, "SUM": column.bound * below.rows}.get(word, column.bound)
        items.append(item(both(f"{word}(t.{{0}}) OVER {window}", column.name), name))
        columns.append(Column(name, type_, bound))
    return items, columns


def over(maker: Maker, depth: int) -> Relation:
    """Aggregates over the rows before each row in time. Frames of rows need row times of their own."""
    below = maker.timed()
    assert below.time is not None
    maker.use("OVER")
    frames = [frame for frame in _FRAMES if below.unique_time or not frame[2]]
    flink, duck, _ = maker.draws.pick(frames)
    plain = [column for column in below.columns if column.type in PLAIN and column.name != below.time]
    partition = maker.draws.some(plain, 0, 1)
    by = f"PARTITION BY t.{partition[0].name} " if partition else ""
    items, columns = chosen(maker, [("t", below)])
    if partition and maker.draws.often(50):
        # With its key told, the order of each key's changes can be judged.
        name = maker.draws.name("x")
        items.append(item(same(f"t.{partition[0].name}"), name))
        columns.append(replace(partition[0], name=name))
    made, more = _over_calls(maker, below, "w")
    template = f"FROM {{0}} AS t WINDOW w AS ({by}ORDER BY t.{below.time} "
    rest = apart(f"{template}{flink})", f"{template}{duck})", below.sql)
    if below.late:
        rest = streaming_only(LATE, only(LATE, "{0}", rest))
    sql = select([*items, *made], rest)
    return replace(below.timeless(), sql=sql, columns=(*columns, *more))


def over_updates(maker: Maker, depth: int) -> Relation:
    """Aggregates over the rows up to each row, by a column that is no time: answers change."""
    below = maker.relation(depth - 1)
    plain = [column for column in below.columns if column.type in PLAIN]
    if not plain:
        return below
    orders = [column for column in plain if not column.rowtime]
    if not orders or not maker.few(below.rows * below.told):
        return below
    by = maker.draws.pick(orders)
    partition = maker.draws.some(plain, 0, 1)
    maker.use("OVER without time")
    prefix = f"PARTITION BY t.{partition[0].name} " if partition else ""
    items, columns = chosen(maker, [("t", below)])
    made, more = _over_calls(maker, below, "w")
    if by.type in (Type.INT, Type.BIGINT, Type.STRING) and maker.draws.often(40):
        # Rows that sort alike have one text, so that their order does not show.
        listed = maker.draws.name("o")
        separator = maker.draws.pick(["", ", '|'", ", ''"])
        text = apart("CAST(t.{0} AS STRING)", "CAST(t.{0} AS VARCHAR)", by.name)
        made.append(item(both(f"LISTAGG({{0}}{separator}) OVER w", text), listed))
        more.append(Column(listed, Type.STRING))
    template = f"FROM {{0}} AS t WINDOW w AS ({prefix}ORDER BY t.{by.name}"
    if maker.draws.often(25):
        rest = both(f"{template} NULLS LAST)", below.sql)
    else:
        rest = apart(f"{template})", f"{template} ASC NULLS FIRST)", below.sql)
    sql = select([*items, *made], rest)
    return replace(below.timeless(), sql=sql, columns=(*columns, *more), changes=below.rows * below.told, grows=False)


def first_or_last(maker: Maker, depth: int) -> Relation:
    """The first or the last row of each key by time, where no two rows have one time."""
    # Late rows are dropped, but with mini-batches they are not.
    below = maker.timed(lambda table: table.unique_time and not table.late)
    if not below.unique_time or below.late:
        return below
    maker.use("deduplicate")
    columns = [column for column in below.columns if column.type in PLAIN]
    keys = maker.draws.some([column for column in columns if column.name != below.time], 1, 2)
    names = {column.name: maker.draws.name("x") for column in columns}
    items = [item(same(f"t.{column.name}"), names[column.name]) for column in columns]
    number, direction = maker.draws.name("n"), maker.draws.pick(["", " DESC"])
    by = f"PARTITION BY {', '.join(f't.{key.name}' for key in keys)} ORDER BY t.{below.time}{direction}"
    listed = ", ".join(names.values())
    ranked = both(
        f"(SELECT {{0}}, ROW_NUMBER() OVER ({by}) AS {number} FROM {{1}} AS t)", joined(", ", items), below.sql
    )
    sql = both(f"(SELECT {listed} FROM {{0}} AS t WHERE {number} = 1)", ranked)
    kept = tuple(replace(column, name=names[column.name]) for column in columns)
    return replace(below.timeless(), sql=sql, columns=kept, grows=direction == "")
