"""A world: some tables, a session over them, and many random queries."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final

import duckdb

from . import variations
from .draws import Draws
from .judge import Fault, Verdict, judge, twin_answer
from .queries import Queries, Query
from .session import Answer, Session
from .tables import Table, Tables
from .variations import Variation

_MEMORY: Final = Path("/dev/shm")
DEPTHS = (1, 1, 2, 2, 2, 3, 3, 4)


@dataclass(frozen=True)
class Case:
    """What is needed to run a query once more."""

    tables: tuple[Table, ...]
    draws: tuple[int, ...]
    depth: int
    variation: Variation

    def query(self) -> Query:
        """The query that the draws make."""
        return Queries(Draws(None, self.draws), self.tables).query(self.depth)


@dataclass(frozen=True)
class Finding:
    """A case that fails, and how."""

    seed: int
    number: int
    case: Case
    fault: Fault


@dataclass
class Report:
    """What was run."""

    queries: int = 0
    judged: Counter[str] = field(default_factory=Counter)
    used: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    no_twin: Counter[str] = field(default_factory=Counter)
    no_batch: Counter[str] = field(default_factory=Counter)
    empty: int = 0
    findings: list[Finding] = field(default_factory=list)
    #: Whether a process ended before its world was judged.
    cut_short: bool = False

    def add(self, other: Report) -> None:
        """Both together."""
        self.queries += other.queries
        self.empty += other.empty
        self.findings += other.findings
        for name in ("judged", "used", "refused", "no_twin", "no_batch"):
            getattr(self, name).update(getattr(other, name))

    def note(self, query: Query, verdict: Verdict) -> None:
        """One more query."""
        if verdict.refused is not None:
            self.refused[verdict.refused] += 1
            return
        self.queries += 1
        self.used.update(set(query.used))
        self.judged.update(verdict.judged)
        self.empty += verdict.empty
        if verdict.no_twin is not None:
            self.no_twin[verdict.no_twin] += 1
        if verdict.no_batch is not None:
            self.no_batch[verdict.no_batch] += 1


class World:
    """Tables in files, in a catalog and in DuckDB."""

    def __init__(self, tables: Sequence[Table]) -> None:
        # In memory, where that is a folder: opening a RocksDB waits for a disk.
        self._folder = tempfile.TemporaryDirectory(prefix="flowsql-fuzz-", dir=_MEMORY if _MEMORY.is_dir() else None)
        self._session = Session(Path(self._folder.name))
        self._loaded: dict[str, Table] = {}
        self._duck = duckdb.connect(config={"threads": 1})
        # By statistics DuckDB 2.0.0 takes outer joins with a table without rows for empty, below EXISTS.
        self._duck.execute("SET disabled_optimizers = 'statistics_propagation'")
        for table in tables:
            for mode, statement in table.definitions():
                self._session.execute(statement, mode)
        self.load(tables)

    def load(self, tables: Sequence[Table]) -> None:
        """Write the rows of tables that are defined; others may stand there from before."""
        for table in tables:
            if self._loaded.get(table.name) == table:
                continue
            self._loaded[table.name] = table
            table.write(Path(self._folder.name))
            table.load(self._duck)

    def judge(self, query: Query, variation: Variation) -> Verdict:
        """Run a query."""
        return judge(self._session, self._duck, query, variation)

    def twin_answer(self, query: Query) -> Answer | None:
        """What DuckDB says to a query."""
        return twin_answer(self._duck, query)

    def __enter__(self) -> World:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._duck.close()
        self._folder.cleanup()


def run_world(
    seed: int,
    count: int,
    before: Callable[[int, Query, Variation], None] | None = None,
    only: int | None = None,
) -> Report:
    """Draw tables and so many queries, and judge each.

    Args:
        seed: of all that is drawn.
        count: of queries, those that are refused among them.
        before: is told each query before it runs.
        only: judge the query of this number and no other; the world is the same.
    """
    tables = Tables(seed).draw()
    draw = random.Random(seed)
    report = Report()
    with World(tables) as world:
        for number in range(count):
            depth = draw.choice(DEPTHS)
            query = Queries(Draws(draw.randrange(1 << 60)), tables).query(depth)
            variation = variations.draw(draw)
            if only is not None and number != only:
                continue
            if before is not None:
                before(number, query, variation)
            verdict = world.judge(query, variation)
            report.note(query, verdict)
            if verdict.fault is not None:
                case = Case(tables, query.draws, depth, variation)
                report.findings.append(Finding(seed, number, case, verdict.fault))
    return report
