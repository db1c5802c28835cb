"""Every function of the registry over 1 M rows: ``python benchmarks/micro/functions.py [NAME ...]``.

Prints rows a second of one thread's CPU time for each signature. The rows of a column draw from ``--distinct`` values,
a million if nothing is said, so that little is gained by computing a value once; one row in 50 is NULL. Arguments are
columns, two of a type where there are two, and literals where people write literals (patterns, units, lengths).
``--below RATE`` lists only what is slower than so many rows a second. A table at the end shows each module of functions
against Arrow's ``utf8_upper`` over the same text column.
"""

from __future__ import annotations

import argparse
import base64
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flowsql_compute.eval.compile import compile_projections
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.nested.bitmaps import sets_of_lists, write_sets
from flowsql_compute.functions.registry import FunctionDef, definitions, resolve_call
from flowsql_core.errors import FlowSqlError
from flowsql_core.expr import Expr, InputRef, Literal
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow

ROWS = 1_000_000
#: JSON, regular expressions and formatted text; all others must reach the higher rate.
SLOW_BY_NATURE = ("JSON", "REGEXP", "SIMILAR", "PRINTF", "VARIANT")
SLOW_RATE, RATE = 0.5e6, 2e6

_ITEM = t.RowType(fields=(t.Field("a", t.INT), t.Field("b", t.STRING)))
_OBJECT = t.StructuredType(class_name="shop.Item", fields=_ITEM.fields)

Ids = np.ndarray[Any, np.dtype[np.int64]]

#: Text columns: how value i is written.
TEXTS: dict[str, Callable[[int], str]] = {
    "text": lambda i: f"user {i} of shop {i % 97}",
    "other text": lambda i: f"item {i * 31 % 1_000_003} in a basket",
    "start": lambda i: f"user {i % 50_000}",
    "end": lambda i: f"{i % 50_000} of shop {i % 97}",
    "mark": lambda i: f"r {i % 50_000}",
    "url": lambda i: f"https://shop{i % 97}.example/item/{i}?q={i % 7}#top",
    "address": lambda i: f"10.{i % 256}.{i // 256 % 256}.{i // 65_536 % 256}",
    "hex": lambda i: f"{i:08x}",
    "base64": lambda i: base64.b64encode(f"user {i} of shop {i % 97}".encode()).decode(),
    "escaped": lambda i: f"a+b%20c{i}",
    "pairs": lambda i: f"a={i},b=2",
    "moment": lambda i: f"{i % 30 + 2010}-{i % 12 + 1:02}-{i % 28 + 1:02} {i % 24:02}:{i // 9 % 60:02}:{i % 59:02}",
    "date": lambda i: f"{i % 1000 + 1600}-{i // 1000 % 12 + 1:02}-{i // 12_000 % 28 + 1:02}",
    "json": lambda i: f'{{"a": {i}, "b": "x", "c": [{i % 97}, 2]}}',
    "quoted": lambda i: f'"user {i}\\nof shop {i % 97}"',
    "padded": lambda i: f"  {i} of shop {i % 97}  ",
}  # fmt: skip


class Data:
    """Columns by name, made when they are asked for: ``rows`` values each that draw from ``distinct`` ones."""

    def __init__(self, rows: int, distinct: int) -> None:
        self._rows, self._distinct = rows, distinct
        self._index: dict[str, int] = {}
        self._types: list[t.LogicalType] = []
        self.arrays: list[pa.Array] = []

    def __getitem__(self, name: str) -> InputRef:
        """A column as an expression: of ``int``, ``int 2`` is another one and ``int known`` one without NULLs."""
        if name not in self._index:
            kind = name.removesuffix(" 2").removesuffix(" known")
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            type_, values = self._values(kind, np.random.default_rng(7))
            missing = 0.0 if name.endswith(" known") else 0.02
            index = rng.integers(0, len(values), self._rows)
            self._index[name] = len(self.arrays)
            self._types.append(type_.as_nullable(missing > 0))
            self.arrays.append(pc.take(values, pa.array(index, mask=rng.random(self._rows) < missing)))
        return InputRef(self._index[name], self._types[self._index[name]])

    def _values(self, kind: str, rng: np.random.Generator) -> tuple[t.LogicalType, pa.Array]:
        ids = rng.permutation(self._distinct).astype(np.int64)
        if kind in TEXTS:
            return t.STRING, pa.array(map(TEXTS[kind], ids.tolist()), pa.string())
        if kind.endswith(" bytes"):
            column = self[f"{kind.removesuffix(' bytes')} known"]
            return t.BYTES, self.arrays[column.index].cast(pa.binary())
        if kind == "variant":
            parsed = resolve_call("PARSE_JSON", (self["json known"],))
            return t.VARIANT, compile_projections([parsed], EvalContext())(self.arrays, self._rows)[0]
        type_, values = _simple(kind, ids) if kind in _SIMPLE else self._nested(kind, ids, rng)
        return type_, values.cast(to_arrow(type_))

    def _nested(self, kind: str, ids: Ids, rng: np.random.Generator) -> tuple[t.LogicalType, pa.Array]:
        n = len(ids)
        fours, numbers = (
            pa.array(np.arange(n + 1) * 4, pa.int32()),
            pa.array(rng.integers(0, 1_000_000, 4 * n), pa.int32()),
        )
        lists = pa.ListArray.from_arrays(fours, numbers)
        words = self.arrays[self["text known"].index]
        match kind:
            case "array":
                return t.ArrayType(element=t.INT), lists
            case "texts":
                picked = pc.take(words, pa.array(rng.integers(0, self._rows, 4 * n)))
                return t.ArrayType(element=t.STRING), pa.ListArray.from_arrays(fours, picked)
            case "single":
                return t.ArrayType(element=t.INT), pa.ListArray.from_arrays(pa.array(np.arange(n + 1), pa.int32()), ids)
            case "map" | "multiset":
                cycle = np.concatenate([np.arange(4), np.arange(2, 6), np.array([0, 2, 4, 5])])
                keys = pc.take(pa.array([f"k{i}" for i in range(6)]), pa.array(np.resize(cycle, 4 * n)))
                type_ = t.MapType(key=t.STRING, value=t.INT) if kind == "map" else t.MultisetType(element=t.STRING)
                return type_, pa.MapArray.from_arrays(fours, keys, numbers)
            case "row" | "object":
                names = pc.take(words, pa.array(np.resize(np.arange(self._rows), n)))
                parts = pa.StructArray.from_arrays([pa.array(ids, pa.int32()), names], ["a", "b"])
                return (_ITEM if kind == "row" else _OBJECT), parts
            case "bitmap":
                return t.BITMAP, write_sets(sets_of_lists(lists))
        raise KeyError(kind)


_SIMPLE: dict[str, tuple[t.LogicalType, Callable[[Ids], Any]]] = {
    "int": (t.INT, lambda ids: ids + 1),
    "small": (t.INT, lambda ids: ids % 12 + 1),
    "bigint": (t.BIGINT, lambda ids: ids * 7919),
    "double": (t.DOUBLE, lambda ids: ids / 7.0),
    "boolean": (t.BOOLEAN, lambda ids: ids % 2 == 0),
    "timestamp": (t.TimestampType(precision=3), lambda ids: 1_577_836_800_000 + ids * 61_003),
    "day": (t.DATE, lambda ids: (ids % 1_000_000).astype(np.int32)),
    "time": (t.TimeType(precision=0), lambda ids: (ids % 86_400).astype(np.int32) * 1000),
    "seconds": (t.DayTimeIntervalType(resolution="SECOND", fractional_precision=3), lambda ids: ids),
    "months": (t.YearMonthIntervalType(resolution="MONTH"), lambda ids: ids % 1200),
}


def _simple(kind: str, ids: Ids) -> tuple[t.LogicalType, pa.Array]:
    type_, made = _SIMPLE[kind]
    return type_, pa.array(made(ids))


#: The column that a family takes when nothing else is written below.
_BY_FAMILY = {
    "STRING": "text", "INTEGER": "int", "INT": "int", "BIGINT": "int", "NUMERIC": "double", "DOUBLE": "double",
    "EXACT": "bigint", "BOOLEAN": "boolean", "ANY": "int", "T": "int", "COMPARABLE": "bigint", "BINARY": "text bytes",
    "DATE": "day", "TIME": "time", "TIMESTAMP": "timestamp", "TIMESTAMP_NTZ": "timestamp", "DATETIME": "timestamp",
    "ARRAY": "array", "MAP": "map", "BITMAP": "bitmap", "DAY_TIME": "seconds", "INTERVAL": "seconds", "ROW": "row",
    "VARIANT": "variant", "MULTISET": "multiset",
}  # fmt: skip


def _text(value: str) -> Literal:
    return Literal(value, t.CharType(length=len(value), nullable=False))


def _int(value: int) -> Literal:
    return Literal(value, t.IntType(nullable=False))


_DAY_PATTERN, _PATTERN = _text("yyyy-MM-dd"), _text("yyyy-MM-dd HH:mm:ss")
#: Arguments by a function's name or by one signature: names of columns, or literals.
CALLS: dict[str, tuple[str | Expr, ...]] = {
    "AND": ("boolean", "boolean 2"), "OR": ("boolean", "boolean 2"), "IF": ("boolean", "int", "int 2"),
    "LPAD": ("text", _int(30), _text("*")), "RPAD": ("text", _int(30), _text("*")), "REPEAT": ("text", _int(2)),
    "SPLIT": ("text", _text(" ")), "SPLIT_INDEX(STRING, STRING, INTEGER)": ("text", _text(" "), _int(1)),
    "SPLIT_INDEX(STRING, INTEGER, INTEGER)": ("text", _int(32), _int(1)),
    "SUBSTRING(STRING, INTEGER)": ("text", "small"), "SUBSTRING(STRING, INTEGER, INTEGER)": ("text", "small", _int(5)),
    "LEFT": ("text", "small"), "RIGHT": ("text", "small"), "LIKE(STRING, STRING)": ("text", _text("%shop 9%")),
    "LIKE(STRING, STRING, STRING)": ("text", _text("%shop 9%"), _text("!")),
    "SIMILAR TO(STRING, STRING)": ("text", _text("user (1|2)%")),
    "SIMILAR TO(STRING, STRING, STRING)": ("text", _text("user (1|2)%"), _text("!")),
    "REGEXP": ("text", _text("shop [0-9]+")), "REGEXP_EXTRACT": ("text", _text("shop ([0-9]+)"), _int(1)),
    "REGEXP_REPLACE": ("text", _text("[0-9]+"), _text("#")), "REGEXP_COUNT": ("text", _text("[0-9]")),
    "REGEXP_INSTR": ("text", _text("[0-9]")), "REGEXP_SUBSTR": ("text", _text("[0-9]+")),
    "REGEXP_EXTRACT_ALL": ("text", _text("([0-9]+)")), "REPLACE": ("text", _text("user"), _text("guest")),
    **{f"{name}(STRING)": ("padded",) for name in ("TRIM", "LTRIM", "RTRIM", "BTRIM")},
    **{f"{name}(STRING, STRING)": ("text", _text("u0 ")) for name in ("TRIM", "LTRIM", "RTRIM", "BTRIM")},
    **{f"{name}(INTERVAL)": ("months",) for name in ("YEAR", "QUARTER", "MONTH")},
    "TRANSLATE": ("text", _text("abc"), _text("xyz")), "POSITION": ("mark", "text"),
    "INSTR": ("text", "mark", "small", _int(1)),
    "STARTSWITH(STRING, STRING)": ("text", "start"), "STARTSWITH(BINARY, BINARY)": ("text bytes", "start bytes"),
    "ENDSWITH(STRING, STRING)": ("text", "end"), "ENDSWITH(BINARY, BINARY)": ("text bytes", "end bytes"),
    "OVERLAY(STRING, STRING, INTEGER)": ("text", "start", "small"),
    "OVERLAY(STRING, STRING, INTEGER, INTEGER)": ("text", "start", "small", _int(2)),
    "ELT(INTEGER, STRING, STRING)": ("small", "text", "other text"),
    "ELT(INTEGER, BINARY, BINARY)": ("small", "text bytes", "start bytes"),
    "||(STRING, STRING)": ("text", "other text"), "CONCAT": ("text", "other text"),
    "CONCAT_WS": (_text("-"), "text", "other text"), "CHR": ("int",), "DECODE": ("text bytes", _text("UTF-8")),
    "ENCODE": ("text", _text("UTF-16")), "SHA2": ("text", _int(256)), "ROUND": ("double", _int(1)),
    "TRUNCATE": ("double", _int(1)), "MOD": ("bigint", _int(7)), "%": ("bigint", _int(7)),
    "/": ("double", "double 2"), "RAND": (), "RAND_INTEGER(INT)": (_int(100),),
    "RAND_INTEGER(INT, INT)": (_int(7), _int(100)), "UNHEX": ("hex",), "FROM_BASE64": ("base64",),
    "URL_DECODE": ("escaped",), "PARSE_URL": ("url", _text("HOST")), "INET_ATON": ("address",),
    "STR_TO_MAP(STRING)": ("pairs",), "STR_TO_MAP(STRING, STRING, STRING)": ("pairs", _text(","), _text("=")),
    "CONVERT_TZ": ("moment", _text("UTC"), _text("America/Los_Angeles")),
    "DATE_FORMAT(TIMESTAMP, STRING)": ("timestamp", _text("yyyy-MM-dd HH:mm")),
    "DATE_FORMAT(STRING, STRING)": ("moment", _text("yyyy-MM-dd HH:mm")),
    "TO_DATE(STRING)": ("date",), "TO_DATE(STRING, STRING)": ("date", _DAY_PATTERN),
    "TO_TIMESTAMP(STRING)": ("moment",), "TO_TIMESTAMP(STRING, STRING)": ("moment", _PATTERN),
    "TO_TIMESTAMP_LTZ(NUMERIC, INTEGER)": ("bigint", _int(3)), "TO_TIMESTAMP_LTZ(STRING)": ("moment",),
    "TO_TIMESTAMP_LTZ(STRING, STRING)": ("moment", _PATTERN),
    "TO_TIMESTAMP_LTZ(STRING, STRING, STRING)": ("moment", _PATTERN, _text("Europe/Berlin")),
    "UNIX_TIMESTAMP(STRING, STRING)": ("moment", _PATTERN), "FROM_UNIXTIME": ("bigint", _PATTERN),
    "ARRAY_CONCAT": ("array", "array 2"), "ARRAY_UNION": ("array", "array 2"), "ARRAY_INTERSECT": ("array", "array 2"),
    "ARRAY_EXCEPT": ("array", "array 2"), "ARRAY_SLICE": ("array", _int(1), _int(2)), "ARRAY_SORT": ("array",),
    "ARRAY_JOIN": ("texts", _text(",")), "MAP_UNION": ("map", "map 2"), "MAP_FROM_ARRAYS": ("texts", "array"),
    "MAP": ("text known", "int", "other text known", "int 2"), "ITEM(ANY, ANY)": ("array", "small"),
    "ITEM(VARIANT, ANY)": ("variant", _text("a")), "ELEMENT": ("single",), "FIELD": ("row",),
    "IS JSON": ("json",), "JSON_VALUE": ("json", _text("$.a")), "JSON_QUERY": ("json", _text("$.c")),
    "JSON_EXISTS": ("json", _text("$.a")), "JSON_STRING": ("text",), "JSON_ARRAY": ("int", "text"),
    "JSON_OBJECT": (_text("a"), "int", _text("b"), "text"), "JSON": ("json",), "JSON_UNQUOTE": ("quoted",),
    "PARSE_JSON": ("json",), "TRY_PARSE_JSON": ("json",), "PRINTF": (_text("%d of %s"), "int", "text"),
    "OBJECT_OF": (_text("shop.Item"), _text("a"), "int", _text("b"), "text"),
    "OBJECT_UPDATE": ("object", _text("a"), "int"), "BITMAP_FROM_BYTES": ("bitmap bytes",),
    "OVERLAPS": ("timestamp", "timestamp 2", "timestamp", "timestamp 2"),
    **{f"IS {word}JSON{kind}": ("json",) for word in ("", "NOT ") for kind in ("", " OBJECT", " ARRAY", " SCALAR")},
}  # fmt: skip
OPTIONS: dict[str, tuple[tuple[str, Any], ...]] = {
    "EXTRACT": (("unit", "DAY"),), "TIMESTAMPADD": (("unit", "DAY"),), "TIMESTAMPDIFF": (("unit", "DAY"),),
    "FIELD": (("index", 0), ("name", "a")), "CURRENT_DATABASE": (("database", "d"),),
    "-(DATETIME, DATETIME)": (("unit", "SECOND"),), "FLOOR(DATETIME)": (("unit", "MONTH"),),
    "CEIL(DATETIME)": (("unit", "MONTH"),),
}  # fmt: skip
#: Need a stream around them.
NOT_ALONE = frozenset({"CURRENT_WATERMARK", "SOURCE_WATERMARK", "PROCTIME"})


def shown(definition: FunctionDef) -> str:
    """``LPAD(STRING, INTEGER, STRING)``."""
    return f"{definition.name}({', '.join(definition.signature.params)})"


def call_of(definition: FunctionDef, data: Data) -> Expr:
    """A call of a signature on columns and literals.

    Raises:
        FlowSqlError: the arguments do not fit.
    """
    name, signature, form = definition.name, definition.signature, shown(definition)
    written = CALLS.get(form, CALLS.get(name))
    if written is None:
        count = max(signature.required, 2 if signature.variadic else len(signature.params[:1]))
        families = [signature.param(place) for place in range(count)] if signature.params else []
        written = tuple(
            _BY_FAMILY[family] + (" 2" if family in families[:place] else "") for place, family in enumerate(families)
        )
    args = tuple(data[argument] if isinstance(argument, str) else argument for argument in written)
    return resolve_call(name, args, OPTIONS.get(form, OPTIONS.get(name, ())))


def rate(expr: Expr, columns: Sequence[pa.Array]) -> float:
    """Rows a second of CPU time, after one run over few rows."""
    project = compile_projections([expr], EvalContext())
    project([column.slice(0, 5000) for column in columns], min(5000, len(columns[0])))
    start = time.thread_time()
    project(columns, len(columns[0]))
    return len(columns[0]) / (time.thread_time() - start)


def _report(speed: float, form: str, below: float) -> None:
    if speed < below:
        limit = SLOW_RATE if any(word in form for word in SLOW_BY_NATURE) else RATE
        print(f"{speed / 1e6:10.2f} M rows/s  {form}{'  below its target' if speed < limit else ''}", flush=True)


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
    for speed, form, module in rows:
        by_module.setdefault(module, []).append((speed, form))
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
    parser.add_argument("--distinct", type=int, default=ROWS, help="different values that columns draw from")
    given = parser.parse_args()
    data = Data(ROWS, given.distinct)
    rows: list[tuple[float, str, str]] = []
    failed: list[str] = []
    for definition in definitions():
        if (given.names and definition.name not in given.names) or definition.name in NOT_ALONE:
            continue
        form = shown(definition)
        try:
            rows.append((rate(call_of(definition, data), data.arrays), form, definition.module))
            _report(rows[-1][0], form, given.below)
        except FlowSqlError as error:
            failed.append(f"{form}: {error.message}")
    print(f"{len(rows)} timed; not timed: {', '.join(failed) or 'none'}")
    if not given.names:
        groups(rows, peer_rate(data.arrays[data["text"].index]))


if __name__ == "__main__":
    main()
