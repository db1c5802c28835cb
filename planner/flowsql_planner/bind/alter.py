"""ALTER TABLE: columns, keys and watermarks added, modified, dropped and renamed; the result is a checked table.

What other parts of the table refer to may not go: each refusal names the part, as Flink does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flowsql_core.catalog import CatalogTable, ColumnKind, TableColumn
from flowsql_core.errors import BindError, NotSupportedYetError, did_you_mean
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.ddl import TableBuilder
from flowsql_planner.bind.table import parse_stored_expression

_REFUSED: dict[type[ast.Node], str] = {
    ast.AddPartitions: "ADD PARTITION",
    ast.DropPartitions: "DROP PARTITION",
    ast.DropDistribution: "DROP DISTRIBUTION",
}


def alter_table(context: BindContext, table: CatalogTable, node: ast.Alter) -> CatalogTable:
    """The table after an ALTER TABLE that changes its schema.

    Raises:
        BindError: a column is missing, exists already, or is referred to elsewhere.
        NotSupportedYetError: changes of distribution and partitions.
    """
    match node.action:
        case ast.AddElements() | ast.ModifyElements() as action if action.distribution is None:
            return _change(context, table, node, action)
        case ast.DropColumns(columns):
            return _drop_columns(table, columns)
        case ast.RenameColumn(column, name):
            return _rename(table, column, name)
        case ast.DropPrimaryKey() if table.primary_key:
            return replace(table, primary_key=(), primary_key_name=None)
        case ast.DropConstraint(name) if table.primary_key_name == name.text:
            return replace(table, primary_key=(), primary_key_name=None)
        case ast.DropPrimaryKey() | ast.DropConstraint():
            raise _failed("The base table does not define any primary key of that name.", node.action.span)
        case ast.DropWatermark() if table.watermark is not None:
            return replace(table, watermark=None)
        case ast.DropWatermark():
            raise _failed("The base table does not define any watermark strategy.", node.action.span)
    raise NotSupportedYetError(f"ALTER TABLE ... {_REFUSED.get(type(node.action), 'DISTRIBUTION')}", node.span)


def _change(
    context: BindContext, table: CatalogTable, node: ast.Alter, action: ast.AddElements | ast.ModifyElements
) -> CatalogTable:
    """ADD or MODIFY: the elements pass through the same checks as those of CREATE TABLE."""
    adds = isinstance(action, ast.AddElements)
    if isinstance(action, ast.AddElements):
        _refuse_second(table, action)
    columns = tuple(positioned.column for positioned in action.columns)
    written = ast.CreateTable(node.name, columns, action.constraints, action.watermarks, span=node.span)
    names = [column.name.last.text for column in columns]
    if not adds:
        for column in columns:
            _existing(table, column.name)
    builder = TableBuilder(context, written)
    builder.columns = [column for column in table.columns if adds or column.name not in names]
    order = [column.name for column in table.columns]
    builder.watermark = None if action.watermarks else table.watermark
    keeps_key = not action.constraints and not any(_has_key(column) for column in columns)
    builder.primary_key = table.primary_key if keeps_key else ()
    builder.primary_key_name = table.primary_key_name if keeps_key else None
    changed = builder.build_over(table)
    by_name = {column.name: column for column in changed.columns}
    for positioned, name in zip(action.columns, names, strict=True):
        order = _placed(order, name, positioned.position, table)
    return replace(changed, columns=tuple(by_name[name] for name in order))


def _has_key(column: ast.Column) -> bool:
    return isinstance(column, ast.PhysicalColumn) and column.constraint is not None


def _refuse_second(table: CatalogTable, action: ast.AddElements) -> None:
    if action.watermarks and table.watermark is not None:
        raise _failed(
            "The base table has already defined the watermark strategy "
            f"`{table.watermark.rowtime}` AS {table.watermark.expression}. You might want to drop it before adding a "
            "new one.",
            action.watermarks[0].span,
        )
    if action.constraints and table.primary_key:
        raise _failed(
            f"The base table has already defined the primary key constraint [{_quoted(table.primary_key)}]. You might "
            "want to drop it before adding a new one.",
            action.constraints[0].span,
        )


def _placed(order: list[str], name: str, position: ast.ColumnPosition | None, table: CatalogTable) -> list[str]:
    """The order of names with one put where FIRST or AFTER says; new ones go to the end, old ones stay."""
    if position is None:
        return order if name in order else [*order, name]
    rest = [other for other in order if other != name]
    if position.after is None:
        return [name, *rest]
    after = position.after.last.text
    if after not in rest:
        raise _missing(table, position.after)
    at = rest.index(after) + 1
    return [*rest[:at], name, *rest[at:]]


def _drop_columns(table: CatalogTable, columns: tuple[ast.Identifier, ...]) -> CatalogTable:
    names = [column.last.text for column in columns]
    for column in columns:
        _existing(table, column)
    kept = tuple(column for column in table.columns if column.name not in names)
    for column in columns:
        _refuse_referenced(table, column, kept)
    return replace(table, columns=kept)


def _rename(table: CatalogTable, column: ast.Identifier, name: ast.Identifier) -> CatalogTable:
    old, new = _existing(table, column), name.last.text
    if table.column(new) is not None:
        raise _failed(f"The column `{new}` already existed in table schema.", name.span)
    others = tuple(other for other in table.columns if other.name != old.name)
    for other in others:
        _refuse_computed_from(other, column)
    watermark = table.watermark
    if watermark is not None and old.name in _names_in(watermark.expression):
        raise _failed(f"The column `{old.name}` is referenced by watermark expression.", column.span)
    if old.name in table.partition_keys:
        raise _failed(f"Can not rename column `{old.name}` because it is used as the partition keys.", column.span)
    renamed = tuple(replace(c, name=new) if c.name == old.name else c for c in table.columns)
    key = tuple(new if part == old.name else part for part in table.primary_key)
    return replace(table, columns=renamed, primary_key=key)


def _refuse_referenced(table: CatalogTable, column: ast.Identifier, kept: Iterable[TableColumn]) -> None:
    name = column.last.text
    for other in kept:
        _refuse_computed_from(other, column)
    if name in table.primary_key:
        raise _failed(f"The column `{name}` is used as the primary key.", column.span)
    if name in table.partition_keys:
        raise _failed(f"The column `{name}` is used as the partition keys.", column.span)
    watermark = table.watermark
    if watermark is not None and (watermark.rowtime == name or name in _names_in(watermark.expression)):
        raise _failed(f"The column `{name}` is referenced by watermark expression.", column.span)


def _refuse_computed_from(other: TableColumn, column: ast.Identifier) -> None:
    if other.kind is ColumnKind.COMPUTED and column.last.text in _names_in(other.expression or ""):
        raise _failed(f"The column `{column.last.text}` is referenced by computed column `{other.name}`.", column.span)


def _names_in(expression: str) -> frozenset[str]:
    """First names of all column paths of a stored expression."""
    tree = parse_stored_expression(expression)
    return frozenset(node.path.texts[0] for node in tree.walk() if isinstance(node, ast.ColumnRef))


def _existing(table: CatalogTable, name: ast.Identifier) -> TableColumn:
    if len(name.parts) > 1:
        raise NotSupportedYetError("ALTER TABLE of a nested column", name.span)
    found = table.column(name.last.text)
    if found is None:
        raise _missing(table, name)
    return found


def _missing(table: CatalogTable, name: ast.Identifier) -> BindError:
    known = [column.name for column in table.columns]
    return _failed(
        f"The column `{name}` does not exist in the base table.", name.span, did_you_mean(name.last.text, known)
    )


def _failed(reason: str, span: Span, hint: str | None = None) -> BindError:
    return BindError("alter-table", f"Failed to execute ALTER TABLE statement.\n{reason}", span, hint)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
