"""``print``: every change as a line on standard output, in Flink's form or as JSON lines for programs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping

from flowsql_compute.eval.text.render import json_rows, print_rows
from flowsql_connectors.options import SINK_PARALLELISM, ConnectorOption, OptionSet, parse_boolean, parse_choice
from flowsql_connectors.spi.sink import SinkFactory, SinkWriter, TableSink, WriterContext
from flowsql_core.batch import ChangelogBatch
from flowsql_core.config import option
from flowsql_core.graph.specs import SinkSpec, TableSpec
from flowsql_core.row import ChangelogMode

PRINT_FORMAT = option(
    "flowsql.print.format",
    parse_choice("text", "jsonl"),
    "text",
    "How print sinks write: text (Flink's lines) or jsonl.",
)

PRINT_IDENTIFIER = ConnectorOption("print-identifier", str, "", "Put before every line, as 'identifier> '.")
STANDARD_ERROR = ConnectorOption("standard-error", parse_boolean, False, "Write to standard error instead.")

_OPTIONS = OptionSet(optional=(PRINT_IDENTIFIER, STANDARD_ERROR, SINK_PARALLELISM))

#: One call makes the lines of a batch, each with its newline.
Formatter = Callable[[ChangelogBatch], str]


class PrintWriter(SinkWriter):
    """Formats a batch whole and writes it in one piece, so that lines of several subtasks do not mix."""

    def __init__(self, formatter: Formatter, write_text: Callable[[str], None]) -> None:
        self._formatter = formatter
        self._write_text = write_text

    def write(self, batch: ChangelogBatch) -> None:
        """All rows of the batch as lines."""
        if batch.num_rows:
            self._write_text(self._formatter(batch))


class PrintSink(TableSink):
    """Accepts every change."""

    def __init__(self, sink: SinkSpec) -> None:
        values = _OPTIONS.check(sink.table)
        self._sink = sink
        self._identifier = values.get(PRINT_IDENTIFIER)
        self._to_stderr = values.get(STANDARD_ERROR)
        self._parallelism = values.get(SINK_PARALLELISM)

    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        """What the query produces."""
        return wanted

    def parallelism(self) -> int | None:
        """``sink.parallelism``."""
        return self._parallelism

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer with the formatter that ``flowsql.print.format`` names."""
        write_text = _write_stderr if self._to_stderr else context.write_text or _write_stdout
        if context.configuration.get(PRINT_FORMAT.key, PRINT_FORMAT.default) == "jsonl":
            table = self._sink.table.path[-1]
            return PrintWriter(lambda batch: json_rows(batch, self._sink.input, table), write_text)
        prefix = self._prefix(context)
        return PrintWriter(lambda batch: print_rows(batch, self._sink.input, prefix), write_text)

    def _prefix(self, context: WriterContext) -> str:
        """``identifier:subtask> ``; the subtask (from 1) only where there are several."""
        parts = [self._identifier] if self._identifier else []
        if context.parallelism > 1:
            parts.append(str(context.subtask + 1))
        return ":".join(parts) + "> " if parts else ""


class PrintSinkFactory(SinkFactory):
    """Makes ``print`` sinks."""

    identifier = "print"

    def options(self, table: TableSpec) -> OptionSet:
        """Identifier, stream, parallelism."""
        return _OPTIONS

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        """A printing sink."""
        return PrintSink(sink)


#: Text streams of a process tear what several threads write at once; subtasks print whole batches.
_PRINTING = threading.Lock()


def _write_stdout(text: str) -> None:
    with _PRINTING:
        sys.stdout.write(text)
        sys.stdout.flush()


def _write_stderr(text: str) -> None:
    with _PRINTING:
        sys.stderr.write(text)
        sys.stderr.flush()
