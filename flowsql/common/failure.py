"""What a failed job adds to its error: expression, row and tables. Only failures read this module."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.errors import FailedRow, FlowSqlError, shortened
from flowsql_core.graph.job import JobGraph, OperatorNode
from flowsql_core.graph.specs import ScanSpec, SinkSpec

#: Values and tables that one report names.
MAX_NAMED = 6
MAX_EXPRESSION = 240


def explain_failure(error: FlowSqlError, graph: JobGraph) -> None:
    """Give the error of a job the lines that only the whole job knows; a second time changes nothing.

    The operator is found by its description. Of several with the same one, the first answers.
    """
    if error.details:
        return
    plan = _Plan(graph)
    node = None if error.operator is None else plan.named(error.operator)
    if node is None:
        if error.operator is None and error.row is not None and error.row.names is not None:
            # A kernel that another engine calls: no operator stands around it.
            error.details = tuple(_shown(error.row, error.row.names, ""))
        return
    lines: list[str] = []
    if error.row is not None:
        lines += _row_lines(error.row, plan, node)
    sources = [spec.table.name for spec in plan.specs(plan.before, node) if isinstance(spec, ScanSpec)]
    sinks = [spec.table.name for spec in plan.specs(plan.behind, node) if isinstance(spec, SinkSpec)]
    if sources:
        lines.append(f"reading {_listed(sources, 'table')}")
    if sinks:
        lines.append(f"writing {_listed(sinks, 'table')}")
    error.details = tuple(lines)


class _Plan:
    """The job as operators and who hands rows to whom."""

    def __init__(self, graph: JobGraph) -> None:
        self.nodes = {node.id: node for vertex in graph.vertices for node in vertex.operators}
        self.parallel = any(vertex.parallelism > 1 for vertex in graph.vertices if not graph.inputs_of(vertex.id))
        self.before: dict[int, list[int]] = {}
        self.behind: dict[int, list[int]] = {}
        for vertex in graph.vertices:
            for chained in vertex.chain:
                self._add(chained.source, chained.target)
        heads = {vertex.id: vertex.head.id for vertex in graph.vertices}
        for edge in graph.edges:
            self._add(edge.source, heads[edge.target_vertex])

    def _add(self, source: int, target: int) -> None:
        self.before.setdefault(target, []).append(source)
        self.behind.setdefault(source, []).append(target)

    def named(self, name: str) -> OperatorNode | None:
        return next((node for node in self.nodes.values() if node.name == name), None)

    def specs(self, ways: dict[int, list[int]], start: OperatorNode) -> list[object]:
        """Specs of an operator and of all that the ways lead to, the nearest first."""
        seen, queue = {start.id}, [start.id]
        for node in queue:  # grows while it is read
            for following in ways.get(node, ()):
                if following not in seen:
                    seen.add(following)
                    queue.append(following)
        return [self.nodes[node].spec for node in queue]


def _row_lines(row: FailedRow, plan: _Plan, node: OperatorNode) -> list[str]:
    names = row.names
    inputs = plan.before.get(node.id, ())
    if names is None and len(inputs) == 1:
        names = tuple(column.name for column in plan.nodes[inputs[0]].output)
    if names is None and all(index < len(node.output) for index in row.values) and not node.number_of_inputs:
        names = tuple(column.name for column in node.output)
    return _shown(row, names, _place(row, plan.parallel))


def _shown(row: FailedRow, names: Sequence[str] | None, place: str) -> list[str]:
    lines = []
    if row.expr is not None:
        from flowsql_planner.logical.expression_text import ExpressionPrinter

        text = ExpressionPrinter(names, infix=True).print(row.expr)
        lines.append(f"expression: {shortened(text, MAX_EXPRESSION)}")
    shown = list(row.values.items())[:MAX_NAMED]
    values = ", ".join(f"{f'${index}' if names is None else names[index]} = {text}" for index, text in shown)
    if place or values:
        lines.append(f"row: {': '.join(part for part in (place, values) if part)}")
    return lines


def _place(row: FailedRow, parallel: bool) -> str:
    if row.read_row is not None:
        reader = f"subtask {row.subtask + 1} of the source" if parallel else "the source"
        return f"number {row.read_row + 1:,} that {reader} read"
    # Rows of joined pairs and of groups are in no batch that anybody could look at.
    if row.came_row is not None:
        return f"number {row.came_row + 1:,} that came to the operator"
    return f"number {row.row + 1:,} of its batch" if row.batch is not None else ""


def _listed(names: Sequence[str], what: str) -> str:
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - MAX_NAMED} more" if len(distinct) > MAX_NAMED else ""
    return f"{what}{'s' if len(distinct) > 1 else ''} {', '.join(distinct[:MAX_NAMED])}{more}"
