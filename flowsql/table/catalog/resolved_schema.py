"""``ResolvedSchema``: columns, watermarks and key of a table as they were found, and the objects it is made of."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from flowsql.common.without_java import WithoutJava
from flowsql.table.types.data_type import RowField, RowType, data_type, logical_type
from flowsql_core.catalog import ColumnKind
from flowsql_core.errors import BindError
from flowsql_core.types import logical as t

if TYPE_CHECKING:
    from flowsql.table.expression import Expression
    from flowsql.table.types.data_type import DataType, RowType
    from flowsql_core.catalog import CatalogTable, TableColumn


class Column(ABC):
    """A column: its name, its type, and a comment."""

    def __init__(self, name: str, type_: t.LogicalType, comment: str | None = None) -> None:
        self.name = name
        self.type = type_
        self._comment = comment

    @staticmethod
    def physical(name: str, data_type: DataType) -> PhysicalColumn:
        """A column that is stored."""
        return PhysicalColumn(name, _logical(data_type))

    @staticmethod
    def computed(name: str, resolved_expression: ResolvedExpression) -> ComputedColumn:
        """A column that is computed from others."""
        return ComputedColumn(name, resolved_expression)

    @staticmethod
    def metadata(name: str, data_type: DataType, metadata_key: str | None, is_virtual: bool) -> MetadataColumn:
        """A column that the connector knows beside the row."""
        return MetadataColumn(name, _logical(data_type), metadata_key, is_virtual)

    @abstractmethod
    def is_physical(self) -> bool:
        """Whether it is neither computed nor metadata."""

    @abstractmethod
    def is_persisted(self) -> bool:
        """Whether a sink is given it."""

    @abstractmethod
    def explain_extras(self) -> str | None:
        """What it is beside name and type."""

    @abstractmethod
    def _again(self, name: str, type_: t.LogicalType, comment: str | None) -> Self:
        """Another one of its kind."""

    def get_name(self) -> str:
        """Its name."""
        return self.name

    def get_data_type(self) -> DataType:
        """Its type."""
        return data_type(self.type)

    def get_comment(self) -> str | None:
        """Its comment."""
        return self._comment

    def with_comment(self, comment: str | None) -> Self:
        """The same with a comment."""
        return self._again(self.name, self.type, comment)

    def copy(self, new_type: DataType) -> Self:
        """The same of another type."""
        return self._again(self.name, _logical(new_type), self._comment)

    def rename(self, new_name: str) -> Self:
        """The same under another name."""
        return self._again(new_name, self.type, self._comment)

    def as_summary_string(self) -> str:
        """Name, type and what it is, as DESCRIBE would say it."""
        extras = self.explain_extras()
        return f"{t.quote_identifier(self.name)} {self.type}{'' if extras is None else f' {extras}'}"

    def __str__(self) -> str:
        return self.as_summary_string()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Column) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[object, ...]:
        return (self.name, self.type, self._comment, self.explain_extras())


class PhysicalColumn(Column):
    """A column that is stored."""

    def is_physical(self) -> bool:
        """Yes."""
        return True

    def is_persisted(self) -> bool:
        """Yes."""
        return True

    def explain_extras(self) -> str | None:
        """Nothing."""
        return None

    def _again(self, name: str, type_: t.LogicalType, comment: str | None) -> Self:
        return type(self)(name, type_, comment)


class ComputedColumn(Column):
    """A column that is computed from others."""

    def __init__(
        self,
        name: str,
        expression: ResolvedExpression,
        type_: t.LogicalType | None = None,
        comment: str | None = None,
    ) -> None:
        super().__init__(name, expression.type if type_ is None else type_, comment)
        self._expression = expression

    def is_physical(self) -> bool:
        """No."""
        return False

    def is_persisted(self) -> bool:
        """No."""
        return False

    def get_expression(self) -> ResolvedExpression:
        """What it is computed by."""
        return self._expression

    def explain_extras(self) -> str | None:
        """The expression."""
        return f"AS {self._expression.as_summary_string()}"

    def _again(self, name: str, type_: t.LogicalType, comment: str | None) -> Self:
        return type(self)(name, self._expression, type_, comment)


class MetadataColumn(Column):
    """A column that the connector knows beside the row."""

    def __init__(
        self, name: str, type_: t.LogicalType, key: str | None, virtual: bool, comment: str | None = None
    ) -> None:
        super().__init__(name, type_, comment)
        self._key = key
        self._virtual = virtual

    def is_virtual(self) -> bool:
        """Whether sinks are not given it."""
        return self._virtual

    def get_metadata_key(self) -> str | None:
        """The connector's name of it, where that is another one."""
        return self._key

    def is_physical(self) -> bool:
        """No."""
        return False

    def is_persisted(self) -> bool:
        """Unless it is virtual."""
        return not self._virtual

    def explain_extras(self) -> str | None:
        """Its key, and whether it is virtual."""
        origin = "" if self._key is None else " FROM '" + self._key.replace("'", "''") + "'"
        return f"METADATA{origin}{' VIRTUAL' if self._virtual else ''}"

    def _again(self, name: str, type_: t.LogicalType, comment: str | None) -> Self:
        return type(self)(name, type_, self._key, self._virtual, comment)


class ResolvedExpression:
    """An expression with the type of its result."""

    def __init__(self, expression: Expression | str, type_: t.LogicalType) -> None:
        self._text = str(expression)
        self.type = type_

    def get_output_data_type(self) -> DataType:
        """The type of the result."""
        return data_type(self.type)

    def as_serializable_string(self) -> str:
        """SQL that means the same."""
        return self._text

    def as_summary_string(self) -> str:
        """SQL for people."""
        return self._text

    def __str__(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResolvedExpression) and (self._text, self.type) == (other._text, other.type)

    def __hash__(self) -> int:
        return hash((self._text, self.type))


class WatermarkSpec:
    """The event-time attribute and how its watermark is made."""

    def __init__(self, rowtime_attribute: str, watermark_expression: ResolvedExpression) -> None:
        self._attribute = rowtime_attribute
        self._expression = watermark_expression

    @staticmethod
    def of(rowtime_attribute: str, watermark_expression: ResolvedExpression) -> WatermarkSpec:
        """The watermark of a column."""
        return WatermarkSpec(rowtime_attribute, watermark_expression)

    def get_rowtime_attribute(self) -> str:
        """The column."""
        return self._attribute

    def get_watermark_expression(self) -> ResolvedExpression:
        """The watermark that follows a row."""
        return self._expression

    def as_summary_string(self) -> str:
        """``WATERMARK FOR `ts`: TIMESTAMP(3) AS ...``."""
        made = self._expression
        return f"WATERMARK FOR {t.quote_identifier(self._attribute)}: {made.type} AS {made.as_summary_string()}"

    def __str__(self) -> str:
        return self.as_summary_string()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WatermarkSpec) and (self._attribute, self._expression) == (
            other._attribute,
            other._expression,
        )

    def __hash__(self) -> int:
        return hash((self._attribute, self._expression))


class Constraint(ABC):
    """What holds for all rows of a table."""

    class ConstraintType(enum.Enum):
        """Kinds of constraints."""

        PRIMARY_KEY = 0
        UNIQUE_KEY = 1

    def __init__(self, name: str) -> None:
        self._name = name

    def get_name(self) -> str:
        """Its name."""
        return self._name

    def is_enforced(self) -> bool:
        """No: whoever writes the rows sees to it."""
        return False

    @abstractmethod
    def get_type(self) -> Constraint.ConstraintType:
        """Its kind."""

    @abstractmethod
    def as_summary_string(self) -> str:
        """As CREATE TABLE says it."""

    def __str__(self) -> str:
        return self.as_summary_string()


class UniqueConstraint(Constraint):
    """A primary key."""

    def __init__(self, name: str, columns: Sequence[str]) -> None:
        super().__init__(name)
        self._columns = tuple(columns)

    @staticmethod
    def primary_key(name: str, columns: Sequence[str]) -> UniqueConstraint:
        """A primary key that is not enforced."""
        return UniqueConstraint(name, columns)

    def get_columns(self) -> list[str]:
        """The columns."""
        return list(self._columns)

    def get_type(self) -> Constraint.ConstraintType:
        """A primary key."""
        return Constraint.ConstraintType.PRIMARY_KEY

    def get_type_string(self) -> str:
        """Its kind as CREATE TABLE says it."""
        return "PRIMARY KEY"

    def as_summary_string(self) -> str:
        """``CONSTRAINT `pk` PRIMARY KEY (`a`) NOT ENFORCED``."""
        columns = ", ".join(map(t.quote_identifier, self._columns))
        return f"CONSTRAINT {t.quote_identifier(self._name)} {self.get_type_string()} ({columns}) NOT ENFORCED"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UniqueConstraint) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class ResolvedSchema(WithoutJava):
    """Columns with their types, watermarks and the key of a table, or of a result."""

    def __init__(
        self,
        columns: Sequence[Column],
        watermark_specs: Sequence[WatermarkSpec] = (),
        primary_key: UniqueConstraint | None = None,
    ) -> None:
        self.columns = tuple(columns)
        self._watermarks = tuple(watermark_specs)
        self._key = primary_key

    @staticmethod
    def of(columns: Sequence[Column]) -> ResolvedSchema:
        """The schema of columns alone."""
        return ResolvedSchema(columns)

    @staticmethod
    def physical(column_names: Sequence[str], column_data_types: Sequence[DataType]) -> ResolvedSchema:
        """The schema of stored columns."""
        if len(column_names) != len(column_data_types):
            raise BindError("schema-fields", "Mismatch between number of columns names and data types.")
        return ResolvedSchema([Column.physical(*pair) for pair in zip(column_names, column_data_types, strict=True)])

    @staticmethod
    def of_result(schema: t.Schema) -> ResolvedSchema:
        """The schema of a query's answer."""
        return ResolvedSchema([PhysicalColumn(column.name, column.type) for column in schema])

    @staticmethod
    def of_table(table: CatalogTable, schema: t.Schema) -> ResolvedSchema:
        """The schema of a table of the catalog; ``schema``: its columns as queries see them, time attributes marked."""
        seen = {column.name: column.type for column in schema}
        columns = [_column_of(column, seen.get(column.name, column.type)) for column in table.columns]
        mark, key = table.watermark, table.primary_key
        marks: tuple[WatermarkSpec, ...] = ()
        if mark is not None:
            # A table of a stream that takes over the stream's watermarks holds a stand-in.
            taken_over = dict(table.options).get("source-watermark") == "true"
            text = "SOURCE_WATERMARK()" if taken_over else mark.expression
            marks = (WatermarkSpec(mark.rowtime, ResolvedExpression(text, t.without_attribute(mark.type))),)
        named = table.primary_key_name or f"PK_{'_'.join(key)}"
        return ResolvedSchema(columns, marks, UniqueConstraint(named, key) if key else None)

    def get_column_count(self) -> int:
        """How many columns there are."""
        return len(self.columns)

    def get_columns(self) -> list[Column]:
        """The columns in order."""
        return list(self.columns)

    def get_column(self, column_index_or_name: int | str) -> Column | None:
        """A column by place from 0 or by name; None where there is none."""
        if isinstance(column_index_or_name, str):
            return next((column for column in self.columns if column.name == column_index_or_name), None)
        inside = 0 <= column_index_or_name < len(self.columns)
        return self.columns[column_index_or_name] if inside else None

    def get_column_names(self) -> list[str]:
        """Names in order."""
        return [column.name for column in self.columns]

    def get_column_data_types(self) -> list[DataType]:
        """Types in order; ``str()`` of one is its SQL text."""
        return [column.get_data_type() for column in self.columns]

    def get_watermark_specs(self) -> list[WatermarkSpec]:
        """Watermarks: none, or one."""
        return list(self._watermarks)

    def get_primary_key(self) -> UniqueConstraint | None:
        """The key."""
        return self._key

    def get_primary_key_indexes(self) -> list[int]:
        """Places of the key's columns, from 0."""
        names = self.get_column_names()
        return [] if self._key is None else [names.index(name) for name in self._key.get_columns()]

    def to_source_row_data_type(self) -> RowType:
        """All columns as one ROW: what queries see."""
        return _row_of(self.columns)

    def to_physical_row_data_type(self) -> RowType:
        """Stored columns as one ROW."""
        return _row_of([column for column in self.columns if column.is_physical()])

    def to_sink_row_data_type(self) -> RowType:
        """Columns that a sink is given as one ROW."""
        return _row_of([column for column in self.columns if column.is_persisted()])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResolvedSchema) and (self.columns, self._watermarks, self._key) == (
            other.columns,
            other._watermarks,
            other._key,
        )

    def __hash__(self) -> int:
        return hash((self.columns, self._watermarks, self._key))

    def __str__(self) -> str:
        key = () if self._key is None else (self._key,)
        inner = ",\n".join(f"  {part}" for part in (*self.columns, *self._watermarks, *key))
        return f"(\n{inner}\n)"


def _logical(given: DataType) -> t.LogicalType:
    return logical_type(given)


def _column_of(column: TableColumn, type_: t.LogicalType) -> Column:
    match column.kind:
        case ColumnKind.COMPUTED:
            expression = ResolvedExpression(column.expression or "", type_)
            return ComputedColumn(column.name, expression, type_, column.comment)
        case ColumnKind.METADATA:
            return MetadataColumn(column.name, type_, column.metadata_key, column.virtual, column.comment)
    return PhysicalColumn(column.name, type_, column.comment)


def _row_of(columns: Sequence[Column]) -> RowType:
    return RowType([RowField(column.name, column.get_data_type()) for column in columns], nullable=False)
