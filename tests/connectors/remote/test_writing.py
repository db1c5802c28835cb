"""INSERT INTO object stores: hidden objects until their checkpoint, whole ones from then on; nothing is left behind."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_connectors.spi.sink import Committable
from flowsql_core.clock import ManualClock
from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.specs import TableSpec
from tests.connectors.remote.store import Store, memory
from tests.connectors.tables import batch_of, files_table, scan, writer_of


def table_in(store: Store, format_: str = "csv", keys: tuple[str, ...] = (), **options: str) -> TableSpec:
    return files_table("a INT, p STRING", store.root, format_, keys, **options)


def writing(store: Store, table: TableSpec, lineage: str = "", **options: Any) -> Any:
    return writer_of(table, ManualClock(0), configuration=store.settings, lineage=lineage, **options)


def rows(store: Store, table: TableSpec) -> list[list[Any]]:
    try:
        return sorted(scan(table, configuration=store.settings))
    except FlowSqlError:
        assert not visible(store)
        return []


def visible(store: Store) -> list[str]:
    return [name for name in store.names() if not name.rpartition("/")[2].startswith(".")]


def hidden(store: Store) -> list[str]:
    return [name for name in store.names() if name.rpartition("/")[2].startswith(".")]


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_rows_are_seen_with_their_checkpoint(store: Store, format_: str) -> None:
    table = table_in(store, format_, ("p",))
    writer, committer = writing(store, table)
    writer.write(batch_of(table, [(1, "x"), (2, "y")]))
    first = writer.prepare_commit()
    assert len(hidden(store)) == 2
    assert rows(store, table) == []
    writer.write(batch_of(table, [(3, "x")]))
    committer.commit(first, end_of_input=False)
    assert rows(store, table) == [[1, "x"], [2, "y"]]
    writer.flush(True)
    committer.commit(writer.prepare_commit(), end_of_input=True)
    writer.close()
    assert rows(store, table) == [[1, "x"], [2, "y"], [3, "x"]]
    assert hidden(store) == []


def test_a_commit_that_is_repeated_shows_nothing_twice(store: Store) -> None:
    table = table_in(store)
    writer, committer = writing(store, table, "job-1")
    writer.write(batch_of(table, [(1, "x")]))
    made = writer.prepare_commit()
    committer.commit(made, end_of_input=False)
    for _ in range(2):
        _, again = writing(store, table, "job-1")
        again.restore(committer.snapshot())
        again.commit(made, end_of_input=False)
        assert rows(store, table) == [[1, "x"]]


def test_a_commit_that_died_between_copy_and_delete_is_ended(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_in(store)
    writer, committer = writing(store, table, "job-1")
    writer.write(batch_of(table, [(1, "x")]))
    made = writer.prepare_commit()

    def dies(path: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(committer._store, "remove", dies)
    with pytest.raises(KeyboardInterrupt):
        committer.commit(made, end_of_input=False)
    assert (len(visible(store)), len(hidden(store))) == (1, 1)
    _, again = writing(store, table, "job-1")
    again.restore(committer.snapshot())
    again.commit(made, end_of_input=False)
    assert (rows(store, table), hidden(store)) == ([[1, "x"]], [])


def test_what_is_not_in_a_checkpoint_goes_with_its_writer(store: Store) -> None:
    table = table_in(store, sink__rolling_policy__file_size="1 b")
    writer, _ = writing(store, table)
    writer.write(batch_of(table, [(1, "x"), (2, "y"), (3, "z")]))
    writer.close()
    assert store.names() == []


def test_leftovers_of_dead_attempts_go_and_those_of_others_stay(store: Store) -> None:
    table = table_in(store, sink__rolling_policy__file_size="1 b")
    dead, _ = writing(store, table, "job-1")
    dead.write(batch_of(table, [(1, "x"), (2, "y")]))
    dead.prepare_commit()
    strange = f".part-{uuid.UUID(int=7)}-0-0.inprogress.other"
    store.put(strange, "9,z\n")
    writer, committer = writing(store, table, "job-1")
    committer.restore(b"")
    committer.commit([], end_of_input=False)
    writer.write(batch_of(table, [(3, "z")]))
    committer.commit(writer.prepare_commit(), end_of_input=False)
    assert hidden(store) == [strange]
    assert rows(store, table) == [[3, "z"]]


def test_a_part_that_is_gone_or_shorter_is_said(store: Store) -> None:
    table = table_in(store)
    for damage in ("gone", "shorter"):
        writer, committer = writing(store, table)
        writer.write(batch_of(table, [(1, "x")]))
        made = writer.prepare_commit()
        (name,) = hidden(store)
        store.remove(name)
        if damage == "shorter":
            store.put(name, "1")
        with pytest.raises(FlowSqlError, match="is gone before" if damage == "gone" else "has 1 bytes"):
            committer.commit(made, end_of_input=False)
        for left in hidden(store):
            store.remove(left)


def test_parts_roll_by_size_and_large_ones_are_whole(store: Store) -> None:
    table = files_table("a INT, p STRING", store.root, "csv", (), sink__rolling_policy__file_size="12 mb")
    writer, committer = writing(store, table)
    text = "x" * 1000
    for first in range(0, 20_000, 2000):
        writer.write(batch_of(table, [(first + at, text) for at in range(2000)]))
    writer.flush(True)
    made: list[Committable] = writer.prepare_commit()
    committer.commit(made, end_of_input=True)
    assert len(visible(store)) == 2
    assert [row[0] for row in rows(store, table)] == list(range(20_000))


def test_complete_partitions_are_marked(store: Store) -> None:
    table = table_in(store, "csv", ("p",), sink__partition_commit__policy__kind="success-file")
    writer, committer = writing(store, table)
    writer.write(batch_of(table, [(1, "x")]))
    writer.flush(True)
    committer.commit(writer.prepare_commit(), end_of_input=True)
    assert [name for name in visible(store) if "_SUCCESS" in name] == ["p=x/_SUCCESS"]
    assert store.get("p=x/_SUCCESS") == b""


def session(store: Store, mode: str = "batch") -> TableEnvironment:
    made = TableEnvironment.create(
        EnvironmentSettings.in_batch_mode() if mode == "batch" else EnvironmentSettings.in_streaming_mode()
    )
    for key, value in store.settings.items():
        made.get_config().set(key, value)
    return made


def declared(store: Store, options: Mapping[str, str] | None = None) -> str:
    more = "".join(f", '{key}' = '{value}'" for key, value in (options or {}).items())
    return (
        "CREATE TABLE t (a INT, p STRING) PARTITIONED BY (p) "
        f"WITH ('connector' = 'filesystem', 'path' = '{store.root}/', 'format' = 'csv'{more})"
    )


def test_insert_and_overwrite_in_sql(store: Store) -> None:
    made = session(store)
    made.execute_sql(declared(store))
    made.execute_sql("INSERT INTO t VALUES (1, 'x'), (2, 'y')").wait()
    made.execute_sql("INSERT OVERWRITE t VALUES (3, 'x')").wait()
    assert sorted(tuple(row) for row in made.execute_sql("SELECT * FROM t").collect()) == [(2, "y"), (3, "x")]
    assert hidden(store) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [({"auto-compaction": "true"}, "auto-compaction"), ({"sink.rolling-policy.file-size": "6 gb"}, "below 5 GB")],
)
def test_what_object_stores_cannot_do_is_refused(options: dict[str, str], message: str) -> None:
    made = session(memory(), "streaming")
    made.execute_sql(declared(memory(), options))
    with pytest.raises(FlowSqlError, match=message):
        made.execute_sql("INSERT INTO t VALUES (1, 'x')")


def test_other_schemes_are_refused() -> None:
    table = files_table("a INT, p STRING", "mock:///t", "csv")
    with pytest.raises(FlowSqlError, match="files of scheme 'mock' do not appear whole"):
        writer_of(table)


@pytest.mark.servers
def test_a_bucket_that_is_not_there_is_said_before_anything_is_written(s3_server: dict[str, str]) -> None:
    settings = {
        "s3.endpoint": s3_server["S3_ENDPOINT"],
        "s3.access-key": s3_server["AWS_ACCESS_KEY_ID"],
        "s3.secret-key": s3_server["AWS_SECRET_ACCESS_KEY"],
    }
    with pytest.raises(FlowSqlError, match="There is no bucket 'nobucket'"):
        writer_of(files_table("a INT, p STRING", "s3://nobucket/t", "csv"), configuration=settings)
