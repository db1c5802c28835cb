"""Moments of a fixed layout are read by a kernel; the rules of single texts say what it must find."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from flowsql_compute.eval.compile import compile_projections
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.java.lenient_moments import parse_leniently
from flowsql_compute.eval.java.strict_moments import parse_strictly
from flowsql_compute.eval.time.fixed_moments import read_fixed
from flowsql_compute.functions.registry import resolve_call
from flowsql_core.expr import InputRef, Literal
from flowsql_core.types import logical as t

_PATTERNS = [
    "yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd HH:mm:ss.SSS", "yyyy-MM-dd", "yyyyMMdd", "yyyy-MM-dd'T'HH:mm:ss",
    "yyyyMMddHHmmssSSS", "dd/MM/yyyy", "HH:mm", "uuuu-MM-dd HH:mm:ss.SSSSSS", "yyyy'é'MM",
]  # fmt: skip
_MOMENTS = [
    (2026, 1, 31, 23, 59, 59, 999999), (1970, 1, 1, 0, 0, 0, 0), (1969, 12, 31, 23, 59, 59, 1),
    (2000, 2, 29, 1, 2, 3, 4),
    (1900, 2, 29, 0, 0, 0, 0), (2024, 4, 31, 5, 5, 5, 5), (1, 1, 1, 0, 0, 0, 0), (9999, 12, 31, 23, 0, 0, 500000),
    (1582, 10, 4, 0, 0, 0, 0), (2026, 13, 1, 0, 0, 0, 0), (2026, 0, 1, 0, 0, 0, 0), (2026, 1, 32, 24, 60, 60, 0),
    (0, 1, 1, 0, 0, 0, 0), (2023, 2, 29, 12, 0, 0, 0),
]  # fmt: skip


def _text(pattern: str, moment: tuple[int, ...]) -> str:
    year, month, day, hour, minute, second, micros = moment
    shown = pattern.replace("'", "").replace("SSSSSS", f"{micros:06}").replace("SSS", f"{micros // 1000:03}")
    for letters, number in (("yyyy", year), ("uuuu", year)):
        shown = shown.replace(letters, f"{number:04}")
    for letters, number in (("MM", month), ("dd", day), ("HH", hour), ("mm", minute), ("ss", second)):
        shown = shown.replace(letters, f"{number:02}")
    return shown


def _column(pattern: str) -> pa.Array:
    texts: list[str | None] = [_text(pattern, moment) for moment in _MOMENTS]
    first = texts[0] or ""
    texts += [
        None,
        "",
        first[:-1],
        first + " ",
        " " + first,
        first.replace("2", "x"),
        first.replace("-", "/"),
        "-" + first[1:],
    ]
    rng = np.random.default_rng(1)
    return pa.array([texts[at] for at in rng.integers(0, len(texts), 5000)], pa.string())


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("pattern", _PATTERNS)
@pytest.mark.parametrize("per_second", [1, 1000, 1_000_000])
def test_what_it_reads_the_rules_of_single_texts_read_too(pattern: str, lenient: bool, per_second: int) -> None:
    column = _column(pattern)
    found = read_fixed(column, pattern, per_second, lenient)
    if found is None:
        assert lenient
        assert "SSSSSS" in pattern
        return
    values, odd = found
    parse = parse_leniently if lenient else parse_strictly
    plain = 0
    for at, text in enumerate(column.to_pylist()):
        if text is not None and not odd[at]:
            nanos = parse(text, pattern)
            assert nanos is not None, text
            assert values[at] == nanos // (1_000_000_000 // per_second), text
            plain += 1
    assert plain > 1000


@pytest.mark.parametrize(
    "pattern", ["yyyy-M-d", "yy-MM-dd", "yyyyMMdd MM", "yyyy1MM", "EEE dd", "hh:mm a", "'only text'"]
)
def test_other_layouts_are_left_alone(pattern: str) -> None:
    assert read_fixed(_column("yyyy-MM-dd"), pattern, 1000, lenient=False) is None


@pytest.mark.parametrize("function", ["TO_TIMESTAMP", "TO_DATE", "UNIX_TIMESTAMP"])
@pytest.mark.parametrize("pattern", _PATTERNS)
def test_large_columns_have_the_values_of_small_ones(function: str, pattern: str) -> None:
    column = _column(pattern)
    call = resolve_call(function, (InputRef(0, t.STRING), Literal(pattern, t.STRING)))
    project = compile_projections((call,), EvalContext())
    (large,) = project([column], len(column))
    small = pa.concat_arrays([project([column.slice(at, 500)], 500)[0] for at in range(0, 5000, 500)])
    assert large.equals(small)
