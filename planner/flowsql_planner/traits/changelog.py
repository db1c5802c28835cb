"""Changelog-mode inference: which kinds of changes each node emits, and whether updates carry their ``-U``.

Two passes as in Flink's ``FlinkChangelogModeInferenceProgram``. First, bottom-up, each node says which *kinds of
modification* (insert, update, delete) it produces, and refuses inputs that it cannot take. Then, top-down, a parent
asks for updates with or without ``-U``; a child that cannot answer refuses, and the parent tries the next best.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import replace

from flowsql_core.errors import InternalError, PlanError
from flowsql_core.graph.specs import JoinKind, TableSpec
from flowsql_core.row import ChangelogMode, RowKind
from flowsql_planner.physical.nodes import (
    Calc,
    ChangelogNormalize,
    CorrelateNode,
    DropUpdateBefore,
    Exchange,
    ExpandNode,
    GroupAggregate,
    IntervalJoin,
    JoinNode,
    Limit,
    MiniBatchAssigner,
    Physical,
    SinkNode,
    SortLimit,
    SortNode,
    TableSourceScan,
    TemporalSort,
    UnionNode,
    ValuesNode,
    WatermarkAssignerNode,
    WindowAggregate,
    WindowJoin,
    WindowTableFunctionNode,
)
from flowsql_planner.traits.keys import derive_upsert_keys


class Modify(enum.Enum):
    """A kind of modification of a table."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


Modifies = frozenset[Modify]
INSERT_ONLY: Modifies = frozenset({Modify.INSERT})
ALL: Modifies = frozenset(Modify)


class Updates(enum.Enum):
    """How updates are encoded on an edge."""

    NONE = "none"
    AFTER = "only after"
    BEFORE_AND_AFTER = "before and after"


def modifies_of(mode: ChangelogMode) -> Modifies:
    """Modifications that a changelog mode can carry."""
    kinds = {Modify.INSERT} if mode.contains(RowKind.INSERT) else set()
    if mode.contains(RowKind.UPDATE_AFTER) or mode.contains(RowKind.UPDATE_BEFORE):
        kinds.add(Modify.UPDATE)
    if mode.contains(RowKind.DELETE):
        kinds.add(Modify.DELETE)
    return frozenset(kinds)


def updates_of(mode: ChangelogMode) -> Updates:
    """How a changelog mode encodes updates."""
    if not mode.contains(RowKind.UPDATE_AFTER):
        return Updates.NONE
    return Updates.BEFORE_AND_AFTER if mode.contains(RowKind.UPDATE_BEFORE) else Updates.AFTER


def mode_of(modifies: Modifies, updates: Updates) -> ChangelogMode:
    """The changelog mode of an edge."""
    kinds = set()
    if Modify.INSERT in modifies:
        kinds.add(RowKind.INSERT)
    if Modify.DELETE in modifies:
        kinds.add(RowKind.DELETE)
    if Modify.UPDATE in modifies and updates is not Updates.NONE:
        kinds.add(RowKind.UPDATE_AFTER)
        if updates is Updates.BEFORE_AND_AFTER:
            kinds.add(RowKind.UPDATE_BEFORE)
    return ChangelogMode(frozenset(kinds))


#: Modes of a scan and of a sink, asked of the connectors.
SourceMode = Callable[[TableSourceScan], ChangelogMode]
SinkMode = Callable[[TableSpec, SinkNode, ChangelogMode], ChangelogMode]
Describe = Callable[[Physical], str]


class ChangelogInference:
    """One inference over one plan.

    Args:
        source_mode: the changelog that a scan emits.
        sink_mode: what a table's sink takes when the query produces the mode given.
        describe: a node's line in the plan, for messages.
    """

    def __init__(self, source_mode: SourceMode, sink_mode: SinkMode, describe: Describe) -> None:
        self._source_mode = source_mode
        self._sink_mode = sink_mode
        self._describe = describe
        self._modifies: dict[int, Modifies] = {}
        self._visited: list[Physical] = []

    def infer(self, root: Physical) -> Physical:
        """The plan with ``mode`` set on each node and ``DropUpdateBefore`` where a source says more than is wanted.

        Raises:
            PlanError: a node or sink cannot take the changes that reach it.
        """
        self._derive(root)
        modifies = self._of(root)
        if isinstance(root, SinkNode):
            wanted: tuple[Updates, ...] = (Updates.NONE,)
        elif Modify.UPDATE in modifies:
            wanted = (Updates.AFTER, Updates.BEFORE_AND_AFTER)
        else:
            wanted = (Updates.NONE,)
        for updates in wanted:
            done = self._satisfy(root, updates)
            if done is not None:
                return done
        raise InternalError("no changelog mode satisfies the plan")

    def _of(self, node: Physical) -> Modifies:
        return self._modifies[id(node)]

    def _derive(self, node: Physical) -> Modifies:
        """First pass; remembers the modifications of every node by identity."""
        if id(node) in self._modifies:
            return self._modifies[id(node)]
        below = [self._derive(child) for child in node.inputs]
        made = self._provided(node, below)
        self._modifies[id(node)] = made
        self._visited.append(node)  # keeps the object alive, so that its identity stays its own
        return made

    def _provided(self, node: Physical, below: list[Modifies]) -> Modifies:
        match node:
            case TableSourceScan():
                return modifies_of(self._source_mode(node))
            case ValuesNode():
                return INSERT_ONLY
            case GroupAggregate():
                retracted = below[0] & {Modify.UPDATE, Modify.DELETE}
                made = {Modify.INSERT, Modify.UPDATE}
                # Partial results of a split distinct aggregate update, so that the final one may delete.
                return frozenset(made | {Modify.DELETE}) if retracted or node.split_distinct else frozenset(made)
            case JoinNode(kind=kind):
                return below[0] | below[1] if kind in (JoinKind.INNER, JoinKind.SEMI) else ALL
            case WindowAggregate():
                return INSERT_ONLY
            case WindowJoin() | IntervalJoin() | TemporalSort():
                for child, modifies in zip(node.inputs, below, strict=True):
                    if modifies != INSERT_ONLY:
                        raise self._refusal(node, child, modifies)
                return INSERT_ONLY
            case UnionNode():
                return frozenset().union(*below)
            case SortLimit():
                return ALL
            case Limit():
                return INSERT_ONLY if below[0] == INSERT_ONLY else ALL
            case ChangelogNormalize():
                return ALL
            case SinkNode():
                return self._sink_modifies(node, below[0])
            case (
                Calc()
                | WatermarkAssignerNode()
                | MiniBatchAssigner()
                | Exchange()
                | ExpandNode()
                | CorrelateNode()
                | WindowTableFunctionNode()
                | DropUpdateBefore()
                | SortNode()
            ):
                return below[0]
            case _:
                raise InternalError(f"no changelog rule for {type(node).__name__}")

    def _sink_modifies(self, sink: SinkNode, arriving: Modifies) -> Modifies:
        if sink.table is not None:
            taken = self._sink_mode(sink.table, sink, mode_of(arriving, Updates.BEFORE_AND_AFTER))
            if not arriving <= modifies_of(taken):
                raise self._sink_refusal(sink, arriving - modifies_of(taken))
        return frozenset()

    def _sink_refusal(self, sink: SinkNode, refused: Modifies) -> PlanError:
        changes = _changes_text(refused)
        producer = self._producer(sink.inputs[0], refused)
        return PlanError(
            "unsupported-changelog",
            f"Table sink '{sink.name}' doesn't support consuming {changes} which is produced by node "
            f"{self._describe(producer)}",
            sink.span,
            "write to a table that takes updates (a connector with an upsert or changelog format and a PRIMARY KEY), "
            "aggregate in windows so that each result is final, or keep only rows that never change",
        )

    def _refusal(self, node: Physical, child: Physical, modifies: Modifies) -> PlanError:
        refused = modifies - INSERT_ONLY
        name = self._describe(node).partition("(")[0]
        producer = self._producer(child, refused)
        return PlanError(
            "unsupported-changelog",
            f"{name} doesn't support consuming {_changes_text(refused)} which is produced by node "
            f"{self._describe(producer)}",
            node.span,
        )

    def _producer(self, node: Physical, refused: Modifies) -> Physical:
        """The node that brings the refused changes in: the lowest one on the way whose inputs do not have them."""
        for child in node.inputs:
            if self._of(child) & refused:
                return self._producer(child, refused)
        return node

    def _satisfy(self, node: Physical, required: Updates) -> Physical | None:
        """Second pass: the node emitting updates as required, or None when it cannot."""
        match node:
            case SinkNode():
                return self._satisfy_sink(node)
            case TableSourceScan():
                return self._satisfy_scan(node, required)
            case GroupAggregate() | WindowAggregate() | Limit() | SortLimit() | WindowJoin() | IntervalJoin():
                return self._with(node, [self._before_and_after(child) for child in node.inputs], required)
            case ChangelogNormalize():
                return self._with(node, [self._only_after(child) for child in node.inputs], required)
            case JoinNode():
                return self._satisfy_join(node, required)
            case Calc(condition=condition) | CorrelateNode(condition=condition):
                # A filter may drop the +U whose row replaced one that passed: it needs the -U.
                if condition is not None and required is Updates.AFTER:
                    return None
                return self._with(node, [self._satisfy(node.inputs[0], required)], required)
            case UnionNode():
                inner = [
                    self._satisfy(child, Updates.NONE if self._of(child) == INSERT_ONLY else required)
                    for child in node.inputs
                ]
                return self._with(node, inner, required)
            case _:
                return self._with(node, [self._satisfy(child, required) for child in node.inputs], required)

    def _satisfy_sink(self, sink: SinkNode) -> Physical | None:
        child = sink.inputs[0]
        modifies = self._of(child)
        candidates = [self._before_and_after]
        if sink.table is not None:
            taken = self._sink_mode(sink.table, sink, mode_of(modifies, Updates.BEFORE_AND_AFTER))
            if updates_of(taken) is Updates.AFTER and self._upserts_suffice(sink):
                candidates = [self._only_after, self._before_and_after]
        for candidate in candidates:
            made = candidate(child)
            if made is not None:
                return replace(sink, inputs=(made,))
        return None

    @staticmethod
    def _upserts_suffice(sink: SinkNode) -> bool:
        """Without a primary key nobody finds the old row; with one, it must be what identifies the query's rows."""
        if sink.table is None or not sink.table.primary_key:
            return True
        names = [column.name for column in sink.table.columns]
        key = frozenset(names.index(name) for name in sink.table.primary_key)
        return key in derive_upsert_keys(sink.inputs[0])

    def _satisfy_scan(self, scan: TableSourceScan, required: Updates) -> Physical | None:
        mode = self._source_mode(scan)
        made = replace(scan, mode=mode)
        provided = updates_of(mode)
        if provided is required or Modify.UPDATE not in modifies_of(mode):
            return made
        if provided is Updates.BEFORE_AND_AFTER and required is Updates.AFTER:
            kept = mode_of(modifies_of(mode), Updates.AFTER)
            return DropUpdateBefore(inputs=(made,), schema=scan.schema, mode=kept, span=scan.span)
        return None

    def _satisfy_join(self, node: JoinNode, required: Updates) -> Physical | None:
        made: list[Physical | None] = []
        sides = ((node.left_keys, node.left_upsert_keys), (node.right_keys, node.right_upsert_keys))
        for child, (keys, upsert_keys) in zip(node.inputs, sides, strict=True):
            if required is not Updates.AFTER:
                made.append(self._before_and_after(child))
                continue
            by_key = any(set(keys) <= set(key) for key in upsert_keys)
            if Modify.UPDATE in self._of(child) and not by_key:
                return None
            made.append(self._only_after(child))
        return self._with(node, made, required)

    def _before_and_after(self, node: Physical) -> Physical | None:
        updating = Modify.UPDATE in self._of(node)
        return self._satisfy(node, Updates.BEFORE_AND_AFTER if updating else Updates.NONE)

    def _only_after(self, node: Physical) -> Physical | None:
        return self._satisfy(node, Updates.AFTER if Modify.UPDATE in self._of(node) else Updates.NONE)

    def _with(self, node: Physical, inner: list[Physical | None], required: Updates) -> Physical | None:
        made = tuple(child for child in inner if child is not None)
        if len(made) != len(inner):
            return None
        updates = required if Modify.UPDATE in self._of(node) else Updates.NONE
        return replace(node, inputs=made, mode=mode_of(self._of(node), updates))


def _changes_text(refused: Modifies) -> str:
    if refused == {Modify.UPDATE}:
        return "update changes"
    if refused == {Modify.DELETE}:
        return "delete changes"
    return "update and delete changes"
