"""A job is stopped with a savepoint on disk, its query is edited, and the edited one goes on from there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from flowsql.cli.main import main
from flowsql.table import TableEnvironment
from flowsql_core.errors import BindError
from flowsql_core.row import RowKind

#: Ten seconds of them: a query must not end before it is stopped.
ROWS = 4_000
RECOVERY = "execution.state-recovery.path"
CHANGED = "flowsql.state-recovery.changed-state"
UNCLAIMED = "execution.state-recovery.ignore-unclaimed-state"


def environment(rate: int, options: Mapping[str, str]) -> TableEnvironment:
    made = TableEnvironment.create()
    for key, value in options.items():
        made.get_config().set(key, value)
    made.execute_sql(
        "CREATE TABLE numbers (n INT, t AS TO_TIMESTAMP_LTZ(n * 1000, 3), WATERMARK FOR t AS t) WITH ("
        "'connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1', "
        f"'fields.n.end' = '{ROWS}', 'rows-per-second' = '{rate}')"
    )
    made.execute_sql("CREATE VIEW rows5 AS SELECT n, MOD(n, 5) AS k, MOD(n, 3) AS j, t FROM numbers")
    return made


def stopped(sql: str, folder: Path, options: Mapping[str, str] = {}) -> tuple[str, int]:
    """The savepoint of a query that is stopped in the middle; and how many rows of ``numbers`` it had taken in."""
    result = environment(400, options).execute_sql(sql)
    changes: Iterator[Any] = result.collect()
    seen = [next(changes) for _ in range(60)]
    client = result.get_job_client()
    assert client is not None
    path = client.stop_with_savepoint(False, str(folder)).result()
    # Each row makes one change that shows its group or pair as it is then.
    return path, sum(row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER) for row in [*seen, *changes])


def finished(sql: str, path: str, options: Mapping[str, str] = {}) -> dict[Any, tuple[Any, ...]]:
    """The last row of each key of an edited query, whose first column is the key."""
    table: dict[Any, tuple[Any, ...]] = {}
    with environment(1_000_000, {RECOVERY: path, **options}).execute_sql(sql).collect() as rows:
        for row in rows:
            key, *values = row
            table[key] = tuple(values)
    return table


COUNT = "SELECT k, COUNT(*) FROM rows5 GROUP BY k"


@pytest.fixture(scope="module")
def count(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int]:
    return stopped(COUNT, tmp_path_factory.mktemp("count"))


@pytest.mark.parametrize(
    "sql",
    [
        COUNT,
        "SELECT x, COUNT(*) FROM (SELECT k AS x, n FROM rows5) GROUP BY x",
        "SELECT k, COUNT(*) AS c FROM rows5 GROUP BY k HAVING COUNT(*) > 0",
    ],
)
@pytest.mark.parametrize("parallelism", ["1", "3"])
def test_edits_that_leave_the_state_alone_count_on(count: tuple[str, int], sql: str, parallelism: str) -> None:
    table = finished(sql, count[0], {"parallelism.default": parallelism})
    assert table == dict.fromkeys(range(5), (ROWS // 5,))


def test_a_new_aggregate_starts_at_the_restore(count: tuple[str, int]) -> None:
    path, before = count
    sql = "SELECT k, COUNT(*), SUM(n), MIN(n), COUNT(DISTINCT j) FROM rows5 GROUP BY k"
    with pytest.raises(BindError, match=r"would mix two queries.*SUM|sum\(numbers\.n\).*counts from the restore on"):
        finished(sql, path)
    table = finished(sql, path, {CHANGED: "migrate"})
    for key in range(5):
        later = [n for n in range(before + 1, ROWS + 1) if n % 5 == key]
        assert table[key] == (ROWS // 5, sum(later), later[0], 3)


def test_the_first_aggregates_stay_when_columns_move_below(tmp_path: Path) -> None:
    path, _ = stopped("SELECT k, SUM(n), MAX(j) FROM rows5 GROUP BY k", tmp_path)
    table = finished("SELECT k, MAX(j), SUM(n) FROM rows5 GROUP BY k", path)
    assert table == {key: (2, sum(n for n in range(1, ROWS + 1) if n % 5 == key)) for key in range(5)}


def test_another_argument_is_another_accumulator(tmp_path: Path) -> None:
    path, before = stopped("SELECT k, SUM(n + 1) FROM rows5 GROUP BY k", tmp_path)
    sql = "SELECT k, SUM(n + 2) FROM rows5 GROUP BY k"
    with pytest.raises(BindError, match="would mix two queries"):
        finished(sql, path)
    with pytest.raises(BindError, match="only a part of an operator's state"):
        finished(sql, path, {CHANGED: "migrate"})
    table = finished(sql, path, {CHANGED: "migrate", UNCLAIMED: "true"})
    assert table == {key: (sum(n + 2 for n in range(before + 1, ROWS + 1) if n % 5 == key),) for key in range(5)}


#: Two subtasks with mini-batches aggregate in two phases.
TWO_PHASES = {
    "parallelism.default": "2",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.size": "1",
    "table.exec.mini-batch.allow-latency": "1 h",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
}


@pytest.mark.parametrize(
    "options",
    [
        {"state.backend.type": "hashmap"},
        {"state.backend.type": "rocksdb"},
        TWO_PHASES,
        TWO_PHASES | {"state.backend.type": "rocksdb"},
    ],
)
def test_a_new_extreme_beside_a_kept_count_is_counted_apart(tmp_path: Path, options: dict[str, str]) -> None:
    """SUM and COUNT go on; MIN is that of the rows since the restore, whoever takes a snapshot then."""
    path, before = stopped("SELECT k, SUM(n), COUNT(*) FROM rows5 GROUP BY k", tmp_path, options)
    sql = "SELECT k, SUM(n), COUNT(*), MIN(n), MAX(k) FROM rows5 GROUP BY k"
    with pytest.raises(BindError, match=r"min\(numbers\.n\).*counts from the restore on"):
        finished(sql, path, options)
    # The edited query is stopped as well, and goes on from its own savepoint without any option.
    second, more = stopped(sql, tmp_path / "second", {**options, RECOVERY: path, CHANGED: "migrate"})
    table = finished(sql, second, options)
    whole = {key: [n for n in range(1, ROWS + 1) if n % 5 == key] for key in range(5)}
    assert more > 0
    if options.keys() >= TWO_PHASES.keys():
        # Each subtask of the source has its own position, and a change holds several rows: only bounds are known.
        least = {key: row[2] for key, row in table.items()}
        assert all(first > before and first % 5 == key for key, first in least.items())
    else:
        least = {key: min(n for n in rows if n > before) for key, rows in whole.items()}
    assert table == {key: (sum(whole[key]), len(whole[key]), least[key], key) for key in range(5)}
    # AVG is made of the kept sum and count.
    averages = finished("SELECT k, AVG(n), MIN(n) FROM rows5 GROUP BY k", second, {**options, UNCLAIMED: "true"})
    assert averages == {key: (sum(rows) // len(rows), least[key]) for key, rows in whole.items()}


def test_an_average_of_what_is_summed_is_known_already(tmp_path: Path) -> None:
    path, _ = stopped("SELECT k, SUM(n) FROM rows5 GROUP BY k", tmp_path)
    sums = {key: sum(n for n in range(1, ROWS + 1) if n % 5 == key) for key in range(5)}
    table = finished("SELECT k, COUNT(n), AVG(n) FROM rows5 GROUP BY k", path)
    assert table == {key: (ROWS // 5, total // (ROWS // 5)) for key, total in sums.items()}


def test_another_filter_is_said(count: tuple[str, int]) -> None:
    path, before = count
    sql = "SELECT k, COUNT(*) FROM rows5 WHERE n > 3000 GROUP BY k"
    with pytest.raises(BindError, match="rows arrived where nothing was asked of them, and arrive now where"):
        finished(sql, path)
    assert before < 3000
    table = finished(sql, path, {CHANGED: "migrate"})
    assert table == {key: (sum(n <= before or n > 3000 for n in range(key or 5, ROWS + 1, 5)),) for key in range(5)}


def test_other_keys_are_another_operator(count: tuple[str, int]) -> None:
    sql = "SELECT j, COUNT(*) FROM rows5 GROUP BY j"
    with pytest.raises(BindError, match="no operator of the job takes: GroupAggregate"):
        finished(sql, count[0])
    table = finished(sql, count[0], {UNCLAIMED: "true"})
    assert sum(found[0] for found in table.values()) == ROWS - count[1]


@pytest.mark.parametrize("parallelism", ["1", "2"])
def test_keys_in_another_order_find_their_groups(tmp_path: Path, parallelism: str) -> None:
    options = {"parallelism.default": "2"}
    path, _ = stopped("SELECT k, j, COUNT(*) FROM rows5 GROUP BY k, j", tmp_path, options)
    result = environment(1_000_000, {RECOVERY: path, "parallelism.default": parallelism})
    with result.execute_sql("SELECT j, k, COUNT(*) FROM rows5 GROUP BY j, k").collect() as rows:
        last = {(row[0], row[1]): row[2] for row in rows}
    wanted = {(j, k): sum(n % 3 == j and n % 5 == k for n in range(1, ROWS + 1)) for j in range(3) for k in range(5)}
    assert last == wanted


def test_retracted_rows_do_not_let_an_aggregate_start_empty(tmp_path: Path) -> None:
    below = "(SELECT k, COUNT(*) AS c FROM rows5 GROUP BY k)"
    path, _ = stopped(f"SELECT MOD(k, 2) AS p, SUM(c) FROM {below} GROUP BY MOD(k, 2)", tmp_path)
    sql = f"SELECT MOD(k, 2) AS p, SUM(c), MAX(k) FROM {below} GROUP BY MOD(k, 2)"
    with pytest.raises(BindError, match="rows from before may be taken back"):
        finished(sql, path, {CHANGED: "migrate"})


TUMBLE = (
    "SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE rows5, DESCRIPTOR(t), INTERVAL '{}' SECOND)) "
    "GROUP BY window_start, window_end"
)


def test_another_window_is_refused(tmp_path: Path) -> None:
    path, _ = stopped(TUMBLE.format(2), tmp_path)
    with pytest.raises(BindError, match=r"WindowAggregate-.*window: was '.*size 2000 ms.*', is '.*size 4000 ms"):
        finished(TUMBLE.format(4), path, {CHANGED: "migrate"})
    assert set(finished(TUMBLE.format(2), path).values()) <= {(2,), (1,)}


JOIN = "SELECT x.n, y.j{} FROM rows5 x JOIN (SELECT n AS m, j, k FROM rows5) y ON x.n = y.m"


def test_stored_rows_that_lack_a_column_are_refused(tmp_path: Path) -> None:
    path, _ = stopped(JOIN.format(""), tmp_path)
    sql = JOIN.format(", y.k")
    with pytest.raises(BindError, match=r"Join-.*right rows: what is stored lacks .*MOD\(numbers\.n, 5\)"):
        finished(sql, path, {CHANGED: "migrate"})
    narrower = "SELECT x.n FROM rows5 x JOIN (SELECT n AS m, j, k FROM rows5) y ON x.n = y.m"
    with pytest.raises(BindError, match="only a part of an operator's state"):
        finished(narrower, path)
    assert max(finished(narrower, path, {UNCLAIMED: "true"})) == ROWS


def test_a_state_that_expires_from_now_on_is_refused(count: tuple[str, int]) -> None:
    with pytest.raises(BindError, match="time-to-live: was 'for ever', is 'expires'"):
        finished(COUNT, count[0], {"table.exec.state.ttl": "1 h", CHANGED: "migrate"})


def test_the_command_says_what_the_restore_does(
    count: tuple[str, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = (
        "CREATE TABLE numbers (n INT, t AS TO_TIMESTAMP_LTZ(n * 1000, 3), WATERMARK FOR t AS t) WITH ("
        "'connector' = 'datagen', 'fields.n.kind' = 'sequence', "
        "'fields.n.start' = '1', 'fields.n.end' = '9');\n"
    )
    kept, lost = tmp_path / "kept.sql", tmp_path / "lost.sql"
    kept.write_text(tables + "SELECT m, COUNT(*) FROM (SELECT MOD(n, 5) AS m FROM numbers) GROUP BY m;")
    lost.write_text(tables + "SELECT COUNT(*) FROM numbers;")
    assert main(["plan", count[0], str(kept)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"(?m)^kept +GroupAggregate-\w+ +[1-9][\d,]* bytes", out)
    assert main(["plan", count[0], str(lost)]) == 3
    out = capsys.readouterr().out
    assert re.search(r"(?m)^dropped +GroupAggregate-\w+ +[1-9][\d,]* bytes", out)
    assert re.search(r"(?m)^new +GroupAggregate-", out)
