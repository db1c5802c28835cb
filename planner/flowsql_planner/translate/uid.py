"""Stable operator ids: the same operator keeps its id, and with it its state, across small edits of a query.

An identity says what the operator is (kind), by what it partitions (its keys, as texts over columns of tables: an alias
is no part of them, nor their order) and from which tables its rows come; not which columns it reads, and not where a
rule put it. Equal identities are numbered in plan order.
"""

from __future__ import annotations

import hashlib
from collections import Counter

from flowsql_core.errors import PlanError
from flowsql_core.graph.lineage import Lineage
from flowsql_planner.physical.nodes import Physical


class UidAssigner:
    """Gives ids to the operators of one job, in plan order."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._declared: set[str] = set()
        self._tables: dict[int, frozenset[str]] = {}
        self._lineages: dict[int, Lineage] = {}

    def assign(self, node: Physical) -> str:
        """The id of a node's operator: a readable kind and 12 hex digits.

        Raises:
            PlanError: the query gives two operators one id.
        """
        declared = node.declared_uid()
        if declared is not None:
            if declared in self._declared:
                raise PlanError(
                    "duplicate-uid",
                    f"Duplicate unique identifier '{declared}' detected among process table functions. Make sure that "
                    "all PTF calls have an identifier defined that is globally unique. Please provide a custom "
                    "identifier using the implicit `uid` argument.",
                    node.span,
                    "f(..., uid => 'my-id')",
                )
            self._declared.add(declared)
            return f"{node.title}-{hashlib.sha256(declared.encode()).hexdigest()[:12]}"
        keys = node.uid_keys(self.arriving(node))
        identity = "|".join((node.title, ",".join(keys), ",".join(sorted(self._tables_of(node)))))
        ordinal = self._seen[identity]
        self._seen[identity] += 1
        digest = hashlib.sha256(f"{identity}|{ordinal}".encode()).hexdigest()[:12]
        return f"{node.title}-{digest}"

    def arriving(self, node: Physical) -> tuple[Lineage, ...]:
        """What the columns of a node's inputs are."""
        return tuple(map(self._lineage, node.inputs))

    def _tables_of(self, node: Physical) -> frozenset[str]:
        if id(node) not in self._tables:
            self._tables[id(node)] = node.own_lineage().union(*(self._tables_of(child) for child in node.inputs))
        return self._tables[id(node)]

    def _lineage(self, node: Physical) -> Lineage:
        if id(node) not in self._lineages:
            self._lineages[id(node)] = node.lineage(self.arriving(node))
        return self._lineages[id(node)]
