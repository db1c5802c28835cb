"""Input formats, under the name of PyFlink's module: refused, they are Java's."""

from __future__ import annotations

from flowsql.common.refused import Refused

__all__ = ["InputFormat"]


class InputFormat(metaclass=Refused, construct="input formats of Java", hint="use from_collection, or a table"):
    """Reads records that are written in Java."""
