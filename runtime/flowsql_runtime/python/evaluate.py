"""Runs a program over batches: columns become what the functions take once a batch, the functions are called, results
become columns. The same code runs in a task's thread and in a worker process.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa

from flowsql_compute.eval.literal import literal_array
from flowsql_core import column_bytes
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import FlowSqlError
from flowsql_core.expr import Literal
from flowsql_core.python_call import spoken_name
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import LogicalType
from flowsql_core.udf import FunctionContext, FunctionKind, UserDefinedFunction, called
from flowsql_runtime.python.failure import (
    UserFailure,
    UserFailureError,
    call_text,
    describe_failure,
    value_text,
)
from flowsql_runtime.python.program import ColumnArgument, PythonProgram, Step, StepArgument
from flowsql_runtime.python.values_in import Reader, reader
from flowsql_runtime.python.values_out import Writer, WrongValueError, one_array, writer

#: Codes of failures.
RAISED: Final = "python-function-failed"
WRONG_RESULT: Final = "python-function-result"


class Evaluator(ABC):
    """The functions of one subtask. ``run`` is called between ``open`` and ``close``, in one thread."""

    def __init__(self, program: PythonProgram, functions: Sequence[Any]) -> None:
        self.program = program
        self.functions = tuple(functions)
        self.calls: tuple[Callable[..., Any], ...] = tuple(called(function) for function in functions)

    def open(self, context: FunctionContext) -> None:
        """Open every function once; raises UserFailureError."""
        self._opened: list[tuple[str, UserDefinedFunction]] = []
        for function, declared in zip(self.functions, self.program.functions, strict=True):
            if isinstance(function, UserDefinedFunction):
                # Closed also when opening fails half-way.
                self._opened.append((declared.name, function))
                self._life(declared.name, "open", partial(function.open, context))

    def close(self) -> None:
        """Close every function that was opened; raises the first UserFailureError after all were tried."""
        first: UserFailureError | None = None
        opened, self._opened = getattr(self, "_opened", []), []
        for name, function in opened:
            try:
                self._life(name, "close", function.close)
            except UserFailureError as error:
                first = first or error
        if first is not None:
            raise first

    @staticmethod
    def _life(name: str, method: str, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:
            where = f"{method}() of the Python function '{spoken_name(name)}'"
            raise UserFailureError(UserFailure(RAISED, describe_failure(error, where))) from error

    @abstractmethod
    def run(self, columns: Sequence[pa.Array], n: int) -> list[pa.Array]:
        """The output columns of ``n`` rows; raises UserFailureError."""

    def name_of(self, step: Step) -> str:
        """The function's name, as messages say it."""
        return spoken_name(self.program.functions[step.function].name)


class RowEvaluator(Evaluator):
    """Row by row: ``map`` over lists of Python values, one function after the other."""

    def __init__(self, program: PythonProgram, functions: Sequence[Any]) -> None:
        super().__init__(program, functions)
        self._readers: list[Reader] = [reader(type_, program.zone) for type_ in program.columns]
        self._writers: dict[int, Writer] = {
            step: writer(program.steps[step].type, program.zone) for step in program.outputs
        }
        self._constants = constants(program)

    def run(self, columns: Sequence[pa.Array], n: int) -> list[pa.Array]:
        """The output columns of ``n`` rows."""
        lists = self.values_of(columns)
        results: list[list[Any]] = []
        for position, step in enumerate(self.program.steps):
            results.append(self._called(position, step, lists, results, n))
        written: dict[int, pa.Array] = {}
        for position in self.program.outputs:
            if position not in written:
                written[position] = self.written(position, results, lists)
        return [written[position] for position in self.program.outputs]

    def values_of(self, columns: Sequence[pa.Array]) -> list[list[Any]]:
        """Columns as the values that functions take."""
        return [read(column) for read, column in zip(self._readers, columns, strict=True)]

    def _called(self, position: int, step: Step, lists: list[list[Any]], results: list[list[Any]], n: int) -> list[Any]:
        call = self.calls[step.function]
        made: list[Any] = []
        try:
            if not any(isinstance(arg, ColumnArgument | StepArgument) for arg in step.args):
                values = self.row(step, lists, results, 0)
                for _ in range(n):
                    made.append(call(*values))
            else:
                # Should a call fail, the list holds the results of the rows before it.
                made.extend(map(call, *self._columns(step, lists, results)))
                if len(made) < n:
                    raise RuntimeError("StopIteration")  # it ends ``map`` without a word
        except Exception as error:
            row = len(made)
            where = call_text(self.name_of(step), call, self.row(step, lists, results, row))
            raise UserFailureError(UserFailure(RAISED, describe_failure(error, where), row, position)) from error
        return made

    def _columns(self, step: Step, lists: list[list[Any]], results: list[list[Any]]) -> list[Any]:
        return [
            lists[arg.position]
            if isinstance(arg, ColumnArgument)
            else results[arg.step]
            if isinstance(arg, StepArgument)
            else itertools.repeat(self._constants[arg])
            for arg in step.args
        ]

    def row(self, step: Step, lists: list[list[Any]], results: list[list[Any]], row: int) -> list[Any]:
        """The arguments of one row."""
        return [
            lists[arg.position][row]
            if isinstance(arg, ColumnArgument)
            else results[arg.step][row]
            if isinstance(arg, StepArgument)
            else self._constants[arg]
            for arg in step.args
        ]

    def written(self, position: int, results: list[list[Any]], lists: list[list[Any]]) -> pa.Array:
        """The column of a step's results."""
        step = self.program.steps[position]
        try:
            return self._writers[position](results[position])
        except WrongValueError as error:
            call = call_text(self.name_of(step), self.calls[step.function], self.row(step, lists, results, error.row))
            text = wrong_value_text(error, step.type)
            raise UserFailureError(UserFailure(WRONG_RESULT, f"{text}\nin {call}", error.row, position)) from None


class BatchEvaluator(Evaluator):
    """Batch by batch. Constants are handed over as they are; a result is handed on to other functions as it is."""

    def __init__(self, program: PythonProgram, functions: Sequence[Any]) -> None:
        super().__init__(program, functions)
        self._constants = constants(program)

    def run(self, columns: Sequence[pa.Array], n: int) -> list[pa.Array]:
        """The output columns of ``n`` rows, computed in batches of the configured size."""
        size = self.program.batch_rows
        parts = [
            self._part([column.slice(start, size) for column in columns], min(size, n - start))
            for start in range(0, n, size)
        ]
        return joined(parts, self.program)

    @abstractmethod
    def _part(self, columns: list[pa.Array], n: int) -> list[pa.Array]:
        """The output columns of one batch."""

    def _arguments(self, step: Step, columns: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        return [
            columns[arg.position]
            if isinstance(arg, ColumnArgument)
            else results[arg.step]
            if isinstance(arg, StepArgument)
            else self._constants[arg]
            for arg in step.args
        ]


class ArrowEvaluator(BatchEvaluator):
    """Arrow arrays in, an Arrow array of as many rows out."""

    def _part(self, columns: list[pa.Array], n: int) -> list[pa.Array]:
        results: list[pa.Array] = []
        for position, step in enumerate(self.program.steps):
            made = call_batch(self, position, step, self._arguments(step, columns, results), n)
            results.append(self._column(position, step, made, n))
        return [results[position] for position in self.program.outputs]

    def _column(self, position: int, step: Step, made: Any, n: int) -> pa.Array:
        if isinstance(made, pa.ChunkedArray):
            made = one_array(made)
        if not isinstance(made, pa.Array):
            raise wrong_batch(self, position, step, f"pyarrow.Array expected, got {type(made).__name__}")
        check_length(self, position, step, len(made), n)
        wanted = to_arrow(step.type)
        try:
            column = cast_column(made, wanted)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError) as error:
            raise wrong_batch(self, position, step, str(error)) from None
        if column.null_count and not step.type.nullable:
            raise wrong_batch(self, position, step, "NULL in it")
        return column


def cast_column(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """A result as its type's column, wide (``column_bytes``) where it takes too many bytes.

    Numbers, times and nested types may change their width, never their value.

    Raises:
        TypeError: texts for something else, or something else for texts; ArrowInvalid: a value does not fit.
    """
    if column.type == wanted:
        return column
    if column.type == column_bytes.wide_type(wanted) and not column_bytes.fit_together([column]):
        return column
    kinds = pa.types
    given_text = kinds.is_string(column.type) or kinds.is_large_string(column.type)
    if given_text is not kinds.is_string(wanted) and not kinds.is_null(column.type):
        raise TypeError(f"{column.type} is no {wanted}")
    return pc.cast(column, wanted)


def constants(program: PythonProgram) -> dict[Literal, Any]:
    """The literals among the arguments as Python values."""
    literals = {arg for step in program.steps for arg in step.args if isinstance(arg, Literal)}
    return {literal: reader(literal.type, program.zone)(literal_array(literal, 1))[0] for literal in literals}


def call_batch(evaluator: Evaluator, position: int, step: Step, args: list[Any], n: int) -> Any:
    """Call a function that takes columns."""
    try:
        return evaluator.calls[step.function](*args)
    except Exception as error:
        where = f"the Python function '{evaluator.name_of(step)}', called with {n:,} rows"
        raise UserFailureError(UserFailure(RAISED, describe_failure(error, where), None, position)) from error


def check_length(evaluator: Evaluator, position: int, step: Step, found: int, n: int) -> None:
    """A function of columns gives as many rows as it took."""
    if found != n:
        name = evaluator.name_of(step)
        kind = "Pandas UDF" if evaluator.program.kind is FunctionKind.PANDAS else "Arrow UDF"
        text = f"The result length '{found}' of {kind} '{name}' is not equal to the input length '{n}'"
        raise UserFailureError(UserFailure(WRONG_RESULT, text, None, position))


def wrong_batch(evaluator: Evaluator, position: int, step: Step, reason: str) -> UserFailureError:
    """The failure of a result that is no column of the function's type."""
    text = f"The Python function '{evaluator.name_of(step)}' returned no column of {step.type}: {reason}"
    return UserFailureError(UserFailure(WRONG_RESULT, text, None, position))


def joined(parts: list[list[pa.Array]], program: PythonProgram) -> list[pa.Array]:
    """Columns of several batches, one behind the other, wide (``column_bytes``) where they take too many bytes."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return [pa.array([], to_arrow(program.steps[position].type)) for position in program.outputs]
    return [column_bytes.joined([part[index] for part in parts]) for index in range(len(program.outputs))]


def wrong_value_text(error: WrongValueError, type_: LogicalType) -> str:
    """What is wrong with a returned value."""
    shown = "None" if error.value is None else f"{value_text(error.value)} ({type(error.value).__name__})"
    reason = f": {error.reason}" if error.reason else ""
    return f"The Python function returned {shown}, which is no {type_}{reason}"


def as_failure(error: BaseException) -> UserFailure:
    """Whatever broke a run, in a form that can be sent."""
    if isinstance(error, UserFailureError):
        return error.failure
    if isinstance(error, FlowSqlError):
        return UserFailure(error.code, error.message)
    return UserFailure(RAISED, describe_failure(error, "a Python function"))
