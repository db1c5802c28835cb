"""Answers for programs, a line a row: JSON lines and CSV."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flowsql.cli.render.base import LinesRenderer
from flowsql.table.table_result import TableResult
from flowsql_core.row import SHORT_STRINGS

if TYPE_CHECKING:
    from flowsql_core.batch import ChangelogBatch
    from flowsql_core.types.logical import Schema


class JsonLinesRenderer(LinesRenderer):
    """``{"columns": ...}``, then ``{"op": ..., "row": [...]}`` for each change, ``{"error": ...}`` at a failure."""

    def failure(self, text: str) -> None:
        """The error as the script's last line."""
        self._out.write(json.dumps({"error": text}, ensure_ascii=False) + "\n")
        self._out.flush()

    def head(self, result: TableResult) -> str:
        """Names and types of the columns."""
        columns = [[column.name, str(column.type)] for column in result.schema]
        return json.dumps({"columns": columns}, ensure_ascii=False) + "\n"

    def rows(self, result: TableResult, batch: ChangelogBatch) -> str:
        """Kind of change and values of each row."""
        from flowsql_compute.eval.text.render import json_rows

        return json_rows(batch, result.schema)


class CsvRenderer(LinesRenderer):
    """RFC 4180 with a header line; NULL is an empty field, an empty text is quoted; streaming answers begin with op."""

    def head(self, result: TableResult) -> str:
        """The names."""
        names = [_quoted_name(column.name) for column in result.schema]
        if result.streaming:
            names.insert(0, "op")
        return ",".join(names) + "\n"

    def rows(self, result: TableResult, batch: ChangelogBatch) -> str:
        """The rows."""
        return "".join(f"{line}\n" for line in _csv_lines(result.schema, batch, result.streaming))


def _quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if any(c in name for c in ',"\r\n') or not name else name


def _csv_lines(schema: Schema, batch: ChangelogBatch, with_op: bool) -> Iterator[str]:
    import pyarrow as pa

    from flowsql_compute.eval.text.render import Notation, render_column
    from flowsql_core.arrow import compute as pc

    if not batch.num_rows:
        return
    texts: list[Any] = []
    if with_op:
        ops = pa.array(SHORT_STRINGS)
        kinds = pa.array(batch.kinds if batch.kinds is not None else [0] * batch.num_rows, pa.uint8())
        texts.append(pc.take(ops, kinds))
    for column, data in zip(schema, batch.columns, strict=True):
        cells = render_column(data, column.type, Notation.TABLEAU)
        special = pc.match_substring_regex(cells, r'[",\r\n]|^$')
        quoted = pc.binary_join_element_wise('"', pc.replace_substring(cells, '"', '""'), '"', "")
        cells = pc.if_else(special, quoted, cells)
        if getattr(data, "null_count", 0):
            cells = pc.if_else(pc.is_valid(data), cells, "")
        texts.append(cells)
    yield from pc.binary_join_element_wise(*texts, ",").to_pylist()
