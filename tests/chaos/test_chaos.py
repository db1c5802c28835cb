"""A short round of ``make chaos``: what is visible after a kill is whole, and an interrupt leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

from .chaos import ENDINGS, run


def test_nothing_half_written_is_visible(tmp_path: Path) -> None:
    played = run(tmp_path, rounds=len(ENDINGS), rows=40_000, seed=7)
    assert [found.ending for found in played] == list(ENDINGS)
