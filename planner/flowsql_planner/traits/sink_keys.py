"""Sinks with a primary key: is it the key by which the query updates, and what ON CONFLICT asks for otherwise."""

from __future__ import annotations

from flowsql_core.config import Configuration
from flowsql_core.errors import NotSupportedYetError, PlanError
from flowsql_planner.physical.nodes import Physical, SinkNode, TableSourceScan, WatermarkAssignerNode
from flowsql_planner.physical.options import REQUIRE_ON_CONFLICT, UPSERT_MATERIALIZE, UpsertMaterialize
from flowsql_planner.traits.keys import derive_upsert_keys

#: Strategies that decide when a watermark passes.
_BY_WATERMARK = ("NOTHING", "ERROR")


def check_sink_keys(tree: Physical, configuration: Configuration) -> None:
    """Refuse, in Flink's words, an ON CONFLICT without conflicts, and keys that conflict without ON CONFLICT.

    Raises:
        PlanError: Flink refuses it too.
        NotSupportedYetError: rows of several keys of the query would meet in one row of the table.
    """
    if not isinstance(tree, SinkNode) or tree.table is None:
        return
    if tree.on_conflict is not None:
        _check_on_conflict(tree)
    if tree.table.primary_key:
        _check_upsert_key(tree, configuration)


def _check_on_conflict(sink: SinkNode) -> None:
    mode = sink.inputs[0].mode
    if mode is None or mode.insert_only or sink.table is None or not sink.table.primary_key:
        raise PlanError(
            "on-conflict",
            f"ON CONFLICT clause is only allowed for upsert sinks. The sink '{sink.name}' is not an upsert sink "
            "because it only accepts INSERT (append-only) changes.",
            sink.span,
        )
    if sink.on_conflict in _BY_WATERMARK:
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


def _check_upsert_key(sink: SinkNode, configuration: Configuration) -> None:
    assert sink.table is not None
    source, primary = sink.inputs[0], sink.table.primary_key
    materialize = configuration.get(UPSERT_MATERIALIZE)
    if materialize is UpsertMaterialize.FORCE:
        raise NotSupportedYetError("table.exec.sink.upsert-materialize = FORCE", sink.span)
    if materialize is UpsertMaterialize.NONE or source.mode is None or source.mode.insert_only:
        return
    names = [column.name for column in sink.table.columns]
    wanted = frozenset(names.index(name) for name in primary)
    keys = derive_upsert_keys(source)
    if any(key <= wanted for key in keys):
        return
    columns = [column.name for column in source.schema]
    shown = ", ".join("[" + ", ".join(columns[i] for i in sorted(key)) + "]" for key in keys)
    if sink.on_conflict is not None or not configuration.get(REQUIRE_ON_CONFLICT):
        action = "" if sink.on_conflict is None else f" ON CONFLICT DO {sink.on_conflict}"
        raise NotSupportedYetError(
            f"INSERT{action} into '{sink.name}' by another key than the query's (primary key: [{', '.join(primary)}], "
            f"upsert key: {shown})",
            sink.span,
            "group by the sink's primary key",
        )
    raise PlanError(
        "upsert-key-differs",
        f"The query has an upsert key that differs from the primary key of the sink table '{sink.name}'. Primary key: "
        f"[{', '.join(primary)}], upsert key: {shown}. This can lead to non-deterministic results when multiple "
        "records with different upsert keys map to the same primary key.",
        sink.span,
        "group by the sink's primary key",
    )
