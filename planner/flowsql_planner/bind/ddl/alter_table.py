"""ALTER TABLE: columns, keys and watermarks added, modified, dropped and renamed; the result is a checked table.

What other parts of the table refer to may not go: each refusal names the part, as Flink does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flowsql_core.catalog import CatalogTable, ColumnKind, ObjectPath, TableColumn
from flowsql_core.errors import BindError, NotSupportedYetError, did_you_mean
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.ddl.expectations import (
    check_names,
    check_stored,
    columns_of,
    expectations_in,
    with_expectations,
)
from flowsql_planner.bind.ddl.table_builder import TableBuilder
from flowsql_planner.bind.ddl.table_declarations import (
    WrittenKey,
    key_complaint,
    make_distribution,
    missing_rowtime,
    written_key,
)
from flowsql_planner.bind.query.table import parse_stored_expression
from flowsql_planner.bind.sql_text.validated_form import as_parsed
from flowsql_planner.catalog.manager import quoted


def alter_table(context: BindContext, table: CatalogTable, node: ast.Alter) -> CatalogTable:
    """The table after an ALTER TABLE that changes its schema or options.

    Raises:
        BindError: a part is missing, exists already, or is referred to elsewhere (Flink's words).
    """
    changed = _changed(context, table, node)
    check_stored(context, changed, node)
    return changed


def _changed(context: BindContext, table: CatalogTable, node: ast.Alter) -> CatalogTable:
    match node.action:
        case ast.SetOptions(options):
            merged = {**dict(table.options), **{option.key: option.value for option in options}}
            return replace(table, options=tuple(merged.items()))
        case ast.ResetOptions(keys):
            return _reset_options(table, keys, node.span)
        case ast.AddElements(distribution=ast.Distribution() as written):
            if table.distribution is not None:
                raise _failed(
                    f"The current table has already defined the distribution '{table.distribution}'. You can modify it "
                    "or drop it before adding a new one.",
                    written.span,
                )
            return replace(table, distribution=make_distribution(written, table.columns))
        case ast.ModifyElements(distribution=ast.Distribution() as written):
            if table.distribution is None:
                raise _failed(
                    "The base table does not define any distribution. You might want to add a new one.", written.span
                )
            return replace(table, distribution=make_distribution(written, table.columns))
        case ast.AddElements() | ast.ModifyElements() as action:
            return _change(context, table, node, action)
        case ast.DropConstraint(name) if name.text != table.primary_key_name and (found := expectations_in(table)):
            rest = [each for each in found if each.name.text != name.text]
            if len(rest) == len(found):
                names = [known for known in (table.primary_key_name, *(each.name.text for each in found)) if known]
                raise _failed(
                    f"The current table does not define a constraint named '{name.text}'. Available constraint names: "
                    f"{names}.",
                    name.span,
                    did_you_mean(name.text, names),
                )
            return with_expectations(table, rest)
        case ast.DropColumns(columns):
            return _drop_columns(table, columns)
        case ast.RenameColumn(column, name):
            return _rename(table, column, name)
        case _:
            return _drop_part(context.qualify(node.name), table, node)


def _reset_options(table: CatalogTable, keys: tuple[str, ...], span: Span) -> CatalogTable:
    if not keys:
        raise BindError("reset-empty", "ALTER TABLE RESET does not support empty key", span)
    if "connector" in keys:
        raise BindError("reset-connector", "ALTER TABLE RESET does not support changing 'connector'", span)
    return replace(table, options=tuple(item for item in table.options if item[0] not in keys))


def _drop_part(path: ObjectPath, table: CatalogTable, node: ast.Alter) -> CatalogTable:
    """DROP of the key, the watermark, the distribution."""
    action = node.action
    match action:
        case ast.DropPrimaryKey() | ast.DropConstraint() if not table.primary_key:
            raise _failed("The current table does not define any primary key.", action.span)
        case ast.DropConstraint(name) if table.primary_key_name != name.text:
            raise _failed(
                f"The current table does not define a primary key constraint named '{name.text}'. Available constraint "
                f"name: ['{table.primary_key_name}'].",
                name.span,
            )
        case ast.DropPrimaryKey() | ast.DropConstraint():
            return replace(table, primary_key=(), primary_key_name=None)
        case ast.DropWatermark():
            if table.watermark is None:
                raise _failed("The current table does not define any watermark strategy.", action.span)
            return replace(table, watermark=None)
        case ast.DropDistribution():
            if table.distribution is None:
                raise BindError(
                    "alter-table", f"Table {quoted(path)} does not have a distribution to drop.", action.span
                )
            return replace(table, distribution=None)
    raise NotSupportedYetError(f"ALTER TABLE ... {type(action).__name__}", node.span)


def _change(
    context: BindContext, table: CatalogTable, node: ast.Alter, action: ast.AddElements | ast.ModifyElements
) -> CatalogTable:
    """ADD or MODIFY: the elements pass through the same checks as those of CREATE TABLE."""
    adds = isinstance(action, ast.AddElements)
    written_expectations = [part for part in action.constraints if isinstance(part, ast.Expectation)]
    key = written_key(action.constraints, (positioned.column for positioned in action.columns))
    if isinstance(action, ast.AddElements):
        _refuse_second(table, action, key)
    else:
        _refuse_absent(table, action, key)
    columns = tuple(positioned.column for positioned in action.columns)
    written = ast.CreateTable(node.name, columns, action.constraints, action.watermarks, span=node.span)
    names = [column.name.last.text for column in columns]
    for i, column in enumerate(columns):
        _refuse_nested(column.name)
        if names[i] in names[:i]:
            raise _failed(f"Encounter duplicate column `{names[i]}`.", column.name.span)
        if not adds and table.column(names[i]) is None:
            hint = did_you_mean(names[i], [known.name for known in table.columns])
            raise _failed(f"Column `{names[i]}` does not exist in the table.", column.name.span, hint)
        if adds and table.column(names[i]) is not None:
            raise _failed(f"Column `{names[i]}` already exists in the table.", column.name.span)
    for mark in action.watermarks:
        known = [*(column.name for column in table.columns), *names]
        if mark.column.last.text not in known:
            raise _failed(
                missing_rowtime(str(mark.column), known), mark.column.span, did_you_mean(mark.column.last.text, known)
            )
    builder = TableBuilder(context, written, form=as_parsed)
    builder.columns = [column for column in table.columns if adds or column.name not in names]
    order = [column.name for column in table.columns]
    builder.watermark = None if action.watermarks else table.watermark
    builder.primary_key = table.primary_key if key is None else ()
    builder.primary_key_name = table.primary_key_name if key is None else None
    changed = builder.build_over(table)
    by_name = {column.name: _with_old_comment(column, table) for column in changed.columns}
    for positioned, name in zip(action.columns, names, strict=True):
        order = _placed(order, name, positioned.position, table)
    if written_expectations:
        changed = _with_written(changed, written_expectations, adds)
    complaint = key_complaint(changed.primary_key_name, changed.primary_key, changed.columns)
    if complaint is not None:
        raise _failed(complaint, node.span if key is None else key.constraint.span, _key_hint(key, by_name))
    return replace(changed, columns=tuple(by_name[name] for name in order))


def _with_written(table: CatalogTable, written: list[ast.Expectation], adds: bool) -> CatalogTable:
    """The table with expectations that are added, or that take the place of those of their names."""
    found = list(expectations_in(table))
    if adds:
        check_names((*found, *written), table.primary_key_name)
        return with_expectations(table, [*found, *written])
    names = [each.name.text for each in found]
    for each in written:
        if each.name.text not in names:
            hint = did_you_mean(each.name.text, names)
            raise _failed(f"The table does not define an expectation named '{each.name}'.", each.name.span, hint)
        found[names.index(each.name.text)] = each
    return with_expectations(table, found)


def _with_old_comment(column: TableColumn, table: CatalogTable) -> TableColumn:
    """A column that is modified without a comment keeps the one that it had."""
    old = table.column(column.name)
    return column if old is None or column.comment is not None else replace(column, comment=old.comment)


def _key_hint(key: WrittenKey | None, columns: Iterable[str]) -> str | None:
    known = list(columns)
    missing = [] if key is None else [name for name in key.names if name not in known]
    return did_you_mean(missing[0], known) if missing else None


def _refuse_second(table: CatalogTable, action: ast.AddElements, key: WrittenKey | None) -> None:
    if action.watermarks and table.watermark is not None:
        raise _failed(
            "The current table has already defined the watermark strategy "
            f"`{table.watermark.rowtime}` AS {table.watermark.expression}. You might want to drop it before adding a "
            "new one.",
            action.watermarks[0].span,
        )
    if key is not None and table.primary_key:
        raise _failed(
            f"The current table has already defined the primary key constraint [{_quoted(table.primary_key)}]. You "
            "might want to drop it before adding a new one.",
            key.constraint.span,
        )


def _refuse_absent(table: CatalogTable, action: ast.ModifyElements, key: WrittenKey | None) -> None:
    if action.watermarks and table.watermark is None:
        raise _failed(
            "The current table does not define any watermark. You might want to add a new one.",
            action.watermarks[0].span,
        )
    if key is not None and not table.primary_key:
        raise _failed(
            "The current table does not define any primary key constraint. You might want to add a new one.",
            key.constraint.span,
        )


def _placed(order: list[str], name: str, position: ast.ColumnPosition | None, table: CatalogTable) -> list[str]:
    """The order of names with one put where FIRST or AFTER says; new ones go to the end, old ones stay."""
    if position is None:
        return order if name in order else [*order, name]
    rest = [other for other in order if other != name]
    if position.after is None:
        return [name, *rest]
    _refuse_nested(position.after)
    after = position.after.last.text
    if after == name and name in order:
        return [name, *rest]  # As in Flink, which looks for the place when the column is out already.
    if after not in rest:
        raise _failed(
            f"Referenced column `{after}` by 'AFTER' does not exist in the table.",
            position.after.span,
            did_you_mean(after, rest),
        )
    at = rest.index(after) + 1
    return [*rest[:at], name, *rest[at:]]


def _drop_columns(table: CatalogTable, columns: tuple[ast.Identifier, ...]) -> CatalogTable:
    names = [column.last.text for column in columns]
    for i, column in enumerate(columns):
        _existing(table, column)
        if names[i] in names[:i]:
            raise _failed(f"Duplicate column `{names[i]}`.", column.span)
    kept = tuple(column for column in table.columns if column.name not in names)
    for column in columns:
        _refuse_referenced(table, column, kept)
    return replace(table, columns=kept)


def _rename(table: CatalogTable, column: ast.Identifier, name: ast.Identifier) -> CatalogTable:
    old, new = _existing(table, column), name.last.text
    _refuse_nested(name)
    if table.distribution is not None and old.name in table.distribution.columns:
        raise _failed(f"The column `{old.name}` is used as a distribution key.", column.span)
    others = tuple(other for other in table.columns if other.name != old.name)
    for other in others:
        _refuse_computed_from(other, column)
    _refuse_expected(table, column)
    watermark = table.watermark
    if watermark is not None and old.name in _names_in(watermark.expression):
        raise _failed(f"The column `{old.name}` is referenced by watermark expression.", column.span)
    if old.name in table.partition_keys:
        raise _failed(f"The column `{old.name}` is used as the partition keys.", column.span)
    if table.column(new) is not None:
        raise _failed(f"The column `{new}` already existed in table schema.", name.span)
    renamed = tuple(replace(c, name=new) if c.name == old.name else c for c in table.columns)
    key = tuple(new if part == old.name else part for part in table.primary_key)
    return replace(table, columns=renamed, primary_key=key)


def _refuse_referenced(table: CatalogTable, column: ast.Identifier, kept: Iterable[TableColumn]) -> None:
    name = column.last.text
    for other in kept:
        _refuse_computed_from(other, column)
    if table.distribution is not None and name in table.distribution.columns:
        raise _failed(f"The column `{name}` is used as a distribution key.", column.span)
    if name in table.primary_key:
        raise _failed(f"The column `{name}` is used as the primary key.", column.span)
    if name in table.partition_keys:
        raise _failed(f"The column `{name}` is used as the partition keys.", column.span)
    _refuse_expected(table, column)
    watermark = table.watermark
    if watermark is not None and (watermark.rowtime == name or name in _names_in(watermark.expression)):
        raise _failed(f"The column `{name}` is referenced by watermark expression.", column.span)


def _refuse_computed_from(other: TableColumn, column: ast.Identifier) -> None:
    if other.kind is ColumnKind.COMPUTED and column.last.text in _names_in(other.expression or ""):
        raise _failed(f"The column `{column.last.text}` is referenced by computed column `{other.name}`.", column.span)


def _refuse_expected(table: CatalogTable, column: ast.Identifier) -> None:
    for each in expectations_in(table):
        if column.last.text in columns_of(each):
            raise _failed(
                f"The column `{column.last.text}` is referenced by expectation `{each.name}`.",
                column.span,
                f"ALTER TABLE ... DROP CONSTRAINT {each.name}",
            )


def _names_in(expression: str) -> frozenset[str]:
    """First names of all column paths of a stored expression."""
    tree = parse_stored_expression(expression)
    return frozenset(node.path.texts[0] for node in tree.walk() if isinstance(node, ast.ColumnRef))


def _existing(table: CatalogTable, name: ast.Identifier) -> TableColumn:
    _refuse_nested(name)
    found = table.column(name.last.text)
    if found is None:
        raise _missing(table, name)
    return found


def _refuse_nested(name: ast.Identifier) -> None:
    if len(name.parts) > 1:
        path = ".".join(f"`{part}`" for part in name.texts)
        raise _failed(f"Altering the nested row type {path} is not supported yet.", name.span)


def _missing(table: CatalogTable, name: ast.Identifier) -> BindError:
    known = [column.name for column in table.columns]
    return _failed(
        f"The column `{name}` does not exist in the base table.", name.span, did_you_mean(name.last.text, known)
    )


def _failed(reason: str, span: Span, hint: str | None = None) -> BindError:
    return BindError("alter-table", f"Failed to execute ALTER TABLE statement.\n{reason}", span, hint)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
