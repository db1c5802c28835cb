"""Calls that keep their values, with a change a row: a batch at once answers as its rows one by one do."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch
from flowsql_core.expr import AggregateCall, InputRef
from flowsql_core.graph.specs import GroupAggregateSpec
from flowsql_core.row import DELETE, INSERT
from flowsql_core.types.logical import BIGINT, STRING, ArrayType, Column, LogicalType, MultisetType
from flowsql_runtime.testing.harness import OperatorHarness

TYPES: dict[str, LogicalType] = {
    "LISTAGG": STRING,
    "COLLECT": MultisetType(element=STRING),
    "ARRAY_AGG": ArrayType(element=STRING),
    "FIRST_VALUE": STRING,
    "LAST_VALUE": STRING,
}


def answered(function: str, values: list[str | None]) -> Any:
    """What a function says of the values of a group, in order."""
    some = [value for value in values if value is not None]
    match function:
        case "LISTAGG":
            return ",".join(some) if some else None
        case "COLLECT":
            return sorted((value, some.count(value)) for value in dict.fromkeys(some))
        case "ARRAY_AGG":
            return list(values) or None
        case "FIRST_VALUE":
            return some[0] if some else None
        case _:
            return some[-1] if some else None


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("function", TYPES)
@pytest.mark.parametrize("batch_rows", [1, 7, 400])
def test_each_change_is_that_of_the_values_that_are_left(function: str, backend: str, batch_rows: int) -> None:
    draw = random.Random(f"{function} {batch_rows}")
    made: list[tuple[int, str | None, int]] = []
    left: list[tuple[int, str | None]] = []
    groups: dict[int, list[str | None]] = {}
    wanted: list[tuple[Any, ...]] = []
    for _ in range(400):
        if left and draw.random() < 0.45:
            key, value = left.pop(draw.randrange(len(left)))
            sign = -1
        else:
            key, value, sign = draw.choice([1, 1, 1, 2]), draw.choice(["a", "b", "cc", None]), 1
            left.append((key, value))
        made.append((key, value, sign))
        group = groups.setdefault(key, [])
        before, existed = answered(function, group), bool(group)
        if sign > 0:
            group.append(value)
        else:
            group.remove(value)
        after = answered(function, group)
        if not existed:
            wanted.append(("+I", key, after))
        elif not group:
            wanted.append(("-D", key, before))
        elif before != after:
            wanted += [("-U", key, before), ("+U", key, after)]
    type_ = TYPES[function]
    schema = (Column("k", BIGINT), Column("v", STRING))
    call = AggregateCall(function, (InputRef(1, STRING),), type_, "r")
    spec = GroupAggregateSpec((0,), (call,), schema, (schema[0], Column("r", type_)), True, True)
    harness = OperatorHarness(spec, parameters={"state.backend.type": backend})
    for first in range(0, len(made), batch_rows):
        keys, values, signs = zip(*made[first : first + batch_rows], strict=True)
        kinds = np.array([DELETE if sign < 0 else INSERT for sign in signs], np.uint8)
        harness.batch(ChangelogBatch((pa.array(keys, pa.int64()), pa.array(values, pa.string())), len(keys), kinds))
    found = [
        (kind, key, sorted(result) if function == "COLLECT" and result is not None else result)
        for kind, key, result in harness.rows
    ]
    assert found == wanted
    harness.close()
