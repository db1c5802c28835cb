"""Runs the tests of a file: each in a session of its own."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flowsql.pipeline.folder import BATCH, ProjectFolder, open_project, project_around
from flowsql.pipeline.manifest import MANIFEST
from flowsql.pipeline.variables import with_variables
from flowsql.testing.compare import Difference, compare
from flowsql.testing.files import Case, Cells, Step, TestFile
from flowsql.testing.play import Given, Play
from flowsql.testing.project_nodes import play_nodes
from flowsql.testing.rows import NULL, Row, materialized, texts_of
from flowsql_core.config import Configuration
from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.row import ALL_CHANGES
from flowsql_core.span import Source, Span
from flowsql_core.types.logical import Column, Schema
from flowsql_grammar import parse_statement
from flowsql_grammar.script import split_statements


@dataclass
class Outcome:
    """What became of a test: how long it took, and what is wrong. ``updates``: cells that would be right."""

    name: str
    line: int
    seconds: float = 0.0
    error: str | None = None
    updates: list[tuple[Cells, list[Row]]] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return self.error is None


class _WrongError(Exception):
    """A step is not met; the text says how."""


def run_case(
    file: TestFile,
    case: Case,
    options: Mapping[str, str],
    update: bool = False,
    project: ProjectFolder | None = None,
) -> Outcome:
    """Run one test.

    Args:
        file: where it stands.
        case: the test.
        options: of its session.
        update: take what differs as what is expected, see :attr:`Outcome.updates`.
        project: around it.
    """
    outcome = Outcome(case.name, file.source.position(case.span.start)[0])
    started = time.perf_counter()
    try:
        with Play(options) as play:
            _Run(file, case, play, outcome if update else None, project).run()
    except _WrongError as error:
        outcome.error = str(error)
    except FlowSqlError as error:
        outcome.error = error.render()
    outcome.seconds = time.perf_counter() - started
    return outcome


class _Run:
    def __init__(
        self, file: TestFile, case: Case, play: Play, updated: Outcome | None, project: ProjectFolder | None
    ) -> None:
        self._file = file
        self._case = case
        self._play = play
        self._updated = updated
        self._project = project
        self._folder = file.folder
        self._steps = [*file.before, *case.steps]
        self._has_ended = False
        #: What a definition or the start of the jobs failed with.
        self._failure: FlowSqlError | None = None

    def run(self) -> None:
        steps = [part for part in self._steps if isinstance(part, Step) and not part.kind.startswith("script")]
        try:
            self._define()
            self._play.start(
                self._told(steps), [step.name for step in steps if step.kind.startswith("expect") and step.name]
            )
        except FlowSqlError as error:
            self._failure = error
            if not any(step.kind == "expect-error" for step in steps):
                raise
        moves = any(step.kind.startswith(("advance", "end-input")) for step in steps)
        last_given = max((place for place, step in enumerate(steps) if step.kind.startswith("given")), default=-1)
        for place, step in enumerate(steps):
            is_asked = step.kind.startswith("expect") and place > last_given and self._failure is None
            if is_asked and not moves and not self._has_ended:
                # Whoever moves no watermark means all that the rows lead to.
                self._play.end_input()
                self._has_ended = True
            try:
                self._do(step)
            except FlowSqlError as error:
                if error.at is None:
                    error.at = step.span
                raise error.within(self._file.source) from None
        failure = self._failure or self._play.failure
        if failure is not None:
            raise failure

    def _define(self) -> None:
        for part in self._steps:
            if isinstance(part, Span):
                self._play.run(parse_statement(self._file.source, part), self._file.source)
            elif part.kind == "script":
                source = self._script(part)
                for span in split_statements(source):
                    self._play.run(parse_statement(source, span), source)
            elif part.kind.startswith("script"):
                self._play_nodes(part)

    def _play_nodes(self, step: Step) -> None:
        if self._project is None:
            raise BindError(
                "no-project", "There is no flowsql.toml around this test.", step.span, "SCRIPT 'file' runs a file"
            ).within(self._file.source)
        try:
            play_nodes(self._play, self._project, step.columns)
        except FlowSqlError as error:
            if error.at is None:
                error.at = step.span
            raise error.within(self._file.source) from None

    def _script(self, step: Step) -> Source:
        path = self._folder / step.text
        try:
            text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
        except OSError as error:
            raise BindError(
                "script-not-found", f"The script '{step.text}' cannot be read: {error.strerror}.", step.span,
                "its path begins where the test stands",
            ).within(self._file.source) from None  # fmt: skip
        for key, value in step.pairs:
            text = text.replace("${" + key + "}", value)
        source = Source(text, str(path))
        variables = None if self._project is None else self._project.variables
        return source if variables is None else with_variables(source, variables)

    @staticmethod
    def _told(steps: Sequence[Step]) -> dict[str, Given]:
        told: dict[str, Given] = {}
        for step in steps:
            if not step.kind.startswith("given"):
                continue
            has_kinds = step.cells is not None and step.cells.names[:1] == ("op",)
            before = told.get(step.name)
            mode = ALL_CHANGES if has_kinds or (before is not None and before.mode is not None) else None
            told[step.name] = Given(mode, keeps=step.kind == "given-table")
        return told

    def _do(self, step: Step) -> None:
        play = self._play
        match step.kind:
            case "expect-error":
                self._expect_error(step)
            case _ if self._failure is not None:
                return
            case "given":
                assert step.cells is not None
                names, rows, kinds = _apart(step.cells)
                play.give(step.name, play.batch_of(step.name, names, rows, kinds))
            case "given-values":
                play.give(step.name, play.batch_of_values(step.name, step.columns, step.value))
            case "given-file":
                names, rows, kinds = _apart(self._cells_of_file(step))
                play.give(step.name, play.batch_of(step.name, names, rows, kinds))
            case "given-nothing" | "given-table":
                return
            case "advance-by":
                base = "TIMESTAMP '1970-01-01 00:00:00'"
                play.advance_time(play.moment_ms(f"{base} + {step.value}"))
            case "advance-to":
                play.advance_time(play.moment_ms(step.value) - play.clock.now_ms())
            case "advance-watermark":
                play.advance_watermark(step.name, play.moment_ms(step.value))
            case "end-input":
                play.end_input(step.name or None)
            case _:
                self._expect(step)

    def _expect_error(self, step: Step) -> None:
        found = self._failure or self._play.failure
        self._failure = self._play.failure = None
        if found is None:
            raise self._wrong(step, f"no error came, and one with '{step.text}' was expected")
        if step.text.lower() not in found.render().lower():
            raise self._wrong(step, f"the error has no '{step.text}':\n{found.render()}")

    def _expect(self, step: Step) -> None:
        of_changes = step.kind.startswith("expect-changes")
        play = self._play
        found = play.changes(step.name) if of_changes else play.content(step.name)
        table = play.table(step.name)
        names = [*(["op"] if of_changes else []), *(column.name for column in table.schema)]
        cells = self._expected(step)
        if cells is None:
            wanted = [] if not step.value else self._values(step, table.schema)
            shown = names
        else:
            shown = list(cells.names)
            unknown = [name for name in shown if name not in names]
            if unknown:
                raise BindError(
                    "column-not-found", f"'{step.name}' has no column '{unknown[0]}'.", cells.span,
                    f"the columns are {', '.join(names)}",
                )  # fmt: skip
            places = [names.index(name) for name in shown]
            found = [tuple(row[place] for place in places) for row in found]
            wanted = self._typed(step, cells, table.schema, of_changes)
        difference = compare(shown, wanted, found, in_order=of_changes)
        if difference is None:
            return
        if self._updated is not None and step.cells is not None:
            self._updated.updates.append((step.cells, found))
            return
        raise self._wrong(step, _title(step, difference) + "\n" + difference.render())

    def _expected(self, step: Step) -> Cells | None:
        if step.kind.endswith("file"):
            return self._cells_of_file(step)
        return step.cells

    def _values(self, step: Step, schema: Schema) -> list[Row]:
        from flowsql.testing.rows import batch_of_values

        batch = batch_of_values(self._play._scratch, schema, step.columns, step.value)
        return materialized([batch], schema, ())

    def _typed(self, step: Step, cells: Cells, schema: Schema, of_changes: bool) -> list[Row]:
        """Expected cells as the table would show them: '1.50' of a DOUBLE is 1.5."""
        from flowsql.testing.rows import typed_batch

        names, rows, _ = _apart(cells) if of_changes else (list(cells.names), _texts(cells.rows), None)
        own = tuple(Column(column.name, column.type) for name in names for column in schema if column.name == name)
        batch = typed_batch(self._play._scratch, own, names, rows)
        _, typed = texts_of(batch, own)
        if not of_changes or cells.names[:1] != ("op",):
            return typed
        return [(row[0], *rest) for row, rest in zip(cells.rows, typed, strict=True)]

    def _cells_of_file(self, step: Step) -> Cells:
        """Rows of a file: csv with a line of names, or an object of JSON a line."""
        import csv

        path = self._folder / step.text
        try:
            text = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise BindError("file-not-found", f"'{step.text}' cannot be read: {error.strerror}.", step.span) from None
        if path.suffix == ".csv":
            lines = list(csv.reader(text.splitlines()))
            return Cells(tuple(lines[0]), tuple(map(tuple, lines[1:])), step.span)
        objects = [json.loads(line) for line in text.splitlines() if line.strip()]
        names = tuple(dict.fromkeys(name for each in objects for name in each))
        return Cells(names, tuple(tuple(_json_text(each.get(name)) for name in names) for each in objects), step.span)

    def _wrong(self, step: Step, text: str) -> _WrongError:
        line, _ = self._file.source.position(step.span.start)
        return _WrongError(f"{self._file.source.name}:{line}: {text}")


def _title(step: Step, difference: Difference) -> str:
    what = f"the changes of '{step.name}'" if step.kind.startswith("expect-changes") else f"'{step.name}'"
    return f"{what}: {difference.summary()}"


def _apart(cells: Cells) -> tuple[list[str], list[list[str | None]], list[str] | None]:
    """Names, texts and kinds of change of a table of rows."""
    if cells.names[:1] == ("op",):
        return list(cells.names[1:]), _texts([row[1:] for row in cells.rows]), [row[0] for row in cells.rows]
    return list(cells.names), _texts(cells.rows), None


def _texts(rows: Sequence[Row]) -> list[list[str | None]]:
    return [[None if cell == NULL else cell for cell in row] for row in rows]


def _json_text(value: object) -> str:
    if value is None:
        return NULL
    return value if isinstance(value, str) else json.dumps(value)


def run_file(
    file: TestFile,
    options: Mapping[str, str],
    wanted: Callable[[str], bool] = lambda name: True,
    update: bool = False,
    profile: str | None = None,
) -> list[Outcome]:
    """Run the tests of a file whose names are wanted, in their order.

    In a project its options count beneath ``options``, and paths begin in its folder.

    Args:
        file: of which.
        options: of all sessions.
        wanted: whether a test of a name runs.
        update: write the file anew, with what is found as what is expected.
        profile: of the project around; None: the one of tests, else its own.

    Raises:
        BindError: the ``flowsql.toml`` around is wrong, or has no such profile.
        OSError: there is a ``profile`` and no project.
    """
    around = project_around(file.folder)
    if around is None and profile is not None:
        raise FileNotFoundError(f"--profile is of projects, and there is no {MANIFEST} around this file")
    project = None if around is None else open_project(around, profile, tests=True)
    if project is not None:
        own = Configuration(values=dict(BATCH))
        project.put_options(own)
        options = {**dict(own.items()), **options}
    with contextlib.nullcontext() if project is None else project.inside():
        outcomes = [run_case(file, case, options, update, project) for case in file.cases if wanted(case.name)]
    changes = [change for outcome in outcomes for change in outcome.updates]
    if changes:
        from flowsql.testing.compare import table_text

        text = file.source.text
        for cells, rows in sorted(changes, key=lambda change: -change[0].span.start):
            text = text[: cells.span.start] + table_text(cells.names, rows) + text[cells.span.end :]
        Path(file.source.name).write_text(text, encoding="utf-8")
    return outcomes
