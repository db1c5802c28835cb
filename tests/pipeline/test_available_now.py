"""Streams that take what is there, stop with a savepoint, and go on from it in the next run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flowsql.cli.main import main
from flowsql.connectors import At, RowSource, register
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import FlowSqlError

FILES = "WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = 'csv', 'source.monitor-interval' = '1 h')"
PROJECT = {
    "flowsql.toml": '[options]\n"execution.runtime-mode" = "streaming"\n',
    # The reader of what the other job writes stands before it.
    "jobs.sql": f"""CREATE TABLE clicks (who STRING) {FILES.format("clicks")};
CREATE TABLE loud (who STRING) {FILES.format("loud")};
CREATE TABLE totals (who STRING, n BIGINT) WITH ('connector' = 'print');
INSERT INTO totals SELECT who, COUNT(*) FROM loud GROUP BY who;
INSERT INTO loud SELECT UPPER(who) FROM clicks;
""",
    "clicks/1.csv": "ann\nann\n",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("FLOWSQL_CONF_DIR", "FLOWSQL_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The changes that a run prints."""
    assert main(["run", "--available-now"]) == 0
    out = capsys.readouterr().out
    assert "jobs.sql:5 loud: stopped with " in out
    assert "jobs.sql:4 totals: stopped with " in out
    return [line for line in out.splitlines() if line[1:3] in ("I[", "U[")]


def test_each_run_takes_what_is_new(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys) == ["+I[ANN, 1]", "-U[ANN, 1]", "+U[ANN, 2]"]
    (folder / "clicks" / "2.csv").write_text("ann\nbob\n")
    assert sorted(run(capsys)) == ["+I[BOB, 1]", "+U[ANN, 3]", "-U[ANN, 2]"]
    assert run(capsys) == []
    written = [line for path in (folder / "loud").iterdir() for line in path.read_text().split()]
    assert sorted(written) == ["ANN", "ANN", "ANN", "BOB"]


def session(**options: str) -> TableEnvironment:
    environment = TableEnvironment.create()
    environment.get_config().set("flowsql.trigger", "available-now")
    for key, value in options.items():
        environment.get_config().set(key, value)
    return environment


class Numbers(RowSource):
    """Numbers up to a hundred, and then nothing for ever."""

    bounded = False
    tells_backlog = True

    def read(self, split: str, position: Any) -> Iterator[Any]:
        for number in range(position or 0, 100):
            yield At((number,), number + 1)
        while True:
            time.sleep(0.01)
            yield None


def test_a_query_goes_on_where_the_last_one_stopped(folder: Path) -> None:
    register("numbers-of-a-test", source=Numbers)
    environment = session(**{"execution.checkpointing.savepoint-dir": str(folder / "saved")})
    environment.execute_sql("CREATE TABLE numbers (n INT) WITH ('connector' = 'numbers-of-a-test')")

    def ask() -> tuple[list[int], str]:
        result = environment.execute_sql("SELECT n FROM numbers")
        rows = [row[0] for row in result.collect()]
        job = result.get_job_client()
        assert job is not None
        path = job.stopped_with()
        assert path is not None
        return rows, path

    rows, path = ask()
    assert rows == list(range(100))
    environment.get_config().set("execution.state-recovery.path", path)
    assert ask()[0] == []


def test_an_input_that_ends_ends_the_job(folder: Path) -> None:
    environment = session(**{"execution.checkpointing.savepoint-dir": str(folder / "saved")})
    result = environment.execute_sql("SELECT COUNT(*) FROM (VALUES 1, 2) AS t(n)")
    assert [row[0] for row in result.collect()] == [1, 1, 2]
    job = result.get_job_client()
    assert job is not None
    assert job.stopped_with() is None


def endless(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE TABLE t (n INT) WITH ('connector' = 'datagen')")


def files(environment: TableEnvironment) -> None:
    environment.execute_sql(f"CREATE TABLE t (n INT) {FILES.format('clicks')}")


@pytest.mark.parametrize(
    ("table", "options", "code", "told"),
    [
        (endless, {"execution.checkpointing.savepoint-dir": "saved"}, "endless-backlog", "the connector 'datagen'"),
        (files, {}, "no-savepoint-directory", "no folder for it is known"),
    ],
    ids=["no end", "no folder"],
)
def test_what_could_not_stop_is_refused(
    table: Callable[[TableEnvironment], None], options: dict[str, str], code: str, told: str
) -> None:
    environment = session(**options)
    table(environment)
    with pytest.raises(FlowSqlError) as raised:
        environment.execute_sql("SELECT n FROM t")
    assert raised.value.code == code
    assert told in str(raised.value)
