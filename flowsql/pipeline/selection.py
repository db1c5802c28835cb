"""``--select``: some nodes of a project, and what stands before or behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowsql.pipeline.project import Node
from flowsql_core.errors import BindError, did_you_mean


def selected(
    words: Sequence[str], order: Sequence[Node], before: Mapping[Node, Sequence[Node]], *, whole_tables: bool
) -> set[Node]:
    """The nodes of ``name``, ``+name`` (and all before it) and ``name+`` (and all behind it); of no words all.

    Args:
        words: a name is that of a table, or a file.
        order: all nodes.
        before: those right before each.
        whole_tables: a node brings all others with it that write its tables.

    Raises:
        BindError: a name is that of no node.
    """
    if not words:
        return set(order)
    behind: dict[Node, list[Node]] = {node: [] for node in order}
    for node, earlier in before.items():
        for other in earlier:
            behind[other].append(node)
    found: set[Node] = set()
    for word in words:
        named = _named(word.removeprefix("+").removesuffix("+"), order)
        found.update(named)
        if word.startswith("+"):
            found |= _reached(named, before)
        if word.endswith("+"):
            found |= _reached(named, behind)
    if whole_tables:
        tables = {path for node in found for path in node.tables}
        found.update(node for node in order if not tables.isdisjoint(node.tables))
    return found


def _named(name: str, order: Sequence[Node]) -> list[Node]:
    found = [
        node
        for node in order
        if name == node.place.source.name or any(name in (path.name, str(path)) for path in node.tables)
    ]
    if not found:
        known = [path.name for node in order for path in node.tables]
        hint = did_you_mean(name, known) or f"its nodes are {', '.join(dict.fromkeys(known))}"
        raise BindError("no-node", f"Nothing in the project writes '{name}'.", hint=hint)
    return found


def _reached(start: Sequence[Node], edges: Mapping[Node, Sequence[Node]]) -> set[Node]:
    found: set[Node] = set()
    waiting = list(start)
    while waiting:
        for other in edges[waiting.pop()]:
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found
