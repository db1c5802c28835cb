"""Appends exactly once by prepared transactions of PostgreSQL and XA transactions of MariaDB."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from flowsql.errors import FlowSqlError
from flowsql_connectors import registry
from flowsql_connectors.jdbc import prepared
from flowsql_connectors.jdbc.xa import names_of
from flowsql_connectors.spi.sink import Committable, SinkWriter, TableSink, WriterContext
from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import SystemClock
from flowsql_core.graph.specs import SinkSpec, TableSpec
from flowsql_core.row import INSERT_ONLY
from flowsql_core.types.logical import INT, Column
from tests.servers import Server, own_server

from .databases import MariaDb, Place, Postgres, answer, insert, session
from .test_jobs import COLUMNS, NATIVE, READ, ROW
from .test_restarts import killed

pytestmark = pytest.mark.servers
ROWS = 6000
KILLS = 8
#: Of the long round.
MANY_KILLS = 40


@pytest.fixture(scope="module")
def preparing() -> Iterator[Server]:
    """A server that prepares transactions, which is off unless its configuration says so."""
    with own_server("postgres") as server:
        with (server.folder / "data" / "postgresql.conf").open("a") as file:
            file.write("\nmax_prepared_transactions = 20\n")
        server.kill()
        server.start()
        yield server


@pytest.fixture(params=["postgres", "mariadb"])
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "mariadb":
        return MariaDb(request.getfixturevalue("mariadb_server"))
    return Postgres(request.getfixturevalue("preparing").env)


def with_clause(place: Place, more: str = "", prefix: str = "p") -> str:
    exactly = f", 'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{prefix}'"
    return place.table("o", exactly + more)


def sink_of(place: Place, prefix: str = "p") -> TableSink:
    login = dict(part.split("' = '") for part in place.login.strip(", '").split("', '"))
    options = {
        "connector": "jdbc", "url": place.url, "table-name": "o", **login, "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": prefix,
    }  # fmt: skip
    table = TableSpec(("c", "d", "o"), (Column("a", INT),), tuple(options.items()))
    return registry.create_sink(SinkSpec(table, table.columns, INSERT_ONLY), {})


def writer_of(sink: TableSink, subtask: int = 0, parallelism: int = 1) -> SinkWriter:
    return sink.create_writer(
        WriterContext("job", subtask, parallelism, SystemClock(), {}, lambda name, by: None, lambda work: None)
    )


def rows_of(rows: list[tuple[int]]) -> ChangelogBatch:
    return ChangelogBatch.of((pa.array([row[0] for row in rows], pa.int32()),), num_rows=len(rows))


def prepared_by(writer: SinkWriter, *rows: int) -> list[Committable]:
    """The transaction of these rows."""
    writer.write(rows_of([(row,) for row in rows]))
    writer.flush(False)
    return writer.prepare_commit()


def left(place: Place) -> int:
    if place.kind == "mariadb":
        return len(names_of(place.rows("XA RECOVER"), place.name))
    return len(place.rows("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"))


def test_all_types_of_postgres(preparing: Server) -> None:
    place = Postgres(preparing.env)
    place.execute(
        "CREATE TABLE o (b bool, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric(10, 2), "
        "s varchar(9), x bytea, d date, t time, ts timestamp, tz timestamptz, j jsonb, u uuid)"
    )
    made = session()
    made.execute_sql(
        "CREATE TABLE o (b BOOLEAN, i2 SMALLINT, i4 INT, i8 BIGINT, f4 FLOAT, f8 DOUBLE, "
        "n DECIMAL(10, 2), s STRING, x BYTES, d DATE, t TIME, ts TIMESTAMP(3), tz TIMESTAMP_LTZ(3), j STRING, "
        "u STRING) " + with_clause(place)
    )
    uuid = "6f1c8f0e-0000-0000-0000-000000000000"
    insert(
        made,
        "INSERT INTO o VALUES (TRUE, CAST(1 AS SMALLINT), 2, CAST(3 AS BIGINT), CAST(1.5 AS FLOAT), 2.5E0, 3.25, "
        "'it''s', x'00ff', DATE '2024-02-29', TIME '12:34:56', TIMESTAMP '2024-02-29 12:34:56.789', "
        "CAST(TIMESTAMP '2024-02-29 12:34:56.789' AS TIMESTAMP_LTZ(3)), '{\"a\": 1}', '" + uuid + "')",
    )
    insert(made, "INSERT INTO o (i4) VALUES (7)")
    (row,) = answer(made, "SELECT * FROM o WHERE i4 = 2")
    assert (*row[:3], *row[13:]) == (True, 1, 2, '{"a": 1}', uuid)
    assert str(row[6]) == "3.25"
    assert row[8] == b"\x00\xff"
    assert str(row[11]) == "2024-02-29 12:34:56.789000"
    assert [value for (value,) in answer(made, "SELECT s FROM o WHERE i4 = 7")] == [None]
    assert left(place) == 0


def test_all_types_of_mariadb(mariadb_server: dict[str, str]) -> None:
    place = MariaDb(mariadb_server)
    place.execute(f"CREATE TABLE o ({NATIVE['mariadb']})")
    made = session()
    made.execute_sql(f"CREATE TABLE o ({COLUMNS}) {with_clause(place)}")
    insert(made, f"INSERT INTO o VALUES {ROW}")
    insert(made, "INSERT INTO o (id) VALUES (2)")
    assert sorted(answer(made, "SELECT * FROM o"), key=lambda row: row[0]) == [READ, (2, *[None] * 13)]
    assert left(place) == 0


def test_prefixes_of_any_characters(mariadb_server: dict[str, str]) -> None:
    place = MariaDb(mariadb_server)
    place.execute("CREATE TABLE o (a int)")
    sink = sink_of(place, "é's \\ %s:1")
    writer, committer = writer_of(sink), sink.create_committer()
    assert committer is not None
    committer.commit(prepared_by(writer, 1), False)
    assert place.rows("SELECT * FROM o") == [(1,)]


def test_others_on_the_server_are_left_alone(mariadb_server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same prefix in another database, and names that are no texts."""
    place, other = MariaDb(mariadb_server), MariaDb(mariadb_server)
    for each in (place, other):
        each.execute("CREATE TABLE o (a int)")
    odd = f"X'ff00{place.name.encode().hex()}', X'00fe'"
    other.execute(f"XA START {odd}", "INSERT INTO o VALUES (9)", f"XA END {odd}", f"XA PREPARE {odd}")
    sink = sink_of(other)
    writer, committer = writer_of(sink), sink.create_committer()
    assert committer is not None
    pending = prepared_by(writer, 1)
    monkeypatch.setattr(prepared, "_PENDING", set())
    writer_of(sink_of(place)).close()
    assert (left(place), left(other)) == (0, 1)
    committer.commit(pending, False)
    assert other.rows("SELECT * FROM o") == [(1,)]
    other.execute(f"XA ROLLBACK {odd}")


def test_a_table_without_transactions(mariadb_server: dict[str, str]) -> None:
    place = MariaDb(mariadb_server)
    place.execute("CREATE TABLE o (a int) ENGINE = MyISAM")
    with pytest.raises(FlowSqlError, match=r"Table 'o' at .* is of the engine MyISAM, which prepares no transactions"):
        writer_of(sink_of(place))


def test_rows_are_seen_with_the_commit(place: Place) -> None:
    place.execute("CREATE TABLE o (a int)")
    sink = sink_of(place)
    writer, committer = writer_of(sink), sink.create_committer()
    assert committer is not None
    first = prepared_by(writer, 1, 2)
    second = prepared_by(writer, 3)
    assert writer.prepare_commit() == []
    assert place.rows("SELECT * FROM o") == []
    committer.commit(first, False)
    assert sorted(place.rows("SELECT * FROM o")) == [(1,), (2,)]
    committer.commit(first, False)
    committer.abort(second)
    writer.write(rows_of([(4,)]))
    writer.close()
    assert sorted(place.rows("SELECT * FROM o")) == [(1,), (2,)]
    assert left(place) == 0


def test_what_dead_writers_left_is_rolled_back(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of their own prefix and number alone; of fewer writers than before each takes those of several."""
    place.execute("CREATE TABLE o (a int)")
    for prefix, subtask in (("p", 0), ("p", 1), ("p", 2), ("p:0", 0), ("q", 0)):
        writer = writer_of(sink_of(place, prefix), subtask, 3)
        prepared_by(writer, subtask)
        writer.close()
    # As if another process had prepared them.
    monkeypatch.setattr(prepared, "_PENDING", set())
    assert left(place) == 5
    writer_of(sink_of(place), 0, 2).close()
    assert left(place) == 3
    for prefix in ("p:0", "q"):
        writer_of(sink_of(place, prefix)).close()
    writer_of(sink_of(place), 1, 2).close()
    assert left(place) == 0
    assert place.rows("SELECT * FROM o") == []


def test_a_writer_that_goes_back_while_others_go_on(place: Place) -> None:
    place.execute("CREATE TABLE o (a int)")
    sink = sink_of(place)
    committer = sink.create_committer()
    assert committer is not None
    gone, other = writer_of(sink, 0, 2), writer_of(sink, 1, 2)
    for writer in (gone, other):
        writer.write(rows_of([(1,)]))
        writer.flush(False)
    gone.prepare_commit()
    pending = other.prepare_commit()
    gone.close()
    again = writer_of(sink, 0, 2)
    assert left(place) == 2
    again.write(rows_of([(5,)]))
    again.flush(False)
    committer.take_back()
    committer.commit([*pending, *again.prepare_commit()], False)
    assert sorted(place.rows("SELECT * FROM o")) == [(1,), (5,)]
    assert left(place) == 0


def test_a_server_that_is_killed(tmp_path: Path) -> None:
    """What was prepared is there when it starts again."""
    with own_server("mariadb") as server:
        place = MariaDb(server.env)
        place.execute("CREATE TABLE o (a int)")
        sink = sink_of(place)
        writer, committer = writer_of(sink), sink.create_committer()
        assert committer is not None
        pending = prepared_by(writer, 1)
        writer.write(rows_of([(2,)]))
        writer.flush(False)
        server.kill()
        server.start()
        assert left(place) == 1
        committer.commit(pending, False)
        assert place.rows("SELECT * FROM o") == [(1,)]


@pytest.mark.parametrize("kills", [KILLS, pytest.param(MANY_KILLS, marks=pytest.mark.nightly)])
def test_sigkill(place: Place, tmp_path: Path, kills: int) -> None:
    rows = ROWS * kills // KILLS
    place.execute("CREATE TABLE o (id bigint)")
    own = with_clause(place, ", 'sink.buffer-flush.max-rows' = '50'")
    text = (
        "SET 'parallelism.default' = '2';\n"
        "CREATE TABLE n (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1500', "
        f"'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '{rows}');\n"
        f"CREATE TABLE o (id BIGINT) {own};\n"
        "INSERT INTO o SELECT id FROM n;\n"
    )
    killed(text, tmp_path / "checkpoints", kills, random.Random(7))
    assert place.rows("SELECT COUNT(*), COUNT(DISTINCT id), MIN(id), MAX(id) FROM o") == [(rows, rows, 1, rows)]
    assert left(place) == 0


def test_a_server_without_prepared_transactions(postgres_server: dict[str, str]) -> None:
    place = Postgres(postgres_server)
    if place.rows("SELECT current_setting('max_prepared_transactions')") != [("0",)]:
        pytest.skip("the server prepares transactions")
    place.execute("CREATE TABLE o (id bigint)")
    made = session()
    made.execute_sql(f"CREATE TABLE o (id BIGINT) {with_clause(place)}")
    with pytest.raises(FlowSqlError, match="'max_prepared_transactions' of the server is 0") as caught:
        insert(made, "INSERT INTO o VALUES (1)")
    assert "set it to at least twice the number of writers" in caught.value.render()
