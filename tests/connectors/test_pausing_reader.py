"""Readers that leave paused splits and come back to them: every row once, in the order of its split, over restarts."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flowsql_connectors.spi.source import ReadStatus, SourceReader, Split
from flowsql_core.errors import ExecutionError
from tests.connectors.tables import files_table, poll, reader_of, source_of, table_of

FILES = 24
ROWS = 900


def _csv(path: Path, numbers: range) -> None:
    path.write_text("".join(f"{number}\n" for number in numbers))


def _parquet(path: Path, numbers: range) -> None:
    pq.write_table(pa.table({"a": pa.array(numbers, pa.int32())}), path, row_group_size=ROWS // 3)


@pytest.mark.parametrize(("format_", "write"), [("csv", _csv), ("parquet", _parquet)])
@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_pauses_and_restarts_reads_every_row_once(
    tmp_path: Path, format_: str, write: Callable[[Path, range], None], seed: int
) -> None:
    rng = random.Random(seed)
    # Two files are of several ranges.
    sizes = [ROWS] * FILES + [100_000] * 2
    wanted = [range(1_000_000 * number, 1_000_000 * number + size) for number, size in enumerate(sizes)]
    for number, values in enumerate(wanted):
        write(tmp_path / f"{number:02}", values)
    source, _ = source_of(files_table("a INT", tmp_path, format_))
    left = source.create_enumerator().initial_splits(1)[0]
    assert len(left) == len(wanted)
    read: dict[str, list[int]] = {split.id: [] for split in left}
    names = set(read)

    def started(splits: list[Split]) -> SourceReader:
        made = reader_of(source, aligned=True)
        made.add_splits(splits)
        made.no_more_splits()
        return made

    reader = started(left)
    while names:
        paused = set(rng.sample(sorted(names), rng.randrange(len(names))))
        assert reader.pause_splits(paused)
        for _ in range(rng.randrange(6)):
            if not names:
                break
            if not names - paused:
                assert reader.poll(7) is ReadStatus.NOTHING_NOW
                break
            polled = poll(reader, rng.choice((1, 50, 5_000, 65_536)))
            assert polled is not None
            assert polled.split_id not in paused
            read[polled.split_id] += polled.batch.columns[0].to_pylist()
            if polled.finished:
                names.remove(polled.split_id)
        if rng.random() < 0.05:
            left = reader.snapshot()
            reader.close()
            assert {split.id for split in left} == names
            reader = started(left)
    assert poll(reader) is None
    reader.close()
    assert sorted(read.values()) == [list(values) for values in wanted]


def test_what_goes_wrong_in_the_thread_is_raised_where_it_is_polled(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\nx\n")
    source, _ = source_of(files_table("a INT", tmp_path, "csv"))
    reader = reader_of(source, aligned=True)
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    with pytest.raises(ExecutionError, match="row 2"):
        poll(reader)
    reader.close()


def test_a_limit_and_a_reader_without_splits_end(tmp_path: Path) -> None:
    for name in ("a", "b"):
        _csv(tmp_path / name, range(5))
    source, _ = source_of(files_table("a INT", tmp_path, "csv"), limit=7)
    reader = reader_of(source, aligned=True)
    assert reader.poll(9) is ReadStatus.NOTHING_NOW
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    rows = 0
    while (polled := poll(reader)) is not None:
        rows += polled.batch.num_rows
    assert rows == 7
    reader.close()


def test_generated_rows_pause_too() -> None:
    table = table_of(
        "n BIGINT",
        {
            "connector": "datagen",
            "number-of-rows": "40",
            "fields.n.kind": "sequence",
            "fields.n.start": "0",
            "fields.n.end": "39",
            "rows-per-second": "1000000",
        },
    )
    source, _ = source_of(table)
    splits = [split for share in source.create_enumerator().initial_splits(2) for split in share]
    reader = reader_of(source)
    reader.add_splits(splits)
    reader.no_more_splits()
    assert reader.pause_splits({splits[0].id})
    rows: list[int] = []
    while (polled := reader.poll(3)) is not ReadStatus.NOTHING_NOW or len(rows) < 20:
        if not isinstance(polled, ReadStatus):
            assert polled.split_id == splits[1].id
            rows += polled.batch.columns[0].to_pylist()
    assert rows == list(range(1, 40, 2))
    reader.pause_splits(frozenset())
    while (polled := poll(reader)) is not None:
        rows += polled.batch.columns[0].to_pylist()
    assert sorted(rows) == list(range(40))
