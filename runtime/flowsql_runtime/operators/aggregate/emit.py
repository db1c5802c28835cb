"""From changes of groups to changelog rows: which of +I, -U, +U, -D each change makes, with keys and watermarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.column_bytes import taken
from flowsql_core.row import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from flowsql_runtime.operators.aggregate.changes import Changes


def changelog_of(
    changes: Changes,
    keys: Sequence[Any],
    track: WatermarkTrack | None,
    *,
    emit_update_before: bool,
    emit_unchanged: bool,
    in_order: bool,
) -> ChangelogBatch:
    """The output batch of a group aggregate; its columns may be wide (``column_bytes``).

    Args:
        keys: grouping columns of the input batch; row ``changes.first_rows`` names the group.
        emit_unchanged: an update goes out although results are equal (Flink does that when state expires).
        in_order: changes follow input rows one by one, so watermarks keep their place; else they come after all rows.
    """
    existed, exists = changes.existed(), changes.exists()
    updated = existed & exists
    if updated.any() and not emit_unchanged:
        updated &= changes.changed()
    m = len(existed)
    keep = np.empty(2 * m, np.bool_)
    keep[0::2] = existed & ~exists
    if emit_update_before:
        keep[0::2] |= updated
    keep[1::2] = updated | (exists & ~existed)
    kinds = np.empty(2 * m, np.uint8)
    kinds[0::2] = np.where(exists, np.uint8(UPDATE_BEFORE), np.uint8(DELETE))
    kinds[1::2] = np.where(existed, np.uint8(UPDATE_AFTER), np.uint8(INSERT))
    rows = np.flatnonzero(keep)
    sources = changes.first_rows[rows >> 1]
    columns = [taken(column, sources) for column in keys]
    columns.extend(result.to_arrow(rows) for result in changes.results)
    if track is not None:
        offsets = np.full(len(track), len(rows), np.int32)
        if in_order:
            offsets = np.searchsorted(sources, track.offsets, side="left").astype(np.int32)
        track = WatermarkTrack(offsets, track.wm_ms)
    out_kinds = kinds[rows]
    return ChangelogBatch(tuple(columns), len(rows), out_kinds if out_kinds.any() else None, None, track)
