"""Operators of distinct aggregates that are split by buckets of their arguments."""

from __future__ import annotations

from flowsql_core.expr import AggregateCall
from flowsql_core.graph.specs import MiniBatch, OperatorSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Schema


@record
class LocalSetAggregateSpec(OperatorSpec):
    """Stateless pre-aggregation per batch, of calls that merge but for DISTINCT; these have one argument.

    ``grouping``: keys, then buckets. Output: see ``local_set_columns``.
    """

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    input: Schema
    output: Schema
    input_retracts: bool


@record
class IncrementalGroupAggregateSpec(OperatorSpec):
    """Turn rows of :class:`LocalSetAggregateSpec` into accumulators of what a mini-batch changes.

    ``keys``: how many grouping columns, the first ones, stay. Output: these and the accumulators of each call.
    ``state_ttl_ms`` 0: distinct values never expire.
    """

    local: LocalSetAggregateSpec
    keys: int
    output: Schema
    mini_batch: MiniBatch | None = None
    state_ttl_ms: int = 0
