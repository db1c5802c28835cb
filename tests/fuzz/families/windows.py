"""Window table functions, and aggregates, rankings and joins by window."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..expressions import reference
from ..sql import PLAIN, Column, Relation, Sql, Type, Window, apart, both, item, joined, same, select
from .aggregates import calls
from .joins import KINDS, chosen, equality
from .maker import Maker
from .ranks import order


@dataclass(frozen=True)
class Shape:
    """A window function's arguments in seconds; sessions have ``first`` alone."""

    kind: str
    first: int
    second: int = 0


SHAPES = (
    Shape("TUMBLE", 10),
    Shape("TUMBLE", 3),
    Shape("HOP", 5, 15),
    Shape("CUMULATE", 5, 20),
    Shape("SESSION", 2),
)
#: Aggregates want a size that is a multiple of the slide.
ANY_SHAPES = (*SHAPES[:4], Shape("HOP", 4, 10))


def windowed(maker: Maker, below: Relation, shape: Shape) -> Relation:
    """Rows with their windows."""
    maker.use(shape.kind)
    assert below.time is not None
    flink = _function(below, shape)
    time = f"(epoch_ms(t.{below.time}))"
    mark = ", t.wm_" if below.marked else ""
    listed = ", ".join(f"t.{column.name}" for column in below.columns) + mark
    first, second = 1000 * shape.first, 1000 * shape.second
    start, end, tables = "", "", ""
    match shape.kind:
        case "TUMBLE":
            start = f"({time} // {first} * {first})"
            end = f"({start} + {first})"
        case "HOP":
            tables = f", range({-(-second // first)}) AS h (i)"
            start = f"({time} // {first} * {first} - h.i * {first})"
            end = f"({start} + {second})"
        case "CUMULATE":
            tables = f", range({second // first}) AS h (i)"
            start = f"({time} // {second} * {second})"
            end = f"({start} + (h.i + 1) * {first})"
    names = ("window_start", "window_end", "window_time")
    if shape.kind == "SESSION":
        duck = _sessions(below, listed, time, first)
    elif below.sql.duck is None:
        duck = None
    else:
        duck = (
            f"(SELECT {listed}, make_timestamp_ms({start}) AS window_start, make_timestamp_ms({end}) AS window_end, "
            f"make_timestamp_ms({end} - 1) AS window_time FROM {below.sql.duck} AS t{tables} "
            f"WHERE {start} <= {time} AND {time} < {end})"
        )
    why = below.sql.why or ("late rows in sessions" if below.late else "")
    sql = Sql(flink, duck, why, "late rows in windows" if below.late else below.sql.streaming)
    text = f"{shape.kind} {shape.first} {shape.second}"
    columns = (*below.columns, *(Column(name, Type.TIMESTAMP, rowtime=name == names[2]) for name in names))
    window = Window(text, names[0], names[1], shape.kind == "SESSION")
    return replace(below, sql=sql, columns=columns, window=window, bare=False, rows=4 * below.rows, time=None)


def _function(below: Relation, shape: Shape) -> str:
    sizes = {"TUMBLE": ("SIZE",), "HOP": ("SLIDE", "SIZE"), "CUMULATE": ("STEP", "SIZE"), "SESSION": ("GAP",)}
    numbers = [number for number in (shape.first, shape.second) if number]
    table = below.sql.flink
    if below.bare:
        listed = ", ".join(f"INTERVAL '{number}' SECOND" for number in numbers)
        return f"TABLE({shape.kind}(TABLE {table}, DESCRIPTOR({below.time}), {listed}))"
    named = zip(sizes[shape.kind], numbers, strict=True)
    listed = ", ".join(f"{name} => INTERVAL '{number}' SECOND" for name, number in named)
    return f"TABLE({shape.kind}(DATA => {table}, TIMECOL => DESCRIPTOR({below.time}), {listed}))"


def _sessions(below: Relation, listed: str, time: str, gap: int) -> str | None:
    """Rows nearer than the gap, or just as far, are of one session."""
    if below.sql.duck is None or below.late:
        return None
    before = f"LAG({time}) OVER (ORDER BY {time})"
    cut = f"(SELECT {listed}, {time} AS ms_, CASE WHEN {time} - {before} <= {gap} THEN 0 ELSE 1 END AS cut_ "
    cut += f"FROM {below.sql.duck} AS t)"
    number = f"(SELECT *, SUM(cut_) OVER (ORDER BY ms_) AS number_ FROM {cut} AS t)"
    start, end = "MIN(ms_) OVER (PARTITION BY number_)", f"(MAX(ms_) OVER (PARTITION BY number_) + {gap})"
    return (
        f"(SELECT *, make_timestamp_ms({start}) AS window_start, make_timestamp_ms({end}) AS window_end, "
        f"make_timestamp_ms({end} - 1) AS window_time FROM {number} AS t)"
    )


def _in_time(below: Relation, alias: str) -> str:
    """The twin's condition that a row came before the watermark closed its window."""
    return f"epoch_ms({alias}.window_end) - 1 > {alias}.wm_" if below.marked else "TRUE"


def _source(maker: Maker, depth: int) -> Relation:
    """Rows with a time: of a table, or of windows below."""
    if depth > 1 and maker.draws.often(15):
        return _again(maker, depth)
    if maker.draws.often(8):
        # Rows that change: which of them are late hangs on more than the twin can say.
        changing = maker.table(lambda table: not table.grows and table.time is not None)
        if changing.time is not None and not changing.grows:
            why = "windows over changes"
            return replace(changing, sql=Sql(changing.sql.flink, None, why, why))
    return maker.timed()


def _again(maker: Maker, depth: int) -> Relation:
    """Answers of windows, whose time is that of their windows."""
    made = aggregate(maker, depth - 1, cascaded=True)
    return made if made.time is not None else maker.timed()


def aggregate(maker: Maker, depth: int, cascaded: bool = False) -> Relation:
    """Aggregates by window and, mostly, keys."""
    below = _source(maker, depth)
    assert below.time is not None
    shape = maker.draws.pick(SHAPES if not cascaded else SHAPES[:3])
    rows = windowed(maker, below, shape)
    maker.use("window aggregate")
    names = [maker.draws.name("k") for _ in range(3)]
    plain = [column for column in below.columns if column.type in PLAIN and column.name != below.time]
    keys = [reference("t", column) for column in maker.draws.some(plain, 0, 2)] if plain else []
    items = [item(same(f"t.window_{part}"), name) for part, name in zip(("start", "end"), names, strict=False)]
    columns = [Column(name, Type.TIMESTAMP) for name in names[:2]]
    grouping = ["t.window_start", "t.window_end"]
    if cascaded or maker.draws.often(30):
        items.append(item(same("t.window_time"), names[2]))
        columns.append(Column(names[2], Type.TIMESTAMP, rowtime=True))
        grouping.append("t.window_time")
    if maker.draws.often(30) and not cascaded:
        items, columns = items[:1], columns[:1]
    for key in keys:
        name = maker.draws.name("k")
        items.append(item(key.sql, name))
        columns.append(Column(name, key.type, key.bound))
    call_items, call_columns = calls(maker, replace(rows, ordered=False))
    grouped = joined(", ", [*map(same, grouping), *(key.sql for key in keys)])
    listed = joined(", ", [*items, *call_items])
    sql = apart(
        "(SELECT {0} FROM {1} AS t GROUP BY {2})",
        f"(SELECT {{0}} FROM {{1}} AS t WHERE {_in_time(below, 't')} GROUP BY {{2}})",
        listed,
        rows.sql,
        grouped,
    )
    time = names[2] if any(column.name == names[2] for column in columns) else None
    made = replace(below.timeless(), sql=sql, columns=(*columns, *call_columns), rows=rows.rows, grows=below.grows)
    return replace(made, grows=True, time=time)


def grouped(maker: Maker, depth: int) -> Relation:
    """GROUP BY of windows as functions, the form before table functions."""
    below = maker.timed()
    assert below.time is not None
    shape = maker.draws.pick([shape for shape in SHAPES if shape.kind != "CUMULATE"])
    maker.use(f"GROUP BY {shape.kind}")
    rows = windowed(maker, below, shape)
    numbers = [shape.first, shape.second] if shape.second else [shape.first]
    arguments = ", ".join([f"t.{below.time}", *(f"INTERVAL '{number}' SECOND" for number in numbers)])
    plain = [column for column in below.columns if column.type in PLAIN and column.name != below.time]
    # Sessions are by key: the twin's have none.
    keys = maker.draws.some(plain, 0, 2) if plain and shape.kind != "SESSION" else []
    names = [maker.draws.name("k") for _ in range(2 + len(keys))]
    items = [
        apart(f"{shape.kind}_START({arguments}) AS {names[0]}", f"t.window_start AS {names[0]}"),
        apart(f"{shape.kind}_END({arguments}) AS {names[1]}", f"t.window_end AS {names[1]}"),
    ]
    items += [item(same(f"t.{key.name}"), name) for key, name in zip(keys, names[2:], strict=True)]
    columns = [Column(name, Type.TIMESTAMP) for name in names[:2]]
    columns += [replace(key, name=name) for key, name in zip(keys, names[2:], strict=True)]
    call_items, call_columns = calls(maker, replace(below, ordered=False, rows=rows.rows))
    listed = joined(", ", [*items, *call_items])
    flink_keys = ", ".join([f"{shape.kind}({arguments})", *(f"t.{key.name}" for key in keys)])
    duck_keys = ", ".join(["t.window_start", "t.window_end", *(f"t.{key.name}" for key in keys)])
    sql = apart(
        f"(SELECT {{0}} FROM {{1}} AS t GROUP BY {flink_keys})",
        f"(SELECT {{0}} FROM {{1}} AS t WHERE {_in_time(below, 't')} GROUP BY {duck_keys})",
        listed,
        replace(rows.sql, flink=below.sql.flink),
    )
    return replace(below.timeless(), sql=sql, columns=(*columns, *call_columns), rows=rows.rows)


def rows(maker: Maker, depth: int) -> Relation:
    """Rows with their windows, as they are."""
    below = maker.timed(lambda table: not table.late)
    made = windowed(maker, below, maker.draws.pick(ANY_SHAPES))
    return replace(made.timeless(), rows=made.rows)


def rank(maker: Maker, depth: int) -> Relation:
    """The first rows of each window: Top-N, or one row by its time."""
    below = maker.timed()
    assert below.time is not None
    made = windowed(maker, below, maker.draws.pick(ANY_SHAPES))
    columns = [column for column in below.columns if column.type in PLAIN]
    names = {column.name: maker.draws.name("x") for column in columns}
    partition = maker.draws.some([column for column in columns if column.name != below.time], 0, 2)
    number = maker.draws.name("n")
    one = below.unique_time and maker.draws.often(40)
    if one:
        maker.use("window deduplicate")
        by, most = same(f"t.{below.time}{maker.draws.pick(['', ' DESC'])}"), 1
    else:
        maker.use("window Top-N")
        by, most = order(maker, "t", columns), 1 + maker.draws.below(3)
    keys = ", ".join(["t.window_start", "t.window_end", *(f"t.{column.name}" for column in partition)])
    end = maker.draws.name("k")
    items = [item(same("t.window_end"), end)]
    items += [item(same(f"t.{column.name}"), names[column.name]) for column in columns]
    sql = apart(
        f"(SELECT {{0}}, ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY {{1}}) AS {number} FROM {{2}} AS t)",
        f"(SELECT {{0}}, ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY {{1}}) AS {number} FROM {{2}} AS t "
        f"WHERE {_in_time(below, 't')})",
        joined(", ", items),
        by,
        made.sql,
    )
    kept = [Column(end, Type.TIMESTAMP), *(replace(column, name=names[column.name]) for column in columns)]
    if maker.draws.often(40):
        kept.append(Column(number, Type.BIGINT, most))
    listed = ", ".join(column.name for column in kept)
    sql = both(f"(SELECT {listed} FROM {{0}} AS t WHERE {number} <= {most})", sql)
    return replace(made.timeless(), sql=sql, columns=tuple(kept))


def join(maker: Maker, depth: int) -> Relation:
    """Rows of equal windows joined: which of them are late hangs on both inputs, so none are."""
    left, right = (maker.timed(lambda table: not table.late) for _ in range(2))
    if not maker.fits(left, right):
        return left
    shape = maker.draws.pick(ANY_SHAPES)
    sides = windowed(maker, left, shape), windowed(maker, right, shape)
    equal = equality(maker, left, right)
    kind = maker.draws.pick([*KINDS, "SEMI", "ANTI"])
    maker.use(f"window {kind}")
    windows = "l.window_start = r.window_start AND l.window_end = r.window_end"
    on = same(windows) if equal is None else both("{0} AND {1}", windows, equal)
    tables = [both("(SELECT * FROM {0})", side.sql) for side in sides]
    if kind in ("SEMI", "ANTI"):
        word = "EXISTS" if kind == "SEMI" else "NOT EXISTS"
        items, columns = chosen(maker, [("l", sides[0])])
        rest = both(f"FROM {{0}} AS l WHERE {word} (SELECT * FROM {{1}} AS r WHERE {{2}})", *tables, on)
    else:
        items, columns = chosen(maker, [("l", sides[0]), ("r", sides[1])])
        rest = both(f"FROM {{0}} AS l {kind} {{1}} AS r ON {{2}}", *tables, on)
    count = 4 * left.rows * right.rows
    return replace(left.timeless(), sql=select(items, rest), columns=tuple(columns), rows=count)
