"""The type of rows that a format is told."""

from __future__ import annotations

from flowsql.common.typeinfo import ExternalTypeInfo, RowTypeInfo, TypeInformation


def row_type(given: TypeInformation) -> RowTypeInfo:
    """The type, if it is one of rows.

    Raises:
        TypeError: it is not.
    """
    inner = given.type_info if isinstance(given, ExternalTypeInfo) else given
    if not isinstance(inner, RowTypeInfo):
        raise TypeError(f"{given!r} is no type of rows, such as Types.ROW_NAMED(['id'], [Types.INT()])")
    return inner
