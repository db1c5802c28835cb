"""Keys and values of records: which columns stand in each, and in which format."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from flowsql_connectors.formats.format import FileFormat, FormatFactory
from flowsql_connectors.formats.registry import format_factory
from flowsql_connectors.kafka.options import (
    FIELDS_INCLUDE,
    FORMAT,
    KEY_FIELDS,
    KEY_FORMAT,
    KEY_PREFIX,
    VALUE_FORMAT,
)
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Column, Schema

_KEY: Final = "key."
_VALUE: Final = "value."


@record
class RecordFormat:
    """How records hold the rows of a table.

    ``key``, ``value``: indexes into the table's columns, in the order in which the format has them. ``key_columns``:
    the columns of the key under the names that they have there.
    """

    value_format: FileFormat
    value: tuple[int, ...]
    value_columns: Schema
    key_format: FileFormat | None = None
    key: tuple[int, ...] = ()
    key_columns: Schema = ()

    def check(self, configuration: Mapping[str, str]) -> None:
        """Called when a statement is planned.

        Raises:
            BindError: a format cannot have its columns.
        """
        self.value_format.check(self.value_columns, configuration)
        if self.key_format is not None:
            self.key_format.check(self.key_columns, configuration)


def format_options(table: TableSpec) -> OptionSet:
    """The options of the table's formats, with ``key.`` and ``value.`` before them where the table names them so."""
    made = OptionSet()
    of_value = VALUE_FORMAT if table.option(FORMAT.key) is None else FORMAT
    for option in (KEY_FORMAT, of_value):
        name = table.option(option.key)
        if name is not None:
            made = made.merged(_prefixed(format_factory(name).options(), _prefix(option)))
    return made


def _prefix(option: ConnectorOption[str | None]) -> str:
    return option.key.removesuffix("format")


def _prefixed(options: OptionSet, prefix: str) -> OptionSet:
    def renamed(some: tuple[ConnectorOption[object], ...]) -> tuple[ConnectorOption[object], ...]:
        return tuple(replace(option, key=prefix + option.key) for option in some)

    return OptionSet(renamed(options.required), renamed(options.optional)) if prefix else options


def record_format(values: OptionValues, table: TableSpec, keyed: bool) -> RecordFormat:
    """The formats of a table.

    Args:
        keyed: the primary key is the key of the records (``upsert-kafka``).

    Raises:
        BindError: options contradict each other, or name no column.
    """
    # As in Flink 'format' wins where both are written.
    value_option = FORMAT if values.has(FORMAT) or not values.has(VALUE_FORMAT) else VALUE_FORMAT
    if not values.has(value_option):
        raise BindError(
            "missing-option",
            "One or more required options are missing.\n\nMissing required options are:\n\nformat",
            hint=f"add 'format' to the WITH clause of {table.name}",
        )
    key = _key_places(values, table, keyed)
    everything = tuple(range(len(table.columns)))
    alone = values.get(FIELDS_INCLUDE) == "EXCEPT_KEY"
    value = tuple(place for place in everything if place not in key) if alone else everything
    value_columns = tuple(table.columns[place] for place in value)
    made = RecordFormat(_made(value_option, values, table, value_columns), value, value_columns)
    if not values.has(KEY_FORMAT):
        return made
    prefix = values.get(KEY_PREFIX)
    names = _apart([table.columns[place].name.removeprefix(prefix) for place in key])
    key_columns = tuple(Column(name, table.columns[place].type) for name, place in zip(names, key, strict=True))
    return replace(made, key_format=_made(KEY_FORMAT, values, table, key_columns), key=key, key_columns=key_columns)


def _apart(names: Sequence[str]) -> list[str]:
    """The names; one that is there again gets a number, as in Flink (``DataTypeUtils.projectRow``)."""
    found: list[str] = []
    numbers = itertools.count()
    for name in names:
        unique = name
        while unique in found:
            unique = f"{name}_${next(numbers)}"
        found.append(unique)
    return found


def _made(option: ConnectorOption[str | None], values: OptionValues, table: TableSpec, columns: Schema) -> FileFormat:
    name = values.get(option)
    assert name is not None
    factory: FormatFactory = format_factory(name)
    prefix = _prefix(option)
    given: Mapping[str, str] = {
        key.removeprefix(prefix): text
        for key, text in table.filled_options().items()
        if key.startswith(f"{prefix}{name}.")
    }
    return factory.create(OptionValues(given), replace(table, columns=columns, partition_keys=(), primary_key=()))


def _key_places(values: OptionValues, table: TableSpec, keyed: bool) -> tuple[int, ...]:
    names = [column.name for column in table.columns]
    prefix = values.get(KEY_PREFIX)
    fields = table.primary_key if keyed else values.get(KEY_FIELDS)
    if prefix and values.get(FIELDS_INCLUDE) == "ALL":
        raise BindError(
            "invalid-option-value",
            f"A key prefix is not allowed when option '{FIELDS_INCLUDE.key}' is set to 'ALL'. Set it to 'EXCEPT_KEY' "
            "instead to avoid field overlaps.",
        )
    if not values.has(KEY_FORMAT):
        if fields:
            raise BindError(
                "invalid-option-value",
                f"The option '{KEY_FIELDS.key}' can only be declared if a key format is defined using "
                f"'{KEY_FORMAT.key}'.",
            )
        return ()
    if not fields:
        raise BindError(
            "invalid-option-value",
            f"A key format '{KEY_FORMAT.key}' requires the declaration of one or more of key fields using "
            f"'{KEY_FIELDS.key}'.",
        )
    for name in fields:
        if name not in names:
            raise BindError(
                "column-not-found",
                f"Could not find the field '{name}' in the table schema for usage in the key format. A key field must "
                f"be a regular, physical column. The following columns can be selected in the '{KEY_FIELDS.key}' "
                f"option:\n{names}",
            )
        if not name.startswith(prefix):
            raise BindError(
                "invalid-option-value",
                f"All fields in '{KEY_FIELDS.key}' must be prefixed with '{prefix}' when option '{KEY_PREFIX.key}' is "
                f"set but field '{name}' is not prefixed.",
            )
    return tuple(names.index(name) for name in fields)
