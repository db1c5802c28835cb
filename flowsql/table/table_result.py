"""``TableResult``: what a statement answered, as rows, batches or print-out, while its job may still run."""

from __future__ import annotations

import enum
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from flowsql.common.public_api import public_api
from flowsql.common.without_java import WithoutJava
from flowsql.table.values.answer_kind import AnswerKind as AnswerKind
from flowsql_core.batch import ChangelogBatch
from flowsql_core.types.logical import BIGINT, DOUBLE, STRING, BooleanType, Column, Schema, TimestampLtzType

if TYPE_CHECKING:
    from flowsql.common.job_client import JobClient
    from flowsql.common.row import Row
    from flowsql.table.catalog.resolved_schema import ResolvedSchema
    from flowsql.table.session.collect import CollectBuffer
    from flowsql.table.table_schema import TableSchema


class ResultKind(enum.IntEnum):
    """Whether a statement answered with rows or only succeeded; a number, as in PyFlink."""

    SUCCESS = 0
    SUCCESS_WITH_CONTENT = 1


@public_api
class CloseableIterator:
    """Rows of a result, once. A context manager: leaving it ends the job behind an unfinished result."""

    def __init__(self, result: TableResult) -> None:
        self._result = result
        self._rows = self._read()

    def _read(self) -> Iterator[Row]:
        from flowsql.table.values.result_rows import rows_of

        for batch in self._result.batches():
            yield from rows_of(batch, self._result.schema)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Row:
        return next(self._rows)

    def next(self) -> Row:
        """The next row; StopIteration behind the last one."""
        return next(self._rows)

    def close(self) -> None:
        """End the job if it still runs; further rows are lost."""
        self._rows.close()  # type: ignore[attr-defined]
        self._result.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@public_api
class TableResult(WithoutJava):
    """The answer to one statement. Rows can be read once."""

    def __init__(
        self,
        kind: AnswerKind,
        schema: Schema,
        ready: ChangelogBatch | None = None,
        *,
        collected: CollectBuffer | None = None,
        job: JobClient | None = None,
        streaming: bool = False,
        max_column_width: int = 30,
        zone: str = "UTC",
    ) -> None:
        self.kind = kind
        self.schema = schema
        self.streaming = streaming
        self.max_column_width = max_column_width
        self.zone = zone
        self._ready = ready
        self._collected = collected
        self._job = job
        self._started = False
        self._cancelled = False
        #: Batches that were looked at before anybody read the rows.
        self._peeked: list[ChangelogBatch] = []
        #: Rows that whoever reads has been given so far.
        self.rows_given = 0

    def get_result_kind(self) -> ResultKind:
        """SUCCESS for statements that only act, SUCCESS_WITH_CONTENT for those that answer with rows."""
        return ResultKind.SUCCESS if self.kind is AnswerKind.DONE else ResultKind.SUCCESS_WITH_CONTENT

    def get_resolved_schema(self) -> ResolvedSchema:
        """Names and types of the columns."""
        from flowsql.table.catalog.resolved_schema import ResolvedSchema

        return ResolvedSchema.of_result(self.schema)

    def get_table_schema(self) -> TableSchema:
        """Names and types of the columns, in PyFlink's old form."""
        from flowsql.table.table_schema import TableSchema

        schema = self.get_resolved_schema()
        return TableSchema(schema.get_column_names(), schema.get_column_data_types())

    def get_job_client(self) -> JobClient | None:
        """The job behind a query or an INSERT; None for other statements."""
        return self._job

    def batches(self, deadline: float | None = None) -> Iterator[ChangelogBatch]:
        """The changes as they come, in order; raises what made the job fail.

        Args:
            deadline: ``time.monotonic()`` after which the rows end although the job has not.
        """
        if self._started:
            raise RuntimeError("the rows of a TableResult can be read only once")
        self._started = True
        if self._ready is not None:
            yield self._ready
        if self._collected is None or self._job is None:
            return
        while self._peeked:
            batch = self._peeked.pop(0)
            self.rows_given += batch.num_rows
            yield batch
        for batch in self._collected.batches(self._job.is_over, deadline):
            self.rows_given += batch.num_rows
            yield batch
        if deadline is None or time.monotonic() < deadline or self._job.is_over():
            self._wait(self._job)

    def is_read(self) -> bool:
        """Whether somebody has begun to read the rows."""
        return self._started

    def peek(self, rows: int, deadline: float) -> list[ChangelogBatch]:
        """The first changes, which whoever reads gets as well; raises what made the job fail.

        Args:
            rows: after which no further batch is waited for.
            deadline: ``time.monotonic()`` after which no further batch is waited for.
        """
        assert self._collected is not None
        assert self._job is not None
        assert not self._started
        held = sum(batch.num_rows for batch in self._peeked)
        if held < rows:
            for batch in self._collected.batches(self._job.is_over, deadline):
                self._peeked.append(batch)
                held += batch.num_rows
                if held >= rows:
                    break
            else:
                if self._job.is_over():
                    self._wait(self._job)
        return list(self._peeked)

    def ready_texts(self) -> list[list[str]]:
        """The columns of an answer that was known at once, as texts; NULL is an empty one."""
        from flowsql.table.values.tableau import cells_of

        assert self._ready is not None
        pairs = zip(self.schema, self._ready.columns, strict=True)
        return [cells_of(data, column, "", self.zone).to_pylist() for column, data in pairs]

    def show(self, rows: int = 20, timeout: float | None = None) -> None:
        """Show the answer as a table: rows of a query as they stand, without their changes.

        In a notebook the table is kept up to date until the query ends or the cell is interrupted; elsewhere it is
        printed once the query has ended or Ctrl-C ends it. Either way the query is over then. Of a query whose rows
        are final no more are read than are shown.

        Args:
            rows: shown at most: the newest of a query that never ends in a notebook, the first of others.
            timeout: seconds after which the query is ended and the rows are shown that have come.
        """
        from flowsql.display.show import show

        show(self, rows, timeout)

    def _repr_html_(self) -> str:
        """The answer in a notebook. The first rows of a running query are shown; they can still be read."""
        from flowsql.display.preview import result_html

        return result_html(self)

    def collect(self) -> CloseableIterator:
        """Rows as a context-managed iterator of :class:`~flowsql.common.Row`."""
        if self.kind is AnswerKind.CHANGE:
            self.wait()
        return CloseableIterator(self)

    def wait(self, timeout_ms: int | None = None) -> None:
        """Block until the job behind an INSERT ended; raises its error, or TimeoutError.

        Raises:
            ExecutionError: ``job-cancelled`` when somebody cancelled it.
        """
        if self._job is not None and self._collected is None:
            with progress_of(self):
                self._wait(self._job, None if timeout_ms is None else timeout_ms / 1000)

    def _wait(self, job: JobClient, timeout_s: float | None = None) -> None:
        job.wait(timeout_s)
        if not self._cancelled:
            job.check_not_cancelled()

    def cancel(self) -> None:
        """End the job behind the result, if it still runs."""
        self._cancelled = True
        if self._collected is not None:
            self._collected.cancel()
        if self._job is not None and not self._job.is_over():
            self._job.cancel_and_wait()

    def print(self, file: TextIO | None = None) -> None:
        """Write the answer as Flink's ``TableResult.print()`` does: a tableau with its count, or ``OK``."""
        from flowsql.table.values.tableau import Tableau, row_count

        out = sys.stdout if file is None else file
        match self.kind:
            case AnswerKind.DONE:
                out.write("OK\n")
                return
            case AnswerKind.TEXT | AnswerKind.CHANGE:
                self.wait()
                # Flink prints the bare count of affected rows, -1 because it is not known.
                out.write(self.text() + "\n")
                return
            case AnswerKind.LISTING:
                batch = next(self.batches())
                if batch.num_rows:
                    table = Tableau.by_content(self.schema, batch, self.zone)
                    out.write(table.header() + table.rows(batch) + table.border())
                out.write(f"{row_count(batch.num_rows)} in set\n" if batch.num_rows else "Empty set\n")
                return
        rows = self.write_query(out)
        out.write(f"{row_count(rows)} in set\n" if rows else "Empty set\n")
        out.flush()

    def write_query(self, out: TextIO, max_rows: int | None = None, deadline: float | None = None) -> int:
        """Write a query's tableau as its rows come, without the closing count; the number of rows written."""
        from flowsql.table.values.tableau import Tableau

        table = Tableau.by_type(self.schema, self.max_column_width, self.streaming, self.zone)
        rows = 0
        for batch in limited(self.batches(deadline), max_rows):
            if rows == 0:
                out.write(table.header())
            out.write(table.rows(batch))
            out.flush()
            rows += batch.num_rows
        if rows:
            out.write(table.border())
        return rows

    def text(self) -> str:
        """The one text of EXPLAIN, or the values of an INSERT's answer."""
        batch = next(self.batches())
        return ", ".join(str(column[0].as_py()) for column in batch.columns)


def progress_of(result: TableResult) -> AbstractContextManager[None]:
    """Tells in the cell of a notebook how far a job is while the program waits for it."""
    if "ipykernel" not in sys.modules:
        return nullcontext()
    from flowsql.display.notebook import cell_progress

    return cell_progress(result)


def limited(batches: Iterator[ChangelogBatch], max_rows: int | None) -> Iterator[ChangelogBatch]:
    """The first ``max_rows`` rows of the batches; all for None."""
    left = max_rows
    if left == 0:
        return
    for batch in batches:
        if left is None:
            yield batch
        elif batch.num_rows < left:
            left -= batch.num_rows
            yield batch
        else:
            yield batch.slice(0, left)
            return


def done() -> TableResult:
    """The answer of a statement that only acts: Flink's one row ``OK``."""
    return TableResult(AnswerKind.DONE, (Column("result", STRING),), _batch((Column("result", STRING),), [("OK",)]))


def listing(schema: Schema, rows: list[tuple[Any, ...]], zone: str = "UTC") -> TableResult:
    """An answer that is known already; ``zone``: of the session, for the print-out of its times."""
    return TableResult(AnswerKind.LISTING, schema, _batch(schema, rows), zone=zone)


def text_answer(text: str) -> TableResult:
    """The answer of EXPLAIN."""
    schema = (Column("result", STRING),)
    return TableResult(AnswerKind.TEXT, schema, _batch(schema, [(text,)]))


def change(sinks: list[str], job: JobClient) -> TableResult:
    """The answer of INSERTs: one row with -1 (count unknown) for each sink, once the job has ended."""
    schema = tuple(Column(name, BIGINT) for name in sinks)
    return TableResult(AnswerKind.CHANGE, schema, _batch(schema, [(-1,) * len(sinks)]), job=job)


def _batch(schema: Schema, rows: list[tuple[Any, ...]]) -> ChangelogBatch:
    import pyarrow as pa

    def arrow_type(column: Column) -> pa.DataType:
        if isinstance(column.type, BooleanType):
            return pa.bool_()
        if isinstance(column.type, TimestampLtzType):
            return pa.timestamp("us", "UTC")
        if column.type == DOUBLE:
            return pa.float64()
        return pa.int64() if column.type == BIGINT else pa.string()

    columns = [pa.array([row[i] for row in rows], arrow_type(column)) for i, column in enumerate(schema)]
    return ChangelogBatch.of(columns, num_rows=len(rows))
