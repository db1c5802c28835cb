"""Sinks with a primary key: whether rows must be materialised by it, and what ON CONFLICT may ask for.

Source: Flink's ``FlinkChangelogModeInferenceProgram`` and its messages.
"""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.config import RUNTIME_MODE, Configuration, RuntimeMode
from flowsql_core.errors import PlanError
from flowsql_core.row import ChangelogMode, RowKind
from flowsql_planner.physical.nodes import Connectors, Physical, SinkNode, TableSourceScan, WatermarkAssignerNode
from flowsql_planner.physical.nodes.sink import BY_WATERMARK
from flowsql_planner.physical.options import REQUIRE_ON_CONFLICT, UPSERT_MATERIALIZE, UpsertMaterialize

_DEDUPLICATE = "DEDUPLICATE"


def resolve_sink_keys(tree: Physical, configuration: Configuration, connectors: Connectors) -> Physical:
    """The plan with ``materialize`` set on its sink where rows of several keys may meet in one row of the table.

    Raises:
        PlanError: ON CONFLICT for a sink that is not upserted, or keys that conflict without it (Flink's words).
    """
    if not isinstance(tree, SinkNode) or tree.table is None:
        return tree
    arriving = tree.inputs[0].mode or ChangelogMode(frozenset({RowKind.INSERT}))
    # As in Flink, a sink is asked what it makes of upserts.
    taken = tree.taken_mode(ChangelogMode(arriving.kinds - {RowKind.UPDATE_BEFORE}), connectors)
    if tree.on_conflict is not None:
        _check_on_conflict(tree, taken)
    return replace(tree, materialize=_materializes(tree, arriving, taken, configuration))


def _check_on_conflict(sink: SinkNode, taken: ChangelogMode) -> None:
    reason = None
    if taken.insert_only:
        reason = "it only accepts INSERT (append-only) changes"
    elif taken.contains(RowKind.UPDATE_BEFORE):
        reason = "it requires UPDATE_BEFORE (retract mode)"
    if reason is not None:
        raise PlanError(
            "on-conflict",
            f"ON CONFLICT clause is only allowed for upsert sinks. The sink '{sink.name}' is not an upsert sink "
            f"because {reason}.",
            sink.span,
        )
    if sink.on_conflict in BY_WATERMARK:
        without = dict.fromkeys(_without_watermarks(sink.inputs[0], False))
        if without:
            raise PlanError(
                "on-conflict-watermark",
                f"ON CONFLICT DO {sink.on_conflict} requires all source tables to define watermarks, but the following "
                f"source(s) do not: {', '.join(without)}. Please add a WATERMARK declaration to these tables.",
                sink.span,
            )


def _without_watermarks(node: Physical, assigned: bool) -> list[str]:
    """Names of the tables below that no watermark follows."""
    if isinstance(node, TableSourceScan):
        return [] if assigned else [node.table.name]
    below = assigned or isinstance(node, WatermarkAssignerNode)
    return [name for child in node.inputs for name in _without_watermarks(child, below)]


def _materializes(sink: SinkNode, arriving: ChangelogMode, taken: ChangelogMode, configuration: Configuration) -> bool:
    assert sink.table is not None
    primary = sink.table.primary_key
    chosen = configuration.get(UPSERT_MATERIALIZE)
    upserted = bool(primary) and not taken.contains(RowKind.UPDATE_BEFORE)
    if configuration.get(RUNTIME_MODE) is RuntimeMode.BATCH or chosen is UpsertMaterialize.NONE or not upserted:
        return False
    if chosen is UpsertMaterialize.FORCE:
        return True
    if taken.insert_only or (arriving.insert_only and sink.on_conflict == _DEDUPLICATE):
        return False
    source = sink.inputs[0]
    wanted = frozenset(sink.primary_key())
    keys = source.upsert_keys()
    if any(key <= wanted for key in keys):
        return False
    if sink.on_conflict is None and configuration.get(REQUIRE_ON_CONFLICT):
        columns = [column.name for column in source.schema]
        shown = ", ".join("[" + ", ".join(columns[i] for i in sorted(key)) + "]" for key in keys)
        raise PlanError(
            "upsert-key-differs",
            f"The query has an upsert key that differs from the primary key of the sink table '{sink.name}'. Primary "
            f"key: [{', '.join(primary)}], upsert key: {shown}. This can lead to non-deterministic results when "
            "multiple records with different upsert keys map to the same primary key. Please specify an ON CONFLICT "
            "clause to define how conflicts should be handled: ON CONFLICT DO DEDUPLICATE (update to the latest "
            "record, state intensive, since we need to keep the entire history), or ON CONFLICT DO ERROR (fail on "
            "conflict), or ON CONFLICT DO NOTHING (keep first record).",
            sink.span,
            "or group by the sink's primary key",
        )
    return True
