"""Cases that the differential fuzzer found, each in a file (``tests/fuzz/scripts.py`` says how they are written)."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..fuzz.scripts import read, run

CASES = sorted(Path(__file__).parent.glob("*.case"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_answers_are_one(path: Path, tmp_path: Path) -> None:
    run(read(path.read_text(encoding="utf-8")), tmp_path)
