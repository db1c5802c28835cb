"""The program of the Table API prints what it promises."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_example(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "table_api.py"), run_name="__main__")
    printed = capsys.readouterr().out
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines() if line.startswith("|")]
    assert cells[1:3] == [["+I", "Ms or Mr Ann", "1.75"], ["+I", "Ms or Mr Bob", "unknown"]]
    assert sorted(cells[4:]) == [
        ["+I", "Bonn", "2024-05-01 10:00:00.000", "3.20", "1"],
        ["+I", "Bonn", "2024-05-01 10:05:00.000", "80.00", "1"],
        ["+I", "Ulm", "2024-05-01 10:00:00.000", "19.50", "2"],
        ["+I", "Ulm", "2024-05-01 10:10:00.000", "1.10", "1"],
    ]
    assert "the plans are the same: True" in printed
