"""Deleting one byte from all rows of a text column, 64 bytes at a time, is what Python's ``replace`` does."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from flowsql_compute.eval.text.columns import without_byte


@pytest.mark.parametrize("seed", range(40))
def test_as_replace(seed: int) -> None:
    rng = np.random.default_rng(seed)
    share = rng.choice([0.0, 0.02, 0.3, 1.0])
    longest = int(rng.choice([3, 40, 200]))
    words: list[str | None] = []
    for length in rng.integers(0, longest, 200):
        letters = rng.choice(["a", "b", "é", "\0"], length)
        words.append("".join(np.where(rng.random(length) < share, "c", letters)))
    if seed % 2:
        words[7] = None
    column = pa.array(words, pa.string())
    cut = column.slice(int(rng.integers(0, 50)), int(rng.integers(0, 150)))
    for text in (column, cut):
        made = without_byte(text, "c")
        made.validate(full=True)
        assert made.to_pylist() == [None if word is None else word.replace("c", "") for word in text.to_pylist()]
