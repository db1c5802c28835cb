"""When two keys are the same key: the one place that says it for every operator."""

from __future__ import annotations

import enum

from flowsql_core.types import logical as t


class KeyIdentity(enum.Enum):
    """How an operator decides that two keys are equal.

    BITS: keys are equal where their bytes are. -0.0 and 0.0 are two keys, NaN is one key and equals itself, NULL
    elements of collections equal each other. All keyed operators of streaming identify keys so; in batch mode GROUP BY,
    DISTINCT and the hash join do.

    VALUE: keys are equal where SQL's ``=`` is true (``IS NOT DISTINCT FROM`` of NULL-safe keys). The zeros are one key,
    NaN equals nothing, a MAP with a NULL inside equals nothing. In batch mode the nested-loop join and the sort-merge
    join compare keys so, but for ARRAYs, whose NULL elements equal each other in every join.

    Equal values have equal hashes (``flowsql_compute.keys.key_hash64``), so that an exchange serves both.

    Source: Flink. ``BinaryRowData.equals`` compares bytes; ``SortMergeJoinOperator`` and the code of a nested loop
    compare values.
    """

    BITS = "BITS"
    VALUE = "VALUE"


def same_by_bits_and_value(type_: t.LogicalType) -> bool:
    """True if values of a type are equal exactly where their bytes are, so that both identities find the same keys."""
    return not (isinstance(type_, t.ApproximateType | t.VariantType) or t.is_nested(type_))
