"""IPv4 addresses as text and as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import make_array, validity, values_and_validity
from flowsql_compute.eval.distinct import map_distinct
from flowsql_compute.eval.text.columns import KERNEL_ROWS, inet_numbers_of
from flowsql_compute.functions.registry import NULLABLE, scalar
from flowsql_core.arrow import compute as pc


@scalar("INET_ATON(STRING) -> BIGINT", nulls=NULLABLE, spark=None)
def inet_aton(text: Any) -> Any:
    """The number of an IPv4 address; short forms fill up before the last part (``127.1``); NULL for other text."""
    if len(text) < KERNEL_ROWS:
        return map_distinct(text, _aton, pa.int64())
    numbers, valid = inet_numbers_of(text), validity(text)
    known = numbers >= 0
    return make_array(numbers, known if valid is None else known & valid, pa.int64())


def _aton(word: str) -> int | None:
    parts = word.split(".")
    if len(parts) > 4 or not all(part.isascii() and part.isdigit() and int(part) <= 255 for part in parts):
        return None
    *head, last = map(int, parts)
    number = last
    for place, part in enumerate(head):
        number |= part << (24 - 8 * place)
    return number


@scalar("INET_NTOA(INTEGER) -> STRING", nulls=NULLABLE, spark=None)
def inet_ntoa(number: Any) -> Any:
    """The dotted form of a number from 0 to 4294967295; NULL for others."""
    values, valid = values_and_validity(number)
    values = values.astype(np.int64)
    fits = (values >= 0) & (values <= 0xFFFFFFFF)
    parts = [make_array(values >> shift & 255, None, pa.int64()) for shift in (24, 16, 8, 0)]
    known = pa.array([str(part) for part in range(256)], pa.string())
    text = pc.binary_join_element_wise(*(pc.take(known, part, boundscheck=False) for part in parts), ".")
    return pc.if_else(pa.array(fits if valid is None else fits & valid), text, pa.scalar(None, pa.string()))
