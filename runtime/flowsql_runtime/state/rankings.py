"""What a ranking keeps of its rows, and what it tells: see ``SortedList.rank``."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import LateColumns
from flowsql_core.record import record

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class Keeping(enum.Enum):
    """Which rows a ranking keeps; the values are those of ``kernels/ranked_rows.py``."""

    #: Rows only come; those behind the last place go.
    BEST = 0
    #: The same, and a row comes in place of the one with its unique columns.
    REPLACED = 1
    #: Rows are taken out by equal ones; all others stay.
    ALL = 2


class Telling(enum.Enum):
    """How much of what changes a ranking tells."""

    EVERY = "each change"
    NET = "what differs after the batch"
    NOTHING = "nothing"


@record
class Places:
    """What of a ranking is told.

    ``first``, ``last``: places from 1; ``last`` int64 of all rows (1,) or of each row (n,). ``room``: from so many rows
    on a slot takes only what is better than its last one, at most ``last`` (not with ``Keeping.ALL``). ``by_place``:
    changes of each place, else rows that came among the places and that left them. ``before``: the old row of an
    update, too.
    """

    first: int
    last: Any
    room: int
    by_place: bool
    telling: Telling
    before: bool


@record
class Ranked:
    """Changes that rows ``start`` to ``stop`` of a batch made at the places.

    ``kinds`` uint8, ``places`` int64 from 1, (m,) each. ``columns``: the rows of the changes, gathered when they are
    read. ``sums`` int32 (stop - start,): changes before each row; empty where not every change is told.
    """

    start: int
    stop: int
    kinds: npt.NDArray[np.uint8]
    places: Int64s
    columns: LateColumns
    sums: Int32s
