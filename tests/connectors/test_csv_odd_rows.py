"""Rows that a bulk reader would misread are taken out alone: the same rows, in the same order, with the same errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flowsql_connectors.formats import csv_decode
from flowsql_connectors.formats.csv import CsvFormat
from flowsql_connectors.formats.csv_odd_rows import Parted, part_rows, put_between
from flowsql_connectors.formats.csv_tokens import CsvDialect, CsvTokenizer
from flowsql_connectors.formats.format import DecodeContext, FileView, Range
from flowsql_core.errors import FlowSqlError
from tests.connectors.tables import columns_of

DIALECTS = [
    CsvDialect(),
    CsvDialect(comments=True),
    CsvDialect(escape="\\"),
    CsvDialect(quote=None, escape="\\", comments=True),
    CsvDialect(delimiter="\t", quote="'", escape="\\", comments=True),
    CsvDialect(delimiter="ä"),
    CsvDialect(escape='"'),
]
COLUMNS = columns_of("k INT, s STRING, d DATE")
PIECES = ["1", "22", "x", ",", ",", "\t", '"', '""', "'", "\\", "\\n", "#", " ", "ä", "\n", "\n", "\r\n", "\r"]
LINES = [
    "1,a,2020-01-01", "2,b,", '3,"c ""d""",2020-01-03', '4,"two\nlines",2020-01-04', "5,e", "6,f,2020-01-06,", "", ",,",
    "# no row", "  # none either", "#7,g,2020-01-07", '8,h"i,2020-01-08', '9,"j" ,2020-01-09', '10,"k"l,2020-01-10',
    "11,m\\,n,2020-01-11", "12,o\\\np,2020-01-12", "x,q,2020-01-13", "14,r,2020-1-4", "15,s,soon", "16,t,2020-01-16,u",
]  # fmt: skip


def rows_of(tokenizer: CsvTokenizer, text: str) -> list[tuple[Any, ...]]:
    return [(row.fields, row.text, row.error) for row in tokenizer.rows(text)]


@settings(max_examples=max(200, settings().max_examples), deadline=None)
@example(dialect=CsvDialect(), pieces=["\r", "1", '"', "\n", "\n"], blank=False)
@given(dialect=st.sampled_from(DIALECTS), pieces=st.lists(st.sampled_from(PIECES), max_size=40), blank=st.booleans())
def test_both_parts_together_are_the_rows(dialect: CsvDialect, pieces: list[str], blank: bool) -> None:
    text = "".join(pieces)
    tokenizer = CsvTokenizer(dialect)
    parts = part_rows(text.encode(), tokenizer, blank)
    plain = rows_of(tokenizer, parts.plain.decode())
    assert len(plain) == len(parts.places)
    found = dict(zip(parts.places.tolist(), plain, strict=True))
    found |= {place: (row.fields, row.text, row.error) for place, row in parts.odd}
    assert [found[place] for place in sorted(found)] == rows_of(tokenizer, text)
    assert sorted(found) == list(range(len(found)))
    assert all(error is None for _, _, error in plain)


def _read(path: Path, dialect: CsvDialect, lenient: bool, wanted: tuple[int, ...]) -> Any:
    decoder = CsvFormat(dialect, (), ";", lenient, False, True).decoder(DecodeContext(COLUMNS, wanted, 65536, {}))
    size = path.stat().st_size
    try:
        parts = list(decoder.read(FileView(str(path), size), Range(0, size)))
    except FlowSqlError as error:
        # Some errors do not show the row's text.
        return re.sub(r"(, row [0-9]+): .*", r"\1", error.message, flags=re.DOTALL)
    return [(part.num_rows, [(str(a.type), a.to_pylist()) for a in part.arrays]) for part in parts]


def _all_odd(data: bytes, tokenizer: CsvTokenizer, blank_is_odd: bool) -> Parted:
    return Parted(b"", np.zeros(0, np.int64), list(enumerate(tokenizer.rows(data.decode()))))


@settings(max_examples=max(150, settings().max_examples), deadline=None)
@given(data=st.data())
def test_columns_and_errors_are_those_of_the_exact_rules(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    dialect = data.draw(st.sampled_from(DIALECTS[:3]))
    lenient = data.draw(st.booleans())
    pool = LINES if data.draw(st.booleans()) else LINES[:14]
    lines = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=12))
    text = data.draw(st.sampled_from(["\n", "\r\n"])).join(lines) + data.draw(st.sampled_from(["", "\n"]))
    path = tmp_path_factory.mktemp("odd") / "t.csv"
    path.write_bytes(text.encode())
    wanted = data.draw(st.sampled_from([(0, 1, 2), (2, 0), (1,), ()]))
    found = _read(path, dialect, lenient, wanted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_decode, "part_rows", _all_odd)
        patch.setattr(csv_decode.CsvDecoder, "_has_odd_rows", lambda decoder, data: True)
        exact = _read(path, dialect, lenient, wanted)
    assert found == exact


@pytest.mark.parametrize("count", [3, 700])
def test_values_are_put_back_in_their_places(count: int) -> None:
    rng = np.random.default_rng(1)
    at = np.sort(rng.integers(0, 51, count))
    array = pa.array([str(value) for value in range(50)])
    others = pa.array([f"o{value}" for value in range(count)])
    want: list[str] = []
    for place in range(51):
        want += [f"o{i}" for i in np.flatnonzero(at == place)]
        want += [str(place)] if place < 50 else []
    assert put_between(array, others, at).to_pylist() == want


@pytest.mark.parametrize(("other", "readings"), [("1,a,2020-01-01", 1), (",,", 2)])
def test_a_blank_line_alone_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str, readings: int
) -> None:
    sizes: list[int] = []
    bulk = csv_decode.CsvDecoder._bulk

    def counted(decoder: csv_decode.CsvDecoder, data: bytes, width: int) -> Any:
        sizes.append(len(data))
        return bulk(decoder, data, width)

    monkeypatch.setattr(csv_decode.CsvDecoder, "_bulk", counted)
    path = tmp_path / "t.csv"
    path.write_text(f"2,b,2020-01-02\n\n{other}\n")
    ((num_rows, arrays),) = _read(path, CsvDialect(), True, (0,))
    assert (num_rows, arrays[0][1][0], len(sizes)) == (3, 2, readings)


def test_one_odd_row_does_not_send_the_others_to_the_exact_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenized: list[str] = []
    rows = CsvTokenizer.rows

    def counted(tokenizer: CsvTokenizer, text: str) -> Any:
        tokenized.append(text)
        return rows(tokenizer, text)

    monkeypatch.setattr(CsvTokenizer, "rows", counted)
    path = tmp_path / "t.csv"
    lines = [f"{i},text {i},2020-01-01" for i in range(1000)]
    for place, odd in [(10, "# a comment"), (200, '7,stray " quote,2020-01-02'), (500, "8,a\\,b,"), (900, "9,short")]:
        lines[place] = odd
    path.write_text("\n".join(lines) + "\n")
    ((num_rows, arrays),) = _read(path, CsvDialect(escape="\\", comments=True), True, (0, 1))
    assert num_rows == 999
    assert [arrays[0][1][place - 1] for place in (200, 500, 900)] == [7, 8, 9]
    assert sorted(tokenized) == ['7,stray " quote,2020-01-02\n', "8,a\\,b,\n", "9,short"]
