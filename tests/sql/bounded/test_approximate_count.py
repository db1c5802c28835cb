"""APPROX_COUNT_DISTINCT in batch mode: Flink's numbers, and registers of a plain model."""

from __future__ import annotations

import decimal
import math
import random
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from flowsql.table.session.environment import TableEnvironment
from flowsql_compute.eval.hyperloglog import cardinalities, register_codes
from flowsql_core.types import logical as t
from tests.sql.bounded.test_asked_in_batch import answer_of, local_session

ASKED = Path(__file__).parent / "approximate_counts.txt"
TABLES = (
    "CREATE TABLE n (i INT) WITH ('connector' = 'datagen', 'number-of-rows' = '100000', "
    "'rows-per-second' = '10000000', 'fields.i.kind' = 'sequence', 'fields.i.start' = '1', 'fields.i.end' = '100000')",
    "CREATE VIEW g AS SELECT CASE WHEN i <= 3 THEN 'a' WHEN i <= 900 THEN 'b' WHEN i <= 15000 THEN 'c' "
    "WHEN i <= 40000 THEN 'd' ELSE 'e' END AS k, i FROM n",
)


def asked() -> Iterator[tuple[str, list[str]]]:
    """Queries and the lines of their answers."""
    for block in ASKED.read_text(encoding="utf-8").split("\n\n"):
        query, *lines = [line for line in block.splitlines() if not line.startswith("#")] or [""]
        if query:
            yield query, [line.strip() for line in lines]


def session(**options: str) -> TableEnvironment:
    environment = local_session(**options)
    for statement in TABLES:
        environment.execute_sql(statement)
    return environment


@pytest.mark.parametrize("parallelism", ["1", "2"])
@pytest.mark.parametrize("phases", ["AUTO", "ONE_PHASE"])
def test_counts_are_flinks(parallelism: str, phases: str) -> None:
    options = {"parallelism.default": parallelism, "table.optimizer.agg-phase-strategy": phases}
    environment = session(**options)
    queries = list(asked())
    assert len(queries) == 6
    for query, wanted in queries:
        assert answer_of(environment, query) == wanted, query


WIDE = decimal.Context(40)
TYPES: dict[t.LogicalType, tuple[Any, Callable[[Any], bytes]]] = {
    t.INT: (pa.int32(), lambda value: value.to_bytes(4, "little", signed=True)),
    t.TINYINT: (pa.int8(), lambda value: value.to_bytes(4, "little", signed=True)),
    t.BIGINT: (pa.int64(), lambda value: value.to_bytes(8, "little", signed=True)),
    t.STRING: (pa.string(), lambda value: value.encode()),
    t.DOUBLE: (pa.float64(), lambda value: np.float64(value or 0.0).tobytes()),
    t.DecimalType(precision=9, scale=2): (
        pa.decimal128(9, 2),
        lambda value: int(value.scaleb(2)).to_bytes(8, "little", signed=True),
    ),
    t.DecimalType(precision=30, scale=2): (pa.decimal128(30, 2), lambda value: java_bytes(int(value.scaleb(2, WIDE)))),
    t.DateType(): (pa.date32(), lambda value: (value - date(1970, 1, 1)).days.to_bytes(8, "little", signed=True)),
    t.TimeType(): (
        pa.time32("ms"),
        lambda value: (value.hour * 3_600_000 + value.minute * 60_000).to_bytes(8, "little"),
    ),
    t.TimestampType(precision=6): (
        pa.timestamp("us"),
        lambda value: math.floor((value - datetime(1970, 1, 1)).total_seconds() * 1000).to_bytes(
            8, "little", signed=True
        ),
    ),
}


def java_bytes(number: int) -> bytes:
    """``BigInteger.toByteArray``."""
    size = next(size for size in range(1, 17) if -(1 << (8 * size - 1)) <= number < 1 << (8 * size - 1))
    return number.to_bytes(size, "big", signed=True)


def values(type_: t.LogicalType, rng: random.Random) -> list[Any]:
    match type_:
        case t.TinyIntType():
            made: list[Any] = [-128, -1, 0, 127]
        case t.IntType():
            made = [-(2**31), -1, 0, 2**31 - 1, *(rng.randrange(-(2**31), 2**31) for _ in range(200))]
        case t.BigIntType():
            made = [-(2**63), -1, 0, 2**63 - 1, *(rng.randrange(-(2**63), 2**63) for _ in range(200))]
        case t.DoubleType():
            made = [0.0, -0.0, math.inf, *(rng.gauss(0, 1e6) for _ in range(100))]
        case t.DecimalType(precision=precision):
            wide = 10**precision
            numbers = (*(rng.randrange(-wide + 1, wide) // 10 ** rng.randrange(precision) for _ in range(300)), 0, -1)
            made = [decimal.Decimal(number).scaleb(-2, WIDE) for number in numbers]
        case t.DateType():
            made = [date(1900, 1, 1), date(1970, 1, 1), date(2024, 2, 29)]
        case t.TimeType():
            made = [time(0, 0), time(23, 59)]
        case t.TimestampType():
            made = [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2024, 2, 29, 1, 2, 3, 456_789)]
        case _:
            made = ["", "é", *("".join(rng.choices("abcdé", k=size)) for size in range(100))]
    return [*made, None]


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_registers_follow_the_hash_of_a_value(type_: t.LogicalType) -> None:
    arrow, encode = TYPES[type_]
    made = values(type_, random.Random(3))
    column = pa.array([None, *made], arrow)[1:]
    got = register_codes(column, type_)
    wanted = []
    for value in made:
        if value is None:
            wanted.append(None)
            continue
        word = xxhash.xxh64_intdigest(encode(value), seed=42)
        rest = ((word << 14) & (2**64 - 1)) | (1 << 13)
        wanted.append((word >> 50) * 64 + 65 - rest.bit_length())
    assert got.to_pylist() == wanted


def test_groups_are_counted_apart() -> None:
    rng = np.random.default_rng(1)
    sizes = (0, 1, 50, 20_000, 0, 70_000, 300_000)
    codes = [register_codes(pa.array(rng.integers(0, 2**62, size)), t.BIGINT).to_numpy() for size in sizes]
    owners = np.repeat(np.arange(len(sizes)), sizes)
    order = rng.permutation(len(owners))
    counts = cardinalities(np.concatenate(codes)[order], owners[order], len(sizes))
    for place, size in enumerate(sizes):
        alone = cardinalities(codes[place], np.zeros(size, np.int64), 1)[0]
        assert counts[place] == alone
        assert abs(counts[place] - size) <= 0.04 * size


def test_what_flink_has_no_plan_for_is_refused() -> None:
    environment = session()
    for query in (
        "SELECT APPROX_COUNT_DISTINCT(i > 3) FROM g",
        "SELECT APPROX_COUNT_DISTINCT(ENCODE(k, 'UTF-8')) FROM g",
        "SELECT APPROX_COUNT_DISTINCT(ARRAY[i]) FROM g",
        "SELECT APPROX_COUNT_DISTINCT(i), COUNT(DISTINCT k) FROM g",
        "SELECT APPROX_COUNT_DISTINCT(i), SUM(DISTINCT i) FROM g GROUP BY k",
        "SELECT APPROX_COUNT_DISTINCT(i, k) FROM g",
        "SELECT APPROX_COUNT_DISTINCT(*) FROM g",
    ):
        assert answer_of(environment, query) == ["error"], query


def test_a_subquery_without_rows_counts_none() -> None:
    environment = session()
    count = "SELECT APPROX_COUNT_DISTINCT(i) FROM g WHERE g.k = v.a AND i < 900"
    query = f"SELECT a, ({count}) FROM (SELECT DISTINCT IF(i = 4, 'b', 'x') AS a FROM g) v ORDER BY a"
    assert answer_of(environment, query)[1:] == ['["b", 897]', '["x", 0]']
