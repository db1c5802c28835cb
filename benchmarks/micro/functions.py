"""Every function of the registry over 1 M rows: ``python benchmarks/micro/functions.py [NAME ...]``.

Prints rows a second of one thread's CPU time. Columns hold 100,000 distinct values each, so that what is
computed once a distinct value shows its price; one row in 50 is NULL. Literals stand where people write literals
(patterns, units, lengths). ``--below RATE`` lists only functions slower than so many rows a second. A table at the end
shows each module of functions against Arrow's ``utf8_upper`` over the same text column.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flowsql_core.errors import FlowSqlError
from flowsql_core.eval.compile import compile_projections
from flowsql_core.eval.context import EvalContext
from flowsql_core.expr import Expr, InputRef, Literal
from flowsql_core.functions.registry import FunctionDef, definitions, resolve_call
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow

ROWS = 1_000_000
DISTINCT = 100_000
SLOW_BY_NATURE = ("JSON", "REGEXP", "PRINTF", "SIMILAR", "VARIANT", "PARSE")


def _spread(values: pa.Array, rng: np.random.Generator) -> pa.Array:
    """ROWS rows of the values, one in 50 NULL."""
    index = rng.integers(0, len(values), ROWS)
    return pc.take(values, pa.array(index, mask=rng.random(ROWS) < 0.02))


def columns(rng: np.random.Generator) -> list[tuple[t.LogicalType, pa.Array]]:
    """One column for each type that functions take."""
    n = DISTINCT
    ids = rng.permutation(n)
    words = pa.array([f"user {i} of shop {i % 97}" for i in ids.tolist()], pa.string())
    moments = pa.array(1_577_836_800_000 + ids.astype(np.int64) * 61_003, pa.int64())
    fours = pa.array(np.arange(n + 1) * 4, pa.int32())
    lists = pa.ListArray.from_arrays(fours, pa.array(rng.integers(0, 1000, 4 * n), pa.int32()))
    prices = pc.cast(pa.array(ids, pa.int64()), pa.decimal128(21, 2))
    keys = pa.array([f"k{i}" for i in range(4)] * n)
    maps = pa.MapArray.from_arrays(fours, keys, lists.values)
    made: list[tuple[t.LogicalType, pa.Array]] = [
        (t.STRING, words),
        (t.INT, pa.array(ids % 50_000 + 1, pa.int32())),
        (t.BIGINT, pa.array(ids.astype(np.int64) * 7919)),
        (t.DOUBLE, pa.array(ids / 7.0)),
        (t.DecimalType(precision=10, scale=2), prices.cast(pa.decimal128(10, 2))),
        (t.BOOLEAN, pa.array(ids % 2 == 0)),
        (t.TimestampType(precision=3), moments.cast(pa.timestamp("ms"))),
        (t.TimestampLtzType(precision=3), moments.cast(pa.timestamp("ms", "UTC"))),
        (t.DATE, pa.array((ids % 20_000).astype(np.int32)).cast(pa.date32())),
        (t.TimeType(precision=0), pa.array((ids % 86_400).astype(np.int32) * 1000).cast(pa.time32("ms"))),
        (t.BYTES, words.cast(pa.binary())),
        (t.ArrayType(element=t.INT), lists),
        (t.MapType(key=t.STRING, value=t.INT), maps),
        (t.DayTimeIntervalType(resolution="SECOND", fractional_precision=3), pa.array(ids.astype(np.int64))),
        (t.YearMonthIntervalType(resolution="MONTH"), pa.array((ids % 1000).astype(np.int32))),
        (t.RowType(fields=(t.Field("a", t.INT), t.Field("b", t.STRING))),
         pa.StructArray.from_arrays([pa.array(ids, pa.int32()), words], ["a", "b"])),
    ]  # fmt: skip
    from flowsql_core.eval.bitmaps import sets_of_lists, write_sets

    made.append((t.BITMAP, write_sets(sets_of_lists(lists))))
    return [(type_, _spread(values.cast(to_arrow(type_)), rng)) for type_, values in made]


#: What a family's argument is when it is not written otherwise: the first type that fits.
_BY_FAMILY: dict[str, t.LogicalType] = {
    "STRING": t.STRING, "INTEGER": t.INT, "INT": t.INT, "BIGINT": t.BIGINT, "NUMERIC": t.DOUBLE, "DOUBLE": t.DOUBLE,
    "EXACT": t.BIGINT, "BOOLEAN": t.BOOLEAN, "ANY": t.INT, "T": t.INT, "COMPARABLE": t.BIGINT, "BINARY": t.BYTES,
    "DATE": t.DATE, "TIME": t.TimeType(precision=0), "TIMESTAMP": t.TimestampType(precision=3),
    "TIMESTAMP_NTZ": t.TimestampType(precision=3), "DATETIME": t.TimestampType(precision=3),
    "ARRAY": t.ArrayType(element=t.INT), "MAP": t.MapType(key=t.STRING, value=t.INT), "BITMAP": t.BITMAP,
    "DAY_TIME": t.DayTimeIntervalType(resolution="SECOND", fractional_precision=3),
    "INTERVAL": t.DayTimeIntervalType(resolution="SECOND", fractional_precision=3),
    "ROW": t.RowType(fields=(t.Field("a", t.INT), t.Field("b", t.STRING))),
}  # fmt: skip


#: Functions whose signature takes anything but that want collections.
COLLECTIONS: dict[str, t.LogicalType] = {
    **dict.fromkeys(("ARRAY_CONCAT", "ARRAY_UNION", "ARRAY_INTERSECT", "ARRAY_EXCEPT"), t.ArrayType(element=t.INT)),
    "MAP_UNION": t.MapType(key=t.STRING, value=t.INT),
}


def _text(value: str) -> Literal:
    return Literal(value, t.CharType(length=len(value), nullable=False))


def _int(value: int) -> Literal:
    return Literal(value, t.IntType(nullable=False))


#: Arguments behind the first as people write them, and text columns that a function needs of a certain shape.
WRITTEN: dict[str, tuple[Expr, ...]] = {
    "LPAD": (_int(30), _text("*")), "RPAD": (_int(30), _text("*")), "REPEAT": (_int(2),), "SPLIT": (_text(" "),),
    "SPLIT_INDEX": (_text(" "), _int(1)), "SUBSTRING": (_int(3), _int(5)), "LEFT": (_int(5),), "RIGHT": (_int(5),),
    "LIKE": (_text("%shop 9%"),), "SIMILAR TO": (_text("user (1|2)%"),), "REGEXP": (_text("shop [0-9]+"),),
    "REGEXP_EXTRACT": (_text("shop ([0-9]+)"), _int(1)), "REGEXP_REPLACE": (_text("[0-9]+"), _text("#")),
    "REGEXP_COUNT": (_text("[0-9]"),), "REGEXP_INSTR": (_text("[0-9]"),), "REGEXP_SUBSTR": (_text("[0-9]+"),),
    "REGEXP_EXTRACT_ALL": (_text("([0-9]+)"),), "REPLACE": (_text("user"), _text("guest")), "TRIM": (),
    "BTRIM": (_text("u "),), "LTRIM": (_text("u "),), "RTRIM": (_text("0 "),),
    "TRANSLATE": (_text("abc"), _text("xyz")), "INSTR": (_text("of"),), "STARTSWITH": (_text("user 1"),),
    "ENDSWITH": (_text("9"),), "OVERLAY": (_text("XX"), _int(3)), "ENCODE": (_text("UTF-16"),), "CHR": (),
    "DECODE": (_text("UTF-8"),), "SHA2": (_int(256),), "PARSE_URL": (_text("HOST"),), "ROUND": (_int(1),),
    "TRUNCATE": (_int(1),), "DATE_FORMAT": (_text("yyyy-MM-dd HH:mm"),), "STR_TO_MAP": (), "HASH_CODE": (),
    "TO_TIMESTAMP_LTZ": (), "FROM_UNIXTIME": (), "CONCAT_WS": (_text("-"), _text("x")), "LOG": (),
    "CONVERT_TZ": (_text("UTC"), _text("America/Los_Angeles")), "TYPEOF": (), "ARRAY_JOIN": (_text(","),),
    "ARRAY_SLICE": (_int(1), _int(2)), "ARRAY_SORT": (), "MOD": (_int(7),), "%": (_int(7),),
    "/": (Literal(7.0, t.DoubleType(nullable=False)),),
    "JSON_VALUE": (_text("$.a"),), "JSON_QUERY": (_text("$.a"),), "JSON_EXISTS": (_text("$.a"),), "RAND": (),
    "ITEM": (_int(1),), "PARSE_JSON": (), "TRY_PARSE_JSON": (),
}  # fmt: skip
#: Text columns of a certain shape, as a function of a number.
SHAPED: dict[str, Callable[[int], str]] = {
    "PARSE_URL": lambda i: f"https://shop{i % 97}.example/item/{i}?q={i % 7}#top",
    "INET_ATON": lambda i: f"10.{i % 256}.{i // 256 % 256}.7",
    "UNHEX": lambda i: f"{i:08x}",
    "FROM_BASE64": lambda i: f"{i:08d}",
    "URL_DECODE": lambda i: f"a+b%20c{i}",
    "STR_TO_MAP": lambda i: f"a={i},b=2",
    "CONVERT_TZ": lambda i: f"2020-01-{i % 28 + 1:02d} {i % 24:02d}:{i // 24 % 60:02d}:{i // 1440 % 60:02d}",
    "JSON": lambda i: f'{{"a": {i}, "b": "x"}}',
}
for _name in ("TO_TIMESTAMP", "UNIX_TIMESTAMP", "TO_TIMESTAMP_LTZ", "DATE_FORMAT"):
    SHAPED[_name] = SHAPED["CONVERT_TZ"]
SHAPED["TO_DATE"] = lambda i: f"20{i % 80 + 10}-{i % 12 + 1:02d}-{i % 28 + 1:02d}"
OPTIONS: dict[str, tuple[tuple[str, Any], ...]] = {
    "EXTRACT": (("unit", "DAY"),), "TIMESTAMPADD": (("unit", "DAY"),), "TIMESTAMPDIFF": (("unit", "DAY"),),
    "FIELD": (("index", 0), ("name", "a")), "CURRENT_DATABASE": (("database", "d"),),
}  # fmt: skip
#: Need a stream or another statement around them.
NOT_ALONE = ("CURRENT_WATERMARK", "SOURCE_WATERMARK", "PROCTIME", "OVERLAPS")


def _call(definition: FunctionDef, index: dict[str, int]) -> Expr | None:
    """A call whose arguments are columns, written ones behind the first where people write literals."""
    name, signature = definition.name, definition.signature
    written = WRITTEN.get(name)
    families = [signature.param(place) for place in range(max(signature.required, 1 if signature.params else 0))]
    if signature.variadic and len(families) < 2 and signature.params:
        families.append(signature.params[-1])
    args: list[Expr] = []
    for place, family in enumerate(families):
        if place and written is not None:
            break
        type_ = COLLECTIONS.get(name, _BY_FAMILY.get(family))
        if type_ is None:
            return None
        args.append(InputRef(index[str(type_)], type_))
    if written is not None and signature.accepts_count(len(args) + len(written)):
        args += written
    shaped = next((shape for shape in (name, "JSON") if shape in SHAPED and (shape == name or shape in name)), None)
    if shaped is not None and args and isinstance(args[0].type, t.CharacterType):
        args[0] = InputRef(index[shaped], t.STRING)
    if name == "PRINTF":
        args = [_text("%d of %s"), InputRef(index["INT"], t.INT), InputRef(index["STRING"], t.STRING)]
    options = OPTIONS.get(name, ())
    if name in ("FLOOR", "CEIL") and signature.params == ("DATETIME",):
        options = (("unit", "MONTH"),)
    try:
        return resolve_call(name, tuple(args), options)
    except (FlowSqlError, KeyError, TypeError):
        return None


def rate(expr: Expr, data: list[pa.Array]) -> float:
    """Rows a second of CPU time, after one run over few rows."""
    project = compile_projections([expr], EvalContext())
    project([column.slice(0, 5000) for column in data], 5000)
    start = time.thread_time()
    project(data, ROWS)
    return ROWS / (time.thread_time() - start)


def _report(speed: float, shown: str, below: float) -> None:
    if speed < below:
        limit = 0.5e6 if any(word in shown for word in SLOW_BY_NATURE) else 2e6
        print(f"{speed / 1e6:10.2f} M rows/s  {shown}{'  below its target' if speed < limit else ''}", flush=True)


def peer_rate(words: pa.Array) -> float:
    """Rows a second of CPU time of Arrow's ``utf8_upper`` over the text column; the best of five runs."""
    best = float("inf")
    for _ in range(5):
        start = time.thread_time()
        pc.utf8_upper(words)
        best = min(best, time.thread_time() - start)
    return len(words) / best


def groups(rows: list[tuple[float, str, str]], peer: float) -> None:
    """Print for each module of functions how many there are, the slowest and the middle one as ratios to the peer."""
    by_module: dict[str, list[tuple[float, str]]] = {}
    for speed, shown, module in rows:
        by_module.setdefault(module, []).append((speed, shown))
    print(f"\nutf8_upper of Arrow, the peer: {peer / 1e6:.1f} M rows/s\n")
    print("| group | functions | middle | slowest |\n|---|---|---|---|")
    for module, found in sorted(by_module.items()):
        found.sort()
        middle = found[len(found) // 2][0]
        print(f"| {module} | {len(found)} | {middle / peer:.2f} | {found[0][0] / peer:.3f} {found[0][1]} |")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="functions; all if none is given")
    parser.add_argument("--below", type=float, default=float("inf"), help="print only what is slower")
    given = parser.parse_args()
    rng = np.random.default_rng(7)
    typed = columns(rng)
    index = {str(type_): place for place, (type_, _) in enumerate(typed)}
    data = [column for _, column in typed]
    for name, shape in SHAPED.items():
        index[name] = len(data)
        data.append(_spread(pa.array([shape(i) for i in range(DISTINCT)], pa.string()), rng))
    rows: list[tuple[float, str, str]] = []
    not_called: list[str] = []
    for definition in definitions():
        if (given.names and definition.name not in given.names) or definition.name in NOT_ALONE:
            continue
        shown = f"{definition.name}({', '.join(definition.signature.params)})"
        expr = _call(definition, index)
        if expr is None:
            not_called.append(shown)
            continue
        try:
            rows.append((rate(expr, data), shown, definition.module))
            _report(rows[-1][0], shown, given.below)
        except FlowSqlError as error:
            not_called.append(f"{shown}: {error.message}")
    print(f"{len(rows)} timed; without a call of their own here: {', '.join(not_called) or 'none'}")
    if not given.names:
        groups(rows, peer_rate(data[0]))


if __name__ == "__main__":
    main()
