"""The example of Python functions prints what it says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def rows_of(printed: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in printed.splitlines()
        if line.startswith("| ") and not line.startswith("| op")
    ]


def test_python_functions(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "python_functions.py"), run_name="__main__")
    assert rows_of(capsys.readouterr().out) == [
        ["+I", "order 1: Ann Lee", "AL", "23.80", "0.5"],
        ["+I", "order 2: Bob Ray", "BR", "5.95", "0.125"],
        ["+I", "order 3: Ann Lee", "AL", "17.85", "0.375"],
        ["+I", "large", "1"],
        ["+I", "small", "1"],
        ["-U", "large", "1"],
        ["+U", "large", "2"],
        ["+I", "AL", "21.40"],
        ["+I", "AL", "16.05"],
    ]
