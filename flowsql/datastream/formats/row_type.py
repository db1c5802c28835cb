"""The types of rows that formats are told, and their options."""

from __future__ import annotations

from flowsql.common.configuration import Configuration
from flowsql.common.typeinfo import ExternalTypeInfo, RowTypeInfo, TypeInformation
from flowsql.table.types import RowType
from flowsql_connectors.formats.format import FormatFactory
from flowsql_core.types.logical import Column, Schema


def row_type(given: TypeInformation) -> RowTypeInfo:
    """The type, if it is one of rows.

    Raises:
        TypeError: it is not.
    """
    inner = given.type_info if isinstance(given, ExternalTypeInfo) else given
    if not isinstance(inner, RowTypeInfo):
        raise TypeError(f"{given!r} is no type of rows, such as Types.ROW_NAMED(['id'], [Types.INT()])")
    return inner


def columns_of_type(given: RowType) -> Schema:
    """The fields of a ``DataTypes.ROW`` as columns.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(given, RowType):
        raise TypeError("row_type must be an instance of RowType")
    return tuple(Column(field.name, field.data_type.logical) for field in given.fields)


def options_of(configuration: Configuration | None, factory: FormatFactory, name: str) -> dict[str, str]:
    """The options of a format.

    Raises:
        ValueError: there is one that the format does not have.
    """
    options = {} if configuration is None else configuration.to_dict()
    known = {option.key for option in factory.options().optional}
    for key in options.keys() - known:
        raise ValueError(f"'{key}' is no option of {name} files; there are {', '.join(sorted(known))}")
    return options
