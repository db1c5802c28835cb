"""The operator that joins several inputs at once."""

from __future__ import annotations

from flowsql_core.expr import Expr
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Schema


@record
class MultiJoinInput:
    """One input of a multi-way join; what is said of a condition means nothing for the first one.

    ``keys``: its columns of the key that all inputs share. ``linked``: the earlier inputs whose key it is compared
    with, which must not be padded. ``outer``: the rows so far stay where they find none here.
    ``condition``: over the columns of all inputs up to this one, what the shared key does not say. ``equal``: pairs
    (column of all inputs before this one, own column) whose equality is among it.
    ``unique``: columns that identify a row of the input, or None. ``retracts``: rows go, or are overwritten.
    ``overwrites``: a row may come in place of another one that nobody took back.
    """

    schema: Schema
    keys: tuple[int, ...]
    linked: tuple[int, ...]
    outer: bool
    condition: Expr | None
    equal: tuple[tuple[int, int], ...]
    unique: tuple[int, ...] | None
    retracts: bool
    overwrites: bool
    ttl_ms: int


@record
class MultiJoinSpec(OperatorSpec):
    """INNER and LEFT joins of several inputs, from left to right, with all inputs in state."""

    inputs: tuple[MultiJoinInput, ...]
    output: Schema
