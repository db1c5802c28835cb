"""How answers look on standard output: tableau for people, JSON lines and CSV for programs."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from flowsql.table.table_result import AnswerKind, TableResult, limited
from flowsql_core.record import record
from flowsql_core.row import SHORT_STRINGS

if TYPE_CHECKING:
    from flowsql_core.batch import ChangelogBatch
    from flowsql_core.types.logical import Schema


#: The prompts of the shell, as Flink's client shows them in front of a file's statements.
PROMPT = "Flow SQL> "
CONTINUATION = "> "


@record
class Limits:
    """When a query's rows end early: after ``max_rows``, or at ``deadline`` (``time.monotonic()``); None is never."""

    max_rows: int | None = None
    deadline: float | None = None


class Renderer(ABC):
    """Writes the answers of a script to ``out``, one after the other."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    @abstractmethod
    def answer(self, result: TableResult, limits: Limits, started: float) -> None:
        """Write one statement's answer while its job runs; ``started`` is when the statement was given."""

    def failure(self, text: str) -> None:
        """A statement failed; standard error has it already."""

    def note(self, text: str) -> None:
        """A text for people; formats for programs leave it out."""

    def echo(self, statement: str) -> None:
        """A statement of a file, before it runs; formats for programs leave it out."""


class TableauRenderer(Renderer):
    """What Flink's SQL client prints in tableau mode. ``time_cost`` adds the seconds behind the count."""

    def __init__(self, out: TextIO, time_cost: bool) -> None:
        super().__init__(out)
        self._time_cost = time_cost

    def answer(self, result: TableResult, limits: Limits, started: float) -> None:
        """The table and its closing line; ``[INFO]`` lines for statements without rows."""
        match result.kind:
            case AnswerKind.DONE:
                self._out.write("[INFO] Execute statement succeeded.\n")
            case AnswerKind.CHANGE:
                result.wait()
                self._out.write("[INFO] Complete execution of the SQL update statement.\n")
            case AnswerKind.TEXT | AnswerKind.LISTING:
                result.print(self._out)
            case AnswerKind.QUERY:
                self._query(result, limits, started)
        self._out.flush()

    def echo(self, statement: str) -> None:
        """As if it had been typed: behind the prompt, further lines behind the prompt of continuations."""
        lines = statement.replace("\n", f"\n{CONTINUATION}")
        self._out.write(f"{PROMPT}{lines};\n")
        self._out.flush()

    def note(self, text: str) -> None:
        """The text as it is."""
        self._out.write(text + "\n")
        self._out.flush()

    def _query(self, result: TableResult, limits: Limits, started: float) -> None:
        from flowsql.table.values.tableau import row_count

        rows = result.write_query(self._out, limits.max_rows, limits.deadline)
        if not rows:
            text = "Empty set"
        elif result.streaming:
            text = f"Received a total of {row_count(rows)}"
        else:
            text = f"{row_count(rows)} in set"
        cost = f" ({time.monotonic() - started:.2f} seconds)" if self._time_cost else ""
        self._out.write(f"{text}{cost}\n")


class _LinesRenderer(Renderer):
    """Common road of the formats for programs: a head for each answer, then its rows; nothing for the others."""

    def answer(self, result: TableResult, limits: Limits, started: float) -> None:
        """The rows of a query, listing or text; an INSERT is waited for and prints nothing."""
        del started
        match result.kind:
            case AnswerKind.DONE:
                return
            case AnswerKind.CHANGE:
                result.wait()
            case AnswerKind.TEXT | AnswerKind.LISTING | AnswerKind.QUERY:
                # A failing query fails before its head where it can.
                rows = limited(result.batches(limits.deadline), limits.max_rows)
                self._out.write(self._head(result))
                for batch in rows:
                    self._out.write(self._rows(result, batch))
                    self._out.flush()
        self._out.flush()

    @abstractmethod
    def _head(self, result: TableResult) -> str: ...

    @abstractmethod
    def _rows(self, result: TableResult, batch: ChangelogBatch) -> str: ...


class JsonLinesRenderer(_LinesRenderer):
    """``{"columns": ...}``, then ``{"op": ..., "row": [...]}`` for each change, ``{"error": ...}`` at a failure."""

    def failure(self, text: str) -> None:
        """The error as the script's last line."""
        self._out.write(json.dumps({"error": text}, ensure_ascii=False) + "\n")
        self._out.flush()

    def _head(self, result: TableResult) -> str:
        columns = [[column.name, str(column.type)] for column in result.schema]
        return json.dumps({"columns": columns}, ensure_ascii=False) + "\n"

    def _rows(self, result: TableResult, batch: ChangelogBatch) -> str:
        from flowsql_compute.eval.text.render import json_rows

        return json_rows(batch, result.schema)


class CsvRenderer(_LinesRenderer):
    """RFC 4180 with a header line; NULL is an empty field, an empty text is quoted; streaming answers begin with op."""

    def _head(self, result: TableResult) -> str:
        names = [_quoted_name(column.name) for column in result.schema]
        if result.streaming:
            names.insert(0, "op")
        return ",".join(names) + "\n"

    def _rows(self, result: TableResult, batch: ChangelogBatch) -> str:
        return "".join(f"{line}\n" for line in _csv_lines(result.schema, batch, result.streaming))


def _quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if any(c in name for c in ',"\r\n') or not name else name


def _csv_lines(schema: Schema, batch: ChangelogBatch, with_op: bool) -> Iterator[str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    from flowsql_compute.eval.text.render import Notation, render_column

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
