"""Where the job's operators are others than those of Flink's plan: EXPLAIN shows the plan, and then this."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from flowsql_planner.physical.nodes import (
    IncrementalGroupAggregate,
    MatchNode,
    MiniBatchAssigner,
    Physical,
    TableSourceScan,
    walk,
)
from flowsql_planner.physical.nodes.base import Connectors
from flowsql_planner.physical.nodes.bounded import (
    BoundedAggregate,
    BoundedJoin,
    DistinctAggregate,
    GroupWindowAggregate,
    JoinAlgorithm,
)
from flowsql_planner.physical.passes.mini_batches import idle_assigners

_DEVIATIONS: Final = frozenset({"STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP"})
_MOMENTS: Final = "count, mean and squares in one accumulator, where Flink plans $WELFORD_M2, COUNT and a Calc above"


def execution_notes(roots: Sequence[Physical], parallelism: int, connectors: Connectors) -> str:
    """A line for each node that runs otherwise in a job of that parallelism, or reads what cannot be read again.

    Nothing where the plan says it all.
    """
    idle = idle_assigners(roots)
    rows: dict[str, None] = {}
    for root in roots:
        for node in walk(root):
            if isinstance(node, TableSourceScan):
                guarantee = connectors.source_guarantee(node.table, node.span)
                if guarantee is not None:
                    rows[f"{node.describe()} reads {guarantee}\n"] = None
            if isinstance(node, BoundedAggregate) and any(call.function in _DEVIATIONS for call in node.calls):
                names = ", ".join(dict.fromkeys(c.function for c in node.calls if c.function in _DEVIATIONS))
                rows[f"{names} of {node.describe(infix=True)} keep {_MOMENTS}\n"] = None
            inner = node.idle_lines(parallelism)
            if inner:
                whole = node.own_line(infix=True) if len(inner) == _phases(node) else node.lines(infix=True)[0]
                unsplit = (
                    ", which sees each row once, without buckets" if isinstance(node, IncrementalGroupAggregate) else ""
                )
                run = "runs" if len(inner) == 1 else "run"
                rows[f"{', '.join(inner)} {run} inside of {whole.text()}{unsplit}\n"] = None
                if isinstance(node, BoundedAggregate) and node.runs_in_phases(parallelism):
                    rows[f"{node.local_line().text()} finds groups by hash, without a Sort\n"] = None
            elif isinstance(node, GroupWindowAggregate):
                rows[f"{node.run_note(parallelism)}\n"] = None
            elif isinstance(node, DistinctAggregate):
                rows.update(dict.fromkeys(f"{note}\n" for note in node.phase_notes()))
            elif isinstance(node, MiniBatchAssigner) and id(node) in idle:
                rows[f"{node.describe()} does not run: no operator above waits for its marks\n"] = None
            elif isinstance(node, MatchNode) and node.asked_in_python():
                asked = ", ".join(node.asked_in_python())
                rows[f"{node.describe()} asks Python for the conditions of {asked}, once a row and partial match\n"] = (
                    None
                )
            elif isinstance(node, BoundedJoin) and node.algorithm is JoinAlgorithm.NESTED_LOOP and node.left_keys:
                rows[f"{node.describe(infix=True)} finds rows of equal keys by hash\n"] = None
    return "".join(rows)


def _phases(node: Physical) -> int:
    """Operators of a node's lines behind the first one."""
    return sum(line.name != "Exchange" for line in node.lines()[1:])
