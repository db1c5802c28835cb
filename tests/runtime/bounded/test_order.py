"""Orders of batch mode: values as words, Flink's sort, merged runs."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch
from flowsql_runtime.network.spill import SpillSpace
from flowsql_runtime.operators.bounded.held_rows import FAN_OUT, DealtRows
from flowsql_runtime.operators.bounded.order import sort_words, sorted_positions, stable_positions
from flowsql_runtime.operators.bounded.sorted_rows import merged

NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([None, -3, 0, 2**40], pa.int64()),
        ([None, float("-inf"), -1.5, -0.0, 0.0, 1e-300, 2.5, float("inf"), NAN], pa.float64()),
        ([None, Decimal("-123456789012345678901.5"), Decimal("-0.1"), Decimal("99999999999999999999.0")],
         pa.decimal128(30, 1)),
        ([None, "", "B", "a", "aa", "b", "ä"], pa.string()),
        ([None, b"\x00", b"\x7f", b"\x80"], pa.binary()),
        ([None, False, True], pa.bool_()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_values_sort_as_in_flink(values: list[Any], type_: Any, descending: bool, nulls_first: bool) -> None:
    known = values[:0:-1] if descending else values[1:]
    wanted = [None, *known] if nulls_first else [*known, None]
    shuffled = np.random.default_rng(3).permutation(len(values))
    column = pa.array([values[place] for place in shuffled], type_)
    for positions in (sorted_positions, stable_positions):
        order = positions(sort_words([column], ((0, descending, nulls_first),)), len(values))
        found = column.take(pa.array(order)).to_pylist()
        assert [str(value) for value in found] == [str(value) for value in wanted]


@pytest.mark.parametrize("n", [0, 1, 12, 13, 14, 500, 5000])
@pytest.mark.parametrize("kind", ["random", "equal", "rising", "falling", "pipe", "few"])
def test_flinks_sort_sorts(n: int, kind: str) -> None:
    rising = np.arange(n)
    keys = {
        "random": np.random.default_rng(n).integers(0, 1 << 40, n),
        "equal": np.zeros(n, np.int64),
        "rising": rising,
        "falling": rising[::-1],
        "pipe": np.minimum(rising, rising[::-1]),
        "few": rising % 7,
    }[kind]
    order = sorted_positions([keys.astype(np.int64)], n)
    assert sorted(order.tolist()) == list(range(n))
    assert (np.diff(keys[order]) >= 0).all()


def test_merged_runs_are_sorted_and_keep_the_order_of_runs(tmp_path: Path) -> None:
    space = SpillSpace(str(tmp_path), "merge")
    random = np.random.default_rng(5)
    runs, every = [], []
    for number in range(5):
        keys = np.sort(random.integers(0, 50, 400))
        every += [(int(key), number, place) for place, key in enumerate(keys)]
        run = space.new_file((pa.int64(), pa.int64(), pa.int64()))
        for first in range(0, 400, 64):
            part = slice(first, min(first + 64, 400))
            places = np.arange(400)[part]
            columns = (pa.array(keys[part]), pa.array(np.full(len(places), number)), pa.array(places))
            run.append(ChangelogBatch(columns, len(places)))
        run.seal()
        runs.append(run)
    found = [
        row
        for batch in merged(runs, lambda batch: sort_words(batch.columns, ((0, False, True),)))
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]
    assert found == sorted(every)
    space.close()


def test_equal_keys_are_dealt_to_one_part_in_order(tmp_path: Path) -> None:
    space = SpillSpace(str(tmp_path), "deal")
    dealt, finer = DealtRows(space, (0,)), DealtRows(space, (0,), level=1)
    keys = np.random.default_rng(1).integers(0, 300, 3000)
    for first in range(0, 3000, 500):
        part = keys[first : first + 500]
        batch = ChangelogBatch((pa.array(part), pa.array(np.arange(first, first + 500))), 500)
        dealt.add(batch)
        finer.add(batch)
    homes: dict[int, int] = {}
    sizes = []
    for part in range(FAN_OUT):
        last: dict[int, int] = {}
        rows = 0
        for batch in dealt.read(part):
            rows += batch.num_rows
            for key, place in zip(batch.columns[0].to_pylist(), batch.columns[1].to_pylist(), strict=True):
                assert homes.setdefault(key, part) == part
                assert last.get(key, -1) < place
                last[key] = place
        sizes.append(rows)
    assert sum(sizes) == 3000
    assert max(sizes) < 600, "keys are spread"
    # Another level spreads the keys of one part anew.
    again = {part for part in range(FAN_OUT) for batch in finer.read(part) for key in batch.columns[0].to_pylist()
             if homes[key] == 0}  # fmt: skip
    assert len(again) > 4
    space.close()
