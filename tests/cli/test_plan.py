"""``flowsql plan``: what becomes of the state of a job whose script changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.cli.main import main

TABLES = """
CREATE TABLE clicks (id INT, who STRING, n INT) WITH ('connector' = 'datagen');
CREATE TABLE out1 (who STRING, c BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE out2 (who STRING, c BIGINT, s INT) WITH ('connector' = 'blackhole');
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLOWSQL_CONF_DIR", raising=False)
    (tmp_path / "old.sql").write_text(TABLES + "INSERT INTO out1 SELECT who, COUNT(*) FROM clicks GROUP BY who;")
    return tmp_path


def plan(folder: Path, sql: str, *options: str) -> int:
    (folder / "new.sql").write_text(TABLES + sql)
    return main(["plan", *options, "old.sql", "new.sql"])


def test_edits_that_keep_the_state(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "INSERT INTO out1 SELECT w, c FROM (SELECT who AS w, COUNT(*) AS c FROM clicks GROUP BY who);"
    assert plan(folder, sql, "-D", "parallelism.default=3") == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("kept      GroupAggregate-")


def test_a_new_aggregate_is_migrated(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(folder, "INSERT INTO out2 SELECT who, COUNT(*), SUM(n) FROM clicks GROUP BY who;") == 3
    out = capsys.readouterr().out
    assert out.startswith("migrated  GroupAggregate-")
    assert "sum(clicks.n) WHERE clicks.n IS NOT NULL: was not kept, counts from the restore on" in out
    assert out.endswith("A restore needs 'flowsql.state-recovery.changed-state' = 'migrate'.\n")


def test_other_keys_are_dropped_and_new(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "INSERT INTO out1 SELECT UPPER(who), COUNT(*) FROM clicks GROUP BY UPPER(who);"
    assert plan(folder, sql) == 3
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines() if not line.startswith(" ")] == ["new", "dropped", "A"]
    assert "'execution.state-recovery.ignore-unclaimed-state' = 'true'" in out


def test_a_state_that_does_not_fit_is_rebuilt(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SET 'table.exec.state.ttl' = '1 h'; INSERT INTO out1 SELECT who, COUNT(*) FROM clicks GROUP BY who;"
    assert plan(folder, sql) == 3
    out = capsys.readouterr().out
    assert out.startswith("rebuilt   GroupAggregate-")
    assert "time-to-live: was 'for ever', is 'expires'" in out
    assert "'flowsql.state-recovery.changed-state' = 'rebuild'" in out


@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        ("INSERT INTO out1 SELECT nobody, 1 FROM clicks;", 1, "nobody"),
        ("SHOW TABLES;", 1, "starts no job"),
        ("INSERT INTO out1 SELECT who, 1 FROM clicks; INSERT INTO out1 SELECT who, 2 FROM clicks;", 1, "starts 2 jobs"),
        ("SET 'execution.runtime-mode' = 'batch'; SELECT 1;", 1, "batch mode keeps no state"),
    ],
)
def test_what_cannot_be_planned(
    folder: Path, capsys: pytest.CaptureFixture[str], sql: str, code: int, message: str
) -> None:
    assert plan(folder, sql) == code
    assert message in capsys.readouterr().err


def test_missing_files_and_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "old.sql", "nowhere.sql"]) == 2
    assert main(["plan", "old.sql"]) == 2
    assert main(["plan", str(folder / "nothing"), "old.sql"]) == 1
    assert "no checkpoint or savepoint" in capsys.readouterr().err
