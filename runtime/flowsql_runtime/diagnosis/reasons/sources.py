"""Tables that give no rows."""

from __future__ import annotations

from flowsql_core.graph.specs import ScanSpec
from flowsql_runtime.diagnosis.reasons.base import Explain, Finding, Reason, tables_text
from flowsql_runtime.diagnosis.snapshot import JobNow, OperatorNow
from flowsql_runtime.diagnosis.words import rows_text, tolerance_text
from flowsql_runtime.metrics.told import SourceState


class AllSkipped(Reason):
    """Every row was left out, as it does not fit the table."""

    def of(self, job: JobNow, operator: OperatorNow, explain: Explain) -> Finding | None:
        """Of a source."""
        if not operator.is_source or not operator.skipped:
            return None
        number = "the only row was" if operator.skipped == 1 else f"all {rows_text(operator.skipped)} so far were"
        return self.finding(
            operator,
            f"{number} skipped of {tables_text(job, operator)}: no row fits its columns "
            f"({tolerance_text(operator.node)})",
        )


class Paused(Reason):
    """Watermark alignment lets a source wait for others."""

    holds_later = True

    def of(self, job: JobNow, operator: OperatorNow, explain: Explain) -> Finding | None:
        """Of a source."""
        states = [state for one in operator.subtasks if (state := one.tells(SourceState)) is not None]
        if not states or not all(state.paused for state in states):
            return None
        return self.finding(
            operator,
            f"{tables_text(job, operator)} is ahead of the other sources of its watermark group and waits for them",
        )


class WaitsForFiles(Reason):
    """All files are read, and the table looks for new ones."""

    holds_later = True

    def of(self, job: JobNow, operator: OperatorNow, explain: Explain) -> Finding | None:
        """Of a source."""
        states = [state for one in operator.subtasks if (state := one.tells(SourceState)) is not None]
        if not states or any(state.splits_left or not state.follows for state in states):
            return None
        assert isinstance(operator.node.spec, ScanSpec)
        every = operator.node.spec.table.option("source.monitor-interval")
        look = "" if every is None else f", for which it looks every {every}"
        had = f"has given its {rows_text(operator.rows_out)}" if operator.rows_out else "has given no row yet"
        return self.finding(operator, f"{tables_text(job, operator)} {had} and waits for new files{look}")


class NoRowYet(Reason):
    """A source gave nothing so far."""

    def of(self, job: JobNow, operator: OperatorNow, explain: Explain) -> Finding | None:
        """Of a source."""
        if not operator.is_source:
            return None
        end = "has no rows" if operator.is_over else "has given no row yet"
        return self.finding(operator, f"{tables_text(job, operator)} {end}", operator.is_over)
