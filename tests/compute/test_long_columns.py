"""Long columns are computed by kernels, short ones one distinct value after another: both must say the same."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_compute.eval.compile import compile_projections
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.distinct import map_rows
from flowsql_compute.eval.text.columns import KERNEL_ROWS, byte_class
from flowsql_compute.eval.text.digests import digests
from flowsql_compute.eval.time.calendar import civil_from_days, days_from_civil
from flowsql_compute.functions.registry import resolve_call
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import Expr, InputRef, Literal
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow

ROWS = KERNEL_ROWS + 500
TEXT = InputRef(0, t.STRING)


def call(name: str, *args: Expr) -> Expr:
    return resolve_call(name, args)


def char(value: str) -> Literal:
    return Literal(value, t.CharType(length=len(value), nullable=False))


def both(exprs: list[Expr], columns: list[pa.Array]) -> None:
    """Evaluate whole and by parts of 500 rows, the first part cut off: the slices have an offset."""
    n = len(columns[0])
    whole = compile_projections(exprs, EvalContext())(columns, n)
    of_part = compile_projections(exprs, EvalContext())
    parts = [of_part([column.slice(at, 500) for column in columns], min(500, n - at)) for at in range(0, n, 500)]
    later = compile_projections(exprs, EvalContext())([column.slice(100) for column in columns], n - 100)
    for place, expr in enumerate(exprs):
        pieces = pa.concat_arrays([part[place] for part in parts])
        pieces.validate(full=True)
        whole[place].validate(full=True)
        if not whole[place].equals(pieces):
            differ = [row for row in range(n) if whole[place][row] != pieces[row]][:3]
            raise AssertionError(expr, [([c[row] for c in columns], whole[place][row], pieces[row]) for row in differ])
        assert later[place].equals(whole[place].slice(100)), expr


def random_texts(pieces: list[str], most: int, seed: int = 5) -> pa.Array:
    rng = np.random.default_rng(seed)
    words: list[str | None] = ["".join(rng.choice(pieces, rng.integers(0, most))) for _ in range(ROWS)]
    for row in rng.integers(0, ROWS, 100):
        words[row] = None
    return pa.array(words, pa.string())


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"])
def test_digests_of_all_lengths(algorithm: str) -> None:
    rng = np.random.default_rng(1)
    raw = rng.integers(0, 256, 700, dtype=np.uint8).tobytes()
    words = [None if row % 97 == 96 else raw[row % 13 : row % 13 + row % 300] for row in range(ROWS)]
    column = pa.array(words, pa.binary())
    wanted = [None if word is None else getattr(hashlib, algorithm)(word).hexdigest() for word in words]
    made = digests(column, algorithm)
    assert made is not None
    assert made.to_pylist() == wanted
    later = digests(column.slice(7), algorithm)
    assert later is not None
    assert later.to_pylist() == wanted[7:]


def test_long_texts_are_left_to_the_library_of_digests() -> None:
    assert digests(pa.array([b"x" * 2000] * ROWS, pa.binary()), "sha256") is None
    assert digests(pa.array([b"x"] * 10, pa.binary()), "sha256") is None


def test_hash_codes() -> None:
    both([call("HASH_CODE", TEXT)], [random_texts(["a", "Zz", "é", "中", "𝄞", "\x7f", ""], 9)])
    values = [None, 0, 1, -1, 10**37, -(10**37), 2**63, -(2**64), 12345, 2**31, -(2**32)]
    numbers = pa.array([None if v is None else v for v in values], pa.decimal128(38, 0))
    wide = InputRef(0, t.DecimalType(precision=38, scale=0))
    (made,) = compile_projections([call("HASH_CODE", wide)], EvalContext())([numbers], len(numbers))
    assert made.to_pylist() == [None if value is None else _big_decimal_hash(value) for value in values]


def _big_decimal_hash(unscaled: int) -> int:
    """Java's, from its documentation: 31 times the hash of the number's 32-bit words, with its sign."""
    made, rest = 0, abs(unscaled)
    for shift in (96, 64, 32, 0):
        made = (31 * made + (rest >> shift & 0xFFFFFFFF)) & 0xFFFFFFFF
    made = 31 * (-made if unscaled < 0 else made)
    return (made + 2**31) % 2**32 - 2**31


def test_urls() -> None:
    column = random_texts(
        ["http://", "https://", "ftp://", "HTTP://", "h", "w.x", ":", "80", "99999", "@", "/", "?", "#", "&", "k=", "v",
         " ", "%41", "%", "[", "é"], 10
    )  # fmt: skip
    parts = ["HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO", "host"]
    both([call("PARSE_URL", TEXT, char(part)) for part in parts], [column])
    both(
        [call("PARSE_URL", TEXT, char(part), char(key)) for part in ("QUERY", "PATH") for key in ("k", "v", "")],
        [column],
    )


def test_plain_urls() -> None:
    rng = np.random.default_rng(2)
    tails = ["", "/", "/p/q", "?k=1", "/p?a=2&k=3&k=4", "/p#r", "?#", "/?x=y#z?k=1", "/p?kk=1&k=&b"]
    hosts = ["h", "example.org", "u@h", "h:80", "h:", "h:x", "[::1]:80", "h:1234567", ""]
    words = [f"{rng.choice(['http', 'https'])}://{rng.choice(hosts)}{rng.choice(tails)}" for _ in range(ROWS)]
    column = pa.array(words)
    parts = ["HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO"]
    both([call("PARSE_URL", TEXT, char(part)) for part in parts], [column])
    both([call("PARSE_URL", TEXT, char("QUERY"), char(key)) for key in ("k", "a", "x", "")], [column])


def test_url_escapes() -> None:
    column = random_texts(
        ["a", " ", "+", "~", "*", "-", "%41", "%c3%a9", "%C3", "%e4%b8%ad", "%F0%9D%84%9E", "%ed%a0%80", "%c0%80",
         "%f5", "%e4%b8", "%", "%4", "%zz", "%+1", "é", "𝄞", "/"], 6
    )  # fmt: skip
    both([call("URL_DECODE", TEXT), call("URL_ENCODE", TEXT)], [column])


def test_all_escapes_that_are_no_text() -> None:
    rng = np.random.default_rng(3)
    words = ["".join(f"%{byte:02x}" for byte in rng.integers(0xB8, 0x100, 3)) + "%41" for _ in range(ROWS)]
    both([call("URL_DECODE", TEXT)], [pa.array(words)])


@pytest.mark.parametrize(
    "pattern", ["a", "[ab]", "[ab]+", "[^ab]", "[^ab]+", "\\d", "\\w+", "[a-y]", "[\\d ]+", "[^\\s]", "-"]
)
def test_counts_of_one_character_class(pattern: str) -> None:
    assert byte_class(pattern) is not None
    both(
        [call("REGEXP_COUNT", TEXT, char(pattern))],
        [random_texts(["a", "b", "z", "1", "22", " ", "-", "é", "中", "\n"], 8)],
    )


@pytest.mark.parametrize(
    "pattern", ["", ".", "ab", "a*", "[a", "[^]]", "é", "[é]", "[a&&b]", "(a)", "a|b", "^", "\\D", "[]a]"]
)
def test_other_patterns_are_no_character_class(pattern: str) -> None:
    assert byte_class(pattern) is None


def lists(type_: pa.DataType, values: list[Any], most: int, seed: int) -> pa.Array:
    rng = np.random.default_rng(seed)
    return pa.array(
        [
            None if rng.random() < 0.05 else [values[i] for i in rng.integers(0, len(values), rng.integers(0, most))]
            for _ in range(ROWS)
        ],
        pa.list_(type_),
    )


@pytest.mark.parametrize(
    ("element", "values"),
    [
        (t.INT, [0, 1, 2, -5, None, 2**31 - 1, -(2**31)]),
        (t.BIGINT, [0, 2**40, -(2**62), None]),
        (t.INT, [3, 4, 5]),
        (t.STRING, ["", "a", "b", "ab", "é"]),
        (t.STRING, ["a", None, "b"]),
        (t.DOUBLE, [0.0, -0.0, 1.5, None]),
        (t.BOOLEAN, [True, False, None]),
        (t.DATE, [1, 2, None]),
    ],
)
@pytest.mark.parametrize("most", [5, 80])
def test_sets_of_elements(element: t.LogicalType, values: list[Any], most: int) -> None:
    arrow_type = to_arrow(element)
    columns = [lists(arrow_type, values, most, seed) for seed in (1, 2)]
    left, right = (InputRef(place, t.ArrayType(element=element)) for place in (0, 1))
    exprs = [call(name, left, right) for name in ("ARRAY_UNION", "ARRAY_INTERSECT", "ARRAY_EXCEPT")]
    exprs.append(call("ARRAY_DISTINCT", left))
    if not isinstance(element, t.BooleanType):
        largest = call("ARRAY_MAX", right)
        exprs += [call(name, left, largest) for name in ("ARRAY_CONTAINS", "ARRAY_POSITION", "ARRAY_REMOVE")]
        exprs += [call("ARRAY_SORT", left), call("ARRAY_SORT", left, Literal(False, t.BOOLEAN))]
    both(exprs, columns)


def test_maps_of_equal_keys() -> None:
    columns = [lists(pa.string(), ["a", "b", "ab", ""], 5, 1), lists(pa.string(), ["b", "c", "éa"], 5, 2)]
    left, right = (InputRef(place, t.ArrayType(element=t.STRING)) for place in (0, 1))
    maps = [call("MAP_FROM_ARRAYS", one, one) for one in (left, right)]
    both([call("MAP_KEYS", call("MAP_UNION", *maps)), call("MAP_VALUES", call("MAP_UNION", *maps))], columns)
    (made,) = compile_projections([call("MAP_UNION", *maps)], EvalContext())(columns, ROWS)
    for row in range(200):
        one, other = (column[row].as_py() for column in columns)
        wanted = None if one is None or other is None else list(dict.fromkeys(other + one))
        assert made[row].as_py() == (None if wanted is None else [(key, key) for key in wanted])


def test_zones() -> None:
    rng = np.random.default_rng(4)
    words = [f"{y}-{m:02d}-{d:02d} {h:02d}:30:0{h % 10}" for y, m, d, h in
             zip(rng.integers(1990, 2030, ROWS), rng.integers(1, 13, ROWS), rng.integers(1, 29, ROWS),
                 rng.integers(0, 24, ROWS), strict=True)]  # fmt: skip
    zones = ("UTC", "America/Los_Angeles", "Australia/Lord_Howe", "GMT+05:30")
    exprs = [call("CONVERT_TZ", TEXT, char(one), char(other)) for one in zones for other in zones]
    both(exprs, [pa.array(words)])


def test_addresses() -> None:
    column = random_texts(["1", "25", "255", "256", ".", "0", "a", "-", "127.0.0.1", "000"], 8)
    both([call("INET_ATON", TEXT)], [column])


def test_maps_of_pairs() -> None:
    column = random_texts(["a", "b", "=", ",", "é", "==", ",,", "&", "ab=c"], 9)
    exprs = [call("STR_TO_MAP", TEXT)]
    exprs += [
        call("STR_TO_MAP", TEXT, char(one), char(other)) for one in (",", "&", ",,", "[,]") for other in ("=", "ab")
    ]
    both(exprs, [column])


def test_trimming_by_many_choices() -> None:
    columns = [random_texts(["a", "b", "é", "中", " "], 6, seed) for seed in (1, 2)]
    both([call(name, TEXT, InputRef(1, t.STRING)) for name in ("LTRIM", "RTRIM", "BTRIM")], columns)
    few = pa.array([None if row % 7 == 0 else ("a", "é ", "")[row % 3] for row in range(ROWS)])
    both([call(name, TEXT, InputRef(1, t.STRING)) for name in ("LTRIM", "RTRIM", "BTRIM")], [columns[0], few])


# Two text columns, other spellings, calendars

OTHER = InputRef(1, t.STRING)
NUMBER, NTH = InputRef(2, t.BIGINT), InputRef(3, t.INT)


def numbers(low: int, high: int, type_: pa.DataType, seed: int = 1) -> pa.Array:
    rng = np.random.default_rng(seed)
    values = rng.integers(low, high, ROWS)
    return pa.array(values, type_, mask=rng.random(ROWS) < 0.05)


def test_places_of_texts_in_texts() -> None:
    text, mark = random_texts(["a", "b", "é", "中", "𝄞"], 12), random_texts(["a", "é", "𝄞", "b"], 4, seed=2)
    columns = [text, mark, numbers(-2, 8, pa.int64()), numbers(1, 4, pa.int32(), 2)]
    both([call("POSITION", OTHER, TEXT), call("POSITION", OTHER, TEXT, NUMBER), call("INSTR", TEXT, OTHER)], columns)
    both([call("INSTR", TEXT, OTHER, NUMBER), call("INSTR", TEXT, OTHER, NUMBER, NTH)], columns)
    both([call("POSITION", char("a"), TEXT, NUMBER), call("INSTR", TEXT, char("b"), NUMBER)], columns)
    columns[2] = numbers(0, 8, pa.int64())
    both([call("INSTR", TEXT, OTHER, NUMBER), call("INSTR", TEXT, OTHER, NUMBER, NTH)], columns)


def test_instr_refuses_an_occurrence_before_the_first() -> None:
    columns = [pa.array(["aa"] * ROWS), pa.array(["a"] * ROWS), numbers(1, 2, pa.int64()), numbers(0, 1, pa.int32())]
    with pytest.raises(ExecutionError, match="nthAppearance must be positive"):
        compile_projections([call("INSTR", TEXT, OTHER, NUMBER, NTH)], EvalContext())(columns, ROWS)


def test_texts_at_the_edges_of_texts() -> None:
    text, mark = random_texts(["a", "b", "é", "中"], 5), random_texts(["a", "é", "b"], 3, seed=2)
    names = ("STARTSWITH", "ENDSWITH")
    both([call(name, TEXT, OTHER) for name in names], [text, mark])
    one, other = (InputRef(place, t.BYTES) for place in (0, 1))
    both([call(name, one, other) for name in names], [text.cast(pa.binary()), mark.cast(pa.binary())])


def test_base_64() -> None:
    both([call("TO_BASE64", TEXT)], [random_texts(["a", "é", "𝄞", "xyz"], 6)])
    words = random_texts(["a", "é", "𝄞", "xyz"], 6).to_pylist()
    cut = [None if w is None else base64.b64encode(w.encode()).decode()[: None if i % 3 else 2 * (i % 5)].rstrip("=")
           + "=" * (i % 7 == 0) for i, w in enumerate(words)]  # fmt: skip
    rows = pa.array([w if w is None or (len(w.rstrip("=")) % 4 != 1 and "=" not in w) else "YWI=" for w in cut])
    both([call("FROM_BASE64", TEXT)], [rows])
    not_text = pa.array([base64.b64encode(bytes([i % 256, i // 7 % 256, 65])).decode() for i in range(ROWS)])
    both([call("FROM_BASE64", TEXT)], [not_text])


@pytest.mark.parametrize("wrong", ["a", "ab=d", "abc*", "abcde", "abé=", "=", "====", "abc=="])
def test_what_is_no_base_64_fails(wrong: str) -> None:
    column = pa.array(["YWI="] * (ROWS - 1) + [wrong])
    with pytest.raises(ExecutionError):
        compile_projections([call("FROM_BASE64", TEXT)], EvalContext())([column], ROWS)
    with pytest.raises(ExecutionError):
        compile_projections([call("FROM_BASE64", TEXT)], EvalContext())([column.slice(ROWS - 1)], 1)


def test_hexadecimal_digits() -> None:
    both([call("UNHEX", TEXT)], [random_texts(["0", "a1", "F", "e9", "g", "é", "7f"], 5)])


@pytest.mark.parametrize(
    "charset", ["UTF-8", "US-ASCII", "ISO-8859-1", "UTF-16", "UTF-16BE", "UTF-16LE", "UTF-32", "UTF-32LE", "GBK"]
)
def test_character_sets(charset: str) -> None:
    encoded = call("ENCODE", TEXT, char(charset))
    both([encoded, call("DECODE", encoded, char(charset))], [random_texts(["a", "é", "ÿ", "中", "𝄞", "\U0010ffff"], 6)])


def test_malformed_bytes_become_marks() -> None:
    rows = pa.array([bytes([65, i % 256]) for i in range(ROWS)], pa.binary())
    both([call("DECODE", InputRef(0, t.BYTES), char("UTF-8"))], [rows])


def test_dates_of_all_eras() -> None:
    days = np.concatenate([np.arange(-3000, 3000), np.array([-719_528, -719_469, 2_932_896, -(10**8), 10**8])])
    whole = civil_from_days(days)
    parts = [civil_from_days(days[at : at + 500]) for at in range(0, len(days), 500)]
    for place in range(3):
        assert np.array_equal(whole[place], np.concatenate([part[place] for part in parts]))
    assert np.array_equal(days_from_civil(*whole), days)
    moments = pa.array(days * 86_400_000 + 12_345, pa.int64())
    for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DECADE"):
        for name in ("FLOOR", "CEIL"):
            both_units(name, unit, moments)


def both_units(name: str, unit: str, moments: pa.Array) -> None:
    rounded = resolve_call(name, (InputRef(0, t.TimestampType(precision=3)),), (("unit", unit),))
    run = compile_projections([rounded], EvalContext())
    column = moments.cast(pa.timestamp("ms"))
    n = len(column)
    parts = [run([column.slice(at, 500)], min(500, n - at))[0] for at in range(0, n, 500)]
    assert run([column], n)[0].equals(pa.concat_arrays(parts))


def test_bitmaps_as_text() -> None:
    rng = np.random.default_rng(3)
    limit = 10 ** rng.integers(1, 10, ROWS)
    rows = [None if i % 50 == 7 else rng.integers(-5, high, i % 6).tolist() for i, high in enumerate(limit)]
    lists = pa.array(rows, pa.list_(pa.int64()))
    column = lists.cast(pa.list_(pa.int32()))
    built = call("BITMAP_BUILD", InputRef(0, t.ArrayType(element=t.INT)))
    (made,) = compile_projections([call("BITMAP_TO_STRING", built)], EvalContext())([column], ROWS)
    for row in range(0, ROWS, 7):
        values = column[row].as_py()
        wanted = None if values is None else sorted({value % 2**32 for value in values})
        assert made[row].as_py() == (None if wanted is None else "{" + ",".join(map(str, wanted)) + "}")


def test_combinations_of_more_values_than_numbers_have() -> None:
    n = 60_000
    columns = [pa.array(np.roll(np.arange(n), shift)) for shift in range(5)]
    made = map_rows([*columns, pa.scalar(1)], lambda *values: sum(values), pa.int64())
    assert made.to_pylist() == [sum(column[row].as_py() for column in columns) + 1 for row in range(n)]


def test_literals_beside_columns() -> None:
    columns = [pa.array([f"{i}" for i in range(ROWS)])]
    seven = Literal(7, t.INT)
    (made,) = compile_projections([call("POSITION", TEXT, char("12345"), seven)], EvalContext())(columns, ROWS)
    assert not any(made.to_pylist())


def test_parts_of_texts_by_columns() -> None:
    text, new = random_texts(["a", "b", "é", "中", "𝄞"], 7), random_texts(["X", "yz", "é"], 3, seed=2)
    columns = [text, new, numbers(-4, 9, pa.int64()), numbers(-2, 5, pa.int32(), 2)]
    exprs = [call("SUBSTRING", TEXT, NUMBER), call("SUBSTRING", TEXT, NUMBER, NTH), call("LEFT", TEXT, NTH)]
    exprs += [call("RIGHT", TEXT, NTH), call("OVERLAY", TEXT, OTHER, NUMBER), call("OVERLAY", TEXT, OTHER, NUMBER, NTH)]
    both(exprs, columns)
    plain = [random_texts(["a", "bc", ""], 7), random_texts(["X", "yz", ""], 3, seed=2), *columns[2:]]
    both(exprs, plain)
    far = [*plain[:2], pa.array([[-(2**63), 2**63 - 1, 1, 3][i % 4] for i in range(ROWS)]), columns[3]]
    both(exprs, far)
    both([call("OVERLAY", TEXT, OTHER, NTH, NUMBER), call("SUBSTRING", TEXT, NTH, NUMBER)], far)


@pytest.mark.parametrize(
    "pattern",
    [
        "a",
        "[ab]+",
        "(a)(b)?",
        "a*",
        "(a|b)",
        "(a|(b))",
        "ab|b",
        "b$",
        "(?i)A.",
        "(",
        "\\bb",
        "([ab]+)",
        "[^a]",
        "[^b]+",
        "(\\w)",
        "([^ ]+)",
    ],
)
def test_all_matches(pattern: str) -> None:
    column = random_texts(["a", "b", "ab", "é", "\n", "A", " "], 8)
    both([call("REGEXP_REPLACE", TEXT, char(pattern), char(new)) for new in ("x", "", "$1", "\\", "\\1")], [column])
    groups = [Literal(number, t.IntType(nullable=False)) for number in (0, 1, 2)]
    both([call("REGEXP_EXTRACT_ALL", TEXT, char(pattern), group) for group in groups], [column])


def test_parts_of_variants() -> None:
    rng = np.random.default_rng(6)
    values = [
        "1",
        "-0",
        "1.50",
        "1e3",
        '"x"',
        '"\\u0041\\n"',
        "null",
        "true",
        '{"b": [1, 2]}',
        "[]",
        '{"é": 1, "a": 2}',
    ]
    picked = rng.choice(values, (ROWS, 3))
    rows = [
        None if i % 90 == 1 else f'{{"a": {p[0]}, "b": {p[1]}, "a b": {p[2]}}}' for i, p in enumerate(picked.tolist())
    ]
    objects = call("PARSE_JSON", TEXT)
    both([call("ITEM", objects, char(key)) for key in ("a", "b", "a b", "c", "é", '"')], [pa.array(rows)])
    plain = [None if row is None else row.replace("1.50", "1.5").replace(" ", "").replace("é", "e") for row in rows]
    both([call("ITEM", objects, char(key)) for key in ("a", "b", "c")], [pa.array(plain)])
    lists = [f"[{p[0]},{p[2]}]" for p in picked.tolist()]
    places = [Literal(place, t.IntType(nullable=False)) for place in (1, 2, 3, 0, -1)]
    both([call("ITEM", objects, place) for place in places], [pa.array(lists)])
    with pytest.raises(ExecutionError, match="requires an array variant"):
        compile_projections([call("ITEM", objects, places[0])], EvalContext())([pa.array(plain)], ROWS)


def test_greatest_and_smallest_elements() -> None:
    for element, values in ((t.DOUBLE, [0.0, -1.5, float("nan"), None, 7.0]), (t.STRING, ["", "b", None, "ab"])):
        column = lists(to_arrow(element), values, 5, 3)
        array = InputRef(0, t.ArrayType(element=element))
        exprs = [call("ARRAY_MAX", array), call("ARRAY_MIN", array)]
        whole = compile_projections(exprs, EvalContext())([column], ROWS)
        single = compile_projections(exprs, EvalContext())([column.slice(0, 900)], 900)
        assert [repr(made.slice(0, 900).to_pylist()) for made in whole] == [repr(made.to_pylist()) for made in single]


def test_maps_of_two_arrays() -> None:
    rng = np.random.default_rng(8)
    keys, values = [], []
    for row in range(ROWS):
        size = int(rng.integers(0, 4))
        keys.append(None if row % 11 == 1 else rng.choice(["a", "b", "é"], size).tolist())
        values.append(None if row % 13 == 2 else rng.integers(0, 9, size).tolist())
    columns = [pa.array(keys, pa.list_(pa.string())), pa.array(values, pa.list_(pa.int32()))]
    one, other = InputRef(0, t.ArrayType(element=t.STRING)), InputRef(1, t.ArrayType(element=t.INT))
    made = call("MAP_FROM_ARRAYS", one, other)
    both([made, call("CARDINALITY", made), call("MAP_KEYS", made)], columns)
    (maps,) = compile_projections([made], EvalContext())(columns, ROWS)
    for row in range(0, ROWS, 5):
        pair = keys[row], values[row]
        wanted = None if pair[0] is None or pair[1] is None else dict(zip(*pair, strict=True))
        assert maps[row].as_py() == (None if wanted is None else list(wanted.items()))
    # A NULL key of a row without a map is none.
    keys[2] = [None]
    assert values[2] is None
    odd = pa.array(keys, pa.list_(pa.string()))
    assert compile_projections([made], EvalContext())([odd, columns[1]], ROWS)[0].slice(3).equals(maps.slice(3))
    gone = pa.nulls(ROWS, pa.list_(pa.int32()))
    assert compile_projections([made], EvalContext())([columns[0], gone], ROWS)[0].null_count == ROWS
