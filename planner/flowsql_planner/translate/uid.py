"""Stable operator ids: the same operator keeps its id, and with it its state, across small edits of a query.

An identity says what the operator is (kind), by what it partitions (names of its keys) and from which tables its rows
come; not which columns it reads, and not where a rule put it. Equal identities are numbered in plan order.
"""

from __future__ import annotations

import hashlib
from collections import Counter

from flowsql_planner.physical.nodes import Physical


class UidAssigner:
    """Gives ids to the operators of one job, in plan order."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._lineages: dict[int, frozenset[str]] = {}

    def assign(self, node: Physical) -> str:
        """The id of a node's operator: a readable kind and 12 hex digits."""
        identity = "|".join((node.title, ",".join(node.uid_keys()), ",".join(sorted(self._lineage(node)))))
        ordinal = self._seen[identity]
        self._seen[identity] += 1
        digest = hashlib.sha256(f"{identity}|{ordinal}".encode()).hexdigest()[:12]
        return f"{node.title}-{digest}"

    def _lineage(self, node: Physical) -> frozenset[str]:
        if id(node) not in self._lineages:
            self._lineages[id(node)] = node.own_lineage().union(*(self._lineage(child) for child in node.inputs))
        return self._lineages[id(node)]
