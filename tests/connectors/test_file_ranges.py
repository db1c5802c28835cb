"""Byte ranges, splits, positions: however a file is cut and read, the rows are the same."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowsql_connectors.filesystem.files import FoundFile
from flowsql_connectors.filesystem.splits import FileSplit, cut_in_parts, deal
from flowsql_connectors.formats.csv import CsvFormat
from flowsql_connectors.formats.csv_tokens import CsvDialect
from flowsql_connectors.formats.format import DecodeContext, FileView, Range
from tests.connectors.tables import (
    columns_of,
    drain,
    files_table,
    poll,
    reader_of,
    rows_of,
    scan,
    source_of,
)

_COLUMNS = columns_of("a INT, b STRING, c STRING")


def _decoder() -> Any:
    format_ = CsvFormat(CsvDialect(), (), ";", False, False, True)
    return format_.decoder(DecodeContext(_COLUMNS, (0, 1, 2), 65536, {}))


def _read(path: Path, borders: list[int]) -> list[tuple[Any, ...]]:
    size = path.stat().st_size
    cuts = sorted({0, size, *(border for border in borders if 0 < border < size)})
    decoder = _decoder()
    rows: list[tuple[Any, ...]] = []
    for start, stop in itertools.pairwise(cuts):
        for columns in decoder.read(FileView(str(path), size), Range(start, stop)):
            rows.extend(zip(*(array.to_pylist() for array in columns.arrays), strict=True))
    return rows


_TEXT = st.sampled_from(["", "a", "b, c", "one\ntwo", 'say "hi"', "é\n\nß", '"', "x\n"])


@settings(max_examples=max(40, settings().max_examples))
@given(
    st.lists(st.tuples(st.integers(0, 99), _TEXT, _TEXT), min_size=12, max_size=30),
    st.lists(st.integers(1, 400), max_size=5),
)
def test_any_borders_give_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, str, str]], borders: list[int]
) -> None:
    path = tmp_path_factory.mktemp("ranges") / "t.csv"

    def quoted(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    path.write_bytes("".join(f"{a},{quoted(b)},{quoted(c)}\n" for a, b, c in rows).encode())
    assert _read(path, borders) == rows


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_every_border_of_a_plain_file(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "t.csv"
    rows = [(n, f"x{n}", "ü" * (n % 4)) for n in range(12)]
    path.write_bytes(ending.join(f"{a},{b},{c}" for a, b, c in rows).encode())
    for border in range(1, path.stat().st_size):
        assert _read(path, [border]) == rows
        assert _read(path, [border, border + 1, border + 7]) == rows


def _numbers(path: Path, rows: int) -> None:
    path.write_text("".join(f"{n},{'x' * (n % 90)}\n" for n in range(rows)))


def test_one_file_is_shared_by_all_subtasks(tmp_path: Path) -> None:
    _numbers(tmp_path / "t.csv", 40_000)
    table = files_table("a INT, b STRING", tmp_path / "t.csv", "csv")
    source, _ = source_of(table, ["a"])
    shares = source.create_enumerator().initial_splits(3)
    assert all(share for share in shares)
    assert sorted(scan(table, 3, select=["a"])) == [[n] for n in range(40_000)]
    assert scan(table, 1, select=["a"]) == [[n] for n in range(40_000)]


def test_files_that_share_out_evenly_stay_whole() -> None:
    files = [FileSplit(FoundFile(f"/d/{n}", 100, 0), (Range(0, 50), Range(50, 100))) for n in range(4)]
    shares = deal(files, 2)
    assert [[split.file.path for split in share] for share in shares] == [
        ["/d/0", "/d/2"],
        ["/d/1", "/d/3"],
    ]
    striped = [split.ranges for share in deal(files[:1], 2) for split in share]
    assert striped == [(Range(0, 50),), (Range(50, 100),)]


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
@pytest.mark.parametrize("compressed", [False, True])
def test_snapshot_after_any_batch_continues_exactly(tmp_path: Path, format_: str, compressed: bool) -> None:
    table = _sample(tmp_path, format_, compressed)
    source, schema = source_of(table)
    (splits,) = source.create_enumerator().initial_splits(1)
    whole = drain(reader_of(source), splits, schema)
    assert [row[0] for row in whole] == list(range(3000))
    for polls in (0, 1, 2, 5, 11):
        reader = reader_of(source)
        reader.add_splits(splits)
        reader.no_more_splits()
        before: list[list[Any]] = []
        for _ in range(polls):
            polled = poll(reader, 271)
            assert polled is not None
            before.extend(rows_of(polled.batch, schema))
        state = reader.snapshot()
        reader.close()
        assert before + drain(reader_of(source), state, schema) == whole
        after: list[list[Any]] = []
        for subtask, share in enumerate(source.create_enumerator().redistribute(state, 2)):
            after.extend(drain(reader_of(source, subtask, 2), share, schema, 100))
        assert sorted(before + after) == whole


def _sample(tmp_path: Path, format_: str, compressed: bool) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / f"t.{format_}"
    if format_ == "parquet":
        columns = {"a": pa.array(range(3000), pa.int32()), "b": pa.array([f"x{n}" for n in range(3000)])}
        pq.write_table(pa.table(columns), path, row_group_size=700)
    else:
        line = "{0},x{0}\n" if format_ == "csv" else '{{"a": {0}, "b": "x{0}"}}\n'
        data = "".join(line.format(n) for n in range(3000)).encode()
        if compressed:
            path = path.with_suffix(f".{format_}.gz")
            data = gzip.compress(data)
        path.write_bytes(data)
    return files_table("a INT, b STRING", path, format_)


def test_quoted_newlines_survive_sharing(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [[n, f'line one\nline "two", {n}'] for n in range(30_000)]
    path.write_text("".join('{},"{}"\n'.format(a, b.replace('"', '""')) for a, b in rows))
    assert sorted(scan(files_table("a INT, b STRING", path, "csv"), 2)) == rows


def test_limit_stops_reading(tmp_path: Path) -> None:
    _numbers(tmp_path / "t.csv", 5000)
    assert scan(files_table("a INT, b STRING", tmp_path / "t.csv", "csv"), select=["a"], limit=3) == [[0], [1], [2]]


def test_error_in_the_fetcher_is_raised_by_poll(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"1,x\n" * 10)[:-12])
    with pytest.raises(Exception, match="cannot be decompressed"):
        scan(files_table("a INT, b STRING", path, "csv"))


@given(
    st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=6), max_size=6),
    st.integers(1, 40),
    st.booleans(),
)
def test_parts_are_the_input_in_its_order(files: list[list[int]], part_bytes: int, counts_groups: bool) -> None:
    splits = []
    for number, lengths in enumerate(files):
        ends = list(itertools.accumulate(lengths))
        ranges = tuple(Range(end - length, end) for end, length in zip(ends, lengths, strict=True))
        if counts_groups:
            ranges = tuple(Range(group, group + 1) for group in range(len(lengths)))
        splits.append(FileSplit(FoundFile(f"{number}", sum(lengths), 0, ()), ranges))
    parts = cut_in_parts(splits, part_bytes)
    whole = [(split.file.path, part) for split in splits for part in split.ranges]
    assert [(split.file.path, one) for part in parts for split in part for one in split.ranges] == whole
    assert all(part and all(split.ranges for split in part) for part in parts)
    units = {split.file.path: split.file.size / split.weight for split in splits}
    for part in parts:
        sizes = [units[split.file.path] * (one.stop - one.start) for split in part for one in split.ranges]
        # A part takes one range more only while it has too little.
        assert sum(sizes[:-1]) < part_bytes
