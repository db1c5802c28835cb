"""What a plan says of one edit after the other: the table of docs/snapshots.md, operator by operator."""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowsql_core.errors import BindError
from flowsql_runtime.checkpoint.evolution import Change, Fate, check, compare, remembered_of
from flowsql_runtime.checkpoint.late_calls import with_late_calls
from flowsql_runtime.checkpoint.settings import ChangedState

from .judge import Session, make_tables

JOIN = "SELECT x.id, y.v FROM a x {} b y ON x.k = y.k AND {}"
UPDATED = "SELECT x.id, y.v FROM a x {} (SELECT k, MAX(v) AS v FROM b GROUP BY k) y ON x.k = y.k AND {}"
SEMI = "SELECT id FROM a x WHERE {} (SELECT 1 FROM b y WHERE x.k = y.k AND {})"
INTERVAL = (
    "SELECT x.id, y.v FROM a x {} b y ON x.k = y.k "
    "AND x.ts BETWEEN y.ts - INTERVAL '{}' SECOND AND y.ts + INTERVAL '{}' SECOND AND {}"
)
TEMPORAL = "SELECT x.id, y.v FROM a x {} versions FOR SYSTEM_TIME AS OF x.ts AS y ON x.k = y.k AND {}"
WINDOW_JOIN = (
    "SELECT x.id, y.v FROM (SELECT * FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '{0}' SECOND))) x {1} "
    "(SELECT * FROM TABLE(TUMBLE(TABLE b, DESCRIPTOR(ts), INTERVAL '{0}' SECOND))) y "
    "ON x.window_start = y.window_start AND x.window_end = y.window_end AND x.k = y.k AND {2}"
)
THREE = "SELECT /*+ MULTI_JOIN(x, y, z) */ x.id FROM a x {} b y ON x.k = y.k AND {} JOIN versions z ON x.k = z.k AND {}"
LAG = "SELECT id, LAG(v, {}) OVER (PARTITION BY k ORDER BY ts) FROM a"
FRAME = "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY ts {}) FROM a"
TOP = "SELECT id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {}) AS rn FROM {}) WHERE rn {}"
UPDATES = "(SELECT id, k, MAX(v) AS v FROM a GROUP BY id, k)"
FIRST = "SELECT id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {}) AS rn FROM a) WHERE rn = 1"
WINDOWS = "SELECT window_end, k, SUM(v) FROM TABLE({}) GROUP BY window_start, window_end, k"
WINDOW_TOP = (
    "SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k ORDER BY {}) AS rn "
    "FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND))) WHERE rn {}"
)
MATCH = (
    "SELECT * FROM (SELECT {} FROM a) MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES {} ONE ROW PER MATCH "
    "AFTER MATCH {} PATTERN ({}) WITHIN INTERVAL '{}' SECOND DEFINE X AS {})"
)
PAST = "SKIP PAST LAST ROW"
COUNT = "SELECT k, COUNT(*), SUM(v) FROM ({}) GROUP BY k"
OUTER = "SELECT x.k, x.v FROM a x LEFT JOIN b y ON x.id = y.id{}{}"

KEPT, MIGRATED, REBUILT, DROPPED, NEW = Fate.KEPT, Fate.MIGRATED, Fate.REBUILT, Fate.DROPPED, Fate.NEW

#: Query, edit, fates of the operators with state, and words of the reason.
EDITS: list[tuple[str, str, set[Fate], str]] = [
    # Regular joins.
    (JOIN.format("JOIN", "x.v < y.v"), JOIN.format("INNER JOIN", "y.v > x.v"), {MIGRATED}, "condition: was"),
    (JOIN.format("JOIN", "x.v < y.v"), JOIN.format("JOIN", "x.v <= y.v"), {MIGRATED}, "answered by the old one"),
    (JOIN.format("JOIN", "y.v > 3"), JOIN.format("JOIN", "y.v > 4"), {MIGRATED}, "rows arrived where"),
    (JOIN.format("JOIN", "TRUE"), JOIN.format("JOIN", "x.v < y.v"), {REBUILT}, r"what is stored lacks a\.v"),
    (UPDATED.format("JOIN", "x.v < y.v"), UPDATED.format("JOIN", "x.v <= y.v"), {KEPT, REBUILT}, "condition: was"),
    (JOIN.format("LEFT JOIN", "x.v < y.v"), JOIN.format("LEFT JOIN", "x.v <= y.v"), {REBUILT}, "condition: was"),
    (JOIN.format("JOIN", "TRUE"), JOIN.format("LEFT JOIN", "TRUE"), {REBUILT}, "join: was 'InnerJoin'"),
    (JOIN.format("LEFT JOIN", "TRUE"), JOIN.format("JOIN", "TRUE"), {REBUILT}, "join: was 'LeftOuterJoin'"),
    (SEMI.format("EXISTS", "TRUE"), SEMI.format("NOT EXISTS", "TRUE"), {REBUILT}, "is 'LeftAntiJoin'"),
    (SEMI.format("EXISTS", "x.v < y.v"), SEMI.format("EXISTS", "x.v > y.v"), {REBUILT}, "condition: was"),
    (
        "SELECT id FROM a x WHERE x.k IN (SELECT k FROM b)",
        "SELECT id FROM a x WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = x.k)",
        {REBUILT},
        "starts again from nothing: left rows, right rows",
    ),
    (
        JOIN.format("JOIN", "x.v < y.v AND x.s = 'a'"),
        "SELECT q.id, p.v FROM (SELECT * FROM a WHERE s = 'a') q JOIN (SELECT k, v FROM b) p "
        "ON p.k = q.k AND q.v < p.v",
        {KEPT},
        "",
    ),
    # Interval joins.
    (INTERVAL.format("JOIN", 5, 5, "TRUE"), INTERVAL.format("JOIN", 8, 5, "TRUE"), {MIGRATED}, "5000 were kept, 8000"),
    (INTERVAL.format("JOIN", 5, 5, "TRUE"), INTERVAL.format("JOIN", 5, 3, "TRUE"), {MIGRATED}, "bounds: was"),
    (INTERVAL.format("JOIN", 5, 5, "x.v < y.v"), INTERVAL.format("JOIN", 5, 5, "TRUE"), {MIGRATED}, "condition"),
    (INTERVAL.format("LEFT JOIN", 5, 5, "TRUE"), INTERVAL.format("LEFT JOIN", 8, 5, "TRUE"), {REBUILT}, "bounds"),
    (INTERVAL.format("JOIN", 5, 5, "TRUE"), INTERVAL.format("LEFT JOIN", 5, 5, "TRUE"), {REBUILT}, "join: was"),
    # Temporal and window joins, several inputs.
    (TEMPORAL.format("JOIN", "TRUE"), TEMPORAL.format("LEFT JOIN", "TRUE"), {MIGRATED}, "join: was"),
    (TEMPORAL.format("JOIN", "TRUE"), TEMPORAL.format("JOIN", "y.v > 3"), {MIGRATED}, "condition"),
    (WINDOW_JOIN.format(5, "JOIN", "x.v < y.v"), WINDOW_JOIN.format(5, "JOIN", "x.v > y.v"), {MIGRATED}, "condition"),
    (WINDOW_JOIN.format(5, "JOIN", "TRUE"), WINDOW_JOIN.format(9, "JOIN", "TRUE"), {REBUILT}, "window: was"),
    (THREE.format("JOIN", "x.v < y.v", "TRUE"), THREE.format("JOIN", "x.v > y.v", "TRUE"), {MIGRATED}, "condition"),
    (THREE.format("JOIN", "x.v < y.v", "TRUE"), THREE.format("LEFT JOIN", "x.v < y.v", "TRUE"), {REBUILT}, "condition"),
    # OVER.
    (LAG.format(1), LAG.format(3), {MIGRATED}, "rows that LAG looks back: 1 were kept, 3 are needed"),
    (LAG.format(3), LAG.format(1), {KEPT}, ""),
    (LAG.format("2, 0"), LAG.format("2, 7"), {KEPT}, ""),
    (FRAME.format("ROWS 3 PRECEDING"), FRAME.format("ROWS 2 PRECEDING"), {REBUILT}, "frame: was"),
    (FRAME.format(""), FRAME.format("ROWS 2 PRECEDING"), {REBUILT}, "frame: was"),
    (FRAME.format(""), FRAME.format("").replace("SUM(v)", "AVG(v)"), {KEPT}, ""),
    # Rankings.
    (TOP.format("v", "a", "<= 3"), TOP.format("v", "a", "<= 5"), {REBUILT}, "places: was '1 to 3', is '1 to 5'"),
    (TOP.format("v", "a", "<= 3"), TOP.format("v", "a", "BETWEEN 2 AND 3"), {REBUILT}, "places"),
    (TOP.format("v", UPDATES, "<= 3"), TOP.format("v", UPDATES, "<= 2"), {KEPT, REBUILT}, "places"),
    (TOP.format("v", "a", "<= 3"), TOP.format("v DESC", "a", "<= 3"), {REBUILT}, "order: was"),
    (FIRST.format("ts"), FIRST.format("ts DESC"), {REBUILT}, "row: was 'first by"),
    (FIRST.format("ts"), FIRST.format("p"), {REBUILT}, "row: was 'first by"),
    (WINDOW_TOP.format("v", "<= 3"), WINDOW_TOP.format("v", "BETWEEN 2 AND 3"), {MIGRATED}, "first place: was '1'"),
    (WINDOW_TOP.format("v", "<= 3"), WINDOW_TOP.format("v", "<= 4"), {REBUILT}, "rows kept: was"),
    # Windows.
    (
        WINDOWS.format("TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND)"),
        WINDOWS.format("TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '3' SECOND)"),
        {REBUILT},
        r"starts again from nothing: .*sum\(a\.v\)",
    ),
    (
        WINDOWS.format("SESSION(TABLE a, DESCRIPTOR(ts), INTERVAL '2' SECOND)"),
        WINDOWS.format("SESSION(TABLE a, DESCRIPTOR(ts), INTERVAL '3' SECOND)"),
        {REBUILT, DROPPED, NEW},
        "gap 2000 ms",
    ),
    # MATCH_RECOGNIZE.
    (
        MATCH.format("*", "X.id AS i", PAST, "X Y", 9, "X.v > 3"),
        MATCH.format("*", "X.id AS i", PAST, "X Y", 5, "X.v > 3"),
        {REBUILT},
        "within 9000",
    ),
    (
        MATCH.format("id, k, ts, v, j", "X.id AS i, Y.v AS v, Y.j AS j", PAST, "X Y", 9, "X.v > 3"),
        MATCH.format("id, k, ts, j, v", "X.id AS i, Y.v AS v, Y.j AS j", PAST, "X Y", 9, "X.j > 3"),
        {REBUILT},
        "condition: was",
    ),
    (
        MATCH.format("*", "X.id AS i", PAST, "X Y", 9, "X.v > 3"),
        MATCH.format("*", "Y.id AS i", PAST, "X Y", 9, "X.v > 3"),
        {KEPT},
        "",
    ),
    # Where a condition holds.
    (
        COUNT.format(OUTER.format(" AND x.v > 3", "")),
        COUNT.format(OUTER.format("", " WHERE x.v > 3")),
        {MIGRATED, REBUILT},
        "",
    ),
    (
        COUNT.format(TOP.format("id", "a WHERE v > 3", "<= 2").replace("id, v", "k, v")),
        COUNT.format(TOP.format("id", "a", "<= 2 AND v > 3").replace("id, v", "k, v")),
        {MIGRATED},
        "rows arrived where",
    ),
    # Aggregates.
    ("SELECT k, SUM(v) FROM a GROUP BY k", "SELECT k, AVG(v) FROM a GROUP BY k", {KEPT}, ""),
    (
        "SELECT k, SUM(v), COUNT(*) FROM a GROUP BY k",
        "SELECT k, SUM(v), COUNT(*), MAX(v) FROM a GROUP BY k",
        {MIGRATED},
        r"max\(a\.v\) WHERE .* after a restore: was not kept, counts from the restore on",
    ),
    (
        "SELECT k, SUM(v) FROM (SELECT k, id, MAX(v) AS v FROM a GROUP BY k, id) GROUP BY k",
        "SELECT k, SUM(v), MAX(v) FROM (SELECT k, id, MAX(v) AS v FROM a GROUP BY k, id) GROUP BY k",
        {KEPT, REBUILT},
        "rows from before may be taken back.*starts again from nothing: rows, count",
    ),
    (
        WINDOWS.format("TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND)"),
        WINDOWS.format("TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND)").replace("SUM(v)", "SUM(v), MIN(v)"),
        {MIGRATED},
        r"min\(a\.v\)",
    ),
    ("SELECT k, SUM(v) FROM a GROUP BY k", "SELECT k, SUM(v), SUM(j) FROM a GROUP BY k", {MIGRATED}, r"sum\(a\.j\)"),
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder: Path = tmp_path_factory.mktemp("tables")
    make_tables(folder, random.Random(1))
    return Session(folder, {})


def changes_of(session: Session, old: str, new: str) -> tuple[Change, ...]:
    remembered = remembered_of(session.graph(old))
    return compare(remembered, with_late_calls(remembered, session.graph(new)))


@pytest.mark.parametrize(("old", "new", "fates", "words"), EDITS)
def test_the_fate_of_an_edit(session: Session, old: str, new: str, fates: set[Fate], words: str) -> None:
    changes = changes_of(session, old, new)
    assert {one.fate for one in changes} == fates, changes
    reasons = "; ".join(reason for one in changes for reason in one.reasons)
    assert re.search(words, reasons), reasons


def _queries() -> Iterator[str]:
    for old, new, *_ in EDITS:
        yield from (old, new)


@pytest.mark.nightly
@pytest.mark.parametrize("sql", sorted(set(_queries())))
def test_a_query_keeps_the_state_of_itself(session: Session, sql: str) -> None:
    assert {one.fate for one in changes_of(session, sql, sql)} == {KEPT}


def test_a_snapshot_from_before_such_facts_is_taken_over(session: Session) -> None:
    """Older snapshots do not say what the state was made with: they are compared by what they say."""
    for sql in (
        INTERVAL.format("LEFT JOIN", 5, 5, "TRUE"),
        COUNT.format(OUTER.format(" AND x.v > 3", "")),
        LAG.format(1),
    ):
        remembered: list[Any] = []
        for one in remembered_of(session.graph(sql)):
            assert one.layout is not None
            conditions = tuple(
                tuple(text for text in asked if not text.startswith("@ ")) for asked in one.layout.conditions
            )
            layout = dataclasses.replace(
                one.layout, conditions=conditions, made_with=None, answered_with=None, reaches=None
            )
            remembered.append(dataclasses.replace(one, layout=layout))
        assert {one.fate for one in compare(remembered, session.graph(sql))} == {KEPT}


def test_what_is_refused_names_what_starts_again(session: Session) -> None:
    changes = changes_of(session, FRAME.format(""), FRAME.format("ROWS 2 PRECEDING"))
    with pytest.raises(BindError, match=r"frame: was .*starts again from nothing: .*sum\(a\.v\)"):
        check(changes, ignore_unclaimed=False, changed=ChangedState.MIGRATE)
