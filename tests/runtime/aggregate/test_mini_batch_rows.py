"""Batches of a mini-batch as one: the same rows as joined at once, whatever is read of them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core import column_bytes
from flowsql_core.batch import ChangelogBatch, LateColumns, PyObjectColumn, concat_batches, single_watermark
from flowsql_runtime.operators.aggregate.mini_batch_rows import one_batch

_TYPES = (pa.int64(), pa.string(), pa.list_(pa.int32()), pa.decimal128(10, 2))


def _values(rng: random.Random, n: int) -> list[Any]:
    numbers = [rng.choice([None, rng.randint(0, 99)]) for _ in range(n)]
    texts = [rng.choice([None, "", "a" * rng.randint(0, 9)]) for _ in range(n)]
    lists = [rng.choice([None, [1, None], []]) for _ in range(n)]
    return [pa.array(values, type_) for values, type_ in zip((numbers, texts, lists, numbers), _TYPES, strict=True)]


def _batches(rng: random.Random) -> list[ChangelogBatch]:
    found = []
    for number in range(rng.randint(1, 5)):
        n = rng.randint(0, 30)
        kinds = np.zeros(n, np.uint8) if rng.random() < 0.5 else None
        track = single_watermark(n, number) if rng.random() < 0.5 else None
        batch = ChangelogBatch.of(_values(rng, n), kinds, track)
        if rng.random() < 0.6:
            batch = batch.part(
                np.sort(rng.sample(range(n), rng.randint(0, n))).astype(rng.choice([np.int32, np.int64]))
            )
        elif rng.random() < 0.5:
            batch = batch.slice(n // 3, n)
        found.append(batch)
    return found


def _same(found: ChangelogBatch, wanted: ChangelogBatch) -> None:
    assert found.num_rows == wanted.num_rows
    assert [column.to_pylist() for column in found.columns] == [column.to_pylist() for column in wanted.columns]
    assert (found.kinds is None) == (wanted.kinds is None)
    assert (found.track is None) == (wanted.track is None)
    if found.track is not None and wanted.track is not None:
        assert found.track.offsets.tolist() == wanted.track.offsets.tolist()
        assert found.track.wm_ms.tolist() == wanted.track.wm_ms.tolist()


@pytest.mark.parametrize("seed", range(40))
def test_rows_are_those_of_batches_joined_at_once(seed: int) -> None:
    rng = random.Random(seed)
    batches = _batches(rng)
    (whole,), (wanted,) = one_batch(batches), concat_batches(batches)
    n = wanted.num_rows
    rising = np.flatnonzero(np.array([rng.random() < 0.4 for _ in range(n)], np.bool_))
    any_order = np.array([rng.randrange(n) for _ in range(n)], np.int32)
    _same(whole.part(rising), wanted.part(rising))
    _same(whole.slice(n // 4, n // 2), wanted.slice(n // 4, n // 2))
    picked = LateColumns.of(whole.columns, any_order)
    assert [column.to_pylist() for column in picked] == [
        column.to_pylist() for column in LateColumns.of(wanted.columns, any_order)
    ]
    _same(whole, wanted)


def test_rows_of_many_bytes_flow_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_bytes, "MOST_BYTES", 40)
    texts = [pa.array(["x" * 9, "y" * 9]), pa.array(["z" * 9])]
    (whole,) = one_batch([ChangelogBatch.of([text]) for text in texts])
    twice = whole.with_columns(LateColumns.of(whole.columns, np.array([0, 0, 1, 1, 2, 2])))
    parts = list(ChangelogBatch(twice.columns, 6).within_offsets())
    assert [part.num_rows for part in parts] == [4, 2]
    assert [text for part in parts for text in part.columns[0].to_pylist()] == [c * 9 for c in "xxyyzz"]
    assert len(list(one_batch([ChangelogBatch.of([text]) for text in (*texts, *texts)]))) == 2


def test_python_objects_are_joined_at_once() -> None:
    batches = [ChangelogBatch.of([PyObjectColumn(np.array([number], np.object_)), pa.array([1])]) for number in (1, 2)]
    (whole,) = one_batch(batches)
    assert whole.columns[0].to_pylist() == [1, 2]
