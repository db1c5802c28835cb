"""What random expressions are made of: columns with NULLs and extreme values, literals, and what functions are given
where any text or number would say little (patterns, units, lengths).
"""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

from flowsql_compute.eval.nested.bitmaps import sets_of_lists, write_sets
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.text import parse_type

ROWS = 17

_TEXTS = ["", "a", "ABC abc", "12", "-3.5", " 7 ", "true", "2020-02-29", "2020-02-29 12:34:56.789", "10:11:12",
          '{"a": [1, {"b": null}], "c": "x\\u00e9"}', "http://u@h.org:8080/p/q?x=1&y=%20z#f", "日本𝄞é", "%41+%zz%C3%A9",
          "MTIz", "1.2.3.4", "k=v,k2=v2,k", "a\tb\n", "1e400", "NaN", "Europe/Berlin", "[1, 2, 3]", "yyyy-MM-dd",
          "x" * 70, "_%\\", "a.b|c*", "9223372036854775808"]  # fmt: skip
_MOMENTS = [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
            datetime.datetime(1970, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59, 999000),
            datetime.datetime(2020, 2, 29, 12, 34, 56, 789123),
            datetime.datetime(2021, 3, 14, 2, 30), datetime.datetime(2021, 11, 7, 1, 30), datetime.datetime(1900, 1, 1),
            datetime.datetime(1582, 10, 10), datetime.datetime(2000, 12, 31, 23, 59, 59)]  # fmt: skip
_NEAR = [moment for moment in _MOMENTS if 1700 < moment.year < 2200]
_WHOLE = [0, 1, -1, 2, 3, 7, 10, 100, -5]
_DOUBLES = [0.0, 1.0, -1.0, 0.5, -2.5, 1e-7, 123456.789, 1e15, 2.0**63, -(2.0**63), 1.7976931348623157e308, 5e-324,
            float("nan"), float("inf"), float("-inf")]  # fmt: skip
_FLOATS = [0.0, 1.0, -1.0, 0.5, -2.5, 1024.0, 1e10, 2.0**31, float("nan"), float("inf"), -(2.0**100)]


def _integers(bits: int) -> list[int]:
    edge = 2 ** (bits - 1)
    return [*_WHOLE, edge - 1, -edge, edge // 2]


#: Column types, as SQL writes them, and the values that stand in such a column.
VALUES: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": _integers(8),
    "SMALLINT": _integers(16),
    "INT": _integers(32),
    "BIGINT": _integers(64),
    "FLOAT": _FLOATS,
    "DOUBLE": _DOUBLES,
    "DECIMAL(10, 2)": [Decimal(v) for v in ("0", "1", "-1.5", "0.01", "99999999.99", "-99999999.99", "12.34", "0.05")],
    "DECIMAL(38, 18)": [Decimal(v) for v in ("0", "1", "-0.000000000000000001", "99999999999999999999.5", "2.5")],
    "CHAR(3)": ["abc", "1  ", "   ", "é中𝄞"],
    "STRING": _TEXTS,
    "BYTES": [text.encode() for text in _TEXTS] + [b"\xff\x00", b"\xc3"],
    "DATE": [moment.date() for moment in _MOMENTS],
    "TIME(0)": [datetime.time(0), datetime.time(23, 59, 59), datetime.time(12, 30), datetime.time(0, 0, 1)],
    "TIMESTAMP(3)": _MOMENTS,
    "TIMESTAMP(6)": _MOMENTS,
    "TIMESTAMP(9)": _NEAR,
    "TIMESTAMP_LTZ(3)": _MOMENTS[2:],
    "INTERVAL SECOND(3)": [0, 1, -1, 86_400_000, 1000, -3_600_000, 10**12, 2_678_400_000],
    "INTERVAL MONTH": [0, 1, -1, 12, 1200, -7],
    "ARRAY<INT>": [[], [1], [1, None, 1, 3], [2**31 - 1, -(2**31)], [5, 4, 3, 2, 1, 0]],
    "ARRAY<STRING>": [[], ["a"], ["a", None, "", "a"], ["日本", "b"]],
    "ARRAY<DOUBLE>": [[], [1.5, float("nan"), None], [float("nan"), 0.0, -1.0], [2.5]],
    "MAP<STRING, INT>": [[], [("a", 1)], [("a", None), ("", 2)], [("b", 3), ("c", -4), ("a", 5)]],
    "ROW<a INT, b STRING>": [{"a": 1, "b": "x"}, {"a": None, "b": None}, {"a": -(2**31), "b": ""}],
    "BITMAP": [[], [1], [1, 2, 3, 70000], [-1, 2**31 - 1]],
    "VARIANT": ["1", '"a"', "null", '{"a":1,"b":[1,2]}', "[1,2,3]", "true", "1.5"],
}


def _physical(value: Any, type_: t.LogicalType) -> Any:
    if isinstance(value, datetime.datetime):
        digits = type_.precision  # type: ignore[attr-defined]
        return value.replace(microsecond=value.microsecond // 1000 * 1000) if digits == 3 else value
    return value


def _column(values: list[Any], type_: t.LogicalType) -> pa.Array:
    if isinstance(type_, t.BitmapType):
        return write_sets(sets_of_lists(pa.array(values, pa.list_(pa.int32()))))
    if isinstance(type_, t.TimestampLtzType):
        values = [None if value is None else value.replace(tzinfo=datetime.UTC) for value in values]
    return pa.array([_physical(value, type_) for value in values], to_arrow(type_))


def columns() -> list[tuple[str, str, t.LogicalType, pa.Array]]:
    """Name, type's text, type and values of two columns a type, the first one nullable, ``ROWS`` rows each."""
    rng = random.Random(3)
    made = []
    for place, (text, values) in enumerate(VALUES.items()):
        for nullable in (True, False):
            chosen = [values[i % len(values)] for i in range(ROWS)]
            rng.shuffle(chosen)
            if nullable:
                for row in rng.sample(range(ROWS), 4):
                    chosen[row] = None
            type_ = parse_type(text).as_nullable(nullable)
            made.append((f"c{place}{'n' if nullable else ''}", text, type_, _column(chosen, type_)))
    return made


#: Literals by kind (see ``random_expressions_grammar.kind_of``), as SQL writes them.
LITERALS: dict[str, list[str]] = {
    "BOOLEAN": ["TRUE", "FALSE"],
    "TINYINT": ["CAST(5 AS TINYINT)", "CAST(-128 AS TINYINT)"],
    "SMALLINT": ["CAST(300 AS SMALLINT)", "CAST(-1 AS SMALLINT)"],
    "INTEGER": ["0", "1", "2", "3", "-1", "7", "12", "100", "2147483647", "-2147483648"],
    "BIGINT": ["2147483648", "-9223372036854775808", "CAST(3 AS BIGINT)", "1000000000000"],
    "FLOAT": ["CAST(0.5 AS FLOAT)", "CAST(-3 AS FLOAT)"],
    "DOUBLE": ["0e0", "1e0", "-2.5e0", "1e300", "1.5e-3", "CAST('NaN' AS DOUBLE)"],
    "DECIMAL": ["0.5", "-1.25", "3.00", "99999999999999999999999999999.9", "0.00000000001"],
    "STRING": ["''", "'a'", "'abc'", "'12'", "' x '", "'日本𝄞'", "'2021-03-14 02:30:00'", "'it''s'", "'{\"a\": 1}'"],
    "BINARY": ["X'4142'", "X''", "X'FF00'"],
    "DATE": ["DATE '2020-02-29'", "DATE '1969-12-31'", "DATE '0001-01-01'"],
    "TIME_WITHOUT_TIME_ZONE": ["TIME '10:11:12'", "TIME '23:59:59'"],
    "TIMESTAMP_WITHOUT_TIME_ZONE": ["TIMESTAMP '2020-02-29 12:34:56.789'", "TIMESTAMP '1969-12-31 23:59:59'",
                                    "TIMESTAMP '2021-03-14 02:30:00'"],
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": ["TO_TIMESTAMP_LTZ(0, 3)", "TO_TIMESTAMP_LTZ(1615689000, 0)"],
    "INTERVAL_DAY_TIME": ["INTERVAL '1' DAY", "INTERVAL '-1 02:03:04.5' DAY TO SECOND", "INTERVAL '10' MINUTE"],
    "INTERVAL_YEAR_MONTH": ["INTERVAL '1' MONTH", "INTERVAL '-1-2' YEAR TO MONTH", "INTERVAL '99' YEAR"],
    "ARRAY<INTEGER>": ["ARRAY[1, 2, 2]", "ARRAY[CAST(NULL AS INT), 3]"],
    "ARRAY<STRING>": ["ARRAY['a', 'b', 'a']", "ARRAY[CAST(NULL AS STRING)]"],
    "ARRAY<DOUBLE>": ["ARRAY[1e0, 0e0]"],
    "MAP<STRING, INTEGER>": ["MAP['a', 1, 'b', 2]"],
    "ROW(INTEGER, STRING)": ["CAST(ROW(1, 'x') AS ROW<a INT, b STRING>)"],
    "VARIANT": ["PARSE_JSON('{\"a\": 1}')", "PARSE_JSON('[1, 2]')"],
}  # fmt: skip

_PATTERNS = ["'[0-9]+'", "'(a)(b)?'", "'^.*$'", "'('", "''", "'\\d'", "'[^a-z]'", "'a|b'", "'(?i)ABC'", "'.'", "'\\s*'"]
_FORMATS = ["'yyyy-MM-dd HH:mm:ss'", "'yyyy-MM-dd'", "'yyyyMMdd'", "'dd/MM/yyyy HH:mm'", "'EEE MMM d'",
            "'HH:mm:ss.SSS'", "'[yyyy]'", "'q'", "'h a'", "'D'", "''", "'w YYYY'"]  # fmt: skip
_ZONES = ["'UTC'", "'America/Los_Angeles'", "'GMT+02:00'", "'Europe/Berlin'", "'nowhere'", "'PST'"]
_PATHS = ["'$'", "'$.a'", "'lax $.a[0]'", "'strict $.a.b'", "'$[1]'", "'$..b'", "'$.*'", "'$.a['"]
_CHARSETS = ["'UTF-8'", "'UTF-16'", "'US-ASCII'", "'ISO-8859-1'", "'UTF-16LE'", "'nonsense'"]
_SMALL = ["0", "1", "2", "3", "5", "-1", "12"]

#: What stands at a place of a function's arguments, nearly always; ``None`` of a name: at every place behind the first.
WRITTEN: dict[tuple[str, int], list[str]] = {
    ("LIKE", 1): ["'%a%'", "'a_'", "'%'", "''", "'_'", "'%\\%'", "'ABC%c'"],
    ("LIKE", 2): ["'\\'", "'!'"],
    ("SIMILAR TO", 1): ["'(a|b)%'", "'[a-z]*'", "'%'", "'_'", "'[[:DIGIT:]]+'"],
    ("SIMILAR TO", 2): ["'\\'"],
    **{(name, 1): _PATTERNS for name in ("REGEXP", "REGEXP_EXTRACT", "REGEXP_REPLACE", "REGEXP_COUNT", "REGEXP_INSTR",
                                         "REGEXP_SUBSTR", "REGEXP_EXTRACT_ALL")},
    ("REGEXP_EXTRACT", 2): ["0", "1", "2", "-1"],
    ("REGEXP_EXTRACT_ALL", 2): ["0", "1", "2", "-1"],
    ("REGEXP_REPLACE", 2): ["'x'", "'$1'", "''", "'[$0]'", "'\\'"],
    **{(name, 1): _FORMATS for name in ("DATE_FORMAT", "FROM_UNIXTIME", "TO_TIMESTAMP", "TO_DATE", "UNIX_TIMESTAMP")},
    ("TO_TIMESTAMP_LTZ", 1): [*_FORMATS, "0", "3", "0", "3"],
    ("TO_TIMESTAMP_LTZ", 2): _ZONES,
    ("CONVERT_TZ", 1): _ZONES,
    ("CONVERT_TZ", 2): _ZONES,
    ("ENCODE", 1): _CHARSETS,
    ("DECODE", 1): _CHARSETS,
    **{(name, 1): _PATHS for name in ("JSON_VALUE", "JSON_QUERY", "JSON_EXISTS")},
    ("PARSE_URL", 1): ["'HOST'", "'PATH'", "'QUERY'", "'REF'", "'PROTOCOL'", "'AUTHORITY'", "'FILE'", "'USERINFO'",
                       "'X'"],
    ("PARSE_URL", 2): ["'x'", "'y'", "''"],
    ("SHA2", 1): ["224", "256", "384", "512", "1"],
    ("PRINTF", 0): ["'%s'", "'%s %s'", "'%d'", "'%5.2f|%x'", "'%%'", "'%'", "'%-8s|'", "'%08d'", "'%e'", "'%b'",
                    "'%c'"],
    ("ROUND", 1): [*_SMALL, "2147483647"],
    ("TRUNCATE", 1): _SMALL,
    ("REPEAT", 1): _SMALL,
    ("LPAD", 1): _SMALL,
    ("RPAD", 1): _SMALL,
    ("CHR", 0): ["65", "0", "255", "256", "-1", "c6", "c6n"],
    ("STR_TO_MAP", 1): ["','", "'[,;]'", "''"],
    ("STR_TO_MAP", 2): ["'='", "':'"],
    ("RAND_INTEGER", 0): ["10", "1"],
    ("RAND_INTEGER", 1): ["10", "7"],
    ("RAND", 0): ["7", "0"],
    ("MAP", 0): ["'a'", "'b'", "1"],
    ("JSON_OBJECT", 0): ["'a'", "'b c'", "'é'"],
    ("OBJECT_OF", 0): ["'com.example.Thing'"],
    ("ITEM", 1): ["1", "2", "0", "-1", "'a'", "'b'", "100"],
    ("TYPEOF", 1): ["TRUE", "FALSE"],
}  # fmt: skip
#: Places that never hold anything else: a long text or a wrong bound would say nothing, or cost much.
ALWAYS = frozenset({("REPEAT", 1), ("LPAD", 1), ("RPAD", 1), ("RAND_INTEGER", 0), ("RAND_INTEGER", 1), ("OBJECT_OF", 0),
                    ("PRINTF", 0), ("RAND", 0)})  # fmt: skip

UNITS = ["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "DECADE", "CENTURY",
         "MILLENNIUM", "DOY", "DOW", "ISODOW", "ISOYEAR", "EPOCH"]  # fmt: skip
#: Types of casts.
TARGETS = [*(text for text in VALUES if text not in ("BITMAP", "VARIANT")), "VARCHAR(4)", "BINARY(2)", "TIMESTAMP(0)",
           "DECIMAL(5, 0)", "DECIMAL(38, 0)", "TIME(3)"]  # fmt: skip
