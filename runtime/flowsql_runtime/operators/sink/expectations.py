"""Judging batches by what a table expects of its rows: a condition is evaluated for all rows of a batch at once."""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.eval.columns import Bools
from flowsql_compute.eval.compile import compile_condition
from flowsql_compute.functions.registry import resolve_call
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import ExecutionError, FailedRow
from flowsql_core.expr import input_refs
from flowsql_core.graph.constraints import Expectation
from flowsql_core.graph.expectation import ViolationAction
from flowsql_core.graph.specs import ConstraintEnforcerSpec
from flowsql_core.row import DELETE, INSERT
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.evaluation import eval_context

#: Kinds of changes when an update is two of them, by kind.
_RETRACTED: Final = np.array([INSERT, DELETE, INSERT, DELETE], np.uint8)


class ExpectationJudge:
    """Applies expectations in the order of the table, to the values that are written.

    Rows that come (``+I``, ``+U``) may fail the job and are counted; what is taken back was judged when it came. A row
    that is left out is left out when it is taken back, too: a condition has one answer for a row.
    """

    def __init__(self, spec: ConstraintEnforcerSpec, ctx: OperatorContext) -> None:
        context = eval_context(ctx)
        self._spec = spec
        self._rules = tuple(
            (
                each,
                compile_condition(resolve_call("IS FALSE", (each.condition,)), context),
                ctx.metrics.expectation(each.table, each.name),
            )
            for each in spec.expectations
        )

    def check(self, batch: ChangelogBatch) -> tuple[ChangelogBatch, Bools | None]:
        """The batch without the rows to leave out; which rows it kept, None for all.

        Raises:
            ExecutionError: a row breaks an expectation that fails the job.
        """
        if not self._rules or not batch.num_rows:
            return batch, None
        retracting = batch.retracting
        coming = np.ones(batch.num_rows, np.bool_) if retracting is None else ~retracting
        kept: Bools | None = None
        for expectation, breaks, counts in self._rules:
            broken = breaks(batch.columns, batch.num_rows)
            if kept is not None:
                # What an earlier expectation left out is not judged again.
                broken = broken & kept
            found = broken & coming
            number = int(np.count_nonzero(found))
            if number and expectation.action is ViolationAction.FAIL:
                raise self._failure(expectation, batch, int(np.flatnonzero(found)[0]))
            judged = coming if kept is None else coming & kept
            counts.passed += int(np.count_nonzero(judged)) - number
            if expectation.action is ViolationAction.DROP:
                counts.dropped += number
                if broken.any():
                    kept = ~broken if kept is None else kept & ~broken
            else:
                counts.warned += number
        if kept is not None:
            batch = batch.filter(kept)
        if self._spec.retracts and batch.kinds is not None:
            batch = batch.with_kinds(_RETRACTED[batch.kinds])
        return batch, kept

    def _failure(self, expectation: Expectation, batch: ChangelogBatch, row: int) -> ExecutionError:
        from flowsql_compute.eval.blame import value_text  # after a failure only

        error = ExecutionError(
            "expectation-violated",
            f"Table '{expectation.table}' expects '{expectation.name}' of its rows: CHECK ({expectation.text}), "
            "however, a row that breaks it is being written.",
            hint="ON VIOLATION DROP leaves such rows out, ON VIOLATION WARN counts them",
        )
        columns = self._spec.input
        # Those that the condition reads stand first: a report shows a few.
        read = input_refs(expectation.condition)
        order = sorted(range(len(columns)), key=lambda index: index not in read)
        values = {index: value_text(batch.columns[index], columns[index].type, row) for index in order}
        error.row = FailedRow(row, values, names=tuple(column.name for column in columns))
        error.row.arrived_in(batch, row)
        return error
