"""Where errors are, that come from those who see options and not the text."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from flowsql_core.errors import FlowSqlError
from flowsql_core.span import Span


@contextlib.contextmanager
def errors_at(span: Span | None) -> Iterator[None]:
    """Errors of connectors, catalogs and functions get the place where the text names what they are about."""
    try:
        yield
    except FlowSqlError as error:
        error.at = error.at or span
        raise
