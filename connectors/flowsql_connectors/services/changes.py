"""Changes that wait to be written: of each key the last one counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_connectors.keyed_changes import last_of_each
from flowsql_core.record import record
from flowsql_core.row import DELETE, UPDATE_BEFORE

Bools = npt.NDArray[np.bool_]


@record
class LastRows:
    """Rows of a run of changes in their order, of each key the last one.

    ``columns``: Arrow arrays of n rows. ``gone``: bool (n,), which rows are taken away; None: none of them.
    """

    columns: Sequence[Any]
    rows: int
    gone: Bools | None = None


def last_of_rows(columns: Sequence[Any], kinds: npt.NDArray[np.uint8] | None, keys: Sequence[int]) -> LastRows:
    """The same of rows in one piece; ``kinds`` None: all are inserted."""
    rows = len(columns[0])
    if not keys:
        return LastRows(columns, rows)
    if kinds is None:
        kinds = np.zeros(rows, np.uint8)
    last = last_of_each([columns[key] for key in keys])
    # A row that a filter lets pass no longer ends with its -U.
    gone = (kinds[last] == DELETE) | (kinds[last] == UPDATE_BEFORE)
    if len(last) < rows:
        columns = [column.take(last) for column in columns]
    return LastRows(columns, len(last), gone if gone.any() else None)
