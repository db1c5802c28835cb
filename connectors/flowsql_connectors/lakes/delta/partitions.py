"""Values of partitions as the texts of a Delta log, and back.

Source: Delta's protocol, "Partition Value Serialization".
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError, NotSupportedYetError
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column, TimestampLtzType, TimestampType


def as_text(value: Any, column: str) -> str | None:
    """A value, in the forms of Python; an empty text means NULL there.

    Raises:
        NotSupportedYetError: the type has no such text.
    """
    match value:
        case None | "":
            return None
        case bool():
            return "true" if value else "false"
        case datetime():
            if value.tzinfo is None:
                return value.isoformat(" ", "microseconds")
            return value.astimezone(UTC).replace(tzinfo=None).isoformat("T", "microseconds") + "Z"
        case date():
            return value.isoformat()
        case str() | int() | float() | Decimal():
            return str(value)
    raise NotSupportedYetError(f"Delta tables that are partitioned by '{column}', a column of {type(value).__name__}")


def as_column(text: str | None, column: Column, num_rows: int) -> Any:
    """The value of all rows of a file.

    Raises:
        ExecutionError: the text is no value of the column's type.
    """
    target = to_arrow(column.type)
    one = pa.array([text or None], pa.string())
    try:
        if text and isinstance(column.type, TimestampType | TimestampLtzType):
            # Moments without a zone are of UTC. Arrow reads no more digits than a type has.
            one = pa.array([text.removesuffix("Z")], pa.string()).cast(pa.timestamp("us"))
            if isinstance(column.type, TimestampLtzType):
                one = one.cast(pa.timestamp("us", "UTC"))
        made = pc.cast(one, options=pc.CastOptions(target, allow_time_truncate=True))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ExecutionError(
            "bad-partition-value", f"Partition value '{text}' of column '{column.name}' is no {column.type}."
        ) from error
    return pa.repeat(made[0], num_rows)


def texts(values: Any) -> list[str | None]:
    """The values of a column of partitions, one a file."""
    if pa.types.is_timestamp(values.type) and values.type.tz is not None:
        naive = values.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
        return [None if text is None else text + "Z" for text in naive.cast(pa.string()).to_pylist()]
    return list(values.cast(pa.string()).to_pylist())
