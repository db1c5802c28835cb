"""datagen, print, blackhole, finding files, WITH clauses."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_connectors import registry
from flowsql_connectors.blackhole import BlackholeWriter
from flowsql_connectors.handed import HandedRows
from flowsql_connectors.spi.source import ReadStatus
from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import ManualClock
from flowsql_core.errors import BindError, ConnectorError, FlowSqlError
from flowsql_core.row import UPDATE_AFTER, UPDATE_BEFORE
from tests.connectors.tables import batch_of, drain, files_table, reader_of, scan, source_of, table_of, writer_of


def _datagen(ddl: str, **options: str) -> Any:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    return table_of(ddl, {"connector": "datagen", "rows-per-second": "1000000", **named})


_CSV = {"connector": "filesystem", "path": "x", "format": "csv"}
_SEQUENCE = {"fields.a.kind": "sequence", "fields.a.start": "5", "fields.a.end": "14"}


@pytest.mark.parametrize("type_", ["INT", "BIGINT", "TINYINT", "STRING", "DOUBLE", "DECIMAL(5,2)"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_sequence_ends_and_is_shared(type_: str, parallelism: int) -> None:
    table = table_of(f"a {type_}", {"connector": "datagen", **_SEQUENCE})
    expected = {"STRING": str, "DOUBLE": float, "DECIMAL(5,2)": "{:.2f}".format}.get(type_, int)
    assert sorted(scan(table, parallelism), key=lambda row: float(row[0])) == [[expected(n)] for n in range(5, 15)]
    assert not source_of(table)[0].bounded


def test_random_values_stay_in_their_bounds() -> None:
    table = _datagen(
        "a INT, b STRING, c DECIMAL(5,2), d STRING, e DOUBLE, f ARRAY<STRING>, g DECIMAL(38,10), h CHAR(4), "
        "i TIMESTAMP(3)",
        number_of_rows="500", fields__a__min="3", fields__a__max="5", fields__b__length="3", fields__c__min="1",
        fields__c__max="2", fields__d__length="10", fields__d__var_len="true", fields__e__null_rate="0.5",
        fields__f__element__length="2", fields__i__max_past="1 h",
    )  # fmt: skip
    rows = scan(table, 2)
    assert len(rows) == 500
    assert {row[0] for row in rows} == {3, 4, 5}
    assert {len(row[1]) for row in rows} == {3}
    assert all(1 <= float(row[2]) <= 2 for row in rows)
    assert {len(row[3]) for row in rows} == set(range(1, 11))
    assert 150 < sum(row[4] is None for row in rows) < 350
    assert all(len(row[5]) == 3 and all(len(text) == 2 for text in row[5]) for row in rows)
    assert len({row[6] for row in rows}) == 500
    assert {len(row[7]) for row in rows} == {4}
    assert source_of(table)[0].bounded


def test_rate_follows_the_clock() -> None:
    clock = ManualClock(0)
    source, _ = source_of(table_of("a INT", {"connector": "datagen", "rows-per-second": "10"}))
    reader = reader_of(source, clock=clock)
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    counts = []
    for _ in range(4):
        polled = reader.poll(1000)
        counts.append(0 if isinstance(polled, ReadStatus) else polled.batch.num_rows)
        clock.advance(500)
    assert counts == [1, 5, 5, 5]
    assert reader.poll(3).batch.num_rows == 3  # type: ignore[union-attr]
    reader.close()


def test_datagen_position_is_kept() -> None:
    source, schema = source_of(table_of("a INT", {"connector": "datagen", **_SEQUENCE, "rows-per-second": "100000"}))
    reader = reader_of(source, clock=ManualClock(10**6))
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    reader.poll(1)
    assert drain(reader_of(source), reader.snapshot(), schema) == [[n] for n in range(6, 15)]


@pytest.mark.parametrize(
    ("ddl", "options", "message"),
    [
        ("x INT", {"fields.x.kind": "sequence"}, "Could not find required property 'fields.x.start' for sequence"),
        ("x INT", {"number-of-rows": "1", "speed": "fast"}, "Unsupported options found for 'datagen'.\n\nUnsupported "
         "options:\n\nspeed\n\nSupported options:\n\nconnector\n"),
        ("x INT", {"fields.y.min": "1"}, "Unsupported options found for 'datagen'."),
        ("x INT", {"fields.x.kind": "rnd"}, "Unsupported generator kind: rnd"),
        ("x INT", {"number-of-rows": "x"}, 'For input string: "x"'),
        ("x INT", {"fields.x.min": "5", "fields.x.max": "1"}, "above"),
    ],
)  # fmt: skip
def test_datagen_options_are_checked(ddl: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(BindError) as caught:
        source_of(table_of(ddl, {"connector": "datagen", **options}))
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({}, "Table options do not contain an option key 'connector' for discovering a connector.", "filesystem"),
        ({"connector": "carrier-pigeon"}, "Could not find any factory for identifier 'carrier-pigeon'", "pip install"),
        ({"connector": "datagn"}, "Available factory identifiers are:\n\nblackhole\n", "did you mean 'datagen'"),
        ({"connector": "print"}, "Connector 'print' can only be used as a sink.", ""),
        ({"connector": "filesystem", "format": "csv"}, "One or more required options are missing.\n\nMissing required "
         "options are:\n\npath", "path"),
        ({"connector": "filesystem", "path": "x"}, "Missing required options are:\n\nformat", ""),
        ({**_CSV, "format": "xml"}, "Could not find any format factory for identifier 'xml'", ""),
        ({**_CSV, "csv.foo": "1"}, "Unsupported options:\n\ncsv.foo", ""),
        ({**_CSV, "csv.ignore-parse-error": "1"}, "Unsupported options", "csv.ignore-parse-errors"),
        ({**_CSV, "csv.ignore-parse-errors": "maybe"},
         "Unrecognized option for boolean: maybe. Expected either true or false(case insensitive)", ""),
        ({**_CSV, "csv.field-delimiter": "||"},
         "Option 'csv.field-delimiter' must be a string with single character, but was: ||", ""),
    ],
)  # fmt: skip
def test_with_clauses_are_checked_in_flinks_words(options: dict[str, str], message: str, hint: str) -> None:
    with pytest.raises(FlowSqlError) as caught:
        source_of(table_of("x INT", options))
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_source_only_connector_as_sink() -> None:
    with pytest.raises(BindError, match="Connector 'datagen' can only be used as a source"):
        writer_of(table_of("x INT", {"connector": "datagen"}))


def test_folders_hidden_names_and_compression(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "_hidden").mkdir()
    for name, data in {
        "b.csv": b"2\n", "a.csv": b"1\n", ".h.csv": b"9\n", "_h.csv": b"9\n", "sub/c.csv": b"3\n",
        "_hidden/d.csv": b"9\n", "g.csv.gz": gzip.compress(b"4\n") + gzip.compress(b"44\n"),
        "h.csv.bz2": bz2.compress(b"5\n"), "i.csv.xz": lzma.compress(b"6\n"), "j.csv.deflate": zlib.compress(b"7\n"),
        "k.csv.zst": _zstd(b"8\n"),
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(data)
    assert scan(files_table("a INT", tmp_path, "csv")) == [[n] for n in (1, 2, 4, 44, 5, 6, 7, 8, 3)]
    assert scan(files_table("a INT", f"file://{tmp_path}/*.csv", "csv")) == [[1], [2]]
    only = files_table("a INT", tmp_path, "csv", source__path__regex_pattern=r"/.*/[ac]\.csv")
    assert scan(only) == [[1], [3]]
    with_names = files_table("a INT", tmp_path / "a.csv", "csv")
    path = str(tmp_path / "a.csv")
    assert scan(with_names, metadata=("file.path", "file.name", "file.size")) == [[1, path, "a.csv", 2]]


def _zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def test_missing_path_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match="does not exist or the user running"):
        scan(files_table("a INT", tmp_path / "nothing.csv", "csv"))
    with pytest.raises(ConnectorError, match="scheme 'nowhere'"):
        scan(files_table("a INT", "nowhere://bucket/x", "csv"))


def test_empty_inputs(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    assert scan(files_table("a INT", tmp_path / "empty.csv", "csv"), 2) == []
    (tmp_path / "folder").mkdir()
    assert scan(files_table("a INT", tmp_path / "folder", "csv"), 2) == []


def _changes() -> ChangelogBatch:
    kinds = np.array([0, UPDATE_BEFORE, UPDATE_AFTER, 3], dtype=np.uint8)
    return ChangelogBatch.of((pa.array([1, 1, 2, None], pa.int32()), pa.array(["a", "b\n", "ü", None])), kinds)


def test_print_lines() -> None:
    written: list[str] = []
    table = table_of("a INT, b STRING", {"connector": "print"})
    writer_of(table, written=written)[0].write(_changes())
    assert "".join(written) == "+I[1, a]\n-U[1, b\n]\n+U[2, ü]\n-D[null, null]\n"
    written.clear()
    named = table_of("a INT, b STRING", {"connector": "print", "print-identifier": "PI"})
    writer_of(named, written=written, subtask=1, parallelism=2)[0].write(_changes().slice(0, 1))
    writer_of(named, written=written)[0].write(_changes().slice(0, 1))
    assert written == ["PI:2> +I[1, a]\n", "PI> +I[1, a]\n"]


def test_print_as_json_lines() -> None:
    written: list[str] = []
    table = table_of("a INT, b STRING", {"connector": "print"})
    writer_of(table, written=written, configuration={"flowsql.print.format": "jsonl"})[0].write(_changes())
    assert "".join(written) == (
        '{"sink": "t", "op": "+I", "row": [1, "a"]}\n{"sink": "t", "op": "-U", "row": [1, "b\\n"]}\n'
        '{"sink": "t", "op": "+U", "row": [2, "ü"]}\n{"sink": "t", "op": "-D", "row": [null, null]}\n'
    )


def test_blackhole_counts_every_row() -> None:
    writer, committer = writer_of(table_of("a INT", {"connector": "blackhole"}))
    assert isinstance(writer, BlackholeWriter)
    writer.write(batch_of(table_of("a INT", {"connector": "blackhole"}), [(1,), (2,)]))
    assert writer.rows == 2
    assert committer is None


def test_third_party_connector_is_found_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name = "pigeon"
        value = "pigeons:CONNECTOR"

        def load(self) -> registry.Connector:
            return registry.Connector(sink="flowsql_connectors.blackhole:BlackholeSinkFactory")

    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Point()])
    assert registry.sink_factory("pigeon").identifier == "blackhole"
    assert "pigeon" in registry.identifiers()


def test_handed_rows_come_whole_in_pieces_of_any_size() -> None:
    table = table_of("a INT", {})
    rows = HandedRows([batch_of(table, [[n] for n in range(10)]), batch_of(table, [[10]])])
    taken = []
    while (batch := rows.take(4)) is not None:
        taken.append(batch.columns[0].to_pylist())
    assert taken == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9], [10]]
