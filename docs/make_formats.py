"""Write down the options of each format and the types that it reads and writes: ``python docs/make_formats.py``.

What a format reads and writes is found by asking it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from flowsql_connectors.formats.format import DecodeContext, EncodeContext, FileFormat
from flowsql_connectors.formats.registry import format_factory, identifiers
from flowsql_connectors.options import ConnectorOption, OptionValues
from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column
from flowsql_core.types.text import parse_type

PAGE: Final = Path(__file__).resolve().parent / "reference" / "formats.md"
TYPES: Final = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "CHAR(3)", "VARCHAR(5)",
    "STRING", "BINARY(3)", "BYTES", "DATE", "TIME(0)", "TIME(3)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)",
    "TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)", "ARRAY<INT>", "MAP<STRING, INT>", "MAP<INT, INT>", "MULTISET<STRING>",
    "ROW<a INT, b STRING>", "ARRAY<ROW<a INT>>",
)  # fmt: skip
#: Head of a column of the matrix: format and options.
COLUMNS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "csv": ("csv", {}),
    "json": ("json", {}),
    "raw": ("raw", {}),
    "parquet": ("parquet", {}),
    "orc": ("orc", {}),
    "avro": ("avro", {}),
    "avro, not legacy": ("avro", {"avro.timestamp_mapping.legacy": "false"}),
    "avro, json": ("avro", {"avro.encoding": "json"}),
    "avro-confluent": ("avro-confluent", {"avro-confluent.url": "http://localhost:8081"}),
}


def _works(work: Callable[[], Any]) -> bool:
    try:
        work()
    except FlowSqlError:
        return False
    return True


def _write(format_: FileFormat, column: Column, for_messages: bool) -> None:
    type_ = to_arrow(column.type)
    # Raw files have no NULL.
    nothing = (pa.array(["1"]).cast(type_) if format_.identifier == "raw" else pa.nulls(1, type_),)
    if for_messages:
        encoder = format_.message_encoder((column,), EncodeContext({}, "subject"))
        if format_.identifier == "avro":
            encoder.encode(nothing, 1, None)
    else:
        format_.encoder((column,)).prepare(nothing, 1)


def cell(identifier: str, options: Mapping[str, str], type_: str) -> str:
    """``r``, ``w``, both or nothing."""
    column = Column("c", parse_type(type_))
    table = TableSpec(("c", "d", "t"), (column,), tuple(options.items()))
    for_messages = identifier == "avro-confluent" or options.get("avro.encoding") == "json"

    def made() -> FileFormat:
        return format_factory(identifier).create(OptionValues(options), table)

    def read() -> Any:
        context = DecodeContext((column,), (0,), 1, {})
        return made().message_decoder(context) if for_messages else made().decoder(context)

    reads = _works(read)
    writes = _works(lambda: _write(made(), column, for_messages))
    return "r" * reads + "w" * writes


def _row(option: ConnectorOption[Any], required: bool) -> str:
    default = option.default
    shown = str(default).lower() if isinstance(default, bool) else "" if default in (None, "", ()) else str(default)
    if required:
        shown = "required"
    return f"| `{option.key}` | {shown} | {option.doc.replace('|', chr(92) + '|')} |"


def render() -> str:
    """The page."""
    lines = [
        "# Formats: options and types",
        "",
        "Written by `docs/make_formats.py`, which asks the formats. What they do: [formats.md](../formats.md).",
        "",
        "## Types",
        "",
        "`r`: read, `w`: written. `protobuf` takes the types that the fields of its messages have; the formats of",
        "changes those of `json`, `debezium-avro-confluent` those of `avro-confluent`.",
        "",
        "| type | " + " | ".join(COLUMNS) + " |",
        "|---|" + "---|" * len(COLUMNS),
    ]
    for type_ in TYPES:
        cells = [cell(identifier, options, type_) for identifier, options in COLUMNS.values()]
        lines.append(f"| `{type_}` | " + " | ".join(cells) + " |")
    for identifier in identifiers():
        options = format_factory(identifier).options()
        lines += ["", f"## {identifier}", "", "| option | default | |", "|---|---|---|"]
        lines += [_row(option, required=True) for option in options.required]
        lines += [_row(option, required=False) for option in options.optional]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
