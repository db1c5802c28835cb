"""Columns of files with one JSON object a line.

Arrow's reader finds names and nested types in the sample; texts are then judged as those of csv are. Where a field has
values of several types, or whole numbers too long for BIGINT, the objects of the sample are merged one by one, and such
a field is STRING: its JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from flowsql_connectors.formats.format import FileView, Range
from flowsql_connectors.formats.inferring.sampling import (
    FURTHER_BYTES,
    SAMPLE_BYTES,
    InferredFormat,
    empty,
    sampled,
)
from flowsql_connectors.formats.inferring.texts import TextType, type_of_texts
from flowsql_connectors.formats.json import TIMESTAMP_FORMAT
from flowsql_connectors.formats.rows_in_bytes import line_start, read_rows, whole_lines
from flowsql_connectors.options import COLUMNS_INFERRED, OptionValues
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ConnectorError
from flowsql_core.types.logical import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    ArrayType,
    Column,
    Field,
    LogicalType,
    RowType,
    TimestampLtzType,
    TimestampType,
)


def infer_json(files: Sequence[FileView], given: OptionValues, suffix: str) -> InferredFormat:
    """Columns of all files, by name.

    Raises:
        ConnectorError: files are empty, or their lines are no objects.
    """
    parts = []
    for at, file in enumerate(sampled(files)):
        data = _sample(file, SAMPLE_BYTES if at == 0 else FURTHER_BYTES)
        if not data.strip():
            continue
        _check_lines(file, data)
        parts.append(data if data.endswith(b"\n") else data + b"\n")
    if not parts:
        raise empty(files[0].path)
    table = _table(b"".join(parts), files[0])
    if not table.num_columns:
        raise ConnectorError("no-columns", f"The objects of file {files[0].path} have no fields.")
    stamps = _stamps(table)
    iso = given.get(TIMESTAMP_FORMAT) == "ISO-8601" if given.has(TIMESTAMP_FORMAT) else any(s.iso for s in stamps)
    columns = tuple(Column(name, _type(_flat(table.column(name)), iso)) for name in table.column_names)
    options = {COLUMNS_INFERRED.key: "true"}
    if iso and not given.has(TIMESTAMP_FORMAT):
        options[TIMESTAMP_FORMAT.key] = "ISO-8601"
    return InferredFormat(columns, tuple(options.items()))


def _sample(file: FileView, size: int) -> bytes:
    part = Range(0, file.size if file.compression is not None else min(size, file.size))
    data = next((data for _, data in read_rows(file, part, line_start, whole_lines)), b"")
    return data if len(data) <= size else data[: data.rfind(b"\n", 0, size) + 1] or data


def _check_lines(file: FileView, data: bytes) -> None:
    head = data.lstrip(b" \t\r\n\xef\xbb\xbf")
    first = head.partition(b"\n")[0].strip()
    if head.startswith(b"[") or first == b"{":
        raise ConnectorError(
            "not-json-lines",
            f"File {file.path} holds "
            + ("an array" if head.startswith(b"[") else "an object over several lines")
            + ", but json files are read line by line, an object each.",
            hint=f"jq -c {chr(39)}{'.[]' if head.startswith(b'[') else '.'}{chr(39)} makes such a file",
        )


def _table(data: bytes, file: FileView) -> Any:
    """The sample in the narrowest Arrow types, texts as they are."""
    try:
        table = _read(data, None)
        if _may_lose_digits(table):
            return pa.Table.from_pylist(list(_merged(data, file)))
        plain = pa.schema([pa.field(field.name, _without_times(field.type)) for field in table.schema])
        return table if plain == table.schema else _read(data, plain)
    except pa.ArrowInvalid:
        return pa.Table.from_pylist(list(_merged(data, file)))


def _read(data: bytes, schema: Any) -> Any:
    import pyarrow.json as pajson

    return pajson.read_json(
        pa.BufferReader(data),
        read_options=pajson.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pajson.ParseOptions(explicit_schema=schema, newlines_in_values=False),
    )


def _without_times(type_: Any) -> Any:
    """Arrow takes some texts for timestamps."""
    if pa.types.is_timestamp(type_):
        return pa.string()
    if pa.types.is_list(type_):
        return pa.list_(_without_times(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, _without_times(field.type)) for field in type_])
    return type_


def _merged(data: bytes, file: FileView) -> Iterator[dict[str, Any]]:
    """The objects of the sample with JSON texts in place of what has several types.

    Only samples come here that Arrow refuses, so that these few rows are gone through one by one.
    """
    documents = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line, strict=False)
        except (ValueError, RecursionError) as error:
            raise _no_object(file, number, line, str(error)) from error
        if not isinstance(document, dict):
            raise _no_object(file, number, line, "it is no object")
        documents.append(document)
    kinds = _kinds(documents)
    for document in documents:
        yield {name: _fitted(document.get(name), kind) for name, kind in kinds.items()}


def _no_object(file: FileView, number: int, line: bytes, why: str) -> ConnectorError:
    shown = line[:200].decode("utf-8", "replace")
    return ConnectorError(
        "json-parse-error", f"Line {number} of file {file.path} holds no JSON object ({why}): {shown}"
    )


#: What a value is: a name of a plain type, the kinds of an object's fields, or the kind of a list's elements.
_Kind = Any
_MIXED = "mixed"


def _kinds(documents: Sequence[dict[str, Any]]) -> dict[str, _Kind]:
    found: dict[str, list[Any]] = {}
    for document in documents:
        for name, value in document.items():
            found.setdefault(name, []).append(value)
    return {name: _kind(values) for name, values in found.items()}


def _kind(values: Sequence[Any]) -> _Kind:
    present = [value for value in values if value is not None]
    types = {float if type(value) is int else type(value) for value in present}
    if len(types) > 1 or any(type(value) is int and not -(2**63) <= value < 2**63 for value in present):
        return _MIXED
    if types == {dict}:
        return _kinds(present)
    if types == {list}:
        return [_kind([item for value in present for item in value])]
    return "plain"


def _fitted(value: Any, kind: _Kind) -> Any:
    if value is None:
        return None
    if kind == _MIXED:
        return value if isinstance(value, str) else json.dumps(value)
    if isinstance(kind, dict):
        return {name: _fitted(value.get(name), inner) for name, inner in kind.items()}
    if isinstance(kind, list):
        return [_fitted(item, kind[0]) for item in value]
    return value


def _flat(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _texts_of(array: Any) -> TextType:
    return type_of_texts(pc.unique(array.drop_null()))


def _leaves(table: Any) -> Iterator[Any]:
    """Arrays of plain values: columns, and what is inside of nested ones."""
    waiting = [_flat(column) for column in table.columns]
    while waiting:
        array = waiting.pop()
        if pa.types.is_list(array.type):
            waiting.append(array.flatten())
        elif pa.types.is_struct(array.type):
            waiting += array.flatten()
        else:
            yield array


def _stamps(table: Any) -> list[TextType]:
    """Types of all columns of timestamps, nested ones too."""
    types = [_texts_of(array) for array in _leaves(table) if pa.types.is_string(array.type)]
    return [found for found in types if isinstance(found.type, TimestampType | TimestampLtzType)]


def _may_lose_digits(table: Any) -> bool:
    """Whether Arrow made a DOUBLE of a number that may have been a whole one, too long for BIGINT."""
    return any(
        pc.any(pc.greater_equal(pc.abs(array), 2.0**63)).as_py() is True
        for array in _leaves(table)
        if pa.types.is_floating(array.type)
    )


def _type(array: Any, iso: bool) -> LogicalType:
    kinds, type_ = pa.types, array.type
    if kinds.is_boolean(type_):
        return BOOLEAN
    if kinds.is_integer(type_):
        return BIGINT
    if kinds.is_floating(type_):
        return DOUBLE
    if kinds.is_string(type_):
        found = _texts_of(array)
        if isinstance(found.type, TimestampType | TimestampLtzType):
            return found.type if (found.iso if iso else found.sql) else STRING
        # Numbers and truth values in quotes are meant as texts.
        return DATE if found.type == DATE else STRING
    if kinds.is_list(type_):
        return ArrayType(element=_type(array.flatten(), iso))
    if kinds.is_struct(type_) and type_.num_fields:
        inner = array.flatten()
        return RowType(fields=tuple(Field(type_[at].name, _type(inner[at], iso)) for at in range(type_.num_fields)))
    return STRING
