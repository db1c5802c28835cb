"""Stable operator ids: the same operator keeps its id, and with it its state, across small edits of a query.

An identity says what the operator is (kind), by what it partitions (names of its keys) and from which tables its rows
come; not which columns it reads, and not where a rule put it. Equal identities are numbered in plan order.
"""

from __future__ import annotations

import hashlib
from collections import Counter

from flowsql_planner.physical.nodes import (
    Exchange,
    GroupAggregate,
    JoinNode,
    Physical,
    SinkNode,
    TableSourceScan,
    WindowAggregate,
    WindowJoin,
)


class UidAssigner:
    """Gives ids to the operators of one job, in plan order."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._lineages: dict[int, frozenset[str]] = {}

    def assign(self, node: Physical) -> str:
        """The id of a node's operator: a readable kind and 12 hex digits."""
        kind = type(node).__name__.removesuffix("Node")
        identity = "|".join((kind, ",".join(_keys(node)), ",".join(sorted(self._lineage(node)))))
        ordinal = self._seen[identity]
        self._seen[identity] += 1
        digest = hashlib.sha256(f"{identity}|{ordinal}".encode()).hexdigest()[:12]
        return f"{kind}-{digest}"

    def _lineage(self, node: Physical) -> frozenset[str]:
        if id(node) not in self._lineages:
            own = frozenset[str]()
            if isinstance(node, TableSourceScan):
                own = frozenset({node.table.name})
            elif isinstance(node, SinkNode):
                own = frozenset({f"> {node.name}"}) if node.table is not None else own
            self._lineages[id(node)] = own.union(*(self._lineage(child) for child in node.inputs))
        return self._lineages[id(node)]


def _keys(node: Physical) -> tuple[str, ...]:
    match node:
        case GroupAggregate(grouping=grouping) | WindowAggregate(grouping=grouping):
            return _named(node.inputs[0], grouping)
        case JoinNode(left_keys=left, right_keys=right) | WindowJoin(left_keys=left, right_keys=right):
            return (*_named(node.inputs[0], left), *_named(node.inputs[1], right))
        case Exchange(keys=keys):
            return _named(node, keys)
        case _:
            return ()


def _named(node: Physical, columns: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(node.schema[index].name for index in columns)
