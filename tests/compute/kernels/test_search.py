"""Searches for a constant text against Python's own, with needles that overlap themselves and rows that end in one."""

from __future__ import annotations

import random
import re

import numpy as np
import pyarrow as pa
import pytest

from flowsql_compute.eval.text.columns import extract_run, first_byte, literal_run


def texts(letters: str, seed: int) -> pa.Array:
    rng = random.Random(seed)
    made = ["".join(rng.choices(letters, k=rng.randint(0, 30))) for _ in range(2000)]
    made += [None, "", *letters]  # type: ignore[list-item]
    return pa.array(made).slice(3)


@pytest.mark.parametrize("needle", ["a", "ab", "aab", "abab", "aaaa", "bé", "éa"])
def test_the_first_place_of_a_text(needle: str) -> None:
    column = texts("abé", len(needle))
    wanted = [-1 if word is None else word.encode().find(needle.encode()) for word in column.to_pylist()]
    found = first_byte(column, needle)
    assert np.where(column.is_valid().to_numpy(zero_copy_only=False), found, -1).tolist() == wanted


@pytest.mark.parametrize(
    "pattern", ["(&|^)ab=([^&]*)", "[&a]aa=([^&=]+)", "aba([^b]*)", "(&)a=([^&]+)", "(^)abab([^=]*)", "(^|=)==([^a]+)"]
)
def test_a_run_behind_a_literal(pattern: str) -> None:
    """A literal that stands in a wrong place, or whose run is too short, hides none behind it."""
    shape = literal_run(pattern)
    assert shape is not None
    column = texts("aab=&", len(pattern))
    matches = [None if word is None else re.search(pattern, word) for word in column.to_pylist()]
    wanted = [None if match is None else match[shape.group] for match in matches]
    assert extract_run(column, shape).to_pylist() == wanted
    assert any(wanted)
