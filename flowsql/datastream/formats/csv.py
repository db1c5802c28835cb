"""The csv format of DataStream connectors: files and messages, read and written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Self

from flowsql.common.public_api import public_api
from flowsql.common.serialization import BulkWriterFactory, RowDataBulkWriterFactory
from flowsql.datastream.connectors.file_system import FileRecords, StreamFormat
from flowsql.datastream.formats.csv_rows import CsvRowDeserializationSchema as CsvRowDeserializationSchema
from flowsql.datastream.formats.csv_rows import CsvRowSerializationSchema as CsvRowSerializationSchema
from flowsql.table.types import DataType, DataTypes, RowField, RowType
from flowsql_connectors.formats.csv import (
    ALLOW_COMMENTS,
    DISABLE_QUOTE,
    ESCAPE_CHARACTER,
    FIELD_DELIMITER,
    HEADER,
    NULL_LITERAL,
    QUOTE_CHARACTER,
)
from flowsql_connectors.formats.streams.csv_schema import (
    ARRAY_DELIMITERS,
    DROP_MORE,
    LINE_END,
    SKIP_FIRST,
    STRICT_HEADER,
)
from flowsql_connectors.formats.streams.registry import CSV_SCHEMA
from flowsql_core.types.logical import Column, Schema

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]


class CsvSchema:
    """Columns and characters of csv files. Made by :meth:`builder`.

    ``options``: of the format, as tables have them. ``separators``: by column what is between the elements of its
    array; None: the column is no array; ``''``: what is between those of all arrays without a text of their own.
    """

    def __init__(self, row_type: RowType, separators: list[str | None], options: Mapping[str, str]) -> None:
        self.row_type = row_type
        self.separators = separators
        self.options = options

    @property
    def columns(self) -> Schema:
        """The columns as tables have them."""
        return tuple(Column(field.name, field.data_type.logical) for field in self.row_type.fields)

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Begin a schema."""
        return CsvSchemaBuilder()

    def size(self) -> int:
        """Number of columns."""
        return len(self.row_type.fields)

    def __len__(self) -> int:
        return self.size()

    def __repr__(self) -> str:
        return f"CsvSchema({self.row_type}, {dict(self.options)})"


@public_api
class CsvSchemaBuilder:
    """Makes a :class:`CsvSchema`."""

    def __init__(self) -> None:
        self._fields: list[RowField] = []
        #: What stands between the elements of an array, by column; None: the column is no array, '': as ``_separator``.
        self._separators: list[str | None] = []
        self._separator = ";"
        self._options: dict[str, str] = {}

    def build(self) -> CsvSchema:
        """The schema.

        Raises:
            ValueError: two columns have one name, or nothing is between the elements of an array.
        """
        names = [field.name for field in self._fields]
        double = sorted({name for name in names if names.count(name) > 1})
        if double:
            raise ValueError(f"Field names must be unique. Found duplicates: [{', '.join(double)}]")
        separators = [None if own is None else own or self._separator for own in self._separators]
        if "" in separators:
            raise ValueError("an array column needs a separator between its elements")
        options = {"format": CSV_SCHEMA, **self._options, ARRAY_DELIMITERS.key: json.dumps(separators)}
        return CsvSchema(DataTypes.ROW(self._fields), list(self._separators), options)

    def add_array_column(self, name: str, separator: str = ";", element_type: DataType | None = None) -> Self:
        """An array, of texts unless said otherwise."""
        return self._add(name, DataTypes.ARRAY(element_type or DataTypes.STRING()), separator)

    def add_boolean_column(self, name: str) -> Self:
        """A BOOLEAN."""
        return self._add(name, DataTypes.BOOLEAN())

    def add_number_column(self, name: str, number_type: DataType | None = None) -> Self:
        """A number, BIGINT unless said otherwise."""
        return self._add(name, number_type or DataTypes.BIGINT())

    def add_string_column(self, name: str) -> Self:
        """A STRING."""
        return self._add(name, DataTypes.STRING())

    def add_columns_from(self, schema: CsvSchema) -> Self:
        """The columns of another schema."""
        for field, separator in zip(schema.row_type.fields, schema.separators, strict=True):
            self._add(field.name, field.data_type, separator)
        return self

    def _add(self, name: str, type_: DataType, separator: str | None = None) -> Self:
        self._fields.append(DataTypes.FIELD(name, type_))
        self._separators.append(separator)
        return self

    def clear_columns(self) -> Self:
        """No columns."""
        self._fields.clear()
        self._separators.clear()
        return self

    def set_allow_comments(self, allow: bool = True) -> Self:
        """Pass over lines that begin with ``#``, blank lines, and blanks before a row."""
        return self._set(ALLOW_COMMENTS.key, _truth(allow))

    def set_any_property_name(self, name: str) -> Self:
        """Take rows with more fields than there are columns, and leave the further ones out."""
        return self._set(DROP_MORE.key, "true")

    def disable_array_element_separator(self) -> Self:
        """Leave arrays without a separator of their own without any: :meth:`build` refuses them."""
        return self.set_array_element_separator("")

    def remove_array_element_separator(self, index: int) -> Self:
        """Take a column's own separator away."""
        self._separators[index] = ""
        return self

    def set_array_element_separator(self, separator: str) -> Self:
        """What is between the elements of arrays without a separator of their own; by default ``;``."""
        self._separator = separator
        return self

    def set_column_separator(self, char: str) -> Self:
        """Between columns; by default a comma."""
        return self._set(FIELD_DELIMITER.key, _character(char, "Column separator"))

    def disable_escape_char(self) -> Self:
        """No character takes the meaning from the next one (the default)."""
        self._options.pop(ESCAPE_CHARACTER.key, None)
        return self

    def set_escape_char(self, char: str) -> Self:
        """A character that takes the meaning from the next one."""
        return self._set(ESCAPE_CHARACTER.key, _character(char, "Escape char"))

    def set_line_separator(self, separator: str) -> Self:
        """What ends written lines; by default a line feed. Line feed, carriage return and both end those read."""
        return self._set(LINE_END.key, separator)

    def set_null_value(self, null_value: str) -> Self:
        """What stands for None; by default nothing."""
        return self._set(NULL_LITERAL.key, null_value)

    def disable_quote_char(self) -> Self:
        """No character stands around values."""
        self._options.pop(QUOTE_CHARACTER.key, None)
        return self._set(DISABLE_QUOTE.key, "true")

    def set_quote_char(self, char: str) -> Self:
        """Around values that hold special characters; by default a double quote."""
        self._options.pop(DISABLE_QUOTE.key, None)
        return self._set(QUOTE_CHARACTER.key, _character(char, "Quote char"))

    def set_skip_first_data_row(self, skip: bool = True) -> Self:
        """Leave the first line of a file out, behind the header if there is one."""
        return self._set(SKIP_FIRST.key, _truth(skip))

    def set_strict_headers(self, strict: bool = True) -> Self:
        """Refuse files whose header has other names than the columns."""
        return self._set(STRICT_HEADER.key, _truth(strict))

    def set_use_header(self, use: bool = True) -> Self:
        """The first line of a file holds the names of the columns."""
        return self._set(HEADER.key, _truth(use))

    def size(self) -> int:
        """Number of columns."""
        return len(self._fields)

    def __len__(self) -> int:
        return self.size()

    def _set(self, key: str, value: str) -> Self:
        self._options[key] = value
        return self


def _truth(value: bool) -> str:
    return str(bool(value)).lower()


def _character(char: str, what: str) -> str:
    if len(char) != 1:
        raise ValueError(f"{what} must be a single char, got {char}")
    return char


class CsvReaderFormat(StreamFormat):
    """Reads the rows of csv files. Made by :meth:`for_schema`.

    >>> from flowsql.datastream.connectors.file_system import FileSource
    >>> from flowsql.table import DataTypes
    >>> schema = (
    ...     CsvSchema.builder()
    ...     .add_number_column("id", DataTypes.INT())
    ...     .add_array_column("names", "|")
    ...     .set_use_header()
    ...     .build()
    ... )
    >>> source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), "people.csv").build()
    """

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        """For ``FileSource.for_record_stream_format``: rows with the names of the columns."""
        return CsvReaderFormat(records=FileRecords.of_rows(schema.options, schema.columns))


class CsvBulkWriters:
    """Writes rows into csv files."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """For ``FileSink.for_bulk_format``."""
        return RowDataBulkWriterFactory(schema.options, schema.row_type)
