"""``Schema`` of Flink 1's descriptors: columns as numbered properties."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Self

from flowsql.common.public_api import public_api
from flowsql.table.descriptors.rowtime import Descriptor, Rowtime
from flowsql.table.table_schema import TableSchema
from flowsql.table.types import DataType, logical_type
from flowsql_core.errors import BindError
from flowsql_core.types.text import parse_type
from flowsql_planner.bind.show.show_create import serializable

#: What types were called in texts of Flink 1, and what they are called now.
_OLD_NAMES: Final[Mapping[str, str]] = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "LONG": "BIGINT",
    "SQL_DATE": "DATE",
    "SQL_TIME": "TIME(0)",
    "SQL_TIMESTAMP": "TIMESTAMP(3)",
}
_WORD: Final = re.compile(r"`[^`]*`|\w+")
_OLD_ARRAY: Final = re.compile(r"(PRIMITIVE_ARRAY|OBJECT_ARRAY)<(.*)>", re.IGNORECASE)


@public_api
class Schema(Descriptor):
    """Columns of a table in Flink 1's form. For tables of today see :class:`flowsql.table.Schema`.

    >>> Schema().field("id", "BIGINT").to_properties()
    {'schema.0.name': 'id', 'schema.0.data-type': 'BIGINT'}
    """

    def __init__(
        self,
        schema: TableSchema | None = None,
        fields: Mapping[str, DataType | str] | None = None,
        rowtime: Rowtime | None = None,
    ) -> None:
        """Make a schema.

        Args:
            schema: its first columns.
            fields: more columns, type by name.
            rowtime: makes the last column an event-time attribute.
        """
        super().__init__()
        self._columns: dict[str, dict[str, str]] = {}
        #: The column that the next method describes; None where it is described already.
        self._open: str | None = None
        if schema is not None:
            self.schema(schema)
        if fields is not None:
            self.fields(fields)
        if rowtime is not None:
            self.rowtime(rowtime)

    def to_properties(self) -> dict[str, str]:
        """Return the properties: ``schema.0.name``, ``schema.0.data-type`` and so on."""
        return {
            f"schema.{i}.{key}": value
            for i, properties in enumerate(self._columns.values())
            for key, value in properties.items()
        }

    def schema(self, table_schema: TableSchema) -> Self:
        """Replace all columns by those of a ``TableSchema``."""
        self._columns = {}
        for name, type_ in zip(table_schema.get_field_names(), table_schema.get_field_data_types(), strict=True):
            self.field(name, type_)
        return self

    def field(self, field_name: str, field_type: DataType | str) -> Self:
        """Add a column; its type may be a text.

        Raises:
            BindError: there is a column of this name, or the text is no type.
        """
        if field_name in self._columns:
            raise BindError("duplicate-column", f"Duplicate field name {field_name}.")
        self._columns[field_name] = {"name": field_name, "data-type": _type_text(field_type)}
        self._open = field_name
        return self

    def fields(self, fields: Mapping[str, DataType | str]) -> Self:
        """Add columns, type by name.

        Raises:
            TypeError: ``fields`` is no dict.
        """
        if not isinstance(fields, dict):
            raise TypeError("fields must be stored in a dict or OrderedDict")
        for name, type_ in fields.items():
            self.field(name, type_)
        return self

    def from_origin_field(self, origin_field_name: str) -> Self:
        """Say what the last column is called in the connector or format."""
        return self._describe({"from": origin_field_name})

    def proctime(self) -> Self:
        """Make the last column an attribute of processing time."""
        return self._describe({"proctime": "true"})

    def rowtime(self, rowtime: Rowtime) -> Self:
        """Make the last column an event-time attribute."""
        return self._describe(rowtime.to_properties())

    def _describe(self, properties: Mapping[str, str]) -> Self:
        if self._open is None:
            raise BindError(
                "no-field",
                "No field previously set. Use field() before.",
                hint="each field takes one of from_origin_field(), proctime() and rowtime()",
            )
        self._columns[self._open].update(properties)
        self._open = None
        return self


def _type_text(given: DataType | str) -> str:
    if not isinstance(given, str):
        return serializable(logical_type(given))
    try:
        parse_type(given)
    except BindError:
        new = _new_names(given)
        if new == given:
            raise
        return serializable(parse_type(new))
    return given


def _new_names(text: str) -> str:
    """A text of Flink 1 with the names of today; the same where it has none of the old ones."""
    array = _OLD_ARRAY.fullmatch(text.strip())
    if array is not None:
        item = _new_names(array[2])
        return f"ARRAY<{item} NOT NULL>" if array[1].upper() == "PRIMITIVE_ARRAY" else f"ARRAY<{item}>"
    return _WORD.sub(lambda word: _OLD_NAMES.get(word[0].upper(), word[0]), text)
