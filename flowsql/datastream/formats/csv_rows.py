"""Messages of one csv row: rows by their places, read and written as the ``csv`` format of tables does."""

from __future__ import annotations

from typing import Self

from flowsql.common.public_api import public_api
from flowsql.common.serialization import DeserializationSchema, MessageForm, SerializationSchema
from flowsql.common.typeinfo import TypeInformation
from flowsql.datastream.bridges.columns import columns_of
from flowsql.datastream.formats.row_type import row_type
from flowsql_connectors.formats.csv import (
    ALLOW_COMMENTS,
    ARRAY_DELIMITER,
    DISABLE_QUOTE,
    ESCAPE_CHARACTER,
    FIELD_DELIMITER,
    IGNORE_PARSE_ERRORS,
    NULL_LITERAL,
    QUOTE_CHARACTER,
)
from flowsql_core.errors import NotSupportedYetError


class _Builder:
    """What both directions have in common."""

    def __init__(self, type_info: TypeInformation) -> None:
        self._type = row_type(type_info)
        self._options: dict[str, str] = {}

    def set_field_delimiter(self, delimiter: str) -> Self:
        """Between fields; by default a comma."""
        return self._set(FIELD_DELIMITER.key, delimiter)

    def set_array_element_delimiter(self, delimiter: str) -> Self:
        """Between the elements of an array; by default a semicolon."""
        return self._set(ARRAY_DELIMITER.key, delimiter)

    def set_quote_character(self, c: str) -> Self:
        """Around fields; by default a double quote."""
        return self._set(QUOTE_CHARACTER.key, c)

    def set_escape_character(self, c: str) -> Self:
        """Takes the meaning from the next character; by default none does."""
        return self._set(ESCAPE_CHARACTER.key, c)

    def set_null_literal(self, null_literal: str) -> Self:
        """What stands for None."""
        return self._set(NULL_LITERAL.key, null_literal)

    def _set(self, key: str, text: str) -> Self:
        self._options[key] = text
        return self

    def _form(self) -> MessageForm:
        return MessageForm("csv", dict(self._options), columns_of(self._type), self._type, is_row=True)


class CsvRowDeserializationSchema(DeserializationSchema):
    """Csv rows to rows. Made by its ``Builder``."""

    def __init__(self, form: MessageForm) -> None:
        self._form = form

    def read_form(self) -> MessageForm:
        """The ``csv`` format."""
        return self._form

    @public_api
    class Builder(_Builder):
        """Makes a :class:`CsvRowDeserializationSchema`."""

        def set_allow_comments(self, allow_comments: bool) -> Self:
            """Whether messages that begin with ``#`` are no rows."""
            return self._set(ALLOW_COMMENTS.key, str(bool(allow_comments)).lower())

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> Self:
            """Whether what cannot be read is left out; by default it fails the job."""
            return self._set(IGNORE_PARSE_ERRORS.key, str(bool(ignore_parse_errors)).lower())

        def build(self) -> CsvRowDeserializationSchema:
            """The schema."""
            return CsvRowDeserializationSchema(self._form())


class CsvRowSerializationSchema(SerializationSchema):
    """Rows to csv rows. Made by its ``Builder``."""

    def __init__(self, form: MessageForm) -> None:
        self._form = form

    def written_form(self) -> MessageForm:
        """The ``csv`` format."""
        return self._form

    @public_api
    class Builder(_Builder):
        """Makes a :class:`CsvRowSerializationSchema`."""

        def set_line_delimiter(self, delimiter: str) -> Self:
            """What ends a message: nothing.

            Raises:
                NotSupportedYetError: any other text.
            """
            if delimiter:
                raise NotSupportedYetError(
                    f"csv messages that end with {delimiter!r}", hint="set_line_delimiter('') or leave it out"
                )
            return self

        def disable_quote_character(self) -> Self:
            """No character stands around fields."""
            self._options.pop(QUOTE_CHARACTER.key, None)
            return self._set(DISABLE_QUOTE.key, "true")

        def build(self) -> CsvRowSerializationSchema:
            """The schema."""
            return CsvRowSerializationSchema(self._form())
