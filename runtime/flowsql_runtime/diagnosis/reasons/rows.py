"""Operators that take rows and let none go on, whatever the time is."""

from __future__ import annotations

from flowsql_core.graph.specs import CalcSpec
from flowsql_runtime.diagnosis.reasons.base import Explain, Finding, Reason, tables_text
from flowsql_runtime.diagnosis.snapshot import JobNow, OperatorNow
from flowsql_runtime.diagnosis.words import condition_text, operator_text, rows_text


def _lets_through(rows: int) -> str:
    return "is not true of the only row" if rows == 1 else f"is true of none of the {rows_text(rows)}"


class AllFiltered(Reason):
    """A condition is true of no row."""

    def of(self, job: JobNow, operator: OperatorNow, explain: Explain) -> Finding | None:
        """Of a filter."""
        spec = operator.node.spec
        if not isinstance(spec, CalcSpec) or spec.condition is None:
            return None
        return self.finding(
            operator,
            f"the condition {condition_text(operator.node)} {_lets_through(operator.rows_in)} "
            f"that came from {tables_text(job, operator)} so far",
        )


class AllLate(Reason):
    """Every row came behind the watermark."""

    def of(self, job: JobNow, operator: OperatorNow, explain: Explain) -> Finding | None:
        """Of an operator that drops late rows."""
        if not operator.late or operator.late < operator.rows_in:
            return None
        all_of_them = "the only row" if operator.late == 1 else f"all {rows_text(operator.late)} so far"
        return self.finding(
            operator,
            f"{all_of_them} came too late for {operator_text(operator.node)}; a WATERMARK with more delay keeps them",
        )
