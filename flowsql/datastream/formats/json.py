"""Messages of JSON objects: rows by the names of their fields, by the ``json`` format of tables."""

from __future__ import annotations

from typing import NoReturn, Self

from flowsql.common.public_api import public_api
from flowsql.common.serialization import DeserializationSchema, MessageForm, SerializationSchema
from flowsql.common.typeinfo import RowTypeInfo, TypeInformation
from flowsql.datastream.bridges.columns import columns_of
from flowsql.datastream.formats.row_type import row_type
from flowsql_core.errors import NotSupportedYetError

__all__ = ["JsonRowDeserializationSchema", "JsonRowSerializationSchema"]


class JsonRowDeserializationSchema(DeserializationSchema):
    """Objects to rows. Made by :meth:`builder`."""

    def __init__(self, form: MessageForm) -> None:
        self._form = form

    def read_form(self) -> MessageForm:
        """The ``json`` format."""
        return self._form

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """Begin a schema."""
        return JsonRowDeserializationSchema.Builder()

    @public_api
    class Builder:
        """Makes a :class:`JsonRowDeserializationSchema`."""

        def __init__(self) -> None:
            self._type: RowTypeInfo | None = None
            self._options: dict[str, str] = {}

        def type_info(self, type_info: TypeInformation) -> Self:
            """The type of the rows, whose field names are those of the objects.

            Raises:
                TypeError: it is no ``Types.ROW_NAMED``.
            """
            self._type = row_type(type_info)
            return self

        def json_schema(self, json_schema: str) -> NoReturn:
            """Refused."""
            raise NotSupportedYetError("rows by a JSON schema", hint="type_info(Types.ROW_NAMED([...], [...]))")

        def fail_on_missing_field(self) -> Self:
            """An object without a field fails the job; by default the field is None."""
            self._options["json.fail-on-missing-field"] = "true"
            return self

        def ignore_parse_errors(self) -> Self:
            """What cannot be read is left out; by default it fails the job."""
            self._options["json.ignore-parse-errors"] = "true"
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """The schema.

            Raises:
                TypeError: no type was given.
            """
            if self._type is None:
                raise TypeError("type_info(...) is missing")
            return JsonRowDeserializationSchema(
                MessageForm("json", self._options, columns_of(self._type), self._type, is_row=True)
            )


class JsonRowSerializationSchema(SerializationSchema):
    """Rows to objects. Made by :meth:`builder`."""

    def __init__(self, form: MessageForm) -> None:
        self._form = form

    def written_form(self) -> MessageForm:
        """The ``json`` format."""
        return self._form

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """Begin a schema."""
        return JsonRowSerializationSchema.Builder()

    @public_api
    class Builder:
        """Makes a :class:`JsonRowSerializationSchema`."""

        def __init__(self) -> None:
            self._type: RowTypeInfo | None = None

        def with_type_info(self, type_info: TypeInformation) -> Self:
            """The type of the rows, whose field names become those of the objects.

            Raises:
                TypeError: it is no ``Types.ROW_NAMED``.
            """
            self._type = row_type(type_info)
            return self

        def build(self) -> JsonRowSerializationSchema:
            """The schema.

            Raises:
                TypeError: no type was given.
            """
            if self._type is None:
                raise TypeError("with_type_info(...) is missing")
            return JsonRowSerializationSchema(MessageForm("json", {}, columns_of(self._type), self._type, is_row=True))
