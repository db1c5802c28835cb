"""``output_type`` of functions: a type, a list of types for rows, or nothing for Python objects as they are."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql.common.typeinfo import TypeInformation, Types

OutputType = TypeInformation | Sequence[TypeInformation] | None


def result_type(output_type: OutputType) -> TypeInformation:
    """The type that a stream has where a program declared ``output_type``.

    Raises:
        TypeError: it is no type.
    """
    match output_type:
        case None:
            return Types.PICKLED_BYTE_ARRAY()
        case TypeInformation():
            return output_type
        case list() | tuple() if all(isinstance(field, TypeInformation) for field in output_type):
            return Types.ROW(list(output_type))
    raise TypeError(f"output_type must be None, a list of types or a TypeInformation, not {output_type!r}")
