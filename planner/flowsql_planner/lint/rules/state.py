"""State that grows as long as the job runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from flowsql_core.graph.rank_specs import RankStrategy
from flowsql_planner.lint.growth import is_narrow
from flowsql_planner.lint.model import Hit, Rule, Subject
from flowsql_planner.physical.nodes import (
    ChangelogNormalize,
    GroupAggregate,
    JoinNode,
    Limit,
    LookupJoin,
    MatchNode,
    MultiJoinNode,
    OverAggregate,
    Physical,
    PythonGroupTableAggregate,
    RankNode,
    SinkNode,
    SortLimit,
    TableSourceScan,
)
from flowsql_planner.physical.nodes import walk as walk_physical

_COLLECTING: Final = frozenset({"COLLECT", "LISTAGG", "ARRAY_AGG", "JSON_ARRAYAGG", "JSON_OBJECTAGG"})
_WITHIN: Final = "add WITHIN INTERVAL '...' behind PATTERN: what is older is no match and is dropped"


def unbounded_state(subject: Subject) -> Iterator[Hit]:
    """Operators whose state gets more keys or rows as long as their inputs do, and that no time-to-live empties.

    Temporal joins keep one version a key, which they are for; process table functions clear their state themselves.
    """
    if not subject.streaming:
        return
    for node in subject.physical():
        if isinstance(node, MatchNode):
            # Its state expires by WITHIN alone.
            if node.within_ms is None and subject.grows(node.inputs[0]):
                yield Hit(subject.place(node.span), f"{node.title} keeps partial matches for ever.", _WITHIN)
            continue
        kept = _kept(node, subject)
        if kept is not None:
            yield Hit(subject.node_place(node), f"{node.title} keeps {kept} for ever.")


def _kept(node: Physical, subject: Subject) -> str | None:
    """What the state of an operator holds ever more of; None where it does not grow, or shrinks again."""
    ttl_ms = subject.ttl_ms
    match node:
        case JoinNode(left_ttl_ms=left, right_ttl_ms=right):
            return _inputs_kept(node, (left, right), subject)
        case MultiJoinNode(ttls_ms=ttls_ms):
            return _inputs_kept(node, ttls_ms, subject)
        case GroupAggregate(state_ttl_ms=hinted) if not (ttl_ms if hinted is None else hinted):
            return _groups_kept(node, subject)
    if ttl_ms or not node.inputs or not subject.grows(node.inputs[0]):
        return None
    match node:
        case PythonGroupTableAggregate(grouping=grouping):
            return f"rows for each key of {_columns(node, grouping)}" if grouping else None
        case RankNode(partition=partition, last=last):
            return _ranked(node, partition, last)
        case SortLimit() if node.strategy is RankStrategy.RETRACT:
            return "every row (any may become one of the first)"
        case Limit() if node.inputs[0].retracts:
            return "every row (any may move up when another one goes)"
        case LookupJoin(materialize=True):
            return "what it found for each row, which may be taken back"
        case ChangelogNormalize(keys=keys):
            return f"the last row for each key of {_columns(node, keys)}"
        case OverAggregate():
            return _running(node)
        case SinkNode(materialize=True):
            key = ", ".join(node.table.primary_key) if node.table is not None else ""
            return f"the rows for each key of '{key}' (the query has another key)"
    return None


def _inputs_kept(node: Physical, ttls_ms: Sequence[int | None], subject: Subject) -> str | None:
    """A join keeps both of its inputs whole."""
    kept = [
        _table_name(child) or _input_name(place, len(node.inputs))
        for place, (child, hinted) in enumerate(zip(node.inputs, ttls_ms, strict=True), 1)
        if not (subject.ttl_ms if hinted is None else hinted) and subject.grows(child)
    ]
    return f"every row of {' and of '.join(dict.fromkeys(kept))}" if kept else None


def _input_name(place: int, count: int) -> str:
    return f"its {('left', 'right')[place - 1]} input" if count == 2 else f"its input {place}"


def _table_name(node: Physical) -> str | None:
    """The one table that stands below a node."""
    names = {each.table.shown_path[-1] for each in walk_physical(node) if isinstance(each, TableSourceScan)}
    return f"'{names.pop()}'" if len(names) == 1 else None


def _groups_kept(node: GroupAggregate, subject: Subject) -> str | None:
    source = node.inputs[0]
    if not subject.grows(source):
        return None
    if not is_narrow(source, node.grouping):
        if not node.calls:
            return f"each different row of {_columns(node, range(len(node.grouping)))}"
        return f"a row for each key of {_keys(node, subject)}"
    for call in node.calls:
        shown = call.function if call.span is None else subject.text(call.span)
        if call.distinct:
            return f"each different value of {shown}"
        if call.function in _COLLECTING:
            return f"all values of {shown}"
        if call.function in ("MIN", "MAX") and source.retracts:
            return f"each value of {shown} (the last one may be taken back)"
    return None


def _keys(node: GroupAggregate, subject: Subject) -> str:
    """The keys as GROUP BY writes them, where they are columns; else by the names of the plan."""
    select = None if node.span is None else subject.selects.get(node.span)
    if select is not None and select.group_by is not None:
        return f"'{subject.text(subject.group_span(select.group_by))}'"
    return _columns(node, range(len(node.grouping)))


def _ranked(node: RankNode, partition: tuple[int, ...], last: int | None) -> str | None:
    source = node.inputs[0]
    keys = _columns(source, partition)
    if node.deduplicates():
        return f"a row for each key of {keys}" if partition else None
    if node.strategy is RankStrategy.RETRACT:
        return "every row (any may become one of the first)"
    count = "rows" if last is None else "a row" if last == 1 else f"{last} rows"
    return f"{count} for each key of {keys}" if partition else None


def _running(node: OverAggregate) -> str | None:
    if node.updates:
        return "every row (one that comes later may stand before it)"
    if not node.partition:
        return None
    keys = _columns(node, node.partition)
    if node.preceding is None:
        return f"running values for each key of {keys}"
    return f"{node.preceding + 1} rows for each key of {keys}" if node.counts_rows else None


def _columns(node: Physical, columns: Sequence[int]) -> str:
    return f"'{', '.join(node.names[index] for index in columns)}'"


RULES = (
    Rule(
        "unbounded-state",
        "State that grows with the keys or rows of an input that never ends, and that nothing removes.",
        "the input never ends and nothing removes state: memory, checkpoints and restarts grow until the job fails",
        "SET 'table.exec.state.ttl' = '1 d' (or a STATE_TTL hint) for keys that come back within that time, or let "
        "windows over a watermark close them",
        unbounded_state,
    ),
)
