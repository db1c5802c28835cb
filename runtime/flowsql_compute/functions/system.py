"""Functions about the world around the rows: UUID, the session."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.functions.registry import NOT_NULL, Invocation, scalar
from flowsql_compute.functions.spark_form import BY_JOB
from flowsql_core.errors import BindError, InternalError
from flowsql_core.expr import Expr
from flowsql_core.span import Span


@scalar("UUID() -> CHAR(36)", nulls=NOT_NULL, deterministic=False, spark="UUID()")
def uuid(call: Invocation) -> Any:
    """A random identifier (version 4) for each row."""
    raw = np.random.default_rng(call.context.rng.getrandbits(63)).integers(0, 256, (call.n, 16), dtype=np.uint8)
    raw[:, 6] = raw[:, 6] & 0x0F | 0x40
    raw[:, 8] = raw[:, 8] & 0x3F | 0x80
    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    text = np.full((call.n, 36), ord("-"), dtype=np.uint8)
    places = [place for place in range(36) if place not in (8, 13, 18, 23)]
    text[:, places[::2]] = digits[raw >> 4]
    text[:, places[1::2]] = digits[raw & 15]
    offsets = pa.py_buffer(np.arange(call.n + 1, dtype=np.int32) * np.int32(36))
    return pa.Array.from_buffers(pa.string(), call.n, [None, offsets, pa.py_buffer(text)])


@scalar("CURRENT_DATABASE() -> STRING", nulls=NOT_NULL, spark=BY_JOB)
def current_database(call: Invocation) -> Any:
    """The session's database when the statement was bound."""
    return pa.scalar(call.option("database"), pa.string())


def _never_runs(args: tuple[Expr, ...], span: Span | None) -> Expr:
    raise BindError(
        "marker-function",
        "SOURCE_WATERMARK() is a declarative marker function and doesn't have concrete runtime implementation. It can "
        "only be used as a single expression in a WATERMARK FOR clause in the CREATE TABLE DDL.",
        span,
    )


@scalar("SOURCE_WATERMARK() -> TIMESTAMP_LTZ(3)", rewrite=_never_runs, deterministic=False, spark=BY_JOB)
def source_watermark() -> Any:
    """Marks a WATERMARK clause whose watermarks the source itself makes; no value anywhere else."""
    raise InternalError("SOURCE_WATERMARK() has no value")
