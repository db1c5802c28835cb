"""Errors about names that are not there, in the words of Flink's Table API."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence

from flowsql_core.errors import BindError

_NO_COLUMN = re.compile(r"Column '(.*)' not found in any table")
_NO_FUNCTION = re.compile(r"No match found for function signature ([^(]*)\(")


@contextlib.contextmanager
def fields(names: Sequence[str]) -> Iterator[None]:
    """Errors about a column or a function that is not there, in the words of Flink's Table API."""
    try:
        yield
    except BindError as error:
        if (found := _NO_COLUMN.fullmatch(error.message)) is not None:
            message = f"Cannot resolve field [{found[1]}], input field list:[{', '.join(names)}]."
        elif (found := _NO_FUNCTION.match(error.message)) is not None:
            message = f"Undefined function: {found[1]}"
        else:
            raise
        told = BindError(error.code, message, error.at, error.hint)
        raise (told if error.source is None else told.within(error.source)) from None
