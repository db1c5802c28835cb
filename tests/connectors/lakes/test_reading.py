"""Scans: files side by side, positions, what filters leave out, what is read of the table's history."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from flowsql_connectors import registry
from flowsql_connectors.spi.source import Split, SplitEnumerator, TableSource
from flowsql_core.errors import ConnectorError, FlowSqlError
from flowsql_core.expr import Call, InputRef, Literal
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.types.logical import BOOLEAN, DATE, INT, STRING
from tests.connectors.tables import drain, insert, poll, reader_of, rows_of, scan, source_of

from .lake import KINDS, Lake
from .sessions import session

STREAMING = {
    "iceberg": {"streaming": "true", "starting_strategy": "TABLE_SCAN_THEN_INCREMENTAL"},
    "delta": {"mode": "streaming"},
}


def test_each_row_once_over_snapshots(lake: Lake) -> None:
    """Readers stop behind a few rows, and others in another number go on from where they stood."""
    table = lake.table("a INT, p INT", ("p",))
    for first in (0, 40):
        insert(table, [(number, number % 2) for number in range(first, first + 40)])
    source, schema = source_of(table)
    enumerator = source.create_enumerator()
    dealt = enumerator.initial_splits(3)
    assert [len(splits) for splits in dealt] == [2, 1, 1]
    seen: list[list[Any]] = []
    for parallelism in (2, 4, 1, 3):
        state, kept = enumerator.snapshot(), []
        for subtask, splits in enumerate(dealt):
            reader = reader_of(source, subtask, len(dealt))
            reader.add_splits(splits)
            reader.no_more_splits()
            if (polled := poll(reader, 7)) is not None:
                seen += rows_of(polled.batch, schema)
            kept += reader.snapshot()
            reader.close()
        enumerator = source.create_enumerator()
        enumerator.restore(state)
        dealt = enumerator.redistribute(kept, parallelism)
    for splits in dealt:
        seen += drain(reader_of(source), splits, schema)
    assert sorted(row[0] for row in seen) == list(range(80))


def test_columns_and_limits(lake: Lake) -> None:
    table = lake.table("a INT, p STRING, b STRING", ("p",))
    insert(table, [(1, "x", "one"), (2, "y", "two"), (3, "x", None)])
    assert sorted(scan(table, select=("b", "a")), key=repr) == [["one", 1], ["two", 2], [None, 3]]
    assert sorted(scan(table, select=("p",))) == [["x"], ["x"], ["y"]]
    assert len(scan(table, limit=1)) == 1
    source, _ = source_of(table, select=())
    batches = []
    reader = reader_of(source)
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    reader.no_more_splits()
    while (polled := poll(reader)) is not None:
        batches.append(polled.batch.num_rows)
    reader.close()
    assert sum(batches) == 3
    parts = source.create_enumerator().parts(1)
    assert parts is not None
    assert [len(part) for part in parts] == [1, 1]


def _compared(function: str, index: int, value: Any, type_: Any) -> Call:
    return Call(function, (InputRef(index, type_), Literal(value, type_)), BOOLEAN)


@pytest.fixture(scope="module")
def three_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Lake]:
    """A table of three files in each lake, that nobody changes."""
    made = {kind: Lake(kind, tmp_path_factory.mktemp(kind)) for kind in KINDS}
    for lake in made.values():
        table = lake.table("a INT, p STRING, d DATE", ("p",))
        insert(table, [(1, "x", 18262), (2, "it's", 18263), (3, None, 18264)])
    return made


A, P, D = (InputRef(index, type_) for index, type_ in enumerate((INT, STRING, DATE)))


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        (_compared("=", 1, "x", STRING), 1),
        (_compared("=", 1, "it's", STRING), 1),
        # One library knows that NULL is not another value either.
        (_compared("<>", 1, "x", STRING), {"iceberg": 2, "delta": 1}),
        (Call("IS NULL", (P,), BOOLEAN), 1),
        (Call("IS NOT NULL", (P,), BOOLEAN), 2),
        (_compared(">", 0, 2, INT), 1),
        (Call("<", (Literal(2, INT), A), BOOLEAN), 1),
        (Call("IN", (A, Literal(1, INT), Literal(7, INT)), BOOLEAN), 1),
        (Call("AND", (_compared("=", 0, 2, INT), _compared("=", 1, "x", STRING)), BOOLEAN), 0),
        (Call("OR", (_compared("=", 0, 2, INT), _compared("=", 1, "x", STRING)), BOOLEAN), 2),
        (_compared("<=", 2, 18262, DATE), 1),
        # What is not known to be judged alike is left to the planner.
        (Call("NOT", (_compared("=", 1, "x", STRING),), BOOLEAN), 3),
        (_compared("LIKE", 1, "x%", STRING), 3),
    ],
)
def test_filters_leave_files_out(three_files: dict[str, Lake], condition: Call, files: int | dict[str, int]) -> None:
    for kind, lake in three_files.items():
        table = lake.table("a INT, p STRING, d DATE", ("p",))
        scanned = ScanSpec(table, (0, 1, 2), table.columns, filters=(condition,))
        source = registry.create_source(scanned, {})
        assert source.supports_filters((condition,)) == (False,)
        assert source.shows_filters()
        wanted = files if isinstance(files, int) else files[kind]
        assert len(source.create_enumerator().initial_splits(1)[0]) == wanted, kind


def _following(lake: Lake, more: dict[str, str] | None = None) -> tuple[TableSource, Any, TableSpec]:
    table = lake.table("a INT", **{**STREAMING[lake.kind], **(more or {})})
    source, schema = source_of(table)
    assert not source.bounded
    return source, schema, table


def test_what_is_there_now(lake: Lake, folder: Path) -> None:
    """A job that stops once it has caught up, and the next one behind it."""
    plain = lake.table("a INT")
    insert(plain, [(1,)])
    kept = {"flowsql.trigger": "available-now", "execution.checkpointing.savepoint-dir": str(folder / "savepoints")}
    made = session({**kept, "execution.runtime-mode": "streaming", "table.dml-sync": "true"})
    follows = ", ".join(f"'{key.replace('_', '-')}' = '{text}'" for key, text in STREAMING[lake.kind].items())
    made.execute_sql(f"CREATE TABLE t (a INT) WITH ({lake.clause}, {follows})")
    seen = []
    for added in (None, 2, 3):
        if added is not None:
            insert(plain, [(added,)])
        result = made.execute_sql("SELECT a FROM t")
        seen.append([row[0] for row in result.collect()])
        client = result.get_job_client()
        assert client is not None
        made.get_config().set("execution.state-recovery.path", str(client.stopped_with()))
    assert seen == [[1], [2], [3]]


def _read(source: TableSource, schema: Any, dealt: list[list[Split]]) -> list[int]:
    return [row[0] for splits in dealt for row in drain(reader_of(source), splits, schema)]


def _found(source: TableSource, schema: Any, enumerator: SplitEnumerator) -> list[int]:
    found = enumerator.discover(2)
    return _read(source, schema, enumerator.assign(found, 2)) if found else []


def test_following_a_table(lake: Lake) -> None:
    plain = lake.table("a INT")
    insert(plain, [(1,)])
    source, schema, _ = _following(lake)
    enumerator = source.create_enumerator()
    assert enumerator.discovery_interval_ms() in (60_000, 5000)
    assert _read(source, schema, enumerator.initial_splits(2)) == [1]
    assert enumerator.discover(2) == []
    insert(plain, [(2,)])
    insert(plain, [(3,)])
    # What was found and not dealt out is found again.
    assert len(enumerator.discover(2)) == 2
    state = enumerator.snapshot()
    assert sorted(_found(source, schema, enumerator)) == [2, 3]
    insert(plain, [(4,)])
    resumed = source.create_enumerator()
    resumed.restore(state)
    assert resumed.redistribute([], 2) == [[], []]
    assert sorted(_found(source, schema, resumed)) == [2, 3, 4]
    assert _found(source, schema, enumerator) == [4]
    assert _found(source, schema, enumerator) == []


def test_following_a_table_that_is_empty(lake: Lake) -> None:
    plain = lake.table("a INT")
    insert(plain, [(1,)])
    insert(plain, [], configuration={"execution.runtime-mode": "batch"}, overwrite=True)
    source, schema, _ = _following(lake, {"ignoreDeletes": "true"} if lake.kind == "delta" else None)
    enumerator = source.create_enumerator()
    assert enumerator.initial_splits(1) == [[]]
    insert(plain, [(2,)])
    assert _found(source, schema, enumerator) == [2]


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ({"starting_strategy": "INCREMENTAL_FROM_LATEST_SNAPSHOT"}, [3]),
        ({"starting_strategy": "INCREMENTAL_FROM_LATEST_SNAPSHOT_EXCLUSIVE"}, []),
        ({"starting_strategy": "INCREMENTAL_FROM_EARLIEST_SNAPSHOT"}, [1, 2, 3]),
        ({"starting_strategy": "INCREMENTAL_FROM_SNAPSHOT_ID", "start_snapshot_id": "id-1"}, [2, 3]),
        ({"starting_strategy": "INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP", "start_snapshot_timestamp": "ms-2"}, [3]),
        ({"starting_strategy": "TABLE_SCAN_THEN_INCREMENTAL"}, [1, 2, 3]),
    ],
)
def test_where_iceberg_reads_begin(three: dict[str, Lake], options: dict[str, str], seen: list[int]) -> None:
    filled = _with_snapshots(three["iceberg"], options)
    source, schema, _ = _following(three["iceberg"], filled)
    assert sorted(_read(source, schema, source.create_enumerator().initial_splits(1))) == seen


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Lake]:
    """A table of three commits in each lake, that nobody changes; of Iceberg with a tag and a branch."""
    made = {kind: Lake(kind, tmp_path_factory.mktemp(kind)) for kind in KINDS}
    for lake in made.values():
        for number in (1, 2, 3):
            insert(lake.table("a INT"), [(number,)])
            time.sleep(0.002)
    opened = made["iceberg"].opened()
    ids = [snapshot.snapshot_id for snapshot in opened.snapshots()]
    with opened.manage_snapshots() as refs:
        refs.create_tag(ids[0], "one")
    with opened.manage_snapshots() as refs:
        refs.create_branch(ids[1], "two")
    return made


def _with_snapshots(lake: Lake, options: dict[str, str]) -> dict[str, str]:
    """``id-1`` and ``ms-1`` are id and time of the second snapshot."""
    snapshots = lake.opened().snapshots()
    values = {f"id-{at}": str(snapshot.snapshot_id) for at, snapshot in enumerate(snapshots)}
    values |= {f"ms-{at}": str(snapshot.timestamp_ms) for at, snapshot in enumerate(snapshots)}
    return {key: values.get(text, text) for key, text in options.items()}


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ({}, [1, 2, 3]),
        ({"snapshot_id": "id-1"}, [1, 2]),
        ({"as_of_timestamp": "ms-1"}, [1, 2]),
        ({"tag": "one"}, [1]),
        ({"branch": "two"}, [1, 2]),
        ({"start_snapshot_id": "id-0"}, [2, 3]),
        ({"start_snapshot_id": "id-0", "end_snapshot_id": "id-1"}, [2]),
        ({"start_tag": "one"}, [2, 3]),
        ({"end_tag": "one"}, [1]),
        ({"limit": "2"}, [1, 2]),
    ],
)
def test_iceberg_of_old(three: dict[str, Lake], options: dict[str, str], seen: list[int]) -> None:
    lake = three["iceberg"]
    table = lake.table("a INT", **_with_snapshots(lake, options))
    assert sorted(row[0] for row in scan(table)) == seen


def test_a_branch_that_is_written(iceberg: Lake) -> None:
    insert(iceberg.table("a INT"), [(1,)])
    branch = iceberg.table("a INT", branch="audit", **{"snapshot-property__by": "me"})
    insert(branch, [(2,)])
    assert sorted(scan(branch)) == [[1], [2]]
    assert iceberg.rows() == [(1,)]
    assert iceberg.opened().snapshot_by_name("audit").summary["by"] == "me"


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ({"versionAsOf": "2"}, [1, 2]),
        ({"timestampAsOf": "2999-01-01"}, [1, 2, 3]),
        ({"mode": "streaming", "startingVersion": "2"}, [2, 3]),
        ({"mode": "streaming", "startingVersion": "latest"}, []),
        ({"mode": "streaming", "startingTimestamp": "2000-01-01T00:00:00Z"}, [1, 2, 3]),
        ({"mode": "streaming", "startingTimestamp": "2999-01-01 00:00:00"}, []),
    ],
)
def test_delta_of_old(three: dict[str, Lake], options: dict[str, str], seen: list[int]) -> None:
    assert sorted(row[0] for row in scan(three["delta"].table("a INT", **options))) == seen


def test_iceberg_passes_over_what_is_no_append(iceberg: Lake) -> None:
    plain = iceberg.table("a INT")
    insert(plain, [(1,)])
    source, schema, _ = _following(iceberg, {"max_planning_snapshot_count": "1"})
    enumerator = source.create_enumerator()
    enumerator.initial_splits(1)
    insert(plain, [(2,)], configuration={"execution.runtime-mode": "batch"}, overwrite=True)
    insert(plain, [(3,)])
    assert _found(source, schema, enumerator) == []
    assert _found(source, schema, enumerator) == [3]


def test_a_history_that_is_gone(lake: Lake) -> None:
    plain = lake.table("a INT")
    insert(plain, [(1,)])
    source, _, _ = _following(lake)
    enumerator = source.create_enumerator()
    enumerator.initial_splits(1)
    insert(plain, [(2,)])
    insert(plain, [(3,)])
    opened = lake.opened()
    if lake.kind == "delta":
        opened.create_checkpoint()
        (lake.folder / "t" / "_delta_log" / f"{2:020d}.json").unlink()
        said = r"does not tell any more what its version 2 changed: its log was cleaned up\."
    else:
        opened.maintenance.expire_snapshots().by_id(opened.snapshots()[0].snapshot_id).commit()
        said = r"is no part of its history any more: it was expired or rolled back\."
    dealt = enumerator.assign(enumerator.discover(1), 1)
    reader = reader_of(source)
    reader.add_splits(dealt[0])
    with pytest.raises(ConnectorError, match=said):
        poll(reader)
    reader.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, r"rewrites files, and a table is followed by what is appended\."),
        ({"ignoreChanges": "true"}, None),
    ],
)
def test_delta_changes(delta: Lake, options: dict[str, str], said: str | None) -> None:
    plain = delta.table("a INT")
    insert(plain, [(1,), (2,)])
    source, schema, _ = _following(delta, options)
    enumerator = source.create_enumerator()
    enumerator.initial_splits(1)
    delta.opened().delete("a = 1")
    if said is None:
        assert _found(source, schema, enumerator) == [2]
        return
    with pytest.raises(ConnectorError, match=said) as told:
        _found(source, schema, enumerator)
    assert (told.value.hint or "").startswith("'ignoreChanges' = 'true'")


def test_rows_that_iceberg_deleted(iceberg: Lake) -> None:
    table = iceberg.table("a INT")
    insert(table, [(1,), (2,), (3,)])
    iceberg.opened().delete("a = 2")
    assert sorted(scan(table)) == [[1], [3]]


@pytest.fixture(scope="module")
def one_row(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Lake]:
    """A table of one row in each lake, that nobody changes."""
    made = {kind: Lake(kind, tmp_path_factory.mktemp(kind)) for kind in KINDS}
    for lake in made.values():
        insert(lake.table("a INT"), [(1,)])
    return made


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("iceberg", {"snapshot_id": "7"}, r"Iceberg table 'c\.d\.t' has no snapshot 7 \('snapshot-id'\)\."),
        ("iceberg", {"as_of_timestamp": "7"}, r"had no snapshot at 1970-01-01 00:00:00\.007\+00:00"),
        ("iceberg", {"tag": "x"}, r"has no tag 'x'\."),
        ("iceberg", {"start_tag": "x"}, r"has no tag 'x'\."),
        ("iceberg", {"catalog_table": "u"}, r"Iceberg table 'c\.d\.u' does not exist\."),
        ("iceberg", {"catalog_database": "u"}, r"Iceberg table 'c\.u\.t' does not exist\."),
        ("iceberg", {"tag": "x", "snapshot_id": "7"}, r"'snapshot-id' and 'tag' each say what is read"),
        ("iceberg", {"tag": "x", "start_tag": "y"}, r"'tag' and 'start-tag' each say what is read"),
        ("iceberg", {"start_tag": "x", "start_snapshot_id": "1"}, r"'start-snapshot-id' and 'start-tag' say the same"),
        ("iceberg", {"starting_strategy": "TABLE_SCAN_THEN_INCREMENTAL"}, r"is of streaming reads alone"),
        ("iceberg", {"streaming": "true", "tag": "x"}, r"'tag' is of reads that end"),
        (
            "iceberg",
            {"streaming": "true", "start_snapshot_id": "1"},
            r"'start-snapshot-id' is read with 'starting-stra",
        ),
        (
            "iceberg",
            {"streaming": "true", "starting_strategy": "INCREMENTAL_FROM_SNAPSHOT_ID"},
            r"needs 'start-snapshot-id'\.",
        ),
        (
            "iceberg",
            {"catalog_type": "hadoop"},
            r"no Iceberg catalogs of the type 'hadoop'; a catalog without a server",
        ),
        ("iceberg", {"uri": "sqlite:////nowhere/at/all.db"}, r"Iceberg catalog 'c': unable to open database file\."),
        ("delta", {"versionAsOf": "9"}, r"Delta table '.*/t'"),
        ("delta", {"timestampAsOf": "then"}, r"Could not parse value 'then' for key 'timestampAsOf'\."),
        ("delta", {"timestampAsOf": "2000-01-01"}, r"had no version at 2000-01-01"),
        (
            "delta",
            {"versionAsOf": "1", "timestampAsOf": "2026-01-01"},
            r"'versionAsOf' and 'timestampAsOf' say the same",
        ),
        ("delta", {"startingVersion": "1"}, r"'startingVersion' is of reads that go on, and 'mode' is 'batch'\."),
        ("delta", {"mode": "streaming", "versionAsOf": "1"}, r"'versionAsOf' is of reads that end"),
        ("delta", {"mode": "streaming", "startingVersion": "9"}, r"has no version 9 \('startingVersion'\)\."),
        ("delta", {"table_path": "/nowhere/at/all"}, r"Delta table '/nowhere/at/all' does not exist\."),
    ],
)
def test_what_cannot_be_read(one_row: dict[str, Lake], kind: str, options: dict[str, str], said: str) -> None:
    lake = one_row[kind]
    with pytest.raises(FlowSqlError, match=said):
        scan(lake.table("a INT", **options))


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("b INT", r"Table '.*' has no column 'b'\."),
        ("a STRING", r"Column 'a' of table '.*' is INT, which is not read or written as STRING\."),
    ],
)
def test_columns_that_do_not_fit(lake: Lake, ddl: str, said: str) -> None:
    insert(lake.table("a INT"), [(1,)])
    with pytest.raises(FlowSqlError, match=said):
        scan(lake.table(ddl))
    with pytest.raises(FlowSqlError, match=said):
        insert(lake.table(ddl), [(None,)])


def test_columns_are_found_in_any_case(lake: Lake) -> None:
    insert(lake.table("a INT"), [(1,)])
    assert scan(lake.table("A BIGINT")) == [[1]]
    if lake.kind == "iceberg":
        with pytest.raises(FlowSqlError, match="has no column 'A'"):
            scan(lake.table("A INT", case_sensitive="true"))
