"""Tests of SQL in Python: the steps of ``flowsql test`` as methods."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from flowsql.common.public_api import public_api
from flowsql.testing.compare import compare
from flowsql.testing.play import Given, Play
from flowsql.testing.rows import NULL, Row
from flowsql_core.row import ALL_CHANGES
from flowsql_core.span import Source
from flowsql_grammar import parse_statement
from flowsql_grammar.script import split_statements


@public_api
class SqlTest:
    """A job in a test: its tables are given rows, its clock and watermarks stand until they are moved.

    >>> test = SqlTest("CREATE TABLE t (k INT) WITH ('connector' = 'kafka'); "
    ...                "CREATE VIEW v AS SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    >>> with test:
    ...     test.given("t", [(1,), (1,), (2,)])
    ...     test.rows("v")
    [('1', '2'), ('2', '1')]

    Args:
        script: SQL, or the :class:`~pathlib.Path` of a file.
        parameters: what stands for ``${name}`` in the script.
        options: of the session.
    """

    __test__ = False

    def __init__(
        self, script: str | Path, parameters: Mapping[str, str] | None = None, options: Mapping[str, str] | None = None
    ) -> None:
        is_file = isinstance(script, Path)
        text = script.read_text(encoding="utf-8-sig") if isinstance(script, Path) else script
        for key, value in (parameters or {}).items():
            text = text.replace("${" + key + "}", value)
        source = Source(text, str(script) if is_file else "<script>")
        self._play = Play(options or {})
        self._told: dict[str, Given] = {}
        self._watched: list[str] = []
        self._steps: list[Callable[[], None]] = []
        self._is_started = False
        for span in split_statements(source):
            self._play.run(parse_statement(source, span), source)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all jobs."""
        self._play.close()

    def given(
        self,
        table: str,
        rows: Iterable[Sequence[Any] | Mapping[str, Any]] = (),
        columns: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
    ) -> None:
        """Rows come to a table that the job reads.

        Args:
            table: its name.
            rows: values in the order of the columns, or by their names; texts are cast to the columns' types.
            columns: which columns the values are of; all, in their order, by default.
            kinds: of change of each row, as ``+I``.
        """
        names = list(columns or self._all_columns(table))
        texts = []
        for row in rows:
            if isinstance(row, Mapping):
                unknown = [name for name in row if name not in names]
                names += unknown
                texts.append([_text(row.get(name)) for name in names])
            else:
                texts.append([_text(value) for value in row])
        batch = self._play.batch_of(table, names, texts, kinds)
        before = self._told.get(table)
        mode = ALL_CHANGES if kinds is not None else (before.mode if before is not None else None)
        self._told[table] = Given(mode)
        self._step(lambda: self._play.give(table, batch))

    def advance_time(self, by: datetime.timedelta | None = None, *, to: datetime.datetime | None = None) -> None:
        """Move the clock, which begins at 1970-01-01 00:00:00 UTC."""
        self._start()
        if by is not None:
            self._play.advance_time(round(by.total_seconds() * 1000))
        if to is not None:
            self._play.advance_time(_moment_ms(to) - self._play.clock.now_ms())

    def advance_watermark(self, table: str, to: datetime.datetime) -> None:
        """The source of a table says how far event time is."""
        self._told.setdefault(table, Given())
        self._step(lambda: self._play.advance_watermark(table, _moment_ms(to)))

    def end_input(self, table: str | None = None) -> None:
        """A table (or all) has no more rows."""
        self._step(lambda: self._play.end_input(table))

    def rows(self, table: str) -> list[Row]:
        """What a table or view holds now, as texts in the order in which the rows came to be."""
        self._look_at(table)
        return self._play.content(table)

    def changes(self, table: str) -> list[Row]:
        """The changes of a table or view since they were asked for last, each with its kind in front."""
        self._look_at(table)
        return self._play.changes(table)

    def expect(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Compare what a table holds, in any order.

        Raises:
            AssertionError: it differs; the text shows the rows.
        """
        found = self.rows(table)
        wanted = [tuple(NULL if value is None else str(_text(value)) for value in row) for row in rows]
        names = [column.name for column in self._play.table(table).schema]
        difference = compare(names, wanted, found, in_order=False)
        if difference is not None:
            raise AssertionError(f"'{table}': {difference.summary()}\n{difference.render()}")

    def _all_columns(self, table: str) -> list[str]:
        return [column.name for column in self._play.definition(table).columns if column.expression is None]

    def _step(self, step: Callable[[], None]) -> None:
        if self._is_started:
            step()
        else:
            self._steps.append(step)

    def _start(self) -> None:
        if self._is_started:
            return
        self._is_started = True
        self._play.start(self._told, self._watched)
        for step in self._steps:
            step()

    def _look_at(self, table: str) -> None:
        if self._is_started:
            self._play.watch(table)
        else:
            self._watched.append(table)
            self._start()


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    return str(value).upper() if isinstance(value, bool) else str(value)


def _moment_ms(moment: datetime.datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
    return round(aware.timestamp() * 1000)
