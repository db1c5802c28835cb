"""The pipelines of ``examples/sql_tests``: their tests pass, and each catches the fault that it names."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest

from flowsql.testing.files import read_file
from flowsql.testing.run import run_file

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "sql_tests"
NAMES = sorted(path.name.removesuffix(".test.sql") for path in FOLDER.glob("*.test.sql"))


def test_there_are_ten() -> None:
    assert len(NAMES) == 10


@pytest.mark.parametrize("name", NAMES)
def test_the_pipeline_passes(name: str) -> None:
    outcomes = run_file(read_file(FOLDER / f"{name}.test.sql"), {})
    assert [outcome.error for outcome in outcomes] == [None] * len(outcomes)


@pytest.mark.parametrize("name", NAMES)
def test_its_fault_is_caught(name: str, tmp_path: Path) -> None:
    test = shutil.copy(FOLDER / f"{name}.test.sql", tmp_path)
    found = re.match(r"-- caught: (.*) => (.*)\n", Path(test).read_text())
    assert found is not None
    right = (FOLDER / f"{name}.sql").read_text()
    wrong = right.replace(found[1], found[2])
    assert wrong != right
    (tmp_path / f"{name}.sql").write_text(wrong)
    errors = [outcome.error for outcome in run_file(read_file(Path(test)), {}) if outcome.error is not None]
    assert errors
    assert all("(- expected, + found)" in error for error in errors), errors


def test_a_day_of_windows_takes_no_time() -> None:
    file = read_file(FOLDER / "late_data.test.sql")
    run_file(file, {})
    started = time.perf_counter()
    (outcome,) = run_file(file, {}, lambda name: "a day" in name)
    assert outcome.passed
    # 0.05 s on a quiet machine; tests run beside others.
    assert time.perf_counter() - started < 1
