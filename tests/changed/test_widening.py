"""Columns get wider types between a savepoint and the job that starts from it: all state is taken over, converted."""

from __future__ import annotations

import dataclasses
import itertools
import random
import re
from pathlib import Path
from typing import Final

import pytest

from flowsql_core.graph.job import JobGraph
from flowsql_core.types.text import parse_type
from flowsql_runtime.checkpoint.evolution import Fate, compare, remembered_of
from flowsql_runtime.checkpoint.widening import PlainTexts, casts, is_wider
from flowsql_runtime.testing.cut import run_cut, run_whole

from .families import draw_pair
from .judge import Session, judge, make_tables, net

OLD: Final = {
    "id": "SMALLINT",
    "k": "INT NOT NULL",
    "j": "TINYINT",
    "v": "INT",
    "s": "VARCHAR(5)",
    "d": "DECIMAL(8, 2)",
}
NEW: Final = {"id": "INT", "k": "BIGINT", "j": "INT", "v": "BIGINT", "s": "STRING", "d": "DECIMAL(12, 3)"}


def _round(folder: Path, seed: int, queries: int) -> int:
    """Random queries, unchanged, over tables whose columns grew; returns how many kept all state."""
    draw = random.Random(seed)
    make_tables(folder, draw)
    sessions: dict[frozenset[tuple[str, str]], tuple[Session, Session]] = {}
    kept = 0
    for number in range(queries):
        drawn = draw_pair(draw)
        # A decimal that was emitted with two digits is taken back with three.
        pair = dataclasses.replace(drawn, new=drawn.old, edited=(), shown="d" in drawn.old.replace("id", ""))
        options = frozenset(pair.options.items())
        if options not in sessions:
            sessions[options] = Session(folder, pair.options, OLD), Session(folder, pair.options, NEW)
        own = folder / str(number)
        own.mkdir()
        try:
            verdict = judge(pair, own, *sessions[options], random.Random(seed + number))
        except Exception as error:
            raise AssertionError(f"seed {seed}, query {number}: {pair}") from error
        assert not verdict.wrong, f"seed {seed}, query {number}: {verdict.wrong}\n{pair}"
        kept += verdict.fates <= {Fate.KEPT}
    return kept


def test_all_state_of_wider_columns_is_taken_over(tmp_path: Path) -> None:
    assert _round(tmp_path, 34, 15) >= 11


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(20))
def test_all_state_of_wider_columns_is_taken_over_500_times(tmp_path: Path, number: int) -> None:
    assert _round(tmp_path, 7_000 + number, 25) >= 18


QUERIES: Final = (
    "SELECT k, COUNT(*), SUM(v), MAX(v) FROM a GROUP BY k",
    "SELECT x.id, y.v FROM a x LEFT JOIN b y ON x.k = y.k",
    "SELECT id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, id) AS rn FROM a) WHERE rn < 3",
    "SELECT id, LAG(v, 2) OVER (PARTITION BY k ORDER BY ts) FROM a",
    "SELECT k, COUNT(DISTINCT v) FROM a GROUP BY k",
)


@pytest.mark.parametrize(
    ("column", "before", "after"),
    [
        ("v", "BIGINT", "INT"),
        ("v", "INT", "INT NOT NULL"),
        ("v", "VARCHAR(9)", "VARCHAR(5)"),
        ("v", "DECIMAL(9, 2)", "DECIMAL(9, 3)"),
        ("v", "FLOAT", "DOUBLE"),
        ("k", "BIGINT", "INT"),
        ("k", "STRING", "VARCHAR(5)"),
    ],
)
def test_a_narrower_column_is_refused_by_its_name(tmp_path: Path, column: str, before: str, after: str) -> None:
    make_tables(tmp_path, random.Random(1))
    sessions = [Session(tmp_path, {}, {column: type_}) for type_ in (before, after)]
    for sql in QUERIES:
        if "SUM" in sql and "VARCHAR" in before:
            continue
        (change,) = compare(remembered_of(sessions[0].graph(sql)), sessions[1].graph(sql))
        assert change.fate is Fate.REBUILT, (sql, change)
        reasons = "; ".join(change.reasons)
        assert re.search(rf"column [ab]\.{column} was {re.escape(before)}, is {re.escape(after)}", reasons), (
            sql,
            reasons,
        )


LISTS: Final = "(SELECT id, k, ts, ARRAY[v, v] AS l, ROW(ARRAY[v], v) AS r, MAP[s, v] AS m FROM a)"


@pytest.mark.parametrize(
    ("sql", "fate"),
    [
        (f"SELECT x.id, x.l, x.r, y.m FROM {LISTS} x JOIN {LISTS} y ON x.k = y.k AND x.id = y.id", Fate.KEPT),
        (f"SELECT x.id, y.l FROM {LISTS} x LEFT JOIN {LISTS} y ON x.k = y.k AND x.ts = y.ts", Fate.KEPT),
        ("SELECT k, COLLECT(v) FROM a GROUP BY k", Fate.KEPT),
        ("SELECT k, ARRAY_AGG(v) FROM a GROUP BY k", Fate.KEPT),
        (f"SELECT k, FIRST_VALUE(l) FROM {LISTS} GROUP BY k", Fate.KEPT),
        (f"SELECT k, LAST_VALUE(r) FROM {LISTS} GROUP BY k", Fate.REBUILT),
        (f"SELECT id, LAG(l, 2) OVER (PARTITION BY k ORDER BY ts) FROM {LISTS}", Fate.KEPT),
        (
            f"SELECT id, r FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) AS rn FROM {LISTS}) "
            "WHERE rn < 3",
            Fate.KEPT,
        ),
        (f"SELECT l, COUNT(*) FROM {LISTS} GROUP BY l", Fate.REBUILT),
    ],
)
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_collections_grow_or_are_refused_and_are_never_misread(
    tmp_path: Path, sql: str, fate: Fate, backend: str
) -> None:
    make_tables(tmp_path, random.Random(2))
    old, new = Session(tmp_path, {}, {"v": "INT"}), Session(tmp_path, {}, {"v": "BIGINT"})
    assert {one.fate for one in compare(remembered_of(old.graph(sql)), new.graph(sql))} == {fate}
    if fate is not Fate.KEPT:
        return
    graphs = itertools.count()

    def make(parallelism: int) -> JobGraph:
        session = old if next(graphs) == 0 else new
        return session.graph(sql, parallelism, {"state.backend.type": backend})

    found = run_cut(make, (1, 2), 30, folder=tmp_path / "cut")
    assert net(found.rows("collect")) == net(run_whole(new.graph(sql))["collect"])


def test_texts_are_the_same_apart_from_types() -> None:
    plain = PlainTexts({"a.v": "INT", "a.d": "DECIMAL(8, 2)"})
    assert plain.of(">(a.v, 3:BIGINT)") == ">(a.v, 3)"
    assert plain.of(">(a.v, CAST(3 AS BIGINT NOT NULL))") == ">(a.v, 3)"
    assert plain.of("=(CAST(a.v AS BIGINT), a.w)") == "=(a.v, a.w)"
    assert plain.of("=(CAST(a.v AS SMALLINT), a.w)") == "=(CAST(a.v AS SMALLINT), a.w)"
    assert plain.of("=(CAST(a.d AS DECIMAL(9, 3)), 1)") == "=(a.d, 1)"
    assert plain.of("=(CAST(a.d AS DECIMAL(8, 1)), 1)") == "=(CAST(a.d AS DECIMAL(8, 1)), 1)"
    assert plain.of("=(a.s, '3:BIGINT')") == "=(a.s, '3:BIGINT')"


@pytest.mark.parametrize(
    ("old", "new", "wider"),
    [
        ("INT", "BIGINT", True),
        ("TINYINT NOT NULL", "SMALLINT", True),
        ("INT", "BIGINT NOT NULL", False),
        ("DECIMAL(8, 2)", "DECIMAL(9, 3)", True),
        ("DECIMAL(8, 2)", "DECIMAL(8, 3)", False),
        ("DECIMAL(38, 2)", "DECIMAL(38, 3)", True),
        ("VARCHAR(3)", "STRING", True),
        ("CHAR(3)", "VARCHAR(3)", False),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", True),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", False),
        ("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", False),
        ("FLOAT", "DOUBLE", False),
        ("ARRAY<INT>", "ARRAY<BIGINT>", True),
        ("ROW<a INT, b VARCHAR(3)>", "ROW<a BIGINT, b STRING>", True),
        ("ROW<a INT>", "ROW<b INT>", False),
        ("MAP<STRING, INT>", "MAP<STRING, TINYINT>", False),
    ],
)
def test_what_is_wider(old: str, new: str, wider: bool) -> None:
    assert is_wider(parse_type(old), parse_type(new)) is wider


def test_stored_columns_that_can_be_cast() -> None:
    assert casts("int8", "int32")
    assert not casts("int64", "int32")
    assert casts("timestamp[ms, tz=UTC]", "timestamp[us, tz=UTC]")
    assert not casts("timestamp[ms]", "timestamp[us, tz=UTC]")
    assert casts("decimal128(8, 2)", "decimal128(9, 3)")
    assert not casts("decimal128(8, 2)", "decimal128(8, 3)")
    assert not casts("float", "double")
