"""ALTER TABLE of Iceberg tables: from what a table was and shall be to the changes that Iceberg knows."""

from __future__ import annotations

from pyiceberg.table import Table, Transaction
from pyiceberg.table.update.schema import UpdateSchema

from flowsql_connectors.lakes.iceberg.described import COMMENT
from flowsql_connectors.lakes.iceberg.options import is_property
from flowsql_connectors.lakes.iceberg.types import type_to_iceberg
from flowsql_core.catalog import CatalogTable, TableColumn
from flowsql_core.errors import BindError

_FORMAT_VERSION = "format-version"


def alter(table: Table, was: CatalogTable, shall: CatalogTable, shown: str) -> None:
    """Change a table, with one commit.

    Args:
        table: as it is.
        was: the same, as the catalog shows it.
        shall: what it is to be.
        shown: its name, for messages.

    Raises:
        BindError: ``lake-alter``, something that Iceberg cannot change.
    """
    if was.partition_keys != shall.partition_keys:
        raise _refused(shown, "its partition keys are not changed", "make a new table, and INSERT INTO it")
    transaction = table.transaction()
    with transaction.update_schema() as update:
        _columns(update, was, shall, shown)
        if was.primary_key != shall.primary_key:
            update.set_identifier_fields(*shall.primary_key)
    _properties(transaction, was, shall)
    transaction.commit_transaction()


def _columns(update: UpdateSchema, was: CatalogTable, shall: CatalogTable, shown: str) -> None:
    renamed = _renamed(was, shall)
    for old, new in renamed.items():
        update.rename_column((old,), new)
    # A statement names columns by what they were called before it.
    before = {renamed.get(column.name, column.name): column for column in was.columns}
    after = {column.name: column for column in shall.columns}
    for name in before:
        if name not in after:
            update.delete_column((name,))
    for name, column in after.items():
        old_column = before.get(name)
        if old_column is None:
            if not column.type.nullable:
                raise _refused(
                    shown, f"column '{name}' is added to rows that have no value for it, and cannot be NOT NULL"
                )
            update.add_column((name,), type_to_iceberg(column.type, name), doc=column.comment)
        else:
            _column(update, old_column, column, shown)
    _order(update, [name for name in before if name in after], list(after))


def _renamed(was: CatalogTable, shall: CatalogTable) -> dict[str, str]:
    """Columns that have another name at the same place, and are the same otherwise."""
    old, new = {column.name for column in was.columns}, {column.name for column in shall.columns}
    if len(was.columns) != len(shall.columns):
        return {}
    return {
        before.name: after.name
        for before, after in zip(was.columns, shall.columns, strict=True)
        if before.name not in new and after.name not in old and before.type == after.type
    }


def _column(update: UpdateSchema, old: TableColumn, new: TableColumn, shown: str) -> None:
    if not old.type.same(new.type):
        try:
            # A column that was renamed is still known by its old name.
            update.update_column((old.name,), field_type=type_to_iceberg(new.type, new.name))
        except Exception as error:  # the library tells types that cannot be promoted in several ways
            raise _refused(
                shown,
                f"column '{old.name}' is {old.type.as_nullable()}, and Iceberg does not read its values as "
                f"{new.type.as_nullable()}",
                "INT may become BIGINT, FLOAT DOUBLE, a DECIMAL one of more digits with the same scale",
            ) from error
    if old.type.nullable and not new.type.nullable:
        raise _refused(shown, f"column '{old.name}' may hold NULL already, and cannot become NOT NULL")
    if not old.type.nullable and new.type.nullable:
        update.make_column_optional((old.name,))
    if old.comment != new.comment:
        update.update_column((old.name,), doc=new.comment)


def _order(update: UpdateSchema, kept: list[str], wanted: list[str]) -> None:
    """Bring columns into the wanted order; new ones stand at the end."""
    order = [*kept, *(name for name in wanted if name not in kept)]
    for place, name in enumerate(wanted):
        if order[place] == name:
            continue
        order.remove(name)
        order.insert(place, name)
        if place == 0:
            update.move_first((name,))
        else:
            update.move_after((name,), (wanted[place - 1],))


def _properties(transaction: Transaction, was: CatalogTable, shall: CatalogTable) -> None:
    old = {key: value for key, value in was.options if is_property(key)}
    new = {key: value for key, value in shall.options if is_property(key)}
    for each, options in ((was, old), (shall, new)):
        if each.comment is not None:
            options[COMMENT] = each.comment
    version = new.pop(_FORMAT_VERSION, None)
    if version is not None:
        transaction.upgrade_table_version(int(version))  # type: ignore[arg-type]
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    if changed:
        transaction.set_properties(changed)
    gone = [key for key in old if key not in new]
    if gone:
        transaction.remove_properties(*gone)


def _refused(shown: str, why: str, hint: str | None = None) -> BindError:
    return BindError("lake-alter", f"Iceberg table '{shown}': {why}.", hint=hint)
