"""Which evaluator runs a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowsql_core.udf import FunctionKind
from flowsql_runtime.python.evaluate import ArrowEvaluator, Evaluator, RowEvaluator
from flowsql_runtime.python.program import PythonProgram


def make_evaluator(program: PythonProgram, functions: Sequence[Any]) -> Evaluator:
    """The evaluator of a program's kind; ``functions`` in the program's order."""
    match program.kind:
        case FunctionKind.GENERAL:
            return RowEvaluator(program, functions)
        case FunctionKind.ASYNC:
            from flowsql_runtime.python.async_calls import AsyncEvaluator

            return AsyncEvaluator(program, functions)
        case FunctionKind.PANDAS:
            from flowsql_runtime.python.pandas_batches import PandasEvaluator

            return PandasEvaluator(program, functions)
        case FunctionKind.ARROW:
            return ArrowEvaluator(program, functions)
