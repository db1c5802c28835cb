"""Delta tables by primary key: what a query comes to is in the table, whatever is committed twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import flowsql_connectors.lakes.delta.commit as delta_commit
from flowsql.errors import FlowSqlError
from flowsql_connectors.lakes.prepared import left_of
from flowsql_connectors.spi.sink import Committable
from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.specs import TableSpec
from flowsql_core.row import DELETE, INSERT, UPDATE_AFTER
from tests.connectors.tables import batch_of, table_of, writer_of

from .lake import Lake
from .sessions import session

KINDS = {"+I": INSERT, "+U": UPDATE_AFTER, "-D": DELETE}


def table(lake: Lake) -> TableSpec:
    found = table_of("`select` INT NOT NULL, p STRING NOT NULL, v DECIMAL(5, 1), n INT NOT NULL", lake.options)
    return TableSpec(found.path, found.columns, found.options, ("p",), ("select", "p"))


def changes(lake: Lake, *rows: Sequence[Any]) -> list[Committable]:
    """``(kind, columns...)`` of a writer that ended at a checkpoint."""
    spec = table(lake)
    writer, _ = writer_of(spec, lineage="insert-1")
    whole = batch_of(spec, [row[1:] for row in rows])
    kinds = np.array([int(KINDS[row[0]]) for row in rows], np.uint8)
    writer.write(ChangelogBatch.of(whole.columns, kinds, num_rows=len(rows)))
    writer.flush(False)
    made = writer.prepare_commit()
    writer.close()
    return made


def commit(lake: Lake, committables: list[Committable]) -> None:
    committer = writer_of(table(lake))[1]
    assert committer is not None
    committer.commit(committables, end_of_input=False)


def test_changes_by_key(delta: Lake) -> None:
    first = changes(delta, ("+I", 1, "x", 1, 1), ("+I", 2, "y", 2, 2), ("+U", 1, "x", 3, 3), ("+I", 3, "z", None, 3))
    commit(delta, first)
    commit(delta, first)
    assert delta.rows("select", "v", "n") == [(1, 3, 3), (2, 2, 2), (3, None, 3)]
    commits = delta.commits()
    # Two checkpoints at once, behind a failed one: the second one counts.
    later = changes(delta, ("+U", 1, "x", 4, 4), ("-D", 2, "y", None, None), ("-D", 9, "y", None, None))
    last = changes(delta, ("+U", 1, "x", 5, 5), ("+I", 2, "x", 7, 7))
    commit(delta, [*first, *later, *last])
    assert delta.rows("select", "v", "n") == [(1, 5, 5), (2, 7, 7), (3, None, 3)]
    assert delta.commits() == commits + 1


def test_a_process_that_was_thought_dead(delta: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(delta, changes(delta, ("+I", 1, "x", 1, 1)))
    mine = changes(delta, ("+U", 1, "x", 2, 2))
    waits = [mine]

    def late(new: Any, done: Any) -> Any:
        found = left_of(new, done)
        if waits:
            commit(delta, waits.pop())
            commit(delta, changes(delta, ("+U", 1, "x", 3, 3)))
        return found

    monkeypatch.setattr(delta_commit, "left_of", late)
    commit(delta, mine)
    # Not taken back to what it was before the other's later change.
    assert delta.rows("select", "v", "n") == [(1, 3, 3)]


def test_a_query_that_updates(delta: Lake) -> None:
    made = session({"execution.runtime-mode": "streaming"})
    made.execute_sql(f"CREATE TABLE t (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ({delta.clause})")
    words = "(VALUES ('a', 1), ('b', 1), ('a', 2), ('c', 5), ('a', 3)) AS w(k, v)"
    made.execute_sql(f"INSERT INTO t SELECT k, COUNT(*) FROM {words} WHERE v < 5 GROUP BY k").wait()
    assert delta.rows() == [("a", 3), ("b", 1)]
    batch = session()
    batch.execute_sql(f"CREATE TABLE t (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ({delta.clause})")
    batch.execute_sql("INSERT INTO t VALUES ('b', 7), ('d', 8)").wait()
    assert delta.rows() == [("a", 3), ("b", 7), ("d", 8)]
    made.execute_sql(f"CREATE TABLE u (k STRING, n BIGINT) WITH ({delta.clause})")
    with pytest.raises(FlowSqlError, match="doesn't support consuming update changes"):
        made.execute_sql(f"INSERT INTO u SELECT k, COUNT(*) FROM {words} GROUP BY k")
