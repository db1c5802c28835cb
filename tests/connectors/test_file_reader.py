"""A reader decodes a few small files itself and has a thread for others: rows, positions and errors are the same."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from flowsql_connectors.filesystem import reader as file_reader
from flowsql_connectors.spi.source import ReadStatus, SourceReader
from flowsql_core.errors import ExecutionError
from flowsql_core.graph.specs import TableSpec
from tests.connectors.tables import drain, files_table, poll, reader_of, rows_of, source_of


@pytest.fixture(params=[0, 64 << 10], ids=["thread", "task"])
def small_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes that are read without a thread."""
    monkeypatch.setattr(file_reader, "_SMALL_BYTES", request.param)
    found: int = request.param
    return found


def _table(tmp_path: Path, *files: str) -> TableSpec:
    (tmp_path / "t").mkdir()
    for number, text in enumerate(files):
        (tmp_path / "t" / f"{number}.csv").write_text(text)
    return files_table("a INT", tmp_path / "t", "csv")


def _has_thread(reader: SourceReader) -> bool:
    assert isinstance(reader, file_reader.FileReader)
    return reader._thread is not None


def test_rows_come_in_order_of_the_splits(tmp_path: Path, small_bytes: int) -> None:
    table = _table(tmp_path, "1\n2\n3\n", "", "4\n", "5\n6\n")
    source, schema = source_of(table)
    (splits,) = source.create_enumerator().initial_splits(1)
    assert drain(reader_of(source), splits, schema, 2) == [[number] for number in range(1, 7)]


def test_reading_goes_on_where_it_stood(tmp_path: Path, small_bytes: int) -> None:
    table = _table(tmp_path, "1\n2\n3\n", "4\n5\n")
    source, schema = source_of(table)
    (splits,) = source.create_enumerator().initial_splits(1)
    reader = reader_of(source)
    reader.add_splits(splits)
    polled = poll(reader, 2)
    assert polled is not None
    assert rows_of(polled.batch, schema) == [[1], [2]]
    assert _has_thread(reader) is (small_bytes == 0)
    left = reader.snapshot()
    reader.close()
    assert drain(reader_of(source), left, schema) == [[3], [4], [5]]


def test_files_that_come_later_are_read(tmp_path: Path, small_bytes: int) -> None:
    table = _table(tmp_path, "1\n", "2\n")
    source, schema = source_of(table)
    (splits,) = source.create_enumerator().initial_splits(1)
    reader = reader_of(source)
    reader.add_splits(splits[:1])
    first = poll(reader)
    assert first is not None
    assert rows_of(first.batch, schema) == [[1]]
    while (status := reader.poll(9)) is not ReadStatus.NOTHING_NOW:
        assert not isinstance(status, ReadStatus)
    woken = threading.Event()
    reader.wake_when_available(woken.set)
    assert not woken.is_set()
    assert drain(reader, splits[1:], schema) == [[2]]


def test_a_bad_line_is_told_where_it_is_polled(tmp_path: Path, small_bytes: int) -> None:
    table = _table(tmp_path, "1\n", "x\n")
    source, schema = source_of(table)
    (splits,) = source.create_enumerator().initial_splits(1)
    with pytest.raises(ExecutionError, match=r"1\.csv"):
        drain(reader_of(source), splits, schema)


def test_many_bytes_have_a_thread(tmp_path: Path) -> None:
    table = _table(tmp_path, "1\n" * 20_000, "2\n" * 20_000)
    source, _ = source_of(table)
    (splits,) = source.create_enumerator().initial_splits(1)
    together, one = reader_of(source), reader_of(source)
    together.add_splits(splits)
    one.add_splits(splits[:1])
    assert _has_thread(together)
    assert not _has_thread(one)
    one.add_splits(splits[1:])
    assert _has_thread(one)
    together.close()
    one.close()
