"""Tables that are read up to where the log ends, and from there on in the next job."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from flowsql.table.session.environment import TableEnvironment
from tests.connectors.cdc.mysql.place import Place
from tests.connectors.cdc.mysql.place import place as place
from tests.connectors.cdc.server import Database

pytestmark = pytest.mark.servers

ROWS = [["+I", 1, "a"], ["+I", 2, "b"], ["+I", 3, "c"]]


class Runs:
    """Jobs over one table, each of which goes on where the one before stopped."""

    def __init__(self, folder: Path, options: dict[str, str]) -> None:
        self._environment = TableEnvironment.create()
        self._set("flowsql.trigger", "available-now")
        self._set("execution.checkpointing.savepoint-dir", str(folder))
        listed = ", ".join(f"'{key}' = '{text}'" for key, text in options.items())
        self._environment.execute_sql(
            f"CREATE TABLE t (id INT, x STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ({listed})"
        )

    def _set(self, key: str, text: str) -> None:
        self._environment.get_config().set(key, text)

    def run(self, query: str = "SELECT id, x FROM t") -> list[list[Any]]:
        """The changes of a job that stops by itself."""
        result = self._environment.execute_sql(query)
        changes = [[row.get_row_kind().short_string(), *row] for row in result.collect()]
        job = result.get_job_client()
        assert job is not None
        path = job.stopped_with()
        assert path is not None
        self._set("execution.state-recovery.path", path)
        return changes


def filled(server: Database | Place) -> None:
    server.execute(
        "CREATE TABLE t (id int PRIMARY KEY, x varchar(9))",
        "CREATE TABLE other (id int PRIMARY KEY)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    )


def changed(server: Database | Place) -> None:
    # What the log has last is of another table.
    server.execute("UPDATE t SET x = 'aa' WHERE id = 1", "DELETE FROM t WHERE id = 2", "INSERT INTO other VALUES (1)")


CHANGES = [["-U", 1, "a"], ["+U", 1, "aa"], ["-D", 2, "b"]]


@pytest.mark.parametrize("mode", ["initial", "latest-offset"])
def test_mysql(place: Place, tmp_path: Path, mode: str) -> None:
    filled(place)
    runs = Runs(tmp_path, {**place.options, "scan.startup.mode": mode})
    assert sorted(runs.run()) == (ROWS if mode == "initial" else [])
    changed(place)
    assert runs.run() == CHANGES
    assert runs.run() == []


@pytest.mark.parametrize("mode", ["initial", "latest-offset"])
def test_postgres(database: Database, tmp_path: Path, mode: str) -> None:
    filled(database)
    database.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    runs = Runs(tmp_path, database.options(scan__startup__mode=mode))
    assert sorted(runs.run()) == (ROWS if mode == "initial" else [])
    changed(database)
    assert runs.run() == CHANGES
    assert runs.run() == []


def test_places_of_mysql_log(place: Place, tmp_path: Path) -> None:
    filled(place)
    changed(place)
    begin = Runs(tmp_path, {**place.options, "scan.startup.mode": "earliest-offset"})
    assert begin.run() == [*ROWS, *CHANGES]
    place.execute("FLUSH BINARY LOGS")
    started = time.monotonic()
    assert begin.run() == []
    # Not only once the server tells that nothing happens, 30 s later.
    assert time.monotonic() - started < 20


def test_state_goes_on(place: Place, tmp_path: Path) -> None:
    filled(place)
    runs = Runs(tmp_path, place.options)
    query = "SELECT CAST(COUNT(*) AS INT), MAX(x) FROM t"
    assert runs.run(query)[-1][1:] == [3, "c"]
    place.execute("DELETE FROM t WHERE id > 1")
    assert runs.run(query)[-1][1:] == [1, "a"]


def test_the_slot_is_told_over_several_runs(database: Database, tmp_path: Path) -> None:
    filled(database)
    database.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    runs = Runs(tmp_path, database.options(scan__lsn_commit__checkpoints_num_delay="1"))

    def confirmed() -> int:
        query = "SELECT (confirmed_flush_lsn - '0/0')::int8 FROM pg_replication_slots WHERE slot_name = '{}'"
        return int(database.rows(query.format(database.name))[0][0])

    assert sorted(runs.run()) == ROWS
    changed(database)
    assert runs.run() == CHANGES
    begun = confirmed()
    # The place behind the changes: the savepoint has it, the next one as well, and then it is told.
    database.execute("INSERT INTO other VALUES (2)")
    assert runs.run() == []
    told = confirmed()
    database.execute("INSERT INTO other VALUES (3)")
    assert runs.run() == []
    assert begun <= told < confirmed()
