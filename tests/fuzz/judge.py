"""Whether the answers to a query are one: of two ways to run it, of DuckDB, of batch mode."""

from __future__ import annotations

import itertools
import traceback
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from flowsql_core.errors import FlowSqlError, InternalError

from .order import changes_differ, one_order
from .queries import Query
from .session import Answer, Bound, Changes, Session, TakenBackError, folded, plain
from .variations import Variation

#: Rows of a difference that are shown.
SHOWN = 6


@dataclass(frozen=True)
class Fault:
    """A difference, or a failure that is none of the user's.

    Attributes:
        kind: what must stay the same while the case shrinks.
        text: what a reader needs.
    """

    kind: str
    text: str


@dataclass(frozen=True)
class Verdict:
    """What was compared."""

    fault: Fault | None = None
    refused: str | None = None
    judged: frozenset[str] = frozenset()
    #: Why DuckDB was not asked.
    no_twin: str | None = None
    empty: bool = False
    #: Why batch mode was not asked.
    no_batch: str | None = None


def judge(session: Session, duck: duckdb.DuckDBPyConnection, query: Query, variation: Variation) -> Verdict:
    """Run a query the plain way and another, and ask DuckDB."""
    sql = query.flink()
    variation = _settled(query, variation)
    try:
        for statement in query.statements():
            session.execute(statement, "streaming")
        return _judged(session, duck, query, sql, variation)
    except FlowSqlError as error:
        if isinstance(error, InternalError):
            return Verdict(Fault(f"InternalError {error.message[:60]}", error.message))
        return Verdict(refused=f"{error.code}: {error.message.splitlines()[0][:100]}")
    finally:
        for definition in reversed(query.definitions if query.views else ()):
            session.execute(f"DROP TEMPORARY VIEW IF EXISTS {definition.name}")


def _settled(query: Query, variation: Variation) -> Variation:
    """The variation without what gives FIRST_VALUE and LAST_VALUE another answer, in Flink too.

    Split distinct aggregates take values of one group apart. Parts tell the group only what changed, in any order with
    several tasks: of the values x, y, x the last one that it hears is y.
    """
    return replace(variation, split=False) if query.used.keys() & {"FIRST_VALUE", "LAST_VALUE"} else variation


def _judged(session: Session, duck: duckdb.DuckDBPyConnection, query: Query, sql: str, variation: Variation) -> Verdict:
    judged: set[str] = set()
    bound = session.query(sql)
    base = _run(bound, Variation())
    if isinstance(base, Fault):
        return Verdict(base)
    table = _table(base)
    if isinstance(table, Fault):
        return Verdict(table)
    other = _run(bound, variation.in_streaming())
    if isinstance(other, Fault):
        return Verdict(other)
    judged.add("variation")
    varied = _table(other)
    if isinstance(varied, Fault):
        return Verdict(varied)
    if varied != table:
        return Verdict(Fault("differs: variation", difference("plain", table, str(variation.in_streaming()), varied)))
    graph = bound.graph(Variation())
    if variation.same_changes and one_order(graph):
        judged.add("changelog")
        found = changes_differ(graph, variation, base, other)
        if found is not None:
            return Verdict(Fault("differs: changelog", found))
    wanted = twin_answer(duck, query)
    if wanted is not None:
        judged.add("duckdb")
        if wanted != table:
            return Verdict(Fault("differs: duckdb", difference("duckdb", wanted, "flowsql", table)))
    batch = _batch(session, query, variation.in_batch())
    if isinstance(batch, Fault):
        return Verdict(batch)
    no_batch = batch if isinstance(batch, str) else query.sql.streaming or None
    if not isinstance(batch, str) and not query.sql.streaming:
        judged.add("batch")
        if batch != table:
            return Verdict(Fault("differs: batch", difference("streaming", table, str(variation.in_batch()), batch)))
    no_twin = None if wanted is not None else query.sql.why or "unknown"
    return Verdict(judged=frozenset(judged), no_twin=no_twin, empty=not table, no_batch=no_batch)


def _batch(session: Session, query: Query, way: Variation) -> Answer | Fault | str:
    """What batch mode answers, or why it does not."""
    try:
        for statement in query.statements():
            session.execute(statement, "batch")
        changes = _run(session.query(query.flink(), batch=True), way)
    except InternalError:
        raise
    except FlowSqlError as error:
        return f"{error.code}: {error.message.splitlines()[0][:100]}"
    return changes if isinstance(changes, Fault) else _table(changes)


def twin_answer(duck: duckdb.DuckDBPyConnection, query: Query) -> Answer | None:
    """What DuckDB says; None for a query without a twin."""
    text = query.duck()
    return None if text is None else Counter(plain(list(row)) for row in duck.execute(text).fetchall())


def _run(bound: Bound, variation: Variation) -> Changes | Fault:
    try:
        return bound.changes(variation)
    except InternalError:
        raise
    except FlowSqlError as error:
        cause = error.__cause__
        if cause is None or isinstance(cause, FlowSqlError):
            raise
        return _crash(cause)
    except Exception as error:
        return _crash(error)


def _crash(error: BaseException) -> Fault:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.name}"
    return Fault(f"{type(error).__name__} in {place}", "".join(traceback.format_exception(error))[-3000:])


def _table(changes: Changes) -> Answer | Fault:
    try:
        return folded(changes)
    except TakenBackError as error:
        return Fault("taken back", f"{error}\n" + "\n".join(map(str, changes[:60])))


def difference(one: str, wanted: Answer, other: str, found: Answer) -> str:
    """What only one of two answers has."""
    lines = []
    for name, rows in ((one, wanted - found), (other, found - wanted)):
        lines.append(f"only {name}: {sum(rows.values())} rows")
        lines += [f"  {count} x {row}" for row, count in itertools.islice(rows.items(), SHOWN)]
    return "\n".join(lines)
