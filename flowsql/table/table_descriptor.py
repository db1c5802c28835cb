"""``TableDescriptor`` and ``FormatDescriptor``: ``CREATE TABLE ... WITH (...)`` as objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from flowsql.common.config_options import ConfigOption
from flowsql.common.public_api import public_api
from flowsql.common.without_java import WithoutJava
from flowsql.table.schema import Schema
from flowsql.table.syntax.build import ast
from flowsql.table.syntax.object_paths import identifier
from flowsql_core.errors import BindError
from flowsql_core.secrets.shown import shown_value

if TYPE_CHECKING:
    from flowsql.table.table import Table


@public_api
class TableDescriptor(WithoutJava):
    """A table before it is made: ``TableDescriptor.for_connector("datagen").schema(...).option(...).build()``."""

    def __init__(
        self,
        options: Mapping[str, str],
        schema: Schema | None = None,
        partition_keys: Sequence[str] = (),
        comment: str | None = None,
    ) -> None:
        self._options = dict(options)
        self._schema = schema
        self._partition_keys = list(partition_keys)
        self._comment = comment

    @staticmethod
    def for_connector(connector: str) -> TableDescriptor.Builder:
        """A builder of a table of a connector."""
        return TableDescriptor.Builder({"connector": connector})

    def get_schema(self) -> Schema | None:
        """The columns; None where a sink takes those of its rows."""
        return self._schema

    def get_options(self) -> dict[str, str]:
        """The WITH clause."""
        return dict(self._options)

    def get_partition_keys(self) -> list[str]:
        """Columns of PARTITIONED BY."""
        return list(self._partition_keys)

    def get_comment(self) -> str | None:
        """The comment."""
        return self._comment

    def with_columns_of(self, table: Table) -> TableDescriptor:
        """The same with the columns of a table, if it has none of its own."""
        if self._schema is not None:
            return self
        schema = Schema.new_builder().from_resolved_schema(table.get_resolved_schema()).build()
        return TableDescriptor(self._options, schema, self._partition_keys, self._comment)

    def statement(self, path: str, temporary: bool, if_not_exists: bool) -> ast.CreateTable:
        """The CREATE TABLE of this table under a path.

        Raises:
            BindError: there are no columns.
        """
        if self._schema is None:
            raise BindError("no-schema", f"The table '{path}' has no columns.", hint="give the descriptor a schema")
        return ast.CreateTable(
            identifier(path),
            self._schema.columns,
            () if self._schema.key is None else (self._schema.key,),
            self._schema.watermarks,
            comment=self._comment,
            partitioned_by=tuple(ast.Name(key, quoted=True) for key in self._partition_keys),
            options=tuple(ast.Option(key, value) for key, value in self._options.items()),
            temporary=temporary,
            if_not_exists=if_not_exists,
        )

    def __str__(self) -> str:
        parts = [] if self._schema is None else [str(self._schema)]
        if self._comment is not None:
            parts.append(f"COMMENT '{self._comment}'")
        if self._partition_keys:
            parts.append(f"PARTITIONED BY ({', '.join(f'`{key}`' for key in self._partition_keys)})")
        options = ",\n".join(f"  '{key}' = '{shown_value(key, value)}'" for key, value in self._options.items())
        return "\n".join([*parts, f"WITH (\n{options}\n)"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableDescriptor) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    class Builder:
        """Collects parts of a table; ``build`` makes the descriptor."""

        def __init__(self, options: Mapping[str, str]) -> None:
            self._options = dict(options)
            self._schema: Schema | None = None
            self._partition_keys: list[str] = []
            self._comment: str | None = None

        def schema(self, schema: Schema) -> Self:
            """The columns."""
            self._schema = schema
            return self

        def option(self, key: Any, value: Any) -> Self:
            """An option of the WITH clause."""
            self._options[_key(key)] = _text(value)
            return self

        def format(self, format: str | FormatDescriptor, format_option: Any = None) -> Self:
            """The format by its name, or with options; ``format_option`` says of what (``key.format``)."""
            prefix = "format" if format_option is None else _key(format_option)
            if isinstance(format, str):
                self._options[prefix] = format
                return self
            self._options[prefix] = format.get_format()
            owner = prefix.removesuffix("format")
            for key, value in format.get_options().items():
                self._options[f"{owner}{format.get_format()}.{key}"] = value
            return self

        def partitioned_by(self, *partition_keys: str) -> Self:
            """Columns that rows are stored by."""
            self._partition_keys += partition_keys
            return self

        def comment(self, comment: str) -> Self:
            """The comment."""
            self._comment = comment
            return self

        def build(self) -> TableDescriptor:
            """The descriptor."""
            return TableDescriptor(self._options, self._schema, self._partition_keys, self._comment)


class FormatDescriptor:
    """A format with its options: ``FormatDescriptor.for_format("json").option(...).build()``."""

    def __init__(self, format: str, options: Mapping[str, str]) -> None:
        self._format = format
        self._options = dict(options)

    @staticmethod
    def for_format(format: str) -> FormatDescriptor.Builder:
        """A builder of a format."""
        return FormatDescriptor.Builder(format)

    def get_format(self) -> str:
        """Its name."""
        return self._format

    def get_options(self) -> dict[str, str]:
        """Its options, without the format's name in front."""
        return dict(self._options)

    def __str__(self) -> str:
        options = ", ".join(f"{key}={shown_value(key, value)}" for key, value in self._options.items())
        return f"{self._format}[{{{options}}}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FormatDescriptor) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    class Builder:
        """Collects options; ``build`` makes the descriptor."""

        def __init__(self, format: str) -> None:
            self._format = format
            self._options: dict[str, str] = {}

        def option(self, key: Any, value: Any) -> Self:
            """An option, without the format's name in front."""
            self._options[_key(key)] = _text(value)
            return self

        def build(self) -> FormatDescriptor:
            """The descriptor."""
            return FormatDescriptor(self._format, self._options)


def _key(key: Any) -> str:
    """The key, given as a text or as a ``ConfigOption``.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(key, ConfigOption):
        return key.key
    if not isinstance(key, str):
        raise TypeError(f"the key of an option is a text or a ConfigOption, got {key!r}")
    return key


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
