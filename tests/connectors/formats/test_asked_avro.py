"""The formats of Avro beside Flink 2.3: which schemas a table takes, and what messages are (``asked_avro*.txt``)."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flowsql.errors import FlowSqlError
from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_connectors.formats.format import DecodeContext, EncodeContext, FileFormat
from flowsql_connectors.formats.registry import format_factory
from flowsql_connectors.options import OptionValues
from flowsql_core.types.arrow import to_arrow
from tests.connectors.formats.small_registry import SmallRegistry, small_registry
from tests.connectors.tables import columns_of, table_of

HERE = Path(__file__).parent
HEAD_BYTES = 5


def _cases(name: str) -> list[str]:
    text = (HERE / name).read_text(encoding="utf-8")
    return [case.rstrip("\n") for case in text.split("=== ")[1:]]


def _title(case: str) -> str:
    return case.partition("\n")[0]


@pytest.fixture(scope="module")
def registry() -> Iterator[SmallRegistry]:
    with small_registry() as server:
        yield server


def _schema(text: str) -> str:
    """Fields stand for a record of them."""
    found = json.loads(text)
    if isinstance(found, list) and all(isinstance(field, dict) for field in found):
        return json.dumps({"type": "record", "name": "R", "namespace": "n", "fields": found})
    return text


@pytest.mark.parametrize("case", _cases("asked_avro_schemas.txt"), ids=_title)
def test_schemas_of_tables(case: str) -> None:
    head, text, *said = case.split("\n", 2)
    taken, format_, ddl = head.split(" ", 2)
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    options = {
        "connector": "kafka", "topic": "t", "properties.bootstrap.servers": "localhost:1", "format": format_,
        f"{format_}.url": "http://localhost:1", f"{format_}.schema": _schema(text),
        "scan.startup.mode": "earliest-offset",
    }  # fmt: skip
    given = ", ".join(f"'{key}' = '{value.replace(chr(39), chr(39) * 2)}'" for key, value in options.items())
    made.execute_sql(f"CREATE TABLE t ({ddl}) WITH ({given})")
    if taken == "+":
        assert not said
        made.explain_sql("SELECT * FROM t")
        return
    # Flink refuses while it plans; what differs is told here.
    for statement in ("SELECT * FROM t", "INSERT INTO t SELECT * FROM t"):
        with pytest.raises(FlowSqlError) as caught:
            made.explain_sql(statement)
        if said[0].startswith("Avro does not support"):
            assert caught.value.message == said[0]
        else:
            assert caught.value.message.startswith(f"Schema provided for '{format_}' format ")
            assert caught.value.message.endswith(f" the table schema: {said[0]}")


def _format(registry: SmallRegistry, ddl: str, options: Mapping[str, str]) -> FileFormat:
    name = options["format"]
    given = {f"{name}.{key}": value for key, value in options.items() if key != "format"}
    if name != "avro":
        given[f"{name}.url"] = registry.url
    return format_factory(name).create(OptionValues(given), table_of(ddl, given))


def _options(text: str) -> dict[str, str]:
    """``avro encoding=json``; a schema is the last one, fields for a record."""
    head, _, schema = text.partition(" schema=")
    name, *pairs = head.split(" ")
    found = {"format": name, **dict(pair.split("=", 1) for pair in pairs)}
    return {**found, "schema": _schema(schema)} if schema else found


def _plain(value: Any, type_: pa.DataType) -> Any:
    """A value of the answers as Arrow takes it."""
    if value is None:
        return None
    if pa.types.is_map(type_):
        return [(key, _plain(item, type_.item_type)) for key, item in value]
    if pa.types.is_list(type_):
        return [_plain(item, type_.value_type) for item in value]
    if pa.types.is_struct(type_):
        return {field.name: _plain(item, field.type) for item, field in zip(value, type_, strict=True)}
    if pa.types.is_binary(type_):
        return bytes.fromhex(value[1:])
    if pa.types.is_decimal(type_):
        return Decimal(value)
    if pa.types.is_timestamp(type_):
        moment = datetime.datetime.fromisoformat(value)
        return moment if type_.tz is None else moment.replace(tzinfo=datetime.UTC)
    return value


def _arrays(lines: list[str], ddl: str) -> tuple[Any, ...]:
    rows = [json.loads(line) for line in lines]
    types = [to_arrow(column.type) for column in columns_of(ddl)]
    return tuple(pa.array([_plain(row[at], type_) for row in rows], type_) for at, type_ in enumerate(types))


def _bytes(line: str) -> bytes | None:
    if line == "NULL":
        return None
    return bytes.fromhex(line[1:]) if line.startswith("x") else line.encode()


def _read(format_: FileFormat, ddl: str, messages: list[bytes | None]) -> list[list[Any]]:
    columns = columns_of(ddl)
    decoder = format_.message_decoder(DecodeContext(columns, tuple(range(len(columns))), 65536, {}))
    found = decoder.rows(pa.array(messages, pa.binary())).columns  # type: ignore[attr-defined]
    return [array.to_pylist() for array in found.arrays]


@pytest.mark.parametrize("case", _cases("asked_avro.txt"), ids=_title)
def test_messages(case: str, registry: SmallRegistry) -> None:
    head, *lines = case.split("\n")
    ddl, _, options = head.partition(" | ")
    format_ = _format(registry, ddl, _options(options))
    places = [at for at, line in enumerate(lines) if line.startswith("--- ")]
    first = lines[: places[0]]
    parts = {lines[at][4:]: lines[at + 1 : end] for at, end in zip(places, [*places[1:], len(lines)], strict=True)}
    if "messages" not in parts:
        _check_read(format_, ddl, [_bytes(line) for line in first], parts["rows"])
        return
    # Rows before and behind are of other batches.
    arrays = tuple(
        pa.concat_arrays([array, array, array]).slice(len(first), len(first)) for array in _arrays(first, ddl)
    )

    def messages_of() -> list[bytes | None]:
        encoder = format_.message_encoder(columns_of(ddl), EncodeContext({}, "t-value"))
        found: list[bytes | None] = encoder.encode(arrays, len(first), None).to_pylist()
        return found

    asked = parts["messages"]
    if asked[0].startswith("ERROR"):
        with pytest.raises(FlowSqlError, match=asked[0].removeprefix("ERROR ")):
            messages_of()
        return
    messages = messages_of()
    behind = 0 if options.startswith("avro ") or options == "avro" else HEAD_BYTES
    assert ["x" + (message or b"")[behind:].hex() for message in messages] == asked
    _check_read(format_, ddl, messages, parts.get("rows", first))


def _check_read(format_: FileFormat, ddl: str, messages: list[bytes | None], asked: list[str]) -> None:
    if asked and asked[-1].startswith("ERROR"):
        with pytest.raises(FlowSqlError, match=asked[-1].removeprefix("ERROR ")):
            _read(format_, ddl, messages)
        return
    assert _read(format_, ddl, messages) == [array.to_pylist() for array in _arrays(asked, ddl)]
