"""``SHOW OPERATORS IN`` and ``state(...)`` over snapshots on disk: what a query reads is what the operators kept."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flowsql.session_zone import session_zone
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import LOCAL_TIME_ZONE
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.graph.job import JobGraph
from flowsql_core.span import Source
from flowsql_grammar import parse_statement
from flowsql_planner.bind import operations as op
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.statement import bind_statement
from flowsql_planner.planner import Planner
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.testing.cut import Recorder, run_cut

from .snapshots import write_snapshot

pytestmark = pytest.mark.usefixtures("each_backend")

#: (id, who, amount, second of the day's eleventh hour): windows of 20 s, the last one open at the end.
ORDERS = [(row, f"u{row * 7 % 5}", None if row % 11 == 3 else row * 13 % 17, row) for row in range(58)]
NAMES = [(f"u{number}", f"name {number}") for number in range(4)]

WINDOWS = (
    "SELECT who, SUM(amount) AS s, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))"
    " GROUP BY who, window_start, window_end"
)


class Session:
    """Queries, and snapshots of queries."""

    def __init__(self, folder: Path, **options: str) -> None:
        self.folder = folder
        self.environment = TableEnvironment.create()
        config = self.environment.get_config().set("table.local-time-zone", "UTC")
        for key, value in options.items():
            config.set(key.replace("__", "."), value)
        rows = [f"{i},{who},{'' if n is None else n},2024-01-01 10:00:{at:02}" for i, who, n, at in ORDERS]
        (folder / "orders.csv").write_text("\n".join(rows) + "\n")
        (folder / "names.csv").write_text("\n".join(map(",".join, NAMES)) + "\n")
        for name, columns in {
            "orders": "id INT, who STRING, amount INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts",
            "names": "who STRING, name STRING",
        }.items():
            self.environment.execute_sql(
                f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'format' = 'csv', "
                f"'csv.null-literal' = '', 'path' = '{folder}/{name}.csv')"
            )

    def graph(self, sql: str, parallelism: int) -> JobGraph:
        layer = {"parallelism.default": str(parallelism), "execution.runtime-mode": "streaming"}
        zone = {LOCAL_TIME_ZONE.key: session_zone(self.environment.configuration)}
        configuration = self.environment.configuration.with_layer(zone | layer)
        source = Source(sql)
        bound = bind_statement(parse_statement(source), BindContext(self.environment.catalogs, configuration, source))
        if isinstance(bound, op.Insert):
            return Planner(configuration).plan_inserts((bound,))
        assert isinstance(bound, op.Query)
        graph = Planner(configuration).plan_query(bound, object())
        return replace(graph, resources={**graph.resources, "collect": Recorder()})

    def saved(
        self, sql: str, parallelism: int = 2, name: str = "cut", inline_bytes: int = -1, rows: int = 1_000
    ) -> str:
        """The folder of a snapshot behind so many rows, at most all."""
        return write_snapshot(self.graph(sql, parallelism), rows, self.folder / name, inline_bytes=inline_bytes)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self.environment.execute_sql(sql).collect() as found:
            return [tuple(row) for row in found]

    def operator(self, path: str, kind: str) -> str:
        """Id of the only operator of a kind."""
        (uid,) = {row[0] for row in self.rows(f"SHOW OPERATORS IN '{path}'") if row[2] == kind}
        assert isinstance(uid, str)
        return uid

    def columns(self, sql: str) -> dict[str, str]:
        schema = self.environment.sql_query(sql).get_schema()
        types = schema.get_field_data_types()
        return {name: str(type_) for name, type_ in zip(schema.get_field_names(), types, strict=True)}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    return Session(tmp_path)


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("inline_bytes", [-1, 1 << 20])
def test_groups_with_their_accumulators(session: Session, parallelism: int, inline_bytes: int) -> None:
    path = session.saved(
        "SELECT who, COUNT(*), SUM(amount), MAX(amount), COUNT(DISTINCT id) FROM orders GROUP BY who",
        parallelism,
        inline_bytes=inline_bytes,
    )
    uid = session.operator(path, "GroupAggregate")
    whole = f"SELECT * FROM state('{path}', '{uid}')"
    assert list(session.columns(whole).items()) == [
        ("who", "STRING"),
        ("row_count", "BIGINT NOT NULL"),
        ("count_amount", "BIGINT NOT NULL"),
        ("sum_amount", "BIGINT NOT NULL"),
        ("max_amount", "INT NOT NULL"),
        ("count_distinct_id", "BIGINT NOT NULL"),
    ]
    groups: dict[str, list[int | None]] = defaultdict(list)
    for _, who, amount, _ in ORDERS:
        groups[who].append(amount)
    wanted = sorted(
        (who, len(found), sum(n for n in found if n is not None), max(n for n in found if n is not None), len(found))
        for who, found in groups.items()
    )
    named = "who, row_count, sum_amount, max_amount, count_distinct_id"
    assert sorted(session.rows(f"SELECT {named} FROM state('{path}', '{uid}')")) == wanted
    distinct = f"state('{path}', '{uid}', 'aggregate.distinct0')"
    found = session.rows(f"SELECT who, id FROM {distinct}")
    assert sorted(found) == sorted((who, number) for number, who, _, _ in ORDERS)
    assert session.rows(f"SELECT COUNT(*) AS c FROM {distinct}")[-1] == (len(ORDERS),)


def test_values_that_may_be_taken_back(session: Session) -> None:
    inner = "SELECT who, amount, COUNT(*) AS c FROM orders GROUP BY who, amount"
    path = session.saved(f"SELECT c, MAX(amount) AS m, COUNT(DISTINCT who) AS d FROM ({inner}) AS x GROUP BY c")
    uid = next(row[0] for row in session.rows(f"SHOW OPERATORS IN '{path}'") if row[3] == "aggregate.sorted0")
    counts = Counter((who, amount) for _, who, amount, _ in ORDERS)
    values = Counter((c, amount) for (_, amount), c in counts.items() if amount is not None)
    kept = session.rows(f"SELECT c, amount, occurrences FROM state('{path}', '{uid}', 'aggregate.sorted0')")
    assert sorted(kept) == sorted((c, amount, n) for (c, amount), n in values.items())
    people = Counter((c, who) for (who, _), c in counts.items())
    kept = session.rows(f"SELECT c, who, occurrences FROM state('{path}', '{uid}', 'aggregate.distinct0')")
    assert sorted(kept) == sorted((c, who, n) for (c, who), n in people.items())


@pytest.mark.parametrize("parallelism", [1, 3])
def test_windows_that_wait(session: Session, parallelism: int) -> None:
    path = session.saved(WINDOWS, parallelism, rows=50)
    uid = session.operator(path, "WindowAggregate")
    open_rows = [(who, amount) for _, who, amount, at in ORDERS[:50] if at >= 40]
    wanted = sorted(
        (who, "2024-01-01 10:01:00", sum(n or 0 for name, n in open_rows if name == who), count)
        for who, count in Counter(who for who, _ in open_rows).items()
    )
    found = session.rows(f"SELECT who, window_end, sum_amount, row_count FROM state('{path}', '{uid}')")
    assert sorted((who, str(end), s, c) for who, end, s, c in found) == wanted
    assert session.columns(f"SELECT window_end FROM state('{path}', '{uid}')") == {
        "window_end": "TIMESTAMP(3) NOT NULL"
    }


@pytest.mark.parametrize("parallelism", [1, 3])
def test_both_sides_of_a_join(session: Session, parallelism: int) -> None:
    path = session.saved("SELECT o.id, n.name FROM orders o JOIN names n ON o.who = n.who", parallelism)
    uid = session.operator(path, "Join")
    left = session.rows(f"SELECT * FROM state('{path}', '{uid}', 'left')")
    assert Counter(map(frozenset, left)) == Counter(frozenset((number, who)) for number, who, _, _ in ORDERS)
    assert sorted(session.rows(f"SELECT who, name FROM state('{path}', '{uid}', 'right')")) == NAMES
    with pytest.raises(BindError, match=r"has the states left, right") as caught:
        session.rows(f"SELECT * FROM state('{path}', '{uid}')")
    assert f"state('...', '{uid}', 'left')" in str(caught.value.hint)


def test_rows_of_a_sink_that_remembers(session: Session) -> None:
    session.environment.execute_sql(
        "CREATE TABLE latest (amount BIGINT, who STRING, PRIMARY KEY (amount) NOT ENFORCED) "
        "WITH ('connector' = 'print')"
    ).wait()
    session.environment.get_config().set("table.exec.state.ttl", "1 d").set(
        "table.exec.sink.upsert-materialize", "FORCE"
    )
    path = session.saved("INSERT INTO latest SELECT COUNT(*), who FROM orders GROUP BY who")
    uid = session.operator(path, "SinkMaterializer")
    counts = Counter(who for _, who, _, _ in ORDERS)
    kept = session.rows(f"SELECT * FROM state('{path}', '{uid}', 'rows')")
    assert Counter(map(frozenset, kept)) == Counter(map(frozenset, counts.items()))
    times = session.rows(f"SELECT written_at FROM state('{path}', '{uid}', 'written')")
    assert len(times) >= len(set(counts.values()))
    assert all(str(at) > "2026" for (at,) in times)


def test_it_is_a_table_like_any_other(session: Session) -> None:
    path = session.saved("SELECT who, COUNT(*) AS c, SUM(amount) AS s FROM orders GROUP BY who")
    uid = session.operator(path, "GroupAggregate")
    name = "GroupAggregate(groupBy=[who], select=[who, COUNT(*) AS c, SUM(amount) AS s])"
    counts = Counter(who for _, who, _, _ in ORDERS)
    joined = (
        f"SELECT n.name, s.row_count FROM state(path => '{path}', operator => '{uid}') AS s "
        "JOIN names AS n ON s.who = n.who WHERE s.row_count > 11"
    )
    wanted = sorted((name, counts[who]) for who, name in NAMES if counts[who] > 11)
    assert wanted
    assert sorted(session.rows(joined)) == wanted
    grouped = f"SELECT row_count, COUNT(*) AS c FROM TABLE(state('{path}', '{name}')) GROUP BY row_count"
    last = dict(session.rows(grouped))
    assert last == Counter(counts.values())
    plan = session.environment.explain_sql(f"SELECT who FROM state('{path}', '{uid}') WHERE row_count > 3")
    assert f"TableSourceScan(table=[[state({path}, {uid}), project=[who, row_count]" in plan
    session.environment.execute_sql(f"CREATE VIEW kept AS SELECT who FROM state('{path}', '{uid}') AS s")
    assert sorted(who for (who,) in session.rows("SELECT who FROM kept")) == sorted(counts)
    session.environment.get_config().set("execution.runtime-mode", "batch").set("execution.batch.engine", "local")
    assert sorted(session.rows("SELECT who FROM kept WHERE who > 'u1'")) == [("u2",), ("u3",), ("u4",)]


def test_the_newest_readable_snapshot_of_a_folder(session: Session) -> None:
    sql = "SELECT who, COUNT(*) AS c FROM orders GROUP BY who"
    session.saved(sql, 1, "chk-9")
    newest = session.saved(sql, 2, "chk-10")
    (session.folder / "chk-11").mkdir()
    (session.folder / "chk-11" / "_metadata").write_bytes(b"half")
    rows = session.rows(f"SHOW OPERATORS IN '{session.folder}'")
    assert rows == session.rows(f"SHOW OPERATORS IN '{newest}'")
    (group,) = (row for row in rows if row[2] == "GroupAggregate")
    assert group[1].startswith("GroupAggregate(groupBy=[who]")
    assert group[3:5] == ("aggregate.accumulators", 5)
    assert group[6:] == (2, 128, False)
    (source,) = (row for row in rows if row[2] == "Scan")
    assert source[3:] == (None, None, None, 2, 128, False)


def test_state_without_keys_element_by_element(session: Session) -> None:
    graph = session.graph("SELECT who, COUNT(*) AS c FROM orders GROUP BY who", 1)
    path = write_snapshot(graph, 5, session.folder / "half")
    uid = session.operator(path, "Scan")
    ((mode, subtask, number, content),) = session.rows(f"SELECT * FROM state('{path}', '{uid}')")
    assert (mode, subtask, number) == ("list", 0, 0)
    assert b"orders.csv" in content
    with pytest.raises(ConnectorError, match="cannot be unpickled"):
        session.rows(f"SELECT * FROM state('{path}', '{uid}', 'splits', TRUE)")


def test_errors_say_what_is_wrong(session: Session) -> None:
    path = session.saved("SELECT who, COUNT(*) AS c FROM orders GROUP BY who")
    uid = session.operator(path, "GroupAggregate")
    for call, words in {
        f"state('{session.folder}/nowhere', 'x')": "There is no folder",
        f"state('{path}', 'Group')": f"The snapshot '{path}' has no operator 'Group'",
        f"state('{path}', '{uid}', 'x')": "has no state 'x'",
        f"state('{path}')": "required options are missing",
        f"state('{path}', '{uid}', 'x', TRUE, 5)": "takes at most 4 arguments",
        f"state('{path}', operater => '{uid}')": "has no parameter 'operater'",
        f"state('{path}', UPPER('x'))": "takes a literal",
    }.items():
        with pytest.raises((BindError, ConnectorError), match=words.replace("(", r"\(")) as caught:
            session.rows(f"SELECT * FROM {call}")
        assert caught.value.at is not None, call
    (session.folder / "empty").mkdir()
    with pytest.raises(ConnectorError, match="There is no checkpoint or savepoint"):
        session.rows(f"SHOW OPERATORS IN '{session.folder}/empty'")


def test_damage_is_named_and_never_read(session: Session) -> None:
    path = session.saved("SELECT who, COUNT(*) AS c FROM orders GROUP BY who")
    uid = session.operator(path, "GroupAggregate")
    query = f"SELECT * FROM state('{path}', '{uid}')"
    files = [file for file in Path(path).glob("*.state") if file.stat().st_size > 200]
    for file in files:
        whole = file.read_bytes()
        file.write_bytes(bytes(byte ^ 1 for byte in whole))
    with pytest.raises(ConnectorError, match=r"The snapshot's file '.*\.state' is damaged"):
        session.rows(query)
    for file in files:
        file.unlink()
    with pytest.raises(ConnectorError, match=r"The snapshot's file '.*\.state' is missing"):
        session.rows(query)


def test_a_checkpoint_that_vanishes_while_it_is_read(session: Session) -> None:
    path = session.saved("SELECT who, COUNT(*) AS c FROM orders GROUP BY who")
    uid = session.operator(path, "GroupAggregate")
    graph = session.graph(f"SELECT * FROM state('{path}', '{uid}')", 1)
    for file in Path(path).iterdir():
        file.unlink()
    with pytest.raises(ConnectorError, match="was removed before it was read") as caught:
        LocalCluster().run(graph)
    assert "num-retained" in str(caught.value.hint)


def test_checkpoints_of_a_running_job(session: Session) -> None:
    """Each query reads one checkpoint, whole, while the job goes on and replaces them."""
    session.environment.execute_sql(
        "CREATE TABLE numbers (n BIGINT, g INT) WITH ('connector' = 'datagen', 'rows-per-second' = '20000', "
        "'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '100000000', "
        "'fields.g.min' = '1', 'fields.g.max' = '50')"
    )
    session.environment.execute_sql("CREATE TABLE nowhere (g INT, c BIGINT, m BIGINT) WITH ('connector' = 'blackhole')")
    config = session.environment.get_config().set("parallelism.default", "2")
    checkpoints = session.folder / "checkpoints"
    config.set("execution.checkpointing.interval", "50 ms").set("execution.checkpointing.dir", str(checkpoints))
    config.set("execution.checkpointing.num-retained", "20")
    running = session.environment.execute_sql("INSERT INTO nowhere SELECT g, COUNT(*), MAX(n) FROM numbers GROUP BY g")
    job = running.get_job_client()
    assert job is not None
    try:
        deadline = time.monotonic() + 30
        while not list(checkpoints.glob("*/chk-*/_metadata")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        config.set("execution.checkpointing.interval", "0 ms")
        (home,) = checkpoints.iterdir()
        uid = session.operator(str(home), "GroupAggregate")
        totals = []
        for _ in range(3):
            found = session.rows(f"SELECT row_count, max_n FROM state('{home}', '{uid}')")
            # No number is lost and none is counted twice: the sequence goes up to the greatest in two strides.
            total, greatest = sum(count for count, _ in found), max(n for _, n in found)
            assert len(found) <= 50
            assert total <= greatest
            totals.append(total)
        assert totals == sorted(totals)
        assert totals[0] > 0
    finally:
        job.cancel().result()


@pytest.mark.parametrize(("before", "behind"), [(1, 1), (1, 3), (3, 2)])
def test_reading_goes_on_behind_a_cut(session: Session, before: int, behind: int) -> None:
    path = session.saved("SELECT o.id, n.name FROM orders o JOIN names n ON o.who = n.who", 3)
    query = f"SELECT id, who FROM state('{path}', '{session.operator(path, 'Join')}', 'left')"
    run = run_cut(lambda parallelism: session.graph(query, parallelism), (before, behind), 7)
    assert 0 < len(run.before["collect"]) < len(ORDERS)
    assert sorted(row[1:] for row in run.rows("collect")) == [(number, who) for number, who, _, _ in ORDERS]
