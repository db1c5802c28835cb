"""What was prepared is in the table once: whatever comes between a checkpoint and its commit, and whoever commits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import flowsql_connectors.lakes.delta.commit as delta_commit
import flowsql_connectors.lakes.iceberg.commit as iceberg_commit
import flowsql_connectors.lakes.writer as writing
from flowsql_connectors.lakes.prepared import left_of
from flowsql_connectors.spi.sink import Committable, Committer
from flowsql_core.errors import ConnectorError, ExecutionError
from flowsql_core.graph.specs import TableSpec
from tests.connectors.tables import batch_of, insert, writer_of

from .lake import Lake

BATCH = {"execution.runtime-mode": "batch"}


def prepared(table: TableSpec, rows: Sequence[Sequence[Any]]) -> list[Committable]:
    """Of a writer that ended at a checkpoint."""
    writer, _ = writer_of(table, lineage="insert-1")
    writer.write(batch_of(table, rows))
    writer.flush(False)
    made = writer.prepare_commit()
    writer.close()
    return made


def committer_of(table: TableSpec, **options: Any) -> Committer:
    committer = writer_of(table, **options)[1]
    assert committer is not None
    return committer


def restored(table: TableSpec) -> Committer:
    committer = committer_of(table)
    committer.restore(b"")
    return committer


def test_a_commit_that_is_repeated(lake: Lake) -> None:
    table = lake.table("a INT, p STRING", ("p",))
    first = [*prepared(table, [(1, "x"), (2, "y")]), *prepared(table, [(3, "x")])]
    committer = committer_of(table)
    committer.commit(first, end_of_input=False)
    commits = lake.commits()
    committer.commit(first, end_of_input=False)
    restored(table).commit(first, end_of_input=False)
    assert lake.commits() == commits
    # Behind the restore the same ones come beside newer ones.
    restored(table).commit([*first, *prepared(table, [(4, None)])], end_of_input=False)
    assert lake.rows("a", "p") == [(1, "x"), (2, "y"), (3, "x"), (4, None)]
    assert lake.commits() == commits + 1


def test_a_writer_goes_on_behind_its_commits(lake: Lake) -> None:
    table = lake.table("a INT")
    writer, committer = writer_of(table, lineage="insert-1")
    assert committer is not None
    waiting: list[Committable] = []
    for number in range(4):
        writer.write(batch_of(table, [(number,)]))
        waiting += writer.prepare_commit()
        if number % 2:
            # Of two checkpoints one failed: both are committed with the second.
            committer.commit(waiting, end_of_input=False)
            waiting = []
    assert writer.prepare_commit() == []
    committer.commit([], end_of_input=True)
    writer.close()
    assert lake.rows() == [(0,), (1,), (2,), (3,)]
    assert lake.commits() == 2


@pytest.mark.parametrize("same", [True, False], ids=["the same job", "another job"])
def test_somebody_commits_in_between(lake: Lake, monkeypatch: pytest.MonkeyPatch, same: bool) -> None:
    """Between a look at the table and the commit: a process that was thought dead, or a stranger."""
    table = lake.table("a INT")
    mine = prepared(table, [(1,)])
    others = mine if same else prepared(table, [(2,)])
    module = iceberg_commit if lake.kind == "iceberg" else delta_commit
    waits = [others]

    def late(new: Any, done: Any) -> Any:
        found = left_of(new, done)
        if waits:
            committer_of(table).commit(waits.pop(), end_of_input=False)
        return found

    monkeypatch.setattr(module, "left_of", late)
    committer_of(table).commit(mine, end_of_input=False)
    assert lake.rows() == ([(1,)] if same else [(1,), (2,)])


def test_nothing_is_left_of_what_fails(lake: Lake) -> None:
    table = lake.table("a INT, b INT", ("b",))
    insert(table, [(0, 0)])
    kept = lake.data_files()
    writer, committer = writer_of(table)
    writer.write(batch_of(table, [(1, 1), (2, 2)]))
    writer.close()
    assert lake.data_files() == kept
    assert committer is not None
    made = prepared(table, [(1, 1), (2, 2)])
    assert len(lake.data_files()) == len(kept) + 2
    committer.abort(made)
    assert lake.data_files() == kept
    assert lake.rows() == [(0, 0)]


def test_batch_mode_shows_all_at_once(lake: Lake) -> None:
    table = lake.table("a INT")
    insert(table, [(0,)])
    commits = lake.commits()
    committer = committer_of(table, configuration=BATCH)
    committer.commit(prepared(table, [(1,)]), end_of_input=False)
    assert lake.rows() == [(0,)]
    committer.commit(prepared(table, [(2,)]), end_of_input=True)
    assert lake.rows() == [(0,), (1,), (2,)]
    assert lake.commits() == commits + 1


def test_overwriting_is_one_commit(lake: Lake) -> None:
    table = lake.table("a INT, p STRING", ("p",))
    insert(table, [(1, "x"), (2, "y"), (3, None)])
    commits = lake.commits()
    insert(table, [(4, "x"), (5, None)], configuration=BATCH, overwrite=True)
    assert lake.rows("a", "p") == [(2, "y"), (4, "x"), (5, None)]
    assert lake.commits() == commits + 1


def test_overwriting_a_whole_table(lake: Lake) -> None:
    table = lake.table("a INT")
    insert(table, [(1,), (2,)])
    insert(table, [(3,)], configuration=BATCH, overwrite=True)
    assert lake.rows() == [(3,)]
    insert(table, [], configuration=BATCH, overwrite=True)
    assert lake.rows() == []


def test_files_are_closed_by_size(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_GROUP_BYTES", 100)
    size = {"target_file_size_bytes": "100"} if lake.kind == "iceberg" else {"sink__target_file_size": "100b"}
    table = lake.table("a INT, b STRING", **size)
    writer, committer = writer_of(table)
    assert committer is not None
    for number in range(3):
        writer.write(batch_of(table, [(number, "x" * 200)]))
    committer.commit(writer.prepare_commit(), end_of_input=True)
    assert len(lake.data_files()) == 3
    assert lake.rows("a") == [(0,), (1,), (2,)]


def test_a_value_without_room(lake: Lake) -> None:
    insert(lake.table("a INT, b INT NOT NULL"), [(1, 1)])
    narrow = lake.table("a BIGINT, b INT")
    writer, _ = writer_of(narrow)
    with pytest.raises(ExecutionError, match="Column 'a' holds a value that has no room in int32"):
        writer.write(batch_of(narrow, [(2**40, 1)]))
    with pytest.raises(ExecutionError, match=r"Column 'b' of .* takes no NULL\."):
        writer.write(batch_of(narrow, [(1, None)]))
    writer.close()


def test_conflicts_without_end(iceberg: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = iceberg.table("a INT", **{"commit__retry__num-retries": "1", "commit__retry__min-wait-ms": "1"})
    mine = prepared(table, [(1,)])
    inside = [False]

    def late(new: Any, done: Any) -> Any:
        found = left_of(new, done)
        if not inside[0]:
            inside[0] = True
            committer_of(table).commit(prepared(table, [(7,)]), end_of_input=False)
            inside[0] = False
        return found

    monkeypatch.setattr(iceberg_commit, "left_of", late)
    with pytest.raises(ConnectorError, match="was changed by others each of 2 times before this job's commit") as told:
        committer_of(table).commit(mine, end_of_input=False)
    assert told.value.retryable
    assert iceberg.rows() == [(7,), (7,)]
