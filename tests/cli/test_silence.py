"""When and where a script's user hears why a query gives no rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from flowsql.cli.main import main
from flowsql.cli.silence import explained_silence
from flowsql.table.session.environment import TableEnvironment

TABLE = (
    "CREATE TABLE clicks (u STRING) WITH ('connector' = 'filesystem', 'path' = 'clicks', 'format' = 'csv', "
    "'source.monitor-interval' = '100 ms'); CREATE TABLE hole (u STRING) WITH ('connector' = 'blackhole'); "
)
WAITS = "table 'clicks' has given no row yet and waits for new files, for which it looks every 100 ms."


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "clicks").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLOWSQL_CONF_DIR", raising=False)


@pytest.mark.parametrize(
    ("patience", "sql", "told"),
    [
        ("300 ms", "SELECT u FROM clicks", f"[INFO] No rows for 0.3 s: {WAITS}\n"),
        ("0 s", "SELECT u FROM clicks", ""),
        ("300 ms", "SELECT u FROM (VALUES 1) AS t(u)", ""),
    ],
    ids=["silent", "switched off", "over"],
)
def test_it_is_told_once(patience: str, sql: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-D", f"sql-client.display.explain-silence={patience}", "--timeout", "1.5"]
    assert main([*words, "-c", TABLE + sql]) == 0
    assert capsys.readouterr().err == told


def test_an_insert_is_explained_too(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-D", "sql-client.display.explain-silence=300 ms", "--timeout", "1.5"]
    assert main([*words, "-c", f"{TABLE}INSERT INTO hole SELECT u FROM clicks"]) == 1
    assert WAITS in capsys.readouterr().err


UNTRUE = "the condition u = 'b' is not true of the only row that came from table 'clicks' so far."


def test_a_reason_that_changes_is_told_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowsql.cli.silence.PERIOD_S", 0.1)
    environment = TableEnvironment.create()
    environment.execute_sql(TABLE.partition("; ")[0])
    result = environment.execute_sql("SELECT u FROM clicks WHERE u = 'b'")
    told: list[str] = []
    try:
        with explained_silence(result, 100, told.append):
            _until(lambda: len(told) == 1)
            # A file that is found is read once: it must be whole when it appears.
            (tmp_path / "a.csv").write_text("a\n")
            (tmp_path / "a.csv").rename(tmp_path / "clicks" / "a.csv")
            # Between the two the file may have been found and not been read yet.
            _until(lambda: told[-1].partition(": ")[2] == UNTRUE)
    finally:
        result.cancel()
    reasons = [line.partition(": ")[2] for line in told]
    assert reasons[0] == WAITS
    assert all(one != following for one, following in pairwise(reasons))


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
