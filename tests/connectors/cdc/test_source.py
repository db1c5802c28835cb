"""The source of changes over a database in memory, where others write between calls, and connections are lost."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest

from flowsql_connectors.cdc import reconnect
from flowsql_connectors.cdc.options import INITIAL, SNAPSHOT, CdcSettings
from flowsql_connectors.cdc.source import CdcSource
from flowsql_connectors.cdc.state import ScanState
from flowsql_connectors.spi.source import ReaderContext, ReadStatus, SourceReader, Split, SplitBatch
from flowsql_core.clock import SystemClock
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.types.logical import INT, STRING, Column, TimestampLtzType
from tests.connectors.cdc.memory_log import MemoryDatabase, MemoryLog

PHYSICAL = (Column("id", INT), Column("value", INT))
TABLE = TableSpec(("c", "d", "t"), PHYSICAL, (("connector", "memory-cdc"),))
SCAN = ScanSpec(TABLE, (0, 1), (*PHYSICAL, Column("tab", STRING)), ("table_name",))
SETTINGS = CdcSettings(INITIAL, chunk_rows=7, timeout_ms=60_000)
LIMIT_S = 60


def source_of(database: MemoryDatabase, settings: CdcSettings = SETTINGS, scan: ScanSpec = SCAN) -> CdcSource:
    return CdcSource(scan, settings, partial(MemoryLog, database), {"table_name": STRING})


def reader_of(
    source: CdcSource, splits: list[Split], parallelism: int = 1, *, available_now: bool = False
) -> SourceReader:
    context = ReaderContext(0, parallelism, 10, SystemClock(), {}, lambda name, by: None, available_now=available_now)
    reader = source.create_reader(context)
    reader.add_splits(splits)
    reader.no_more_splits()
    return reader


class Copy:
    """What a job makes of the changes: a table, as a multiset of rows."""

    def __init__(self) -> None:
        self.rows: Counter[tuple[object, ...]] = Counter()

    def take(self, polled: SplitBatch) -> None:
        batch = polled.batch
        kinds = [0] * batch.num_rows if batch.kinds is None else batch.kinds.tolist()
        for kind, *row in zip(kinds, *(column.to_pylist() for column in batch.columns), strict=True):
            count = self.rows[tuple(row)] + (-1 if kind & 1 else 1)
            assert count >= 0, f"{row} is taken back and was not there"
            self.rows[tuple(row)] = count


def expected(database: MemoryDatabase) -> Counter[tuple[object, ...]]:
    return Counter(
        (id_, value, name)
        for name, rows in zip(database.names, database.rows, strict=True)
        for id_, value in rows.items()
    )


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("texts", [False, True], ids=["integers", "texts"])
@pytest.mark.parametrize("seed", range(4))
def test_the_copy_is_the_table_wherever_jobs_stop(
    seed: int, texts: bool, parallelism: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconnect, "_FIRST_PAUSE_S", 0.0001)
    database = MemoryDatabase(["a", "b"], seed, texts=texts)
    draw = random.Random(seed)
    database.write(40)
    database.losses = 5
    source = source_of(database)
    splits = CdcSource.create_enumerator(source).initial_splits(1)[0]
    copy = Copy()
    for _ in range(10):
        # What is polled behind the checkpoint is lost with the job.
        kept, splits = read_some(reader_of(source, splits, parallelism), copy, draw.randrange(60))
        copy.rows = kept
    database.busy, database.losses = False, 0
    reader = reader_of(source, splits, parallelism)
    read_until_equal(reader, copy, database)
    reader.close()


def read_some(reader: SourceReader, copy: Copy, polls: int) -> tuple[Counter[tuple[object, ...]], list[Split]]:
    """The copy and the state at a checkpoint; reading goes on a little behind it."""
    draw = random.Random(polls)
    kept, splits = Counter(copy.rows), reader.snapshot()
    end = time.monotonic() + LIMIT_S
    done = 0
    while done < polls + 5:
        assert time.monotonic() < end
        polled = reader.poll(draw.randint(1, 9))
        if isinstance(polled, SplitBatch):
            copy.take(polled)
            done += 1
            if done == polls:
                kept, splits = Counter(copy.rows), reader.snapshot()
        else:
            time.sleep(0.001)
    reader.close()
    return kept, splits


def read_until_equal(reader: SourceReader, copy: Copy, database: MemoryDatabase) -> None:
    end = time.monotonic() + LIMIT_S
    while copy.rows != expected(database):
        assert time.monotonic() < end, (copy.rows - expected(database), expected(database) - copy.rows)
        polled = reader.poll(7)
        if isinstance(polled, SplitBatch):
            copy.take(polled)
        else:
            time.sleep(0.001)


def drained(reader: SourceReader) -> Copy:
    """What a bounded scan gives."""
    copy = Copy()
    end = time.monotonic() + LIMIT_S
    while (polled := reader.poll(7)) is not ReadStatus.END:
        assert time.monotonic() < end
        if isinstance(polled, SplitBatch):
            copy.take(polled)
    reader.close()
    return copy


@pytest.mark.parametrize("seed", range(3))
def test_jobs_that_stop_where_the_log_ended(seed: int) -> None:
    database = MemoryDatabase(["a", "b"], seed)
    database.write(40)
    source = source_of(database)
    splits = source.create_enumerator().initial_splits(1)[0]
    copy = Copy()
    for _ in range(4):
        database.write(5)
        there = len(database.log)
        reader = reader_of(source, splits, available_now=True)
        end = time.monotonic() + LIMIT_S
        while not reader.caught_up():
            assert time.monotonic() < end
            polled = reader.poll(7)
            if isinstance(polled, SplitBatch):
                copy.take(polled)
        splits = reader.snapshot()
        reader.close()
        place = ScanState.decode(splits[0]).place
        assert place is not None
        assert place.position >= there
        # What was taken is the tables as of one moment, whatever was written while chunks were read.
        log = [change for changes in database.log[: place.position] for change in changes]
        log += database.log[place.position][: place.done] if place.done else []
        assert copy.rows == replayed(database, log)


def replayed(database: MemoryDatabase, log: list[tuple[int, int, int, int]]) -> Counter[tuple[object, ...]]:
    """The tables behind some changes."""
    rows: Counter[tuple[object, ...]] = Counter()
    for table, kind, id_, value in log:
        rows[(id_, value, database.names[table])] += -1 if kind & 1 else 1
    return +rows


def test_what_is_durable_is_told_over_several_jobs() -> None:
    database = MemoryDatabase(["a"], 5)
    database.busy = False
    source = source_of(database, replace(SETTINGS, confirm_delay=2))
    splits = source.create_enumerator().initial_splits(1)[0]
    for written in (1, 2, 3, 4):
        database.write(1)
        reader = reader_of(source, splits, available_now=True)
        end = time.monotonic() + LIMIT_S
        while not reader.caught_up():
            assert time.monotonic() < end
            reader.poll(7)
        splits = reader.snapshot()
        reader.close()
        # The savepoints of the last two jobs are kept in reach.
        assert database.told == (None if written < 4 else written - 3)


def test_the_snapshot_alone_ends() -> None:
    database = MemoryDatabase(["a", "b"], 1)
    database.write(60)
    database.busy = False
    source = source_of(database, replace(SETTINGS, startup_mode=SNAPSHOT))
    assert source.bounded
    assert drained(reader_of(source, source.create_enumerator().initial_splits(1)[0])).rows == expected(database)


def test_later_changes_alone() -> None:
    database = MemoryDatabase(["a"], 3)
    database.write(20)
    database.busy = False
    source = source_of(database, replace(SETTINGS, startup_mode="latest-offset", append_only=True))
    reader = reader_of(source, source.create_enumerator().initial_splits(1)[0])
    copy = Copy()
    assert source.changelog_mode.insert_only
    end = time.monotonic() + LIMIT_S
    # The reader begins in a thread of its own.
    while not reader.snapshot() or b'"start":null' in reader.snapshot()[0].data:
        assert time.monotonic() < end
    database.write(20)
    changes = sum(map(len, database.log[20:]))
    while copy.rows.total() < changes:
        assert time.monotonic() < end
        polled = reader.poll(7)
        if isinstance(polled, SplitBatch):
            copy.take(polled)
    assert copy.rows == Counter((id_, value, "a") for changes in database.log[20:] for _, _, id_, value in changes)
    reader.close()


def test_tables_that_are_new_at_a_restart() -> None:
    database = MemoryDatabase(["a"], 4)
    database.write(30)
    database.busy = False
    source = source_of(database)
    copy = Copy()
    reader = reader_of(source, source.create_enumerator().initial_splits(1)[0])
    read_until_equal(reader, copy, database)
    splits = reader.snapshot()
    reader.close()
    database.names.append("b")
    database.rows.append({})
    database.write(30)
    of_b = Counter({row: count for row, count in expected(database).items() if row[2] == "b"})
    assert of_b
    ignoring = Copy()
    ignoring.rows = Counter(copy.rows)
    reader = reader_of(source, splits)
    database.names, names = database.names[:1], database.names
    database.rows, rows = database.rows[:1], database.rows
    read_until_equal(reader, ignoring, database)
    reader.close()
    database.names, database.rows = names, rows
    taking = source_of(database, replace(SETTINGS, new_tables=True))
    reader = reader_of(taking, splits)
    read_until_equal(reader, copy, database)
    reader.close()


def test_what_is_durable_is_told_so_many_checkpoints_later() -> None:
    database = MemoryDatabase(["a"], 5)
    database.busy = False
    source = source_of(database, replace(SETTINGS, confirm_delay=2))
    reader = reader_of(source, source.create_enumerator().initial_splits(1)[0])
    copy = Copy()
    for written in (1, 2, 3, 4):
        database.write(1)
        end = time.monotonic() + LIMIT_S
        while f'"place":[{written},0]'.encode() not in (splits := reader.snapshot())[0].data:
            assert time.monotonic() < end
            polled = reader.poll(7)
            if isinstance(polled, SplitBatch):
                copy.take(polled)
        reader.positions_durable(splits)
    while database.told != 2:
        assert time.monotonic() < end
    reader.close()


def test_a_database_that_stays_away() -> None:
    database = MemoryDatabase(["a"], 6)
    database.losses = 100
    source = source_of(database, replace(SETTINGS, retries=1, timeout_ms=0))
    reader = reader_of(source, source.create_enumerator().initial_splits(1)[0])
    end = time.monotonic() + LIMIT_S
    while reader.snapshot() and time.monotonic() < end and not failed(reader):
        time.sleep(0.001)
    with pytest.raises(ConnectorError, match="The connection was lost"):
        reader.poll(7)
    reader.close()


def failed(reader: SourceReader) -> bool:
    """Whether a poll raises."""
    woken: list[bool] = []
    reader.wake_when_available(lambda: woken.append(True))
    return bool(woken)


def test_metadata() -> None:
    kinds = (Column("ts", TimestampLtzType(precision=3)), Column("kind", STRING))
    scan = replace(SCAN, projection=(), output=kinds, metadata=("op_ts", "row_kind"))
    database = MemoryDatabase(["a"], 7, columns=())
    database.write(5)
    database.busy = False
    reader = reader_of(source_of(database, scan=scan), source_of(database).create_enumerator().initial_splits(1)[0])
    seen: set[tuple[object, ...]] = set()
    end = time.monotonic() + LIMIT_S
    while len({kind for _, kind in seen}) < 4:
        assert time.monotonic() < end
        polled = reader.poll(7)
        if isinstance(polled, SplitBatch):
            times, names = polled.batch.columns
            seen |= set(zip((each.timestamp() for each in times.to_pylist()), names.to_pylist(), strict=True))
        elif b'"place":null' not in reader.snapshot()[0].data:
            database.write(1)
    assert (0.0, "+I") in seen
    assert {kind for ts, kind in seen if ts >= 1.005} == {"+I", "-U", "+U", "-D"}
    reader.close()
    with pytest.raises(BindError, match="Invalid metadata key 'topic'"):
        source_of(database, scan=replace(scan, metadata=("topic", "row_kind")))
