from __future__ import annotations

import threading
import time

import pyarrow as pa

from flowsql.common import Row
from flowsql.table import TableEnvironment
from flowsql.table.session.collect import CollectBuffer
from flowsql_core.batch import ChangelogBatch


def batch(*values: int) -> ChangelogBatch:
    return ChangelogBatch.of([pa.array(values, pa.int64())])


def never() -> bool:
    return False


def test_batches_come_in_order_until_finish() -> None:
    buffer = CollectBuffer()
    buffer.accept(batch(1))
    buffer.accept(batch(2, 3))
    buffer.finish()
    assert [found.columns[0].to_pylist() for found in buffer.batches(never)] == [[1], [2, 3]]


def test_a_full_buffer_holds_the_job_until_the_reader_takes() -> None:
    buffer = CollectBuffer(capacity_rows=2)
    buffer.accept(batch(1, 2))
    accepted = threading.Event()

    def produce() -> None:
        buffer.accept(batch(3))
        accepted.set()
        buffer.finish()

    threading.Thread(target=produce, daemon=True).start()
    rows = buffer.batches(never)
    assert not accepted.wait(0.05)
    assert next(rows).num_rows == 2
    assert accepted.wait(5)
    assert [found.num_rows for found in rows] == [1]


def test_cancel_frees_a_waiting_job_and_ends_the_rows() -> None:
    buffer = CollectBuffer(capacity_rows=1)
    buffer.accept(batch(1))
    freed = threading.Event()
    threading.Thread(target=lambda: (buffer.accept(batch(2)), freed.set()), daemon=True).start()
    buffer.cancel()
    assert freed.wait(5)
    assert list(buffer.batches(never)) == []


def test_a_dead_job_ends_the_rows_after_what_it_sent() -> None:
    buffer = CollectBuffer()
    buffer.accept(batch(1))
    assert [found.num_rows for found in buffer.batches(lambda: True)] == [1]


def test_a_deadline_ends_the_rows() -> None:
    start = time.monotonic()
    assert list(CollectBuffer().batches(never, start + 0.05)) == []
    assert time.monotonic() - start < 5


def test_float_is_the_number_of_its_shortest_text() -> None:
    """As PyFlink answers."""
    made = TableEnvironment.create()
    query = (
        "SELECT CAST(0.1 AS FLOAT), ARRAY[CAST(0.1 AS FLOAT), NULL], MAP['k', CAST(0.1 AS FLOAT)], "
        "ROW(CAST(0.1 AS FLOAT), 1), CAST(1e20 AS FLOAT), CAST(NULL AS FLOAT), CAST(0.1 AS DOUBLE)"
    )
    with made.execute_sql(query).collect() as rows:
        (row,) = rows
    assert tuple(row) == (0.1, [0.1, None], {"k": 0.1}, Row(0.1, 1), 1e20, None, 0.1)
