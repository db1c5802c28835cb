"""Answers for people: Flink's tableau, tables of Markdown, and a line a column for wide rows."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TextIO

from flowsql.cli.render.base import Limits, Renderer
from flowsql.table.table_result import AnswerKind, TableResult, limited
from flowsql.table.values.column_texts import columns_as_texts

if TYPE_CHECKING:
    from flowsql_core.batch import ChangelogBatch

#: The prompts of the shell, as Flink's client shows them in front of a file's statements.
PROMPT: Final = "Flow SQL> "
CONTINUATION: Final = "> "


class ReadableRenderer(Renderer):
    """Answers with ``[INFO]`` lines and counts. ``time_cost`` adds the seconds behind the count."""

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
            case AnswerKind.TEXT:
                self._out.write(result.text() + "\n")
            case AnswerKind.LISTING:
                self.listing(result)
            case AnswerKind.QUERY:
                rows = self.query(result, limits)
                self._out.write(f"{_closing(rows, result.streaming)}{self._cost(started)}\n")
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

    @abstractmethod
    def listing(self, result: TableResult) -> None:
        """Write rows that are known at once, and their count."""

    @abstractmethod
    def query(self, result: TableResult, limits: Limits) -> int:
        """Write the rows of a query as they come; how many there were."""

    def _cost(self, started: float) -> str:
        return f" ({time.monotonic() - started:.2f} seconds)" if self._time_cost else ""


class TableauRenderer(ReadableRenderer):
    """What Flink's SQL client prints in tableau mode."""

    def listing(self, result: TableResult) -> None:
        """The table, columns as wide as what is in them."""
        result.print(self._out)

    def query(self, result: TableResult, limits: Limits) -> int:
        """The table, columns as wide as their types are."""
        return result.write_query(self._out, limits.max_rows, limits.deadline)


class _PiecesRenderer(ReadableRenderer):
    """Rows that are written alike whether they are known at once or come one after the other."""

    def listing(self, result: TableResult) -> None:
        """The rows and their count."""
        rows = self._write(result, result.batches(), "")
        self._out.write(_closing(rows, streaming=False) + "\n")

    def query(self, result: TableResult, limits: Limits) -> int:
        """The rows."""
        return self._write(result, limited(result.batches(limits.deadline), limits.max_rows), "<NULL>")

    def _write(self, result: TableResult, batches: Iterator[ChangelogBatch], null_text: str) -> int:
        rows = 0
        for batch in batches:
            if not batch.num_rows:
                continue
            if not rows:
                self._out.write(self.head(result))
            self._out.write(self.lines(columns_as_texts(result, batch, null_text), batch.num_rows, rows))
            self._out.flush()
            rows += batch.num_rows
        return rows

    def head(self, result: TableResult) -> str:
        """What stands in front of the rows."""
        return ""

    @abstractmethod
    def lines(self, columns: list[tuple[str, Any]], count: int, before: int) -> str:
        """The lines of ``count`` rows, ``before`` of which there have been: names, and Arrow arrays of texts."""


class MarkdownRenderer(_PiecesRenderer):
    """A table as GitHub shows it; numbers stand right."""

    def head(self, result: TableResult) -> str:
        """Names, and on which side each column stands."""
        from flowsql_core.types.logical import ApproximateType, DecimalType, IntegerType

        numbers = IntegerType | ApproximateType | DecimalType
        names = [_in_a_cell(column.name) for column in result.schema]
        sides = ["---:" if isinstance(column.type, numbers) else ":---" for column in result.schema]
        if result.streaming:
            names, sides = ["op", *names], [":---", *sides]
        return f"| {' | '.join(names)} |\n|{'|'.join(sides)}|\n"

    def lines(self, columns: list[tuple[str, Any]], count: int, before: int) -> str:
        """A line a row; what would end a cell is escaped."""
        import pyarrow as pa

        from flowsql_core.arrow import compute as pc

        cells = []
        for _, texts in columns:
            escaped = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), "|", "\\|")
            cells.append(pc.replace_substring_regex(escaped, r"\r?\n", "<br>"))
        return "".join(f"| {line} |\n" for line in pc.binary_join_element_wise(*cells, pa.scalar(" | ")).to_pylist())


class VerticalRenderer(_PiecesRenderer):
    """A line a column, as psql's ``\\x`` shows rows: whole texts, however long."""

    def lines(self, columns: list[tuple[str, Any]], count: int, before: int) -> str:
        """A head with the number of each row, then its columns."""
        import pyarrow as pa

        from flowsql.table.values.tableau import text_width
        from flowsql_core.arrow import compute as pc

        width = max(text_width(name) for name, _ in columns)
        heads = pa.array(
            [f"-[ RECORD {number} ]".ljust(width + 3, "-") for number in range(before + 1, before + count + 1)]
        )
        pieces: list[Any] = [heads]
        for name, texts in columns:
            front = pa.scalar(f"{name}{' ' * (width - text_width(name))} | ")
            # Further lines of a text stand below its first one.
            below = pc.replace_substring(texts, "\n", "\n" + " " * width + " | ")
            pieces.append(pc.binary_join_element_wise(front, below, ""))
        return "".join(f"{row}\n" for row in pc.binary_join_element_wise(*pieces, pa.scalar("\n")).to_pylist())


def _closing(rows: int, streaming: bool) -> str:
    from flowsql.table.values.tableau import row_count

    if not rows:
        return "Empty set"
    return f"Received a total of {row_count(rows)}" if streaming else f"{row_count(rows)} in set"


def _in_a_cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "<br>")
