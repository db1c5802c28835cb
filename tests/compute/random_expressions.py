"""Random well-typed expressions: whatever they are, evaluating them gives one answer however their rows come.

python tests/compute/random_expressions.py [COUNT [SEED]]

Each expression is evaluated over 17 rows of NULLs and extreme values, over each row alone, over a batch long enough for
the compiled kernels, and with the row's values in place of the columns, which folds it to a constant: values, NULLs and
failures must be the same. A failure must be an error that a job may have, never an exception of Python or Arrow.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial

import pyarrow as pa
import pyarrow.compute as pc
from random_expressions_data import ROWS
from random_expressions_grammar import Grammar, Node

from flowsql_compute.eval.compile import compile_projections, fold
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.literal import is_literal_type, scalar_to_literal
from flowsql_compute.eval.text.columns import KERNEL_ROWS
from flowsql_compute.eval.text.render import Notation, render_column
from flowsql_compute.functions.registry import find_definition
from flowsql_core.errors import ExecutionError, FlowSqlError, InternalError, NotSupportedYetError
from flowsql_core.expr import Call, Cast, Expr, InputRef, transform, walk
from flowsql_core.types import logical as t

#: Times that the rows stand behind one another in the long batch.
REPEATED = KERNEL_ROWS // ROWS + 1
#: CPU time that one expression may take over all its batches.
LIMIT_SECONDS = 5.0
ZONES = ("UTC", "America/Los_Angeles")


class FaultError(Exception):
    """Two ways to evaluate an expression differ, or one of them broke."""


@dataclass
class Outcome:
    """What became of the expressions."""

    evaluated: int = 0
    failed: int = 0
    refused: int = 0
    slowest: float = 0.0
    faults: list[str] = field(default_factory=list)


@cache
def grammar() -> Grammar:
    """The productions, found once a process."""
    return Grammar()


@cache
def _long_columns() -> list[pa.Array]:
    index = pa.array(list(range(ROWS)) * REPEATED)
    return [pc.take(array, index) for array in grammar().arrays]


def plain(array: pa.Array, type_: t.LogicalType) -> list[str]:
    """The values as texts that are equal exactly where the values are; a NaN equals a NaN."""
    if t.is_nested(type_):
        return [repr(text) for text in render_column(array, type_, Notation.JSON).to_pylist()]
    if pa.types.is_timestamp(array.type):
        array = pc.cast(array, pa.int64())
    elif pa.types.is_date32(array.type) or pa.types.is_time32(array.type):
        array = pc.cast(array, pa.int32())
    return [repr(value) for value in array.to_pylist()]


Values = list[str] | FlowSqlError


def evaluate(expr: Expr, columns: list[pa.Array], n: int, context: EvalContext) -> Values:
    """The values of ``n`` rows, or the error that a job would end with.

    Raises:
        FaultError: anything else happened.
    """
    try:
        made = compile_projections([expr], context)(columns, n)[0]
    except (ExecutionError, NotSupportedYetError) as error:
        return error
    except Exception as error:
        raise FaultError(f"{type(error).__name__}: {error}") from error
    if len(made) != n:
        raise FaultError(f"{len(made)} rows of {n}")
    made.validate(full=True)
    return plain(made, expr.type)


def deterministic(expr: Expr) -> bool:
    """Whether the same rows always give the same values."""
    return all(find_definition(node).deterministic for node in walk(expr) if isinstance(node, Call))


def check(expr: Expr, context: EvalContext, rng: random.Random) -> bool:
    """Evaluate in every way; whether there are values, and not an error.

    Raises:
        FaultError: two ways differ.
    """
    columns = grammar().arrays
    whole = evaluate(expr, columns, ROWS, context)
    if not deterministic(expr):
        return isinstance(whole, list)
    rows = [evaluate(expr, [array.slice(row, 1) for array in columns], 1, context) for row in range(ROWS)]
    wrong = [row for row in rows if isinstance(row, FlowSqlError)]
    if isinstance(whole, FlowSqlError):
        if not wrong:
            raise FaultError(f"fails as a whole ({whole.message}), but no row does")
    elif wrong:
        raise FaultError(f"a row fails ({wrong[0].message}), but not the whole")
    else:
        _compare(whole, [value for row in rows if isinstance(row, list) for value in row], "alone")
        if not expr.type.nullable and "None" in whole and not _may_be_missing(expr):
            raise FaultError(f"NULL in {expr.type}")
    long = evaluate(expr, _long_columns(), ROWS * REPEATED, context)
    if isinstance(long, FlowSqlError) != isinstance(whole, FlowSqlError):
        raise FaultError(f"in a long batch: {long if isinstance(long, FlowSqlError) else 'no error'}")
    if isinstance(long, list) and isinstance(whole, list):
        _compare(whole * REPEATED, long, "in a long batch")
    for row in rng.sample(range(ROWS), 3):
        _check_folding(expr, row, rows[row], context)
    return isinstance(whole, list)


def _compare(wanted: list[str], found: list[str], where: str) -> None:
    for row, (one, other) in enumerate(zip(wanted, found, strict=True)):
        if one != other:
            raise FaultError(f"row {row % ROWS}: {one}, but {where} {other}")


def _may_be_missing(expr: Expr) -> bool:
    """DECIMAL overflow, LPAD and malformed patterns make NULL of a NOT NULL type, as in Flink; a sink complains."""
    names = ("LPAD", "RPAD", "REGEXP_REPLACE")
    padded = any(isinstance(node, Call) and node.function in names for node in walk(expr))
    return padded or any(isinstance(node.type, t.DecimalType) for node in walk(expr))


# Folding


def _check_folding(expr: Expr, row: int, wanted: Values, context: EvalContext) -> None:
    constants = _with_constants(expr, row)
    if constants is None or _folds_otherwise(expr):
        return
    found = evaluate(constants, [], 1, context)
    if isinstance(wanted, FlowSqlError) and isinstance(found, list) and _is_decided(constants, context):
        return
    if isinstance(found, FlowSqlError) != isinstance(wanted, FlowSqlError):
        error = found if isinstance(found, FlowSqlError) else wanted
        raise FaultError(f"row {row}: only {'folded' if error is found else 'not folded'} it fails: {error}")
    if isinstance(found, list) and found != wanted and not _is_otherwise_written(expr, row, context):
        raise FaultError(f"row {row}: {wanted}, but folded {found}")
    folded = fold(constants, context)
    if folded.type.as_nullable() != expr.type.as_nullable():
        raise FaultError(f"{expr.type}, but folded {folded.type}")


def _is_decided(constants: Expr, context: EvalContext) -> bool:
    """Whether a constant decides an AND or OR, of which the planner then drops what would fail, as Calcite does."""
    for node in walk(constants):
        if isinstance(node, Call) and node.function in ("AND", "OR"):
            for arg in node.args:
                decided = evaluate(arg, [], 1, context)
                if decided == [repr(node.function == "OR")]:
                    return True
    return False


def _with_constants(expr: Expr, row: int) -> Expr | None:
    """The expression with a row's values for its columns; None where a type has no constants."""
    columns = grammar().arrays
    if not all(is_literal_type(node.type) for node in walk(expr) if isinstance(node, InputRef)):
        return None

    def change(node: Expr) -> Expr:
        return scalar_to_literal(columns[node.index][row], node.type) if isinstance(node, InputRef) else node

    return transform(expr, change)


def _folds_otherwise(expr: Expr) -> bool:
    """Whether the planner computes written numbers otherwise than a job does: see ``eval.compile.fold``.

    Its FLOAT is the shortest decimal; a number that is too large for a BIGINT keeps its low bits; it does not divide by
    zero; a missing element of an array that has no NULLs is another value where it is projected.
    """
    for node in walk(expr):
        match node:
            case Cast(operand=operand, type=t.DoubleType()) if isinstance(operand.type, t.FloatType):
                return True
            case Cast(operand=operand, type=t.BigIntType()) if isinstance(operand.type, t.ApproximateType):
                return True
            case Call(function="ITEM"):
                return True
            case Call(function="/", type=t.ApproximateType()):
                return True
    return False


def _is_otherwise_written(expr: Expr, row: int, context: EvalContext) -> bool:
    """Whether a part of the expression is -0.0, which constants do not know, or a NaN, which equals itself there."""
    columns = [array.slice(row, 1) for array in grammar().arrays]
    parts = [node for node in walk(expr) if isinstance(node.type, t.ApproximateType)]
    return any(evaluate(part, columns, 1, context) in (["-0.0"], ["nan"]) for part in parts)


# Many


def fault_of(node: Node, context: EvalContext, seed: int, outcome: Outcome | None = None) -> str | None:
    """What is wrong with an expression; None if nothing is."""
    counts = outcome or Outcome()
    started = time.thread_time()
    try:
        expr = grammar().bind(node.text)
        # Some of what is refused shows in constants only.
        fold(expr, context)
    except InternalError as error:
        return f"binding: {error.message}"
    except FlowSqlError:
        counts.refused += 1
        return None
    except Exception as error:
        return f"binding: {type(error).__name__}: {error}"
    try:
        if check(expr, context, random.Random(seed)):
            counts.evaluated += 1
        else:
            counts.failed += 1
    except FaultError as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    taken = time.thread_time() - started
    counts.slowest = max(counts.slowest, taken)
    return None if taken < LIMIT_SECONDS else f"takes {taken:.1f} s"


def smallest_fault(node: Node, context: EvalContext, seed: int) -> str | None:
    """The fault of the shortest part that has one."""
    for part in node.below():
        fault = fault_of(part, context, seed)
        if fault is not None:
            return f"{part.text}\n    {context.zone}, {fault}"
    return None


def run(count: int, seed: int, shown: bool = False, report: Callable[[str], None] | None = None) -> Outcome:
    """Check ``count`` expressions that bind.

    Args:
        shown: Print each one before (a crash says nothing of itself).
        report: Called with each fault when it is found.
    """
    rng = random.Random(seed)
    outcome = Outcome()
    while outcome.evaluated + outcome.failed + len(outcome.faults) < count:
        node = grammar().expression(rng)
        context = EvalContext(zone=rng.choice(ZONES))
        if shown:
            print(node.text, flush=True)
        own = rng.randrange(2**32)
        fault = fault_of(node, context, own, outcome)
        if fault is not None:
            outcome.faults.append(smallest_fault(node, context, own) or f"{node.text}\n    {context.zone}, {fault}")
            if report is not None:
                report(outcome.faults[-1])
    return outcome


def main() -> int:
    """Run from the command line."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--show"]
    count = int(arguments[0]) if arguments else 10_000
    outcome = run(
        count, int(arguments[1]) if len(arguments) > 1 else 1, "--show" in sys.argv, partial(print, flush=True)
    )
    print(
        f"{outcome.evaluated} evaluated, {outcome.failed} with an error of their rows, "
        f"{outcome.refused} not well-typed, slowest {outcome.slowest * 1e3:.0f} ms"
    )
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
