"""The csv format of DataStream connectors: files are written, messages read and written; files are read as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

from flowsql.common.public_api import public_api
from flowsql.common.refused import refused_name
from flowsql.common.serialization import BulkWriterFactory, RowDataBulkWriterFactory
from flowsql.datastream.formats.csv_rows import CsvRowDeserializationSchema as CsvRowDeserializationSchema
from flowsql.datastream.formats.csv_rows import CsvRowSerializationSchema as CsvRowSerializationSchema
from flowsql.table.types import DataType, DataTypes, RowField, RowType
from flowsql_connectors.formats.csv import (
    ARRAY_DELIMITER,
    DISABLE_QUOTE,
    ESCAPE_CHARACTER,
    FIELD_DELIMITER,
    HEADER,
    NULL_LITERAL,
    QUOTE_CHARACTER,
)
from flowsql_core.errors import NotSupportedYetError

_NAMES: Final = frozenset({"CsvReaderFormat"})

__all__ = sorted(
    {
        *_NAMES,
        "CsvBulkWriters",
        "CsvRowDeserializationSchema",
        "CsvRowSerializationSchema",
        "CsvSchema",
        "CsvSchemaBuilder",
    }
)


def __getattr__(name: str) -> Any:
    hint = "read or write a table and cross over with to_data_stream and from_data_stream"
    return refused_name(__name__, name, _NAMES, "the csv format of DataStream connectors", hint)


class CsvSchema:
    """Columns and characters of csv files. Made by :meth:`builder`.

    ``options``: those of the ``csv`` format of tables.
    """

    def __init__(self, row_type: RowType, options: Mapping[str, str]) -> None:
        self.row_type = row_type
        self.options = options

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
            ValueError: nothing stands between the elements of an array.
            NotSupportedYetError: arrays of several separators.
        """
        separators = {one or self._separator for one in self._separators if one is not None}
        if "" in separators:
            raise ValueError("an array column needs a separator between its elements")
        if len(separators) > 1:
            raise NotSupportedYetError("csv files whose arrays have several separators")
        options = dict(self._options)
        if separators:
            options[ARRAY_DELIMITER.key] = separators.pop()
        return CsvSchema(DataTypes.ROW(self._fields), options)

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
        separator = schema.options.get(ARRAY_DELIMITER.key)
        for field in schema.row_type.fields:
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
        """Of reading: writing writes no comments."""
        return self

    def set_any_property_name(self, name: str) -> Self:
        """Of reading objects whose fields are not known: rows have none such."""
        return self

    def disable_array_element_separator(self) -> Self:
        """No separator for arrays whose column has none of its own."""
        return self.set_array_element_separator("")

    def remove_array_element_separator(self, index: int) -> Self:
        """No separator of its own for one column."""
        self._separators[index] = ""
        return self

    def set_array_element_separator(self, separator: str) -> Self:
        """What stands between the elements of arrays whose column has no separator of its own."""
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
        """What ends lines: a line feed.

        Raises:
            NotSupportedYetError: any other text.
        """
        if separator != "\n":
            raise NotSupportedYetError(f"csv files whose lines end with {separator!r}")
        return self

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
        """Of reading."""
        return self

    def set_strict_headers(self, strict: bool = True) -> Self:
        """Of reading."""
        return self

    def set_use_header(self, use: bool = True) -> Self:
        """The first line of a file holds the names of the columns."""
        return self._set(HEADER.key, "true" if use else "false")

    def size(self) -> int:
        """Number of columns."""
        return len(self._fields)

    def __len__(self) -> int:
        return self.size()

    def _set(self, key: str, value: str) -> Self:
        self._options[key] = value
        return self


def _character(char: str, what: str) -> str:
    if len(char) != 1:
        raise ValueError(f"{what} must be a single char, got {char}")
    return char


class CsvBulkWriters:
    """Writes rows into csv files."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """For ``FileSink.for_bulk_format``."""
        return RowDataBulkWriterFactory({"format": "csv", **schema.options}, schema.row_type)
