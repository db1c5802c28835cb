"""What a script's user hears of rows that got lost, and what programs are told of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.cli.main import main
from flowsql.table import TableEnvironment
from tests.told_cases import Case, cases_of

CASES = cases_of(Path(__file__).with_name("lost_rows.txt"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLOWSQL_CONF_DIR", raising=False)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_lost_rows_are_told(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case.write_files(tmp_path)
    assert main([*(word for option in case.options for word in ("-D", option)), "-c", case.sql]) == 0
    assert capsys.readouterr().err == case.told


def test_a_program_asks_for_them(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1\n2,3\n4,5\n")
    environment = TableEnvironment.create()
    environment.execute_sql(
        "CREATE TABLE t (a INT) WITH ('connector' = 'filesystem', 'path' = 't.csv', 'format' = 'csv', "
        "'csv.ignore-parse-errors' = 'true')"
    )
    result = environment.execute_sql("SELECT a FROM t")
    with result.collect() as rows:
        assert len(list(rows)) == 1
    job = result.get_job_client()
    assert job is not None
    assert [lost.as_dict() for lost in job.lost_rows()] == [
        {
            "loss": "skipped",
            "place": "t",
            "count": 2,
            "rows": 3,
            "first": "t.csv, row 2",
            "option": "ignore-parse-errors",
        }
    ]
