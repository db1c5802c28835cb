"""Joins without results."""

from __future__ import annotations

from typing import Final

from flowsql_core.graph.specs import JoinKind, JoinSpec, WindowJoinSpec
from flowsql_core.graph.time_join_specs import IntervalJoinSpec, LookupJoinSpec, TemporalJoinSpec
from flowsql_runtime.diagnosis.reasons.base import Explain, Finding, Reason, tables_text
from flowsql_runtime.diagnosis.snapshot import JobNow, OperatorNow
from flowsql_runtime.diagnosis.words import condition_text, rows_text

_SIDES: Final = ("left", "right")
#: Inputs without which a join has no rows.
_NEEDED: Final = {
    JoinKind.INNER: (0, 1),
    JoinKind.SEMI: (0, 1),
    JoinKind.LEFT: (0,),
    JoinKind.ANTI: (0,),
    JoinKind.RIGHT: (1,),
    JoinKind.FULL: (),
}


def _kind(operator: OperatorNow) -> JoinKind | None:
    spec = operator.node.spec
    return spec.kind if isinstance(spec, JoinSpec | WindowJoinSpec | IntervalJoinSpec | TemporalJoinSpec) else None


def _rows(job: JobNow, operator: OperatorNow, side: int) -> int:
    return sum(one.rows_out for one in job.feeding(operator.node.id, side))


class EmptySide(Reason):
    """One side of a join has no rows, so nothing can meet."""

    def of(self, job: JobNow, operator: OperatorNow, explain: Explain) -> Finding | None:
        """Of a join that needs the side."""
        kind = _kind(operator)
        for side in () if kind is None else _NEEDED[kind]:
            if _rows(job, operator, side):
                continue
            found = [why for one in job.feeding(operator.node.id, side) if (why := explain(job, one)) is not None]
            if found:
                text = f"the {_SIDES[side]} side of the join has no rows: {found[0].text}"
                return self.finding(operator, text, side, found[0].key)
            # It is busy: its rows may be about to come.
            return None
        return None


class NoMatch(Reason):
    """Both sides have rows, none of which meet."""

    def of(self, job: JobNow, operator: OperatorNow, explain: Explain) -> Finding | None:
        """Of a join that needs both sides."""
        kind = _kind(operator)
        if kind is None or len(_NEEDED[kind]) < 2 or isinstance(operator.node.spec, WindowJoinSpec):
            return None
        left, right = (
            f"{rows_text(_rows(job, operator, side))} of {_tables(job, operator, side)}" for side in range(2)
        )
        return self.finding(
            operator, f"no pair so far of {left} and {right} fulfils the join's {condition_text(operator.node)}"
        )


class NoPartner(Reason):
    """No row has a partner in the table that is looked up."""

    def of(self, job: JobNow, operator: OperatorNow, explain: Explain) -> Finding | None:
        """Of a lookup join that needs one."""
        spec = operator.node.spec
        if not isinstance(spec, LookupJoinSpec) or spec.kind is not JoinKind.INNER:
            return None
        return self.finding(
            operator,
            f"table '{spec.scan.table.path[-1]}' had no row for any of the {rows_text(operator.rows_in)} of "
            f"{tables_text(job, operator)} that looked for one",
        )


def _tables(job: JobNow, operator: OperatorNow, side: int) -> str:
    feeding = job.feeding(operator.node.id, side)
    return " and ".join(dict.fromkeys(tables_text(job, one) for one in feeding))
