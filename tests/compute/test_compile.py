"""The compiler: branches not taken, common sub-expressions, NULL conditions, slices, constant folding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_compute.eval.compile import compile_condition, compile_projections, fold
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.functions import registry
from flowsql_compute.functions.registry import resolve_call, resolve_case, resolve_cast
from flowsql_core.batch import LateColumns
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import Call, Expr, InputRef, Literal
from flowsql_core.types import logical as t

CONTEXT = EvalContext()
A, B = InputRef(0, t.INT), InputRef(1, t.INT)
COLUMNS = [pa.array([10, 7, None, 9], pa.int32()), pa.array([0, 2, 3, None], pa.int32())]


def int_(value: int) -> Literal:
    return Literal(value, t.IntType(nullable=False))


def call(name: str, *args: Expr, **options: Any) -> Expr:
    return resolve_call(name, args, tuple(options.items()))


def run(*exprs: Expr, columns: Any = COLUMNS, n: int = 4) -> list[list[Any]]:
    return [column.to_pylist() for column in compile_projections(exprs, CONTEXT)(columns, n)]


QUOTIENT = call("/", A, B)
NOT_ZERO = call("<>", B, int_(0))


def test_division_by_zero_fails_with_its_place() -> None:
    with pytest.raises(ExecutionError, match="/ by zero"):
        run(QUOTIENT)


def test_case_evaluates_only_the_branch_that_is_taken() -> None:
    assert run(resolve_case((NOT_ZERO,), (QUOTIENT,), int_(-1))) == [[-1, 3, None, -1]]


def test_if_and_coalesce_are_lazy_too() -> None:
    assert run(call("IF", NOT_ZERO, QUOTIENT, int_(-1))) == [[-1, 3, None, -1]]
    first = resolve_case((call("=", B, int_(0)),), (int_(5),), Literal(None, t.NULL))
    assert run(call("COALESCE", first, QUOTIENT)) == [[5, 3, None, None]]


def test_and_or_shield_what_stands_behind_them() -> None:
    positive = call(">", QUOTIENT, int_(2))
    assert run(call("AND", NOT_ZERO, positive)) == [[False, True, None, None]]
    assert run(call("OR", call("=", B, int_(0)), positive)) == [[True, True, None, None]]


def test_a_later_case_condition_sees_only_open_rows() -> None:
    expr = resolve_case((call("=", B, int_(0)), call(">", QUOTIENT, int_(2))), (int_(1), int_(2)), int_(3))
    assert run(expr) == [[1, 2, 3, 3]]


def test_nothing_is_evaluated_on_no_rows() -> None:
    empty = [column.slice(0, 0) for column in COLUMNS]
    assert run(QUOTIENT, columns=empty, n=0) == [[]]


def test_condition_keeps_only_true() -> None:
    keep = compile_condition(call(">", A, int_(8)), CONTEXT)
    assert keep(COLUMNS, 4).tolist() == [True, False, False, True]
    assert compile_condition(Literal(None, t.BOOLEAN), CONTEXT)(COLUMNS, 4).tolist() == [False] * 4


def test_slices_give_the_same_as_copies() -> None:
    exprs = [call("+", A, B), call("*", A, resolve_cast(B, t.DecimalType(precision=5, scale=2), False)),
             resolve_cast(A, t.STRING, False), call("IN", A, int_(7), int_(9)), call("IS NULL", B)]  # fmt: skip
    whole = run(*exprs)
    for start in range(4):
        parts = [column.slice(start, 2) for column in COLUMNS]
        assert run(*exprs, columns=parts, n=len(parts[0])) == [column[start : start + 2] for column in whole]


def test_equal_sub_expressions_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    definition = registry.find_definition(Call("ABS", (A,), t.INT))
    monkeypatch.setattr("flowsql_compute.functions.math.pc.abs", lambda column: ran.append(1) or column)
    assert definition.name == "ABS"
    run(call("+", call("ABS", A), int_(1)), call("ABS", A))
    assert len(ran) == 1


def test_random_calls_are_not_shared() -> None:
    first, second = run(call("RAND"), call("RAND"))
    assert first != second
    assert len(set(first)) == 4


def test_folding_leaves_what_fails_and_what_asks_the_clock() -> None:
    failing = call("/", int_(1), int_(0))
    assert fold(failing, CONTEXT) == failing
    now = call("CURRENT_TIMESTAMP")
    assert fold(now, CONTEXT) == now
    assert fold(call("+", A, call("*", int_(2), int_(3))), CONTEXT) == call("+", A, int_(6))


def test_large_batches_take_the_kernels_and_agree_with_small_ones() -> None:
    from flowsql_compute.eval.text.columns import KERNEL_ROWS

    rng = np.random.default_rng(5)
    alphabet = [*"ab/&=é", "id=", "&id=", "aa"]
    words = ["".join(rng.choice(alphabet, rng.integers(0, 9))) for _ in range(KERNEL_ROWS)] + [None, ""]
    column = pa.array(words)
    text = InputRef(0, t.STRING)

    def char(value: str) -> Literal:
        return Literal(value, t.CharType(length=len(value), nullable=False))

    exprs = [call("SPLIT_INDEX", text, char(mark), int_(i)) for mark in ("/", "aa", "é", "&") for i in range(3)]
    exprs += [call("REPLACE", text, char("a"), char("")), call("LIKE", text, char("%a/%")), call("CHAR_LENGTH", text)]
    patterns = ("(&|^)id=([^&]*)", "id=([^&]+)", "[&/]id=([^&]*)", "a(b?)", "(?i)ID=([^/]*)")
    exprs += [call("REGEXP_EXTRACT", text, char(p), int_(g)) for p in patterns for g in (0, 1)]
    exprs += [call("POSITION", char("é"), text), call("SUBSTRING", text, int_(2), int_(3))]
    large = compile_projections(exprs, CONTEXT)([column], len(column))
    small = compile_projections(exprs, CONTEXT)
    pieces = [small([column.slice(i, 500)], len(column.slice(i, 500))) for i in range(0, len(column), 500)]
    for index, expr in enumerate(exprs):
        assert large[index].equals(pa.concat_arrays([piece[index] for piece in pieces])), expr


def test_spread_out_moments_format_alike() -> None:
    rng = np.random.default_rng(7)
    column = pa.array(rng.integers(-(10**12), 2 * 10**12, 3000)).cast(pa.timestamp("ms"))
    moment = InputRef(0, t.TimestampType(precision=3))
    for pattern in ("yyyy-MM-dd HH:mm:ss.SSS", "HH:mm", "MM-dd HH", "yyyyMMddHHmmss", "d/M/yyyy H:mm a"):
        text = call("DATE_FORMAT", moment, Literal(pattern, t.CharType(length=len(pattern), nullable=False)))
        (large,) = compile_projections([text], CONTEXT)([column], len(column))
        single = compile_projections([text], CONTEXT)
        assert large.slice(0, 200).to_pylist() == [single([column.slice(i, 1)], 1)[0][0].as_py() for i in range(200)]


def test_columns_are_gathered_for_the_rows_that_ask() -> None:
    """Of a late column that branches alone read, within each other or not."""
    rng = np.random.default_rng(7)
    whole = [pa.array(rng.integers(-3, 4, 200), pa.int32(), mask=rng.random(200) < 0.1) for _ in range(3)]
    rows = np.flatnonzero(rng.random(200) < 0.7)
    late = LateColumns.of(whole, rows)
    plain = [column.take(pa.array(rows)) for column in whole]
    third = InputRef(2, t.INT)
    quotient, other = call("/", third, B), call("/", B, third)
    both = call("AND", NOT_ZERO, call(">", call("/", A, B), int_(-2)))
    nested = call("AND", both, call("OR", call("=", third, int_(0)), call(">", quotient, other)))
    chosen = resolve_case((call("=", B, int_(0)), nested), (int_(0), quotient), call("IF", NOT_ZERO, quotient, A))
    assert run(nested, chosen, columns=late, n=len(rows)) == run(nested, chosen, columns=plain, n=len(rows))
    assert late.origin(1) is None
    assert late.origin(2) is not None
    keep = compile_condition(nested, CONTEXT)
    assert keep(LateColumns.of(whole, rows), len(rows)).tolist() == keep(plain, len(rows)).tolist()
