"""``flowsql explain``: plans and tasks of a script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flowsql.cli.main import main

SCRIPT = """CREATE TABLE t (k INT, s STRING) WITH ('connector' = 'datagen');
CREATE TABLE o (k INT, n BIGINT) WITH ('connector' = 'blackhole');
SET 'parallelism.default' = '2';

INSERT INTO o SELECT k, COUNT(*) FROM t WHERE s <> '"x"' GROUP BY k;
SELECT s FROM t;
QUIT;
SELECT nosuch FROM t;
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("job.sql").write_text(SCRIPT)
    return "job.sql"


def test_text_has_plans_and_tasks(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", script]) == 0
    text = capsys.readouterr().out
    assert text.startswith("-- job.sql:5\n== Abstract Syntax Tree ==\n")
    assert "== Optimized Execution Plan ==" in text
    assert "== Job Graph == (job.sql:5)\ntask 1, parallelism 2\n  Source: t[1]\n" in text
    assert "parallelism 2, reads HASH[k] from task 1\n  GroupAggregate(" in text
    assert "-- job.sql:6" in text


def test_json_and_mermaid_are_of_the_same_job(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--format", "json", script]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert (first["place"], second["place"]) == ("job.sql:5", "job.sql:6")
    assert [vertex["parallelism"] for vertex in first["vertices"]] == [2, 2]
    (edge,) = first["edges"]
    assert (edge["ship_strategy"], edge["keys"]) == ("HASH", ["k"])
    assert main(["explain", "--format", "mermaid", "-o", "job.mmd", script]) == 0
    chart = Path("job.mmd").read_text()
    assert chart.startswith("flowchart LR\n  subgraph j0v1[")
    assert '==>|"HASH[k]"|' in chart
    assert "#34;x#34;" in chart
    assert chart.count("subgraph") == len(first["vertices"]) + len(second["vertices"])


def test_batch_mode_has_text_alone(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("batch.sql").write_text("SET 'execution.runtime-mode' = 'batch'; SELECT 1 AS x;")
    assert main(["explain", "batch.sql"]) == 0
    assert "== Job Graph ==" not in capsys.readouterr().out
    assert main(["explain", "--format", "json", "batch.sql"]) == 1
    assert "--format text explains batch mode" in capsys.readouterr().err


def test_what_is_wrong(script: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["explain", "nosuch.sql"]) == 2
    Path("bad.sql").write_text("SELECT nosuch;")
    assert main(["explain", "bad.sql"]) == 1
    assert "--> bad.sql:1:8" in capsys.readouterr().err
    Path("none.sql").write_text("SHOW TABLES;")
    assert main(["explain", "none.sql"]) == 1
    assert "neither an INSERT nor a query" in capsys.readouterr().err
