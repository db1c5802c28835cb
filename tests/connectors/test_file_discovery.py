"""Scans that go on looking for files: what is new, what is read once, how it is dealt out and remembered."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest

from flowsql_connectors.filesystem.splits import FileSplit
from flowsql_connectors.spi.source import Split, SplitEnumerator
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.graph.specs import TableSpec
from tests.connectors.tables import drain, files_table, insert, reader_of, rows_of, source_of
from tests.connectors.tables import poll as polled


def _table(tmp_path: Path, format_: str = "csv", partitioned: bool = False, **options: str) -> TableSpec:
    (tmp_path / "t").mkdir(exist_ok=True)
    ddl = "a INT, p STRING" if partitioned else "a INT"
    return files_table(
        ddl, tmp_path / "t", format_, ("p",) if partitioned else (), source__monitor_interval="1 s", **options
    )


def _enumerator(table: TableSpec) -> SplitEnumerator:
    return source_of(table)[0].create_enumerator()


def _write(path: Path, *numbers: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{number}\n" for number in numbers))


def _found(enumerator: SplitEnumerator, parallelism: int = 1) -> list[list[str]]:
    """One look, dealt out: the names of the files of each reader."""
    dealt = enumerator.assign(enumerator.discover(parallelism), parallelism)
    return [[Path(FileSplit.decode(split).file.path).name for split in share] for share in dealt]


def test_a_scan_that_looks_for_files_does_not_end(tmp_path: Path) -> None:
    table = _table(tmp_path)
    source, _ = source_of(table)
    assert not source.bounded
    assert source.create_enumerator().discovery_interval_ms() == 1000
    without = files_table("a INT", tmp_path / "t", "csv")
    assert source_of(without)[0].bounded
    assert source_of(without)[0].create_enumerator().discovery_interval_ms() is None


def test_an_interval_is_above_zero(tmp_path: Path) -> None:
    with pytest.raises(BindError, match="must be greater than 0"):
        source_of(files_table("a INT", tmp_path, "csv", source__monitor_interval="0 s"))


def test_a_link_to_nothing_is_no_file(tmp_path: Path) -> None:
    enumerator = _enumerator(_table(tmp_path))
    _write(tmp_path / "t" / "first", 1)
    (tmp_path / "t" / "link").symlink_to(tmp_path / "nowhere")
    assert _found(enumerator) == [["first"]]


def test_files_and_folders_may_go_while_they_are_listed(tmp_path: Path) -> None:
    """As those of a writer that compacts, or overwrites partitions."""
    enumerator, ended = _enumerator(_table(tmp_path)), threading.Event()
    _write(tmp_path / "t" / "kept", 1)

    def come_and_go() -> None:
        while not ended.is_set():
            for number in range(20):
                _write(tmp_path / "t" / f"k={number}" / "part", number)
            for number in range(20):
                shutil.rmtree(tmp_path / "t" / f"k={number}")

    writer = threading.Thread(target=come_and_go)
    writer.start()
    try:
        looks = [_found(enumerator) for _ in range(200)]
    finally:
        ended.set()
        writer.join()
    assert sum(share.count("kept") for look in looks for share in look) == 1


def test_new_files_are_found_and_each_path_is_read_once(tmp_path: Path) -> None:
    enumerator = _enumerator(_table(tmp_path))
    _write(tmp_path / "t" / "first", 1)
    assert len(enumerator.initial_splits(1)[0]) == 1
    assert _found(enumerator) == [[]]
    _write(tmp_path / "t" / "second", 2)
    for hidden in (".hidden", "_hidden", ".part-1.inprogress.job"):
        _write(tmp_path / "t" / hidden, 9)
    assert _found(enumerator) == [["second"]]
    _write(tmp_path / "t" / "first", 1, 3)
    assert _found(enumerator) == [[]], "a file that grew is not read again"
    (tmp_path / "t" / "second").unlink()
    assert _found(enumerator) == [[]]
    _write(tmp_path / "t" / "second", 4)
    assert _found(enumerator) == [[]], "nor is a path that comes back"


def test_nothing_is_remembered_before_it_is_assigned(tmp_path: Path) -> None:
    enumerator = _enumerator(_table(tmp_path))
    _write(tmp_path / "t" / "file", 1)
    assert len(enumerator.discover(1)) == len(enumerator.discover(1)) == 1
    assert enumerator.snapshot() == b""


def test_files_of_new_partitions_are_found(tmp_path: Path) -> None:
    table = _table(tmp_path, partitioned=True)
    enumerator = _enumerator(table)
    assert enumerator.initial_splits(1) == [[]]
    _write(tmp_path / "t" / "p=x" / "file", 1)
    source, schema = source_of(table)
    (splits,) = enumerator.assign(enumerator.discover(1), 1)
    assert drain(reader_of(source), splits, schema) == [[1, "x"]]


def test_only_paths_that_match_are_found(tmp_path: Path) -> None:
    table = _table(tmp_path, source__path__regex_pattern=r".*/in-\d+\.csv")
    enumerator = _enumerator(table)
    for name in ("in-1.csv", "in-x.csv", "out-1.csv"):
        _write(tmp_path / "t" / name, 1)
    assert _found(enumerator) == [["in-1.csv"]]


def test_an_empty_file_is_read_once_too(tmp_path: Path) -> None:
    enumerator = _enumerator(_table(tmp_path))
    _write(tmp_path / "t" / "file")
    assert _found(enumerator) == [[]]
    _write(tmp_path / "t" / "file", 1)
    assert _found(enumerator) == [[]]


def test_the_state_knows_every_path_and_16_bytes_of_each(tmp_path: Path) -> None:
    table = _table(tmp_path)
    for number in range(50):
        _write(tmp_path / "t" / f"{number:02}", number)
    first = _enumerator(table)
    first.initial_splits(2)
    state = first.snapshot()
    assert len(state) == 16 * 50
    _write(tmp_path / "t" / "new", 1)
    again = _enumerator(table)
    again.restore(state)
    assert again.redistribute([], 2) == [[], []]
    assert _found(again) == [["new"]]


def test_what_a_reader_has_not_finished_is_known_too(tmp_path: Path) -> None:
    table = _table(tmp_path)
    _write(tmp_path / "t" / "file", 1)
    (splits,) = _enumerator(table).initial_splits(1)
    again = _enumerator(table)
    again.redistribute(splits, 1)
    assert _found(again) == [[]]


def test_files_that_come_one_by_one_go_to_the_reader_that_was_given_least(tmp_path: Path) -> None:
    enumerator = _enumerator(_table(tmp_path))
    enumerator.initial_splits(3)
    readers = []
    for number in range(6):
        _write(tmp_path / "t" / f"{number}", 10)
        dealt = _found(enumerator, 3)
        readers.append([bool(share) for share in dealt].index(True))
        assert sum(map(len, dealt)) == 1
    assert sorted(readers) == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_a_reader_takes_new_files_while_it_runs(tmp_path: Path, format_: str) -> None:
    table = _table(tmp_path, format_)
    source, schema = source_of(table)
    enumerator = source.create_enumerator()
    assert enumerator.initial_splits(1) == [[]]
    reader = reader_of(source)
    for number in range(3):
        insert(files_table("a INT", tmp_path / "t", format_), [(number,)])
        (splits,) = enumerator.assign(enumerator.discover(1), 1)
        reader.add_splits(splits)
        batch = polled(reader)
        assert batch is not None
        assert rows_of(batch.batch, schema) == [[number]]
    assert reader.snapshot() == []
    reader.close()


def test_a_damaged_file_fails_who_reads_it(tmp_path: Path) -> None:
    table = _table(tmp_path, "parquet")
    source, schema = source_of(table)
    enumerator = source.create_enumerator()
    enumerator.initial_splits(1)
    (tmp_path / "t" / "bad").write_text("no parquet")
    (splits,) = enumerator.assign(enumerator.discover(1), 1)
    with pytest.raises(ConnectorError, match="no readable parquet file"):
        drain(reader_of(source), splits, schema)


def test_a_split_says_which_file_it_is(tmp_path: Path) -> None:
    _write(tmp_path / "t" / "file", 1)
    (split,) = _enumerator(_table(tmp_path)).discover(1)
    assert isinstance(split, Split)
    assert json.loads(split.data)[0][0] == str(tmp_path / "t" / "file")
