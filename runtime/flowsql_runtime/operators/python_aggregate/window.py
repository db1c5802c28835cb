"""Aggregates with Python functions per key and group window: the operators of windows with other programs.

Functions of pandas see the rows of a window when it closes. General functions walk over rows in bundles, as in PyFlink:
a watermark inside of a bundle follows behind its rows, and so judges none of them late. Windows of the clock have no
bundles: when a row comes says which windows it is in.
"""

from __future__ import annotations

from typing import Any

from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.python_specs import PythonSessionAggregateSpec, PythonWindowAggregateSpec
from flowsql_core.graph.specs import WindowAggregateSpec
from flowsql_core.graph.window_specs import SessionAggregateSpec
from flowsql_core.python_call import aggregated_with
from flowsql_core.udf import FunctionKind
from flowsql_runtime.operators.aggregate.window import WindowAggregateOperator
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.evaluation import eval_context
from flowsql_runtime.operators.python_aggregate.bundle import BundleOperator
from flowsql_runtime.operators.python_aggregate.window_program import (
    PandasWindowProgram,
    PythonWindowProgram,
    python_program,
)
from flowsql_runtime.operators.window.session import SessionAggregateOperator


def window_program(
    spec: PythonWindowAggregateSpec | PythonSessionAggregateSpec,
) -> PythonWindowProgram | PandasWindowProgram:
    """The calls of an operator."""
    return python_program(spec.calls, spec.input, spec.input_retracts, spec.merges)


def of_pandas(spec: WindowAggregateSpec) -> bool:
    """Whether the functions are of pandas."""
    kinds = {function.kind for call in spec.calls if (function := aggregated_with(call)) is not None}
    return FunctionKind.PANDAS.value in kinds


def window_operator(spec: PythonWindowAggregateSpec) -> WindowAggregateOperator:
    """The operator of windows that do not depend on the rows."""
    bundled = not of_pandas(spec) and not spec.window.processing_time
    return (BundledWindowOperator if bundled else PythonWindowOperator)(spec)


def session_operator(spec: PythonSessionAggregateSpec) -> SessionAggregateOperator:
    """The operator of sessions."""
    return (PythonSessionOperator if spec.window.processing_time else BundledSessionOperator)(spec)


class _PythonCalls(Operator[Any]):
    """The functions of an operator of windows: made with it, opened and closed."""

    def make_program(self) -> PythonWindowProgram | PandasWindowProgram:
        """The calls."""
        assert isinstance(self.spec, PythonWindowAggregateSpec | PythonSessionAggregateSpec)
        self._functions = window_program(self.spec)
        return self._functions

    def open(self, ctx: OperatorContext) -> None:
        """Make the state, open the functions."""
        super().open(ctx)
        self._functions.load(ctx, eval_context(ctx).zone)

    def finish(self) -> None:
        """Close the functions, which says whether that went well."""
        self._functions.close()

    def close(self) -> None:
        """Close the functions of a job that failed."""
        self._functions.close()


class PythonWindowOperator(_PythonCalls, WindowAggregateOperator):
    """One row per key and window, when the watermark (or the clock) passes the window's last millisecond.

    In, Out, State, Late as of :class:`WindowAggregateOperator`; pickled accumulators stand by slice where functions
    merge, else by window, and rows of functions of pandas by window.

    Source: PyFlink, ``GroupWindowAggFunction``; Flink, ``StreamArrowPythonGroupWindowAggregateFunctionOperator``.
    """

    # Functions see what they would see if each row came to its windows: the oldest values first.
    _newest_first = False


class BundledWindowOperator(BundleOperator[WindowAggregateSpec], PythonWindowOperator):
    """The same for bundles of rows."""

    def process_bundle(self, batch: ChangelogBatch) -> None:
        """Fold rows into their slices."""
        PythonWindowOperator.process_batch(self, 0, batch)


class PythonSessionOperator(_PythonCalls, SessionAggregateOperator):
    """One row per key and session; as of :class:`SessionAggregateOperator` and :class:`PythonWindowOperator`.

    Accumulators of sessions that touch merge; where a function cannot, rows are kept until their session closes.
    """


class BundledSessionOperator(BundleOperator[SessionAggregateSpec], PythonSessionOperator):
    """The same for bundles of rows."""

    def process_bundle(self, batch: ChangelogBatch) -> None:
        """Put rows into sessions."""
        PythonSessionOperator.process_batch(self, 0, batch)
