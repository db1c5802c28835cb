"""The stream graph as EXPLAIN shows it: JSON_EXECUTION_PLAN, and FlowSQL's chaining decisions."""

from __future__ import annotations

import json

from flowsql_core.graph.specs import CollectSinkSpec, SinkSpec, UnionSpec
from flowsql_planner.physical.nodes import SinkNode, TableSourceScan
from flowsql_planner.translate.graph import StreamEdge, StreamGraph, StreamNode


def json_plan(graph: StreamGraph) -> str:
    """Flink's JSON of a stream graph. Unions are edges there, and a collected answer has no sink."""
    nodes = []
    for number, node in graph.nodes.items():
        if isinstance(node.operator.spec, UnionSpec | CollectSinkSpec):
            continue
        entry: dict[str, object] = {
            "id": number,
            "type": _type(node),
            "pact": _pact(node),
            "contents": f"[{number}]:{_line(node)}",
            "parallelism": node.parallelism,
        }
        predecessors = [
            {"id": edge.source, "ship_strategy": edge.partitioning.strategy.value, "side": "second"}
            for edge in _real_inputs(graph, number)
        ]
        if predecessors:
            entry["predecessors"] = predecessors
        nodes.append(entry)
    return _layout({"nodes": nodes})


def _real_inputs(graph: StreamGraph, number: int) -> list[StreamEdge]:
    found = []
    for edge in graph.inputs_of(number):
        if isinstance(graph.nodes[edge.source].operator.spec, UnionSpec):
            found.extend(_real_inputs(graph, edge.source))
        else:
            found.append(edge)
    return found


def _type(node: StreamNode) -> str:
    number = node.operator.id
    match node.physical:
        case TableSourceScan(table=table):
            return f"Source: {table.path[-1]}[{number}]"
        case SinkNode() if not isinstance(node.operator.spec, SinkSpec):
            return f"{_short(_line(node))}[{number}]"
        case SinkNode(name=name):
            return f"Sink: {name.rpartition('.')[2]}[{number}]"
        case _:
            return f"{_line(node).partition('(')[0]}[{number}]"


def _line(node: StreamNode) -> str:
    """The operator's line; a source bears its table's name instead."""
    if isinstance(node.physical, TableSourceScan):
        return node.physical.describe(infix=True)
    return node.operator.name


def _pact(node: StreamNode) -> str:
    if not node.physical.inputs:
        return "Data Source"
    return "Data Sink" if isinstance(node.operator.spec, SinkSpec) else "Operator"


def _layout(value: object, indent: str = "") -> str:
    """JSON in the layout of Flink's printer: lists open and close on the lines of their members, colons stand free."""
    if isinstance(value, dict):
        inner = indent + "  "
        members = (f"{inner}{json.dumps(key)} : {_layout(member, inner)}" for key, member in value.items())
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    if isinstance(value, list):
        return "[ " + ", ".join(_layout(member, indent) for member in value) + " ]"
    return json.dumps(value, ensure_ascii=False)


def chaining_text(graph: StreamGraph) -> str:
    """One line an edge: chained or not, and why."""
    rows = []
    for edge in graph.edges:
        source, target = graph.nodes[edge.source].operator, graph.nodes[edge.target].operator
        word = "chained" if edge.decision.chained else "not chained"
        rows.append(
            f"{_short(source.name)}[{edge.source}] -> {_short(target.name)}[{edge.target}]: {word} "
            f"({edge.decision.reason})"
        )
    return "\n".join(rows) + "\n"


def _short(name: str) -> str:
    return name.partition("(")[0].partition("[")[0]
