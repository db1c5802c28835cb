"""Random queries and random edits: where a plan says that state is kept, the answer after the restore is right."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from flowsql_runtime.checkpoint.evolution import Fate

from .families import draw_pair
from .judge import Session, judge, make_tables

#: Pairs over the same rows.
_TOGETHER: Final = 25
SEED: Final = int(os.environ.get("SEED", "34"))


def _round(folder: Path, seed: int, pairs: int) -> Counter[Fate]:
    """Judge pairs over random rows; returns how many had which fate."""
    draw = random.Random(seed)
    make_tables(folder, draw)
    sessions: dict[frozenset[tuple[str, str]], Session] = {}
    seen: Counter[Fate] = Counter()
    for number in range(pairs):
        pair = draw_pair(draw)
        options = frozenset(pair.options.items())
        if options not in sessions:
            sessions[options] = Session(folder, pair.options)
        own = folder / str(number)
        own.mkdir()
        try:
            verdict = judge(pair, own, sessions[options], sessions[options], random.Random(seed + number))
        except Exception as error:
            raise AssertionError(f"seed {seed}, pair {number}: {pair}") from error
        assert not verdict.wrong, f"seed {seed}, pair {number}: {verdict.wrong}\n{pair}"
        seen.update(verdict.fates)
    return seen


def test_kept_state_answers_as_if_the_edit_had_always_run(tmp_path: Path) -> None:
    seen = _round(tmp_path, SEED, _TOGETHER)
    assert {Fate.KEPT, Fate.MIGRATED, Fate.REBUILT} <= set(seen)


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(2_000 // _TOGETHER))
def test_kept_state_answers_as_if_the_edit_had_always_run_2_000_times(tmp_path: Path, number: int) -> None:
    _round(tmp_path, 1_000 * SEED + number, _TOGETHER)
