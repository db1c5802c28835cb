"""Searches for a constant text against Python's own, with needles that overlap themselves and rows that end in one."""

from __future__ import annotations

import random
import re

import numpy as np
import pyarrow as pa
import pytest

from flowsql_compute.eval.text.columns import extract_run, first_byte, literal_run, pieces


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


@pytest.mark.parametrize("mark", ["/", "//", "é"])
@pytest.mark.parametrize("index", [0, 1, 3])
def test_pieces_between_marks(mark: str, index: int) -> None:
    """Also of rows longer than the 64 bytes that are looked at once, and of the last one of a column."""
    rng = random.Random(index)
    made = ["".join(rng.choices("ab/é", (8, 8, rng.random(), 1), k=rng.randint(0, 300))) for _ in range(500)]
    column = pa.array(["skipped/a/b/c/d", None, "", "/", *made, "a/b//c/d"]).slice(1)
    cut = [None if not word else word.split(mark) for word in column.to_pylist()]
    wanted = [None if parts is None or len(parts) <= index else parts[index] for parts in cut]
    assert pieces(column, mark, index).to_pylist() == wanted
    alone = column.slice(len(column) - 1)
    assert pieces(alone, mark, index).to_pylist() == wanted[-1:]
