"""Texts as lines: Flink's SimpleStringEncoder, the row format of DataStream file sinks."""

from __future__ import annotations

import codecs
from typing import Any

import pyarrow as pa

from flowsql_connectors.formats.format import TextEncoder
from flowsql_core.arrow import compute as pc


class LineEncoder(TextEncoder):
    """One column of texts, each in ``charset`` and with a line feed, which is one byte in every character set."""

    def __init__(self, charset: str) -> None:
        found = codecs.lookup(charset).name
        # Java writes a text in UTF-16 with the greater byte first, and says so in front of it.
        self._mark = codecs.BOM_UTF16_BE if found == "utf-16" else b""
        self._charset = "utf-16-be" if self._mark else found

    def prepare(self, columns: tuple[Any, ...], num_rows: int) -> Any:
        """The lines of a batch; what a character set does not have becomes ``?``, as in Java."""
        (texts,) = columns
        if self._charset == "utf-8":
            return pc.binary_join_element_wise(texts, "\n", "")
        # Character sets of the past: Arrow knows none of them.
        charset, mark = self._charset, self._mark
        lines = [mark + text.encode(charset, "replace") + b"\n" for text in texts.to_pylist()]
        return pa.array(lines, pa.binary())
