"""The program with a webhook prints what it promises."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_example(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_TOKEN", "geheim")
    runpy.run_path(str(ROOT / "examples" / "webhook_alerts.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "payment 1: 202",
        "payment 2: 202",
        "payment 3: 202",
        "alert: Bob paid 950.00",
        "alert: Ann paid 1200.00",
    ]
