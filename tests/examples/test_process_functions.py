"""The example of process table functions prints what it says."""

from __future__ import annotations

import runpy

import pytest

from .test_python_functions import ROOT, rows_of


def test_process_functions(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "process_functions.py"), run_name="__main__")
    assert rows_of(capsys.readouterr().out) == [
        ["+I", "ann", "CHECKOUT", "{1=1, 2=1}", "2024-01-01 12:00:50.000"],
        ["+I", "bob", "REMINDER", "{7=1}", "2024-01-01 12:01:20.000"],
        ["+I", "bob", "CHECKOUT", "{7=1}", "2024-01-01 12:20:00.000"],
        ["+I", "cat", "REMINDER", "{3=1}", "2024-01-01 12:10:00.000"],
        ["+I", "bob", "2024-01-01 12:01:20.000"],
        ["+I", "cat", "2024-01-01 12:10:00.000"],
    ]
