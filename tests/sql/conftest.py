"""Runs ``*.test`` files: SQL with its answers, at parallelism 1 and 3. ``pytest --update`` fills the answers in.

A file is a list of blocks, separated by blank lines; lines that start with ``#`` are comments. Blocks:

``file NAME``        the lines below become a file; ``${DIR}`` in SQL stands for its folder
``statement ok``     a statement that succeeds
``query``            the rows that stand at the end, sorted (in a batch query's ORDER BY: ``query ordered``)
``query changelog``  the changes in order (at parallelism 3: what they add up to)
``error CODE L:C``   a statement that fails with this code at this line and column (``-`` for no place)
``plan [DETAIL]``    the last plan section of EXPLAIN

``serial`` in the head: only at parallelism 1, where the order of arrival is known (late rows).
Answers stand behind a line ``----``; values are separated by two blanks and written as in the tableau.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_compute.eval.text.render import Notation, render_column
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import FlowSqlError
from flowsql_core.row import SHORT_STRINGS
from flowsql_core.span import Source
from flowsql_core.types.logical import Schema

PARALLELISMS = (1, 3)
SEPARATOR = "----"


@dataclass
class Block:
    """One block: where it starts, its head, its text, its answer (None without ``----``)."""

    line: int
    head: str
    text: list[str] = field(default_factory=list)
    answer: list[str] | None = None
    comments: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        answer = [] if self.answer is None else [SEPARATOR, *self.answer]
        return [*self.comments, self.head, *self.text, *answer]


def read_blocks(text: str) -> list[Block]:
    """The blocks of a file. A blank line ends a block, except inside a plan's answer, which has none."""
    blocks: list[Block] = []
    comments: list[str] = []
    block: Block | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            if block is None and comments:
                blocks.append(Block(number, "", comments=comments))
                comments = []
            block = None
        elif block is None and line.startswith("#"):
            comments.append(line)
        elif block is None:
            block = Block(number, line, comments=comments)
            comments = []
            blocks.append(block)
        elif line == SEPARATOR:
            block.answer = []
        elif block.answer is not None:
            block.answer.append(line)
        else:
            block.text.append(line)
    return blocks


def write_blocks(blocks: Iterable[Block]) -> str:
    """The text of a file again."""
    return "\n\n".join("\n".join(line for line in block.lines() if line) for block in blocks) + "\n"


class WrongAnswerError(Exception):
    """An answer differs from the file."""


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".test":
        return SqlFile.from_parent(parent, path=file_path)
    return None


class SqlFile(pytest.File):
    """A ``.test`` file: one item per parallelism, so that its statements share a session."""

    def collect(self) -> Iterator[pytest.Item]:
        for parallelism in PARALLELISMS:
            yield SqlItem.from_parent(self, name=f"parallelism={parallelism}", parallelism=parallelism)


class SqlItem(pytest.Item):
    """All blocks of a file at one parallelism."""

    def __init__(self, *, parallelism: int, **rest: Any) -> None:
        super().__init__(**rest)
        self._parallelism = parallelism

    def runtest(self) -> None:
        factory: pytest.TempPathFactory = self.config._tmp_path_factory  # type: ignore[attr-defined]
        update = self.config.getoption("--update") and self._parallelism == 1
        blocks = read_blocks(self.path.read_text(encoding="utf-8"))
        session = Session(factory.mktemp("sql"), self._parallelism, update)
        for block in blocks:
            if block.head:
                try:
                    session.run(block)
                except FlowSqlError as error:
                    raise WrongAnswerError(f"{self.path.name}:{block.line}: {error.render()}") from error
                except WrongAnswerError as error:
                    raise WrongAnswerError(f"{self.path.name}:{block.line}: {block.head}\n{error}") from None
        if update:
            self.path.write_text(write_blocks(blocks), encoding="utf-8")

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        if isinstance(excinfo.value, WrongAnswerError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name} at {self.name}"


class Session:
    """A TableEnvironment with a folder of its own."""

    def __init__(self, folder: Path, parallelism: int, update: bool) -> None:
        self._folder = folder
        self._parallelism = parallelism
        self._update = update
        self._environment = TableEnvironment.create()
        config = self._environment.get_config()
        config.set("parallelism.default", str(parallelism)).set("table.local-time-zone", "UTC")

    def run(self, block: Block) -> None:
        """Run a block; raises WrongAnswerError, or what an unexpected failure raises."""
        kind, *words = block.head.split()
        if "serial" in words:
            if self._parallelism > 1:
                return
            words.remove("serial")
        sql = "\n".join(block.text).replace("${DIR}", str(self._folder))
        match kind, words:
            case "file", [name]:
                path = self._folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(f"{line}\n" for line in block.text), encoding="utf-8")
            case "statement", ["ok"]:
                self._environment.execute_sql(sql).wait()
            case "query", []:
                self._compare(block, sorted(table_of(self._changes(sql))))
            case "query", ["ordered"]:
                self._compare(block, [row for _, row in self._changes(sql)])
            case "query", ["changelog"]:
                self._compare_changes(block, list(self._changes(sql)))
            case "error", [code, *place]:
                self._expect_error(block, sql, code, place)
            case "plan", details:
                self._compare(block, self._plan(sql, details))
            case _:
                raise WrongAnswerError(f"unknown block '{block.head}'")

    def _changes(self, sql: str) -> Iterator[tuple[str, str]]:
        result = self._environment.execute_sql(sql)
        for batch in result.batches():
            yield from changes_of(batch, result.schema)

    def _plan(self, sql: str, details: list[str]) -> list[str]:
        text = self._environment.execute_sql(f"EXPLAIN {', '.join(details) or 'PLAN FOR'} {sql}").text()
        # Physical plans carry the changelog modes, execution plans the infix expressions.
        titles = "== Optimized Physical Plan" if details else "== Optimized Execution Plan"
        section = text[text.index(titles) :].partition("\n")[2].partition("\n\n")[0]
        return section.replace(str(self._folder), "${DIR}").rstrip("\n").split("\n")

    def _expect_error(self, block: Block, sql: str, code: str, place: list[str]) -> None:
        try:
            result = self._environment.execute_sql(sql)
            result.wait()
            for _ in result.batches():
                pass
        except FlowSqlError as error:
            found = "-" if error.at is None else "{}:{}".format(*Source(sql).position(error.at.start))
            if self._update:
                block.head = f"error {error.code} {found}"
            elif [code, *place] != [error.code, found]:
                raise WrongAnswerError(f"got: error {error.code} {found}\n{error.render()}") from error
        else:
            raise WrongAnswerError("the statement succeeded")

    def _compare(self, block: Block, rows: list[str]) -> None:
        if self._update:
            block.answer = rows
        elif rows != block.answer:
            raise WrongAnswerError("got:\n" + "\n".join(rows))

    def _compare_changes(self, block: Block, changes: list[tuple[str, str]]) -> None:
        lines = [f"{op}  {row}" for op, row in changes]
        if self._parallelism == 1:
            self._compare(block, lines)
            return
        wanted = [(line[:2], line[4:]) for line in block.answer or []]
        if sorted(table_of(changes)) != sorted(table_of(wanted)):
            raise WrongAnswerError("got changes that add up to another table:\n" + "\n".join(lines))


def changes_of(batch: ChangelogBatch, schema: Schema) -> Iterator[tuple[str, str]]:
    """``("+I", "1  a")`` for each row."""
    columns = [
        render_column(data, column.type, Notation.TABLEAU).to_pylist()
        for data, column in zip(batch.columns, schema, strict=True)
    ]
    ops = [0] * batch.num_rows if batch.kinds is None else batch.kinds.tolist()
    for op, *cells in zip(ops, *columns, strict=True):
        yield SHORT_STRINGS[op], "  ".join(cell if cell else "''" for cell in cells)


def table_of(changes: Iterable[tuple[str, str]]) -> list[str]:
    """What stands when all changes are applied; a retraction of an absent row is wrong."""
    table: Counter[str] = Counter()
    for op, row in changes:
        if op in ("+I", "+U"):
            table[row] += 1
        elif table[row] == 0:
            raise WrongAnswerError(f"{op} of a row that is not there: {row}")
        else:
            table[row] -= 1
    return list(table.elements())
