"""What a catalog holds, under PyFlink's names: databases, tables and views, functions, partitions, statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from flowsql.table.schema import Schema
from flowsql.table.table_schema import TableSchema
from flowsql_core import catalog as core
from flowsql_core.catalog import ColumnKind
from flowsql_core.errors import BindError
from flowsql_core.types.logical import without_attribute

if TYPE_CHECKING:
    from flowsql_grammar import ast

#: Flink's words about every function.
_FUNCTION = "This is a user-defined function"


class CatalogDatabase:
    """A database: properties and a comment."""

    def __init__(self, database: core.CatalogDatabase) -> None:
        self.stored = database

    @staticmethod
    def create_instance(properties: Mapping[str, str], comment: str | None = None) -> CatalogDatabase:
        """A database to be created."""
        return CatalogDatabase(core.CatalogDatabase(comment, dict(properties)))

    def get_properties(self) -> dict[str, str]:
        """Its properties."""
        return dict(self.stored.properties)

    def get_comment(self) -> str:
        """Its comment, '' without one."""
        return self.stored.comment or ""

    def copy(self) -> CatalogDatabase:
        """Another object of the same."""
        return CatalogDatabase.create_instance(self.stored.properties, self.stored.comment)

    def get_description(self) -> str | None:
        """The comment."""
        return self.get_comment()

    def get_detailed_description(self) -> str | None:
        """The comment."""
        return self.get_comment()


class CatalogBaseTable:
    """A table or view: of a catalog (``stored``), or one to be created of a schema."""

    def __init__(
        self,
        stored: core.CatalogObject | None = None,
        *,
        schema: Schema | None = None,
        partition_keys: tuple[str, ...] = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> None:
        self.stored = stored
        self.schema = schema
        self.partition_keys = partition_keys
        self._options = dict(options or {})
        self._comment = comment

    @staticmethod
    def create_table(
        schema: TableSchema | Schema,
        partition_keys: list[str] | None = None,
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> CatalogBaseTable:
        """Describe a table to be created.

        Args:
            schema: names and types of the columns; a ``Schema`` may have a key, a watermark and computed columns too.
            partition_keys: columns of PARTITIONED BY.
            properties: the options of WITH.
            comment: the comment of the table.
        """
        keys = tuple(partition_keys or ())
        return CatalogBaseTable(schema=_declared(schema), partition_keys=keys, options=properties, comment=comment)

    @staticmethod
    def create_view(
        original_query: str,
        expanded_query: str,
        schema: TableSchema | Schema,
        properties: Mapping[str, str],
        comment: str | None = None,
    ) -> CatalogBaseTable:
        """Describe a view to be created. Its queries are stored as they are, and parsed when the view is read.

        Args:
            original_query: the query as the user wrote it.
            expanded_query: the query with whole names of its tables; this one is read.
            schema: names and types of the columns.
            properties: options, which have no effect in SQL.
            comment: the comment of the view.

        Raises:
            BindError: the schema has a computed column, or one of metadata.
        """
        columns = tuple(_stored_column(column) for column in _declared(schema).columns)
        view = core.CatalogView(original_query, expanded_query, columns, comment, tuple(properties.items()))
        return CatalogBaseTable(view)

    @property
    def is_view(self) -> bool:
        """Whether it is a view."""
        return isinstance(self.stored, core.CatalogView)

    def get_options(self) -> dict[str, str]:
        """Its options."""
        return dict(self._options if self.stored is None else self.stored.options)

    def get_unresolved_schema(self) -> Schema:
        """Columns, watermark and key, as a schema that could be declared."""
        if self.stored is None:
            assert self.schema is not None
            return self.schema
        return _schema_of(self.stored)

    def get_comment(self) -> str:
        """Its comment, '' without one."""
        return (self._comment if self.stored is None else self.stored.comment) or ""

    def copy(self) -> CatalogBaseTable:
        """Another object of the same."""
        return CatalogBaseTable(
            self.stored,
            schema=self.schema,
            partition_keys=self.partition_keys,
            options=self._options,
            comment=self._comment,
        )

    def get_description(self) -> str | None:
        """The comment."""
        return self.get_comment()

    def get_detailed_description(self) -> str | None:
        """None."""
        return None


def _declared(schema: TableSchema | Schema) -> Schema:
    """The columns of a table as they are declared."""
    if isinstance(schema, TableSchema):
        return Schema.new_builder().from_fields(schema.get_field_names(), schema.get_field_data_types()).build()
    return schema


def _stored_column(column: ast.Column) -> core.TableColumn:
    """A column of a view."""
    from flowsql_grammar.ast import PhysicalColumn
    from flowsql_planner.bind.data_types import bind_type

    name = column.name.texts[-1]
    if not isinstance(column, PhysicalColumn):
        raise BindError("view-columns", f"Column '{name}' of a view needs a name and a type, nothing else.")
    return core.TableColumn(name, bind_type(column.type))


def _schema_of(stored: core.CatalogObject) -> Schema:
    builder = Schema.new_builder()
    for column in stored.columns:
        type_ = without_attribute(column.type).text()
        match column.kind:
            case ColumnKind.COMPUTED:
                builder.column_by_expression(column.name, column.expression or "")
            case ColumnKind.METADATA:
                builder.column_by_metadata(column.name, type_, column.metadata_key, column.virtual)
            case ColumnKind.PHYSICAL:
                builder.column(column.name, type_)
    if isinstance(stored, core.CatalogTable):
        if stored.watermark is not None:
            builder.watermark(stored.watermark.rowtime, stored.watermark.expression)
        if stored.primary_key:
            name = stored.primary_key_name
            if name is None:
                builder.primary_key(*stored.primary_key)
            else:
                builder.primary_key_named(name, *stored.primary_key)
    return builder.build()


class CatalogFunction:
    """A function: the path of a Python object, or the text of one."""

    def __init__(self, function: core.CatalogFunction) -> None:
        self.stored = function

    @staticmethod
    def create_instance(class_name: str, function_language: str = "Python") -> CatalogFunction:
        """A function to be created."""
        return CatalogFunction(core.CatalogFunction(class_name, function_language.upper()))

    def get_class_name(self) -> str:
        """The path."""
        return self.stored.class_name

    def copy(self) -> CatalogFunction:
        """Another object of the same."""
        return CatalogFunction(replace(self.stored))

    def get_description(self) -> str | None:
        """Flink's words about every function."""
        return _FUNCTION

    def get_detailed_description(self) -> str | None:
        """The same."""
        return _FUNCTION

    def get_function_language(self) -> str:
        """PYTHON."""
        return self.stored.language

    def get_options(self) -> dict[str, str]:
        """Its options."""
        return dict(self.stored.options)


class CatalogPartitionSpec:
    """The values that name a partition, or some of them."""

    def __init__(self, partition_spec: Mapping[str, str]) -> None:
        self._values = {str(key): str(value) for key, value in partition_spec.items()}

    def get_partition_spec(self) -> dict[str, str]:
        """Values by key."""
        return dict(self._values)

    def __str__(self) -> str:
        return f"CatalogPartitionSpec{{{{{', '.join(f'{key}={value}' for key, value in self._values.items())}}}}}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CatalogPartitionSpec) and self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))


class CatalogPartition:
    """What is known of a partition."""

    def __init__(self, properties: Mapping[str, str], comment: str | None = None) -> None:
        self._properties = dict(properties)
        self._comment = comment

    @staticmethod
    def create_instance(properties: Mapping[str, str], comment: str | None = None) -> CatalogPartition:
        """A partition to be created."""
        return CatalogPartition(properties, comment)

    def get_properties(self) -> dict[str, str]:
        """Its properties."""
        return dict(self._properties)

    def copy(self) -> CatalogPartition:
        """Another object of the same."""
        return CatalogPartition(self._properties, self._comment)

    def get_description(self) -> str | None:
        """The comment."""
        return self.get_comment()

    def get_detailed_description(self) -> str | None:
        """The comment."""
        return self.get_comment()

    def get_comment(self) -> str:
        """Its comment, '' without one; catalogs do not keep it."""
        return self._comment or ""


class CatalogTableStatistics:
    """What is known of the rows of a table; -1 where nothing is."""

    def __init__(
        self,
        row_count: int = -1,
        field_count: int = -1,
        total_size: int = -1,
        raw_data_size: int = -1,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        self._numbers = (row_count, field_count, total_size, raw_data_size)
        self._properties = dict(properties or {})

    def get_row_count(self) -> int:
        """Rows."""
        return self._numbers[0]

    def get_field_count(self) -> int:
        """Files."""
        return self._numbers[1]

    def get_total_size(self) -> int:
        """Bytes of all files."""
        return self._numbers[2]

    def get_raw_data_size(self) -> int:
        """Bytes of the values."""
        return self._numbers[3]

    def get_properties(self) -> dict[str, Any]:
        """More that was said."""
        return dict(self._properties)

    def copy(self) -> CatalogTableStatistics:
        """Another object of the same."""
        return CatalogTableStatistics(*self._numbers, self._properties)
