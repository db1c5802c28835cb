"""Changes that wait to be written: of each key the last one counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from flowsql_connectors.jdbc.database import Changes
from flowsql_connectors.keyed_changes import last_of_each
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch
from flowsql_core.column_bytes import joined
from flowsql_core.row import DELETE, UPDATE_BEFORE


def reduced(batches: Sequence[ChangelogBatch], keys: Sequence[int]) -> Changes:
    """What a run of changes comes to.

    Args:
        keys: places of the primary key; none: all rows are appended.
    """
    width = len(batches[0].columns)
    columns = [joined([batch.columns[at] for batch in batches]) for at in range(width)]
    if not keys:
        return Changes(columns)
    kinds = np.concatenate(
        [np.zeros(batch.num_rows, np.uint8) if batch.kinds is None else batch.kinds for batch in batches]
    )
    last = last_of_each([columns[key] for key in keys])
    # A row that a filter lets pass no longer ends with its -U.
    gone = (kinds[last] == DELETE) | (kinds[last] == UPDATE_BEFORE)
    kept, deleted = pa.array(last[~gone]), pa.array(last[gone])
    return Changes([pc.take(column, kept) for column in columns], [pc.take(columns[key], deleted) for key in keys])
