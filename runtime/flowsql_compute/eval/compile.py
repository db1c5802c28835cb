"""Expression IR to vectorised callables: each distinct sub-expression once per batch, branches where they are taken.

A compiled expression is a graph of steps. Evaluating a batch makes a *frame*: its columns and the results so far.
AND, OR, CASE and COALESCE evaluate an operand that may fail or is dear on a sub-frame of just the rows that need it, as
Flink does row by row; operands that are cheap and cannot fail are evaluated whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.array_limits import halves, refuse_wrapped, require_within, within_an_array
from flowsql_compute.eval.cast import cast_array, cast_raises
from flowsql_compute.eval.columns import Bools, TooManyBytesError, values_and_validity
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.literal import constant_float, is_literal_type, literal_scalar, scalar_to_literal
from flowsql_compute.eval.not_null import (
    is_item_for_sure,
    may_hold_default,
    missing_default,
    undeclared,
    without_nulls,
)
from flowsql_compute.eval.planner_facts import decided, divides_by_zero, is_settled, simplified
from flowsql_compute.eval.text.format import without_digits
from flowsql_compute.eval.time.far_moments import may_overflow, moves_nanoseconds, without_far_moments
from flowsql_compute.eval.time.moment_parts import part_definition
from flowsql_compute.eval.truths import as_column, decided_rows, spread_truths, truths, valid_rows
from flowsql_compute.functions.registry import FunctionDef, Invocation, find_definition
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import LateColumns
from flowsql_core.errors import BindError, ExecutionError, FlowSqlError
from flowsql_core.expr import Call, Case, Cast, Expr, InputRef, Literal, children, transform
from flowsql_core.interpreter.large_stack import in_large_stack, with_room
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import (
    ArrayType,
    BigIntType,
    CharacterType,
    DecimalType,
    DoubleType,
    FloatType,
    LogicalType,
)

#: A column, or one value for all rows.
Datum = Any
Rows = npt.NDArray[np.int64]
_Evaluate = Callable[[Sequence[Datum], int], Datum]
Projector = Callable[[Sequence[pa.Array], int], list[pa.Array]]
Condition = Callable[[Sequence[pa.Array], int], Bools]


class _Frame:
    """The rows that a step works on, and what was computed for them."""

    __slots__ = ("_columns", "_parent", "_rows", "n", "results")

    def __init__(self, columns: Sequence[pa.Array], n: int, parent: _Frame | None = None, rows: Any = None) -> None:
        self._columns: dict[int, pa.Array] | Sequence[pa.Array] = columns if parent is None else {}
        self.n = n
        self._parent = parent
        self._rows = rows
        self.results: dict[int, Datum] = {}

    def column(self, index: int) -> pa.Array:
        if self._parent is None:
            return self._columns[index]
        found = self._columns.get(index)  # type: ignore[union-attr]
        if found is None:
            source, rows = self._parent._origin(index, self._rows)
            found = pc.take(source, rows, boundscheck=False)
            self._columns[index] = found  # type: ignore[index]
        return found

    def _origin(self, index: int, rows: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Rows of a column: an array that is there already, and which of its rows they are.

        A column that only a few rows of a frame are asked for is gathered for these alone.
        """
        if self._parent is None:
            if isinstance(self._columns, LateColumns):
                origin = self._columns.origin(index)
                if origin is not None and isinstance(origin[0], pa.Array):
                    return origin[0], pa.array(origin[1][values_and_validity(rows)[0]])
            return self._columns[index], rows
        found = self._columns.get(index)  # type: ignore[union-attr]
        if found is not None:
            return found, rows
        return self._parent._origin(index, pc.take(self._rows, rows, boundscheck=False))

    def known(self, step: int) -> Datum | None:
        """A result of this frame, or of the frame around it cut to these rows."""
        found = self.results.get(step)
        if found is None and self._parent is not None:
            whole = self._parent.known(step)
            if whole is not None:
                found = whole if isinstance(whole, pa.Scalar) else pc.take(whole, self._rows, boundscheck=False)
                self.results[step] = found
        return found

    def blame(self, error: ExecutionError, expr: Expr, args: Sequence[Datum], evaluate: _Evaluate) -> None:
        """Give the error the place in the text, the row and its values. Costs nothing while all goes well."""
        if error.row is None and not all(isinstance(arg, pa.Scalar) for arg in args):
            from flowsql_compute.eval.blame import failed_row, first_failure

            found = first_failure(evaluate, args, self.n)
            if found is not None:
                row, first = found
                error.code, error.message, error.hint, error.args = first.code, first.message, first.hint, first.args
                frame = self
                while frame._parent is not None:
                    row, frame = frame._rows[row].as_py(), frame._parent
                error.row = failed_row(expr, row, frame.column)
        error.at = error.at or expr.span

    def part(self, rows: Rows) -> _Frame:
        return _Frame((), len(rows), self, pa.array(rows))


@dataclass(slots=True, eq=False)
class _Step:
    """One node of the graph. ``raises``/``costly``: this node or one below.

    ``depth`` counts first inputs of first inputs. Every kind of step begins with its first input, on all rows of the
    frame, so that a deep chain is computed from its lowest ``stage`` up: in a loop, not in calls as deep as the chain.
    ``nesting`` counts the calls within calls that computing the step takes, which first inputs do not add to.
    ``shared``: more than one step or column asks for the result.
    """

    index: int
    expr: Expr
    inputs: tuple[_Step, ...]
    run: Callable[[_Frame], Datum]
    raises: bool
    costly: bool
    depth: int = field(init=False)
    nesting: int = field(init=False)
    stage: _Step | None = field(init=False)
    shared: bool = False

    def __post_init__(self) -> None:
        below = self.inputs[0] if self.inputs else None
        self.depth = 0 if below is None else below.depth + 1
        inner = max((step.nesting for step in self.inputs[1:]), default=-1) + 1
        self.nesting = inner if below is None else max(below.nesting, inner)
        if below is None or not below.depth or below.depth % _STAGE:
            self.stage = None if below is None else below.stage
        else:
            self.stage = below

    @property
    def lazy(self) -> bool:
        return self.raises or self.costly

    def __call__(self, frame: _Frame) -> Datum:
        found = frame.known(self.index)
        if found is None:
            if self.stage is not None:
                self._climb(frame)
            found = self.run(frame)
            frame.results[self.index] = found
        return found

    def _climb(self, frame: _Frame) -> None:
        """Compute the stages below, lowest first, unless one in between is known; each is dropped once it is used."""
        todo: list[_Step] = []
        step = self.stage
        while step is not None and frame.known(step.index) is None:
            todo.append(step)
            step = step.stage
        for stage in reversed(todo):
            stage(frame)
            below = stage.inputs[0]
            for _ in range(_STAGE):
                if not below.shared:
                    frame.results.pop(below.index, None)
                if not below.inputs:
                    break
                below = below.inputs[0]


#: Steps of a chain between two stages.
_STAGE = 64
#: Calls within calls from which on an expression is computed with a larger stack.
_NESTED = 100


def compile_projections(exprs: Sequence[Expr], context: EvalContext) -> Projector:
    """A callable ``(columns, n) -> columns`` that computes all expressions over a batch.

    The arrays that come out have the physical types of ``types.arrow``. Raises ExecutionError with the expression's
    place where a row breaks a rule, TooManyBytesError where the values of fewer rows would fit in an array.
    """
    return with_room(lambda: _projections(exprs, context))


def _projections(exprs: Sequence[Expr], context: EvalContext) -> Projector:
    builder = _Builder(context)
    folded = [transform(fold(expr, context), without_far_moments) for expr in exprs]
    declared = [may_hold_default(expr) for expr in folded]
    steps = [builder.step(undeclared(expr)) for expr in folded]
    defaults = [missing_default(expr) for expr in folded]
    # Columns that are handed on fitted in arrays when they came.
    computed = [place for place, expr in enumerate(folded) if not isinstance(expr, InputRef)]

    def project(columns: Sequence[pa.Array], n: int) -> list[pa.Array]:
        frame = _Frame(columns, n)
        with within_an_array(n, builder.memories):
            made = [as_column(step(frame), n) for step in steps]
            for place, expr in enumerate(folded):
                if declared[place]:
                    made[place] = without_nulls(made[place], expr.type)
            require_within([made[place] for place in computed], n)
        return [
            column if default is None or not column.null_count else pc.fill_null(column, default)
            for column, default in zip(made, defaults, strict=True)
        ]

    if max((step.nesting for step in steps), default=0) > _NESTED:
        return lambda columns, n: in_large_stack(lambda: project(columns, n))
    return project


def compile_condition(expr: Expr, context: EvalContext) -> Condition:
    """A callable ``(columns, n) -> mask`` that is True where the predicate is TRUE (neither FALSE nor NULL)."""
    return with_room(lambda: _condition(expr, context))


def _condition(expr: Expr, context: EvalContext) -> Condition:
    builder = _Builder(context)
    step = builder.step(undeclared(transform(fold(expr, context), without_far_moments)))

    def keep(columns: Sequence[pa.Array], n: int) -> Bools:
        try:
            with within_an_array(n, builder.memories):
                return truths(step(_Frame(columns, n)), n)
        except TooManyBytesError:
            return np.concatenate([keep(part, rows) for part, rows in halves(columns, n)])

    if step.nesting > _NESTED:
        return lambda columns, n: in_large_stack(lambda: keep(columns, n))
    return keep


def fold(expr: Expr, context: EvalContext) -> Expr:
    """Constant, deterministic sub-trees replaced by literals; what would fail stays, to fail only if evaluated.

    Raises:
        BindError: the index of an array turns out to be a constant before its first element.
    """

    def change(node: Expr) -> Expr:
        match node:
            case InputRef() | Literal():
                return node
            case Call(function="=", args=(Literal(value=float() as one), Literal(value=float() as other))) if (
                one != one and other != other
            ):
                # The planner knows x = x without asking IEEE about NaN.
                return Literal(True, node.type, node.span)
            case Call(function="ITEM", args=(held, Literal(value=int() as place))) if (
                isinstance(held.type, ArrayType) and place < 1
            ):
                message = f"Array element access needs an index starting at 1 but was {place}."
                raise BindError("bad-index", message, node.span)
            case Call():
                known = decided(node) or simplified(node)
                if known is not None:
                    return known
                if node.function in ("IS NULL", "IS NOT NULL") and is_item_for_sure(node.args[0]):
                    return Literal(node.function == "IS NOT NULL", node.type, node.span)
                definition = find_definition(node)
                if not definition.deterministic:
                    return node
            case Cast(operand=Literal(value=float() as number), type=BigIntType()) if 2.0**63 <= abs(number) < math.inf:
                # The planner casts a written number exactly and keeps its low 64 bits; columns saturate.
                return Literal((int(number) + 2**63) % 2**64 - 2**63, node.type, node.span)
            case Cast(operand=Literal(value=str()), type=FloatType(), safe=False, implicit=False):
                return _float_of_text(node, context)
            case Cast(operand=Literal(value=float() as number, type=FloatType()), type=DoubleType(), implicit=False):
                # Of a FLOAT that was written as text the planner keeps the digits: 0.1, not 0.10000000149011612.
                return Literal(number, node.type, node.span)
            case Cast() | Case():
                pass
            case _:
                assert_never(node)
        if not is_literal_type(node.type) or not all(map(is_settled, children(node))) or divides_by_zero(node):
            return node
        value = _constant_value(node, context)
        if value is None:
            return node
        if not value.is_valid and (not node.type.nullable or is_item_for_sure(node)):
            # A missing element is another value where it is projected.
            # A DECIMAL that overflowed: the sink complains about the NULL, with the column's own type.
            return node
        return replace(scalar_to_literal(value, node.type), span=node.span)

    return transform(expr, change)


def _constant_value(node: Expr, context: EvalContext) -> pa.Scalar | None:
    """The value of an expression without columns; None where it fails."""
    try:
        step = _Builder(context).step(node)
        with within_an_array(1):
            return as_column(step(_Frame((), 1)), 1)[0]
    except FlowSqlError:
        return None


def _float_of_text(node: Cast, context: EvalContext) -> Expr:
    value = _constant_value(node, context)
    if value is None or not value.is_valid:
        return node
    return Literal(constant_float(value.as_py()), node.type, node.span)


class _Builder:
    def __init__(self, context: EvalContext) -> None:
        self.context = context
        self.known: dict[Expr, _Step] = {}
        self.count = 0
        #: What calls with a memory of their own remember.
        self.memories: list[dict[str, Any]] = []

    def step(self, expr: Expr) -> _Step:
        # Long sums nest to the left, deeper than calls of Python may.
        spine: list[Expr] = []
        found = self.known.get(expr)
        while found is None and (below := children(expr)):
            spine.append(expr)
            expr = below[0]
            found = self.known.get(expr)
        if found is None:
            made = self._made(expr, ())
        else:
            made = found
            made.shared = True
        for node in reversed(spine):
            made = self._made(node, (made, *[self.step(child) for child in children(node)[1:]]))
        return made

    def _made(self, expr: Expr, inputs: tuple[_Step, ...]) -> _Step:
        made, repeatable = self._make(expr, inputs)
        if repeatable:
            self.known[expr] = made
        return made

    def _make(self, expr: Expr, inputs: tuple[_Step, ...]) -> tuple[_Step, bool]:
        raises = any(step.raises for step in inputs)
        costly = any(step.costly for step in inputs)
        repeatable = all(self.known.get(step.expr) is step for step in inputs)
        run: Callable[[_Frame], Datum]
        match expr:
            case InputRef(index=column):

                def run(frame: _Frame) -> Datum:
                    return frame.column(column)

            case Literal():
                value = literal_scalar(expr)

                def run(frame: _Frame) -> Datum:
                    return value

            case Cast():
                source, target = expr.operand.type, expr.type
                raises = raises or (cast_raises(source, target) and (not expr.safe or may_overflow(source, target)))
                run = _cast_runner(expr, inputs[0], self.context)
                if _shows_its_digits(expr):
                    run = _shortened(run, inputs[0].inputs[1], source)
            case Case():
                run = _case_runner(expr, inputs)
            case Call(function="AND" | "OR"):
                run = _logic_runner(inputs, absorbing=expr.function == "OR")
            case Call(function="COALESCE"):
                run = _coalesce_runner(expr, inputs)
            case Call():
                definition = part_definition(expr.function) or find_definition(expr)
                raises = raises or definition.raises or moves_nanoseconds(expr)
                costly = costly or definition.costly
                repeatable = repeatable and definition.deterministic
                memory: dict[str, Any] = {}
                if not definition.deterministic:
                    self.memories.append(memory)
                run = _call_runner(expr, inputs, definition, self.context, memory)
            case _:
                assert_never(expr)
        self.count += 1
        return _Step(self.count, expr, inputs, run, raises, costly), repeatable


def _call_runner(
    expr: Call, inputs: tuple[_Step, ...], definition: FunctionDef, context: EvalContext, memory: dict[str, Any]
) -> Callable[[_Frame], Datum]:
    kernel = definition.kernel
    assert kernel is not None
    arrow_type = to_arrow(expr.type)
    arg_types = tuple(arg.type for arg in expr.args)
    passes_call = definition.passes_call

    def evaluate(args: Sequence[Datum], n: int, constant: bool = False) -> Datum:
        if passes_call:
            return kernel(
                Invocation(n, context, arg_types, expr.type, expr.options, memory, constant, expr.args), *args
            )
        return kernel(*args)

    def run(frame: _Frame) -> Datum:
        args = [step(frame) for step in inputs]
        n = frame.n
        constant = definition.deterministic and bool(args) and all(isinstance(arg, pa.Scalar) for arg in args)
        if constant:
            # Kernels count on one column among their arguments; one row is enough.
            args[0] = pa.repeat(args[0], 1)
            n = 1
        try:
            made = evaluate(args, n, constant)
        except ExecutionError as error:
            frame.blame(error, expr, () if constant else args, evaluate)
            raise
        made = _settled(made, arrow_type)
        return made[0] if constant and isinstance(made, pa.Array) else made

    return run


def _settled(made: Datum, arrow_type: pa.DataType) -> Datum:
    if isinstance(made, pa.ChunkedArray):
        made = made.combine_chunks()
    refuse_wrapped(made)
    return made if made.type == arrow_type else pc.cast(made, arrow_type)


def _cast_runner(expr: Cast, operand: _Step, context: EvalContext) -> Callable[[_Frame], Datum]:
    source, target, safe = expr.operand.type, expr.type, expr.safe

    def evaluate(args: Sequence[Datum], n: int) -> Datum:
        return cast_array(args[0], source, target, safe, context)

    def run(frame: _Frame) -> Datum:
        value = operand(frame)
        try:
            if isinstance(value, pa.Scalar):
                return cast_array(pa.repeat(value, 1), source, target, safe, context)[0]
            return cast_array(value, source, target, safe, context)
        except ExecutionError as error:
            frame.blame(error, expr, (value,), evaluate)
            raise

    return run


def _shows_its_digits(expr: Cast) -> bool:
    """Whether this is the text of a DECIMAL that was rounded to a number of digits that is no constant.

    Such a number has a scale of its own in Flink, up to the end of the expression.
    """
    match expr.operand:
        case Call(function="ROUND" | "TRUNCATE", args=(_, digits), type=DecimalType()):
            return isinstance(expr.type, CharacterType) and not isinstance(digits, Literal)
    return False


def _shortened(run: Callable[[_Frame], Datum], digits: _Step, source: LogicalType) -> Callable[[_Frame], Datum]:
    """Texts of DECIMALs with as many digits after the point as ``digits`` says."""
    assert isinstance(source, DecimalType)
    scale = source.scale

    def shorter(frame: _Frame) -> Datum:
        made = run(frame)
        wanted, n = digits(frame), frame.n
        if isinstance(made, pa.Scalar) and isinstance(wanted, pa.Scalar):
            return without_digits(pa.repeat(made, 1), pa.repeat(wanted, 1), scale)[0]
        return without_digits(as_column(made, n), as_column(wanted, n), scale)

    return shorter


def _logic_runner(inputs: tuple[_Step, ...], absorbing: bool) -> Callable[[_Frame], Datum]:
    combine = pc.or_kleene if absorbing else pc.and_kleene

    def run(frame: _Frame) -> Datum:
        made = inputs[0](frame)
        for step in inputs[1:]:
            if not step.lazy or frame.known(step.index) is not None:
                made = combine(made, step(frame))
                continue
            open_rows = np.flatnonzero(~decided_rows(made, frame.n, absorbing))
            if len(open_rows) == frame.n:
                made = combine(made, step(frame))
            elif len(open_rows):
                part = as_column(step(frame.part(open_rows)), len(open_rows))
                # Rows that are decided get NULL here, which cannot change them.
                made = combine(as_column(made, frame.n), spread_truths(part, open_rows, frame.n))
        return made

    return run


def _case_runner(expr: Case, inputs: tuple[_Step, ...]) -> Callable[[_Frame], Datum]:
    count = len(expr.conditions)
    conditions, results = inputs[:count], inputs[count:]
    arrow_type = to_arrow(expr.type)

    def run(frame: _Frame) -> Datum:
        branch = np.full(frame.n, count, dtype=np.int64)
        undecided: Rows | None = None
        for position, step in enumerate(conditions):
            if undecided is not None and not len(undecided):
                break
            if undecided is None:
                hit = np.flatnonzero(truths(step(frame), frame.n))
            elif step.lazy and frame.known(step.index) is None:
                hit = undecided[truths(step(frame.part(undecided)), len(undecided))]
            else:
                hit = undecided[truths(step(frame), frame.n)[undecided]]
            branch[hit] = position
            undecided = np.flatnonzero(branch == count)
        return _gather(frame, branch, results, arrow_type)

    return run


def _gather(frame: _Frame, branch: Rows, results: Sequence[_Step], arrow_type: pa.DataType) -> Datum:
    """Row i of the result that ``branch[i]`` names; results are evaluated where they are needed only."""
    n = frame.n
    if not n:  # a batch may carry watermarks alone
        return pa.nulls(0, arrow_type)
    used = np.flatnonzero(np.bincount(branch, minlength=len(results)))
    if len(used) == 1:
        return results[int(used[0])](frame)
    pieces: list[pa.Array] = []
    index = np.empty(n, dtype=np.int64)
    start = 0
    for position in used:
        step = results[int(position)]
        rows = np.flatnonzero(branch == position)
        if not step.lazy or frame.known(step.index) is not None:
            made = step(frame)
            piece = pa.repeat(made, 1) if isinstance(made, pa.Scalar) else made
            index[rows] = start if isinstance(made, pa.Scalar) else start + rows
        else:
            piece = as_column(step(frame.part(rows)), len(rows))
            index[rows] = start + np.arange(len(rows))
        pieces.append(_settled(piece, arrow_type))
        start += len(piece)
    return pc.take(pa.concat_arrays(pieces), pa.array(index), boundscheck=False)


def _coalesce_runner(expr: Call, inputs: tuple[_Step, ...]) -> Callable[[_Frame], Datum]:
    arrow_type = to_arrow(expr.type)

    def run(frame: _Frame) -> Datum:
        first = inputs[0](frame)
        if not any(step.lazy for step in inputs[1:]):
            made = first
            for step in inputs[1:]:
                made = pc.coalesce(made, step(frame))
            return made
        branch = np.full(frame.n, len(inputs) - 1, dtype=np.int64)
        missing = np.arange(frame.n)
        for position, step in enumerate(inputs[:-1]):
            if not len(missing):
                break
            valid = valid_rows(step(frame.part(missing)), len(missing)) if position else valid_rows(first, frame.n)
            branch[missing[valid]] = position
            missing = missing[~valid]
        return _gather(frame, branch, inputs, arrow_type)

    return run
