"""Constraints over whole batches: positions, kinds, slices. Flink's answers: tests/sql/asked/constraints.txt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch, single_watermark
from flowsql_core.config import Configuration
from flowsql_core.errors import ExecutionError, PlanError
from flowsql_core.graph.constraints import constraints_of
from flowsql_core.graph.specs import ConstraintEnforcerSpec
from flowsql_core.row import DELETE, INSERT
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column, Schema
from flowsql_core.types.text import parse_type
from flowsql_runtime.operators.sink.constraints import Judge
from flowsql_runtime.testing.harness import OperatorHarness


def schema(**types: str) -> Schema:
    return tuple(Column(name, parse_type(text)) for name, text in types.items())


def judge(columns: Schema, *, nulls: str = "ERROR", length: str = "IGNORE", nested: str = "IGNORE") -> Judge:
    values = {
        "table.exec.sink.not-null-enforcer": nulls,
        "table.exec.sink.type-length-enforcer": length,
        "table.exec.sink.nested-constraint-enforcer": nested,
    }
    return Judge(constraints_of(columns, Configuration(values=values)), columns)


def batch(columns: Schema, rows: Sequence[Sequence[Any]], around: int = 2) -> ChangelogBatch:
    """Rows as the middle of longer columns: offsets and bitmaps do not begin at 0."""
    padded = [rows[0]] * around + list(rows) + [rows[-1]] * around
    arrays = [
        pa.array([row[at] for row in padded], to_arrow(column.type)).slice(around, len(rows))
        for at, column in enumerate(columns)
    ]
    return ChangelogBatch.of(arrays)


def rows(found: ChangelogBatch) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


DEEP = schema(r="ROW<c CHAR(2), n INT NOT NULL>", a="ARRAY<INT NOT NULL>", m="MAP<STRING, VARCHAR(2) NOT NULL>")
GOOD = ({"c": "ab", "n": 1}, [1, 2], [("k", "v")])
DEEPER = {"nulls": "DROP", "length": "ERROR", "nested": "ROWS_AND_COLLECTIONS"}


def test_the_first_row_that_breaks_anything_is_told() -> None:
    columns = schema(a="INT NOT NULL", b="VARCHAR(2)", c="INT NOT NULL")
    broken = batch(columns, [(1, "x", 1), (2, "xyz", None), (3, "x", None), (None, "x", 1)])
    with pytest.raises(ExecutionError) as raised:
        judge(columns).check(broken)
    assert raised.value.message.startswith("Column 'c' is NOT NULL")
    row = raised.value.row
    assert row is not None
    assert (row.row, row.values) == (1, {0: "2", 1: "'xyz'", 2: "NULL"})
    with pytest.raises(ExecutionError, match=r"Column 'b' is VARCHAR\(2\), however, a string of length 3") as raised:
        judge(columns, nulls="DROP", length="ERROR").check(batch(columns, [(1, "x", None), (2, "xyz", 3)]))
    assert raised.value.row is not None
    assert raised.value.row.row == 1


def test_a_row_that_is_dropped_breaks_nothing_behind_that() -> None:
    columns = schema(a="INT NOT NULL", b="VARCHAR(2)")
    found, kept = judge(columns, nulls="DROP", length="ERROR").check(batch(columns, [(None, "xyz"), (1, "xy")]))
    assert rows(found) == [(1, "xy")]
    assert kept is not None
    assert kept.tolist() == [False, True]


def test_parts_of_a_row_are_looked_at_in_order() -> None:
    array = schema(a="ARRAY<VARCHAR(2) NOT NULL>")
    found, _ = judge(array, **DEEPER).check(batch(array, [([None, "abc"],), (["a"],), (None,), ([],)]))
    assert rows(found) == [(["a"],), (None,), ([],)]
    with pytest.raises(ExecutionError, match=r"Column 'a\[1\]' is VARCHAR\(2\)"):
        judge(array, **DEEPER).check(batch(array, [([None],), (["a", "abc", None],)]))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (({"c": "ab", "n": None}, [1], []), "Column 'r.n' is NOT NULL"),
        (({"c": "abc", "n": 1}, [1], []), r"Column 'r.c' is CHAR\(2\), however, a string of length 3"),
        (({"c": None, "n": 1}, [1, None], []), r"Column 'a\[1\]' is NOT NULL"),
        ((None, None, [("k", "v"), ("l", None)]), r"Column 'm\[value\]' is NOT NULL"),
        ((None, None, [("k", "vvv")]), r"Column 'm\[value\]' is VARCHAR\(2\)"),
    ],
)
def test_what_is_nested_is_found_behind_offsets_and_nulls(bad: Any, message: str) -> None:
    judged = judge(DEEP, length="ERROR", nested="ROWS_AND_COLLECTIONS")
    fine = [GOOD, (None, None, None), ({"c": None, "n": 0}, [], []), GOOD]
    assert rows(judged.check(batch(DEEP, fine))[0]) == fine
    with pytest.raises(ExecutionError, match=message) as raised:
        judged.check(batch(DEEP, [*fine, bad, GOOD]))
    assert raised.value.row is not None
    assert raised.value.row.row == len(fine)
    if "NULL" in message:
        kept, _ = judge(DEEP, **DEEPER).check(batch(DEEP, [*fine, bad, GOOD]))
        assert rows(kept) == [*fine, GOOD]


@pytest.mark.parametrize(
    ("type_", "entry", "name"),
    [
        ("MAP<STRING, ROW<n INT NOT NULL>>", [("k", {"n": None})], "m[value].n"),
        ("MAP<STRING, ARRAY<INT NOT NULL>>", [("k", [1, None])], "m[value][1]"),
        ("MAP<STRING, MAP<STRING, INT NOT NULL>>", [("k", [("l", None)])], "m[value][value]"),
        ("MAP<VARCHAR(1), INT>", [("kk", 1)], "m[key]"),
        ("ARRAY<ROW<`element` INT NOT NULL>>", [{"element": 1}, {"element": None}], "m[1].element"),
    ],
)
def test_where_a_value_stands_inside_of_a_map(type_: str, entry: Any, name: str) -> None:
    columns = schema(m=type_)
    with pytest.raises(ExecutionError) as raised:
        judge(columns, length="ERROR", nested="ROWS_AND_COLLECTIONS").check(batch(columns, [(entry,)]))
    assert raised.value.message.startswith(f"Column '{name}' is ")


def test_texts_and_bytes_are_cut_and_padded_as_deep_as_rows_go() -> None:
    columns = schema(c="CHAR(3)", b="BINARY(2)", w="VARBINARY(2)", r="ROW<x ROW<v VARCHAR(2), c CHAR(2)>, n INT>")
    given = [
        ("üöäß", b"abc", b"abc", {"x": {"v": "üöä", "c": "a"}, "n": 1}),
        ("a", b"a", b"a", {"x": None, "n": 2}),
        (None, None, None, None),
        ("", b"", b"", {"x": {"v": None, "c": ""}, "n": None}),
    ]
    found, kept = judge(columns, length="TRIM_PAD", nested="ROWS").check(batch(columns, given))
    assert kept is None
    assert rows(found) == [
        ("üöä", b"ab", b"ab", {"x": {"v": "üö", "c": "a "}, "n": 1}),
        ("a  ", b"a\0", b"a", {"x": None, "n": 2}),
        (None, None, None, None),
        ("   ", b"\0\0", b"", {"x": {"v": None, "c": "  "}, "n": None}),
    ]
    flat, _ = judge(columns, length="TRIM_PAD").check(batch(columns, given))
    assert rows(flat)[0] == ("üöä", b"ab", b"ab", given[0][3])


def test_what_fits_already_is_not_copied() -> None:
    columns = schema(c="CHAR(1)", v="VARCHAR(4)")
    given = batch(columns, [("a", "bcd"), (None, None)])
    found, _ = judge(columns, length="TRIM_PAD").check(given)
    assert [a is b for a, b in zip(found.columns, given.columns, strict=True)] == [True, True]


def test_values_of_collections_cannot_be_cut() -> None:
    with pytest.raises(PlanError, match="Trimming and/or padding is not supported if constraint checking is enabled"):
        judge(DEEP, length="TRIM_PAD", nested="ROWS_AND_COLLECTIONS")


def test_time_goes_on_where_every_row_is_dropped() -> None:
    columns = schema(n="INT NOT NULL")
    demanded = constraints_of(columns, Configuration(values={"table.exec.sink.not-null-enforcer": "DROP"}))
    harness = OperatorHarness(ConstraintEnforcerSpec(columns, demanded))
    harness.batch(batch(columns, [(None,), (None,)]).with_track(single_watermark(1, 7)))
    kinds = np.array([INSERT, DELETE, DELETE], np.uint8)
    given = batch(columns, [(1,), (None,), (2,)]).with_kinds(kinds)
    harness.batch(given.with_track(single_watermark(3, 9)))
    assert harness.watermarks == [7, 9]
    assert harness.rows == [("+I", 1), ("-D", 2)]
