"""``Schema``: the columns of a table before it is made, as ``CREATE TABLE (...)`` says them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from flowsql.common.public_api import public_api
from flowsql.common.without_java import WithoutJava
from flowsql.table.expression import Expression
from flowsql.table.syntax.build import ast, path, shown
from flowsql.table.syntax.literals import written_type
from flowsql.table.syntax.summary import summary
from flowsql.table.types import DataType, RowType, logical_type
from flowsql_core.errors import BindError
from flowsql_core.types.logical import quote_identifier

if TYPE_CHECKING:
    from flowsql.table.catalog.resolved_schema import ResolvedSchema
    from flowsql_core.catalog import CatalogTable


@public_api
class Schema(WithoutJava):
    """Columns, watermarks and a key: ``Schema.new_builder().column("a", DataTypes.INT()).build()``."""

    def __init__(
        self,
        columns: Sequence[ast.Column] = (),
        watermarks: Sequence[ast.Watermark] = (),
        key: ast.Constraint | None = None,
        texts: Mapping[int, str] | None = None,
    ) -> None:
        self.columns = tuple(columns)
        self.watermarks = tuple(watermarks)
        self.key = key
        #: Types and expressions that were given as SQL text, by the id of their trees: ``str`` shows them in brackets.
        self._texts = dict(texts or {})

    @staticmethod
    def new_builder() -> Schema.Builder:
        """A builder without columns."""
        return Schema.Builder()

    def elements(self) -> list[str]:
        """What stands between the brackets of CREATE TABLE, a piece each."""
        return self._elements(shown)

    def _elements(self, text: Callable[[ast.Node], str]) -> list[str]:
        """The pieces, types and expressions as ``text`` shows them."""
        made = [_column_text(column, text) for column in self.columns]
        made += [f"WATERMARK FOR {shown_path(mark.column)} AS {text(mark.expression)}" for mark in self.watermarks]
        if self.key is not None:
            names = ", ".join(shown_path(path(name.text)) for name in self.key.columns)
            named = f"CONSTRAINT {shown_path(path(self.key.name.text))} " if self.key.name is not None else ""
            made.append(f"{named}PRIMARY KEY ({names}) NOT ENFORCED")
        return made

    def __str__(self) -> str:
        return "(\n" + ",\n".join(f"  {element}" for element in self._elements(self._as_given)) + "\n)"

    def _as_given(self, node: ast.Node) -> str:
        text = self._texts.get(id(node))
        return summary(node) if text is None else f"[{text}]"

    def without_watermarks(self) -> Schema:
        """The same columns and key."""
        return Schema(self.columns, (), self.key, self._texts)

    def with_texts(self, table: CatalogTable) -> CatalogTable:
        """The table made of this schema, its expressions as the program wrote them where it wrote SQL."""
        computed = {own.name.texts[-1]: own.expression for own in self.columns if isinstance(own, ast.ComputedColumn)}
        marks = {".".join(mark.column.texts): mark.expression for mark in self.watermarks}
        columns = tuple(
            replace(own, expression=self._texts.get(id(computed.get(own.name)), own.expression))
            for own in table.columns
        )
        mark = table.watermark
        if mark is not None:
            mark = replace(mark, expression=self._texts.get(id(marks.get(mark.rowtime)), mark.expression))
        return replace(table, columns=columns, watermark=mark)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and (self.columns, self.watermarks, self.key) == (
            other.columns,
            other.watermarks,
            other.key,
        )

    def __hash__(self) -> int:
        return hash((self.columns, self.watermarks, self.key))

    @public_api
    class Builder:
        """Collects columns; ``build`` makes the schema."""

        def __init__(self) -> None:
            self._columns: list[ast.Column] = []
            self._watermarks: list[ast.Watermark] = []
            self._key: ast.Constraint | None = None
            self._texts: dict[int, str] = {}

        def from_schema(self, unresolved_schema: Schema) -> Self:
            """Add everything of another schema."""
            self._columns += unresolved_schema.columns
            self._watermarks += unresolved_schema.watermarks
            self._key = unresolved_schema.key or self._key
            self._texts |= unresolved_schema._texts
            return self

        def from_resolved_schema(self, resolved_schema: ResolvedSchema) -> Self:
            """Add the columns of a table."""
            for name, type_ in zip(
                resolved_schema.get_column_names(), resolved_schema.get_column_data_types(), strict=True
            ):
                self.column(name, type_)
            return self

        def from_row_data_type(self, data_type: DataType) -> Self:
            """Add the fields of a ROW."""
            if not isinstance(data_type, RowType):
                raise BindError("not-a-row", f"Data type of ROW expected, got {data_type}.")
            for field in data_type.fields:
                self.column(field.name, field.data_type)
            return self

        def from_fields(self, field_names: Sequence[str], field_data_types: Sequence[DataType]) -> Self:
            """Add columns of names and types."""
            if len(field_names) != len(field_data_types):
                raise BindError("schema-fields", "Field names and field data types must have the same length.")
            for name, type_ in zip(field_names, field_data_types, strict=True):
                self.column(name, type_)
            return self

        def column(self, column_name: str, data_type: str | DataType) -> Self:
            """A column that is stored; the type may be its SQL text."""
            self._columns.append(ast.PhysicalColumn(path(column_name), self._type(data_type)))
            return self

        def column_by_expression(self, column_name: str, expr: str | Expression) -> Self:
            """A column that is computed from others."""
            self._columns.append(ast.ComputedColumn(path(column_name), self._expression(expr)))
            return self

        def column_by_metadata(
            self,
            column_name: str,
            data_type: str | DataType,
            metadata_key: str | None = None,
            is_virtual: bool = False,
        ) -> Self:
            """A column that the connector knows beside the row."""
            self._columns.append(ast.MetadataColumn(path(column_name), self._type(data_type), metadata_key, is_virtual))
            return self

        def watermark(self, column_name: str, watermark_expr: str | Expression) -> Self:
            """The event-time attribute and how late its rows may be: ``"ts - INTERVAL '5' SECOND"``."""
            self._watermarks.append(ast.Watermark(path(column_name), self._expression(watermark_expr)))
            return self

        def primary_key(self, *column_names: str) -> Self:
            """The key, not enforced; its name is ``PK_`` and the columns."""
            return self._keyed(ast.Name(f"PK_{'_'.join(column_names)}", quoted=True), column_names)

        def primary_key_named(self, constraint_name: str, *column_names: str) -> Self:
            """The key with a name."""
            return self._keyed(ast.Name(constraint_name, quoted=True), column_names)

        def _keyed(self, name: ast.Name, columns: Sequence[str]) -> Self:
            if self._key is not None:
                raise BindError("two-keys", "Multiple primary keys are not supported.")
            names = tuple(ast.Name(column, quoted=True) for column in columns)
            self._key = ast.Constraint(ast.ConstraintKind.PRIMARY_KEY, names, name, enforced=False)
            return self

        def _type(self, given: Any) -> ast.TypeSpec:
            if not isinstance(given, str):
                return written_type(logical_type(given))
            from flowsql_grammar import parse_type

            made = parse_type(given)
            self._texts[id(made)] = given
            return made

        def _expression(self, given: str | Expression) -> ast.Expression:
            if isinstance(given, Expression):
                return given._value()
            from flowsql_grammar import parse_expression

            made = parse_expression(given)
            self._texts[id(made)] = given
            return made

        def build(self) -> Schema:
            """The schema."""
            return Schema(self._columns, self._watermarks, self._key, self._texts)


def shown_path(identifier: ast.Identifier) -> str:
    """A path with each part in back-ticks."""
    return ".".join(quote_identifier(part) for part in identifier.texts)


def _column_text(column: ast.Column, text: Callable[[ast.Node], str]) -> str:
    name = shown_path(column.name)
    match column:
        case ast.PhysicalColumn():
            return f"{name} {text(column.type)}"
        case ast.ComputedColumn():
            return f"{name} AS {text(column.expression)}"
        case ast.MetadataColumn(_, type_, key, virtual):
            origin = "" if key is None else " FROM '" + key.replace("'", "''") + "'"
            return f"{name} {text(type_)} METADATA{origin}{' VIRTUAL' if virtual else ''}"
