"""Input formats, under the name of PyFlink's module: those of FlowSQL's formats; Java's are refused."""

from __future__ import annotations

from typing import Any

from flowsql_core.errors import NotSupportedYetError

__all__ = ["InputFormat"]


class InputFormat:
    """Reads the records of files: ``create_input`` takes it. Made by formats: ``AvroInputFormat``.

    Raises:
        NotSupportedYetError: of one that is written in Java.
    """

    def __init__(self, input_format: object = None) -> None:
        raise NotSupportedYetError("input formats of Java", hint="use from_collection, or a table")

    def source(self) -> Any:
        """The source that ``from_source`` takes."""
        raise NotImplementedError(type(self).__name__)
