"""Changelog-mode inference: which kinds of changes each node emits, and whether updates carry their ``-U``.

Two passes as in Flink's ``FlinkChangelogModeInferenceProgram``. First, bottom-up, each node says which *kinds of
modification* (insert, update, delete) it produces, and refuses inputs that it cannot take. Then, top-down, a parent
asks for updates with or without ``-U``, and whether rows that are taken away may have their key only; a child that
cannot answer refuses, and the parent tries the next best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_core.errors import InternalError, PlanError
from flowsql_core.row import ChangelogMode, RowKind
from flowsql_planner.physical.nodes import (
    Connectors,
    DropUpdateBefore,
    MiniBatchAssigner,
    Physical,
    SinkNode,
    TableSourceScan,
)
from flowsql_planner.traits.changes import (
    Modifies,
    Modify,
    Updates,
    mode_of,
    modifies_of,
    updates_of,
    where_updated,
)


def infer_changelog_modes(root: Physical, connectors: Connectors) -> Physical:
    """The plan with ``mode`` set on each node and ``DropUpdateBefore`` where a source says more than is wanted.

    Raises:
        PlanError: a node or sink cannot take the changes that reach it.
    """
    return _Inference(connectors).infer(root)


class _Inference:
    """One inference over one plan."""

    def __init__(self, connectors: Connectors) -> None:
        self._connectors = connectors
        self._modifies: dict[int, Modifies] = {}
        self._visited: list[Physical] = []
        self._unsatisfied: tuple[Physical, ChangelogMode] | None = None

    def infer(self, root: Physical) -> Physical:
        modifies = self._derive(root)
        wanted = (Updates.AFTER, Updates.BEFORE_AND_AFTER) if Modify.UPDATE in modifies else (Updates.NONE,)
        for updates in wanted:
            for by_key in (False, True):
                done = self._satisfy(root, updates, by_key)
                if done is not None:
                    return done
        if self._unsatisfied is not None:
            raise self._cannot_emit(*self._unsatisfied)
        raise InternalError("no changelog mode satisfies the plan")

    def _of(self, node: Physical) -> Modifies:
        return self._modifies[id(node)]

    def _derive(self, node: Physical) -> Modifies:
        """First pass; remembers the modifications of every node by identity."""
        if id(node) in self._modifies:
            return self._modifies[id(node)]
        arriving = [self._derive(child) for child in node.inputs]
        for place, (child, modifies) in enumerate(zip(node.inputs, arriving, strict=True)):
            refused = modifies - node.takes_from(place, modifies, self._connectors)
            if refused:
                raise self._refusal(node, child, refused)
        made = node.provides(arriving, self._connectors)
        self._modifies[id(node)] = made
        self._visited.append(node)  # keeps the object alive, so that its identity stays its own
        return made

    def _refusal(self, node: Physical, child: Physical, refused: Modifies) -> PlanError:
        sink = isinstance(node, SinkNode)
        who = f"Table sink '{node.name}'" if isinstance(node, SinkNode) else node.title
        hint = (
            "write to a table that takes updates (a connector with an upsert or changelog format and a PRIMARY KEY), "
            "aggregate in windows so that each result is final, or keep only rows that never change"
        )
        return PlanError(
            "unsupported-changelog",
            f"{who} doesn't support consuming {_changes_text(refused)} which is produced by node "
            f"{self._producer(child, refused).describe()}",
            node.span,
            hint if sink else None,
        )

    def _cannot_emit(self, node: Physical, wanted: ChangelogMode) -> PlanError:
        return PlanError(
            "changelog-not-emitted",
            f"What reads the rows of this node needs {_needs_text(wanted)}, which the node does not emit: "
            f"{node.describe()}",
            node.span,
            "declare it with ChangelogMode.all(), or ChangelogMode.upsert(False) where upserts suffice, or let it "
            "choose by context.get_required_changelog_mode()",
        )

    def _producer(self, node: Physical, refused: Modifies) -> Physical:
        """The node that brings the refused changes in: the lowest one on the way whose inputs do not have them."""
        for child in node.inputs:
            if self._of(child) & refused:
                return self._producer(child, refused)
        return node

    def _satisfy(self, node: Physical, required: Updates, by_key: bool) -> Physical | None:
        """Second pass: the node emitting updates as required, or None when it cannot.

        ``by_key``: rows that it takes away may have their key only.
        """
        if isinstance(node, TableSourceScan):
            return self._satisfy_source(node, None, required)
        if isinstance(node, MiniBatchAssigner) and isinstance(node.inputs[0], TableSourceScan):
            return self._satisfy_source(node.inputs[0], node, required)
        arriving = [self._of(child) for child in node.inputs]
        takes_key = [node.takes_key_deletes(place, by_key, self._connectors) for place in range(len(arriving))]
        for way in node.asks(required, arriving, self._connectors):
            made = self._satisfied(node.inputs, way, takes_key)
            if made is None:
                continue
            modifies = self._of(node)
            wanted = mode_of(modifies, where_updated(modifies, required), by_key)
            done = replace(node, inputs=made)
            if isinstance(node, SinkNode):
                return done
            mode = done.emitted(wanted)
            if mode is not None:
                return replace(done, mode=mode)
            self._unsatisfied = (node, wanted)
        return None

    def _satisfied(
        self, inputs: Sequence[Physical], way: Sequence[Updates], takes_key: Sequence[bool]
    ) -> tuple[Physical, ...] | None:
        made = []
        for child, updates, by_key in zip(inputs, way, takes_key, strict=True):
            done = self._satisfy(child, updates, by_key)
            if done is None:
                return None
            made.append(done)
        return tuple(made)

    def _satisfy_source(
        self, scan: TableSourceScan, assigner: MiniBatchAssigner | None, required: Updates
    ) -> Physical | None:
        """A scan, maybe below what marks its mini-batches; ``-U`` is dropped above both."""
        mode = self._connectors.source_mode(scan.table, scan.span)
        made: Physical = replace(scan, mode=mode)
        if assigner is not None:
            made = replace(assigner, inputs=(made,), mode=mode)
        provided = updates_of(mode)
        if provided is required or Modify.UPDATE not in modifies_of(mode):
            return made
        if provided is Updates.BEFORE_AND_AFTER and required is Updates.AFTER:
            kept = mode_of(modifies_of(mode), Updates.AFTER)
            return DropUpdateBefore(inputs=(made,), schema=made.schema, mode=kept, span=scan.span)
        return None


def _needs_text(wanted: ChangelogMode) -> str:
    if wanted.contains(RowKind.UPDATE_BEFORE):
        return f"the row before each update and whole rows of deletes, {wanted}"
    return f"upserts with whole rows of deletes, {wanted}"


def _changes_text(refused: Modifies) -> str:
    if refused == {Modify.UPDATE}:
        return "update changes"
    if refused == {Modify.DELETE}:
        return "delete changes"
    return "update and delete changes"
