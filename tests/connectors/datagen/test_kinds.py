"""Kinds of datagen columns beyond random and sequence: statistics of what they make, and options that do not fit."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from flowsql_core.errors import BindError
from tests.connectors.tables import scan, source_of, table_of

ROWS = 4000


def column(type_: str, kind: str, parallelism: int = 1, **options: str) -> list[Any]:
    """The values of a column ``x``."""
    own = {f"fields.x.{key.replace('_', '-')}": value for key, value in options.items()}
    table = table_of(
        f"x {type_}",
        {"connector": "datagen", "rows-per-second": "1000000", "number-of-rows": str(ROWS), "fields.x.kind": kind}
        | own,
    )
    return [row[0] for row in scan(table, parallelism)]


@pytest.mark.parametrize(
    ("type_", "values", "expected"),
    [
        ("STRING", "ann;bob", {"ann", "bob"}),
        ("VARCHAR(3)", "ann;", {"ann", ""}),
        ("INT", "7;-1", {7, -1}),
        ("DOUBLE", "0.5;2", {0.5, 2.0}),
        ("DECIMAL(5,2)", "0.50;12", {"0.50", "12.00"}),
        ("BOOLEAN", "true;false", {True, False}),
        ("DATE", "2026-01-31;2026-02-01", {"2026-01-31", "2026-02-01"}),
    ],
)
def test_choice_takes_values_of_the_columns_type(type_: str, values: str, expected: set[Any]) -> None:
    found = set(column(type_, "choice", values=values))
    assert found == expected or {f"{value}" for value in found} == expected


def test_choice_by_weight() -> None:
    counts = Counter(column("STRING", "choice", values="view;click;buy;never", weights="7;2;1;0"))
    assert "never" not in counts
    assert 0.65 < counts["view"] / ROWS < 0.75
    assert 0.05 < counts["buy"] / ROWS < 0.15


def test_zipf_has_hot_keys() -> None:
    counts = Counter(column("BIGINT", "zipf", min="10", max="109", exponent="1"))
    assert min(counts) == 10
    assert max(counts) <= 109
    # 1 / (1 + 1/2 + ... + 1/100) = 0.193
    assert 0.16 < counts[10] / ROWS < 0.23
    assert 1.5 < counts[10] / counts[11] < 2.7
    even = Counter(column("TINYINT", "zipf", min="0", max="3", exponent="0"))
    assert all(0.2 < count / ROWS < 0.3 for count in even.values())


@pytest.mark.parametrize("type_", ["INT", "FLOAT", "DOUBLE", "DECIMAL(8,3)"])
def test_normal_lies_around_its_mean(type_: str) -> None:
    values = np.array([float(value) for value in column(type_, "normal", mean="100", stddev="15")])
    assert abs(values.mean() - 100) < 1.5
    assert abs(values.std() - 15) < 1.5
    assert (values.round() == values).all() == (type_ == "INT")


def test_normal_ends_with_the_type() -> None:
    assert {-128, 127} <= set(column("TINYINT", "normal", mean="0", stddev="1e9"))
    assert {abs(float(value)) for value in column("DECIMAL(3,1)", "normal", stddev="1e9")} == {99.9}


def test_faker_makes_a_number_of_distinct_values() -> None:
    names = column("STRING", "faker", provider="name", distinct="50")
    assert 20 < len(set(names)) <= 50
    assert all(re.fullmatch(r"[A-Z].* .*", name) for name in names)
    assert all(re.fullmatch(r"\d+\.\d+\.\d+\.\d+", address) for address in column("STRING", "faker", provider="ipv4"))
    assert {len(name) for name in column("VARCHAR(2)", "faker", provider="name")} == {2}


def test_clock_counts_from_its_start() -> None:
    times = sorted(column("TIMESTAMP(3)", "clock", 2, start="2026-01-31 23:59:59", step="500 ms"))
    assert times[:3] == ["2026-01-31 23:59:59", "2026-01-31 23:59:59.500", "2026-02-01 00:00:00"]
    assert len(set(times)) == ROWS


def test_clock_lets_a_share_of_rows_come_late() -> None:
    start = datetime.datetime(2026, 1, 1)
    texts = column("TIMESTAMP(3)", "clock", start="2026-01-01", step="1 s", disorder="0.1", max_delay="5 s")
    delays = [
        start + datetime.timedelta(seconds=number) - datetime.datetime.fromisoformat(text)
        for number, text in enumerate(texts)
    ]
    late = [delay for delay in delays if delay]
    assert 0.07 < len(late) / ROWS < 0.13
    assert all(datetime.timedelta(0) < delay <= datetime.timedelta(seconds=5) for delay in late)
    assert max(late) > datetime.timedelta(seconds=4)


def test_clock_without_a_start_is_now() -> None:
    now = datetime.datetime.now(datetime.UTC)
    texts = set(column("TIMESTAMP_LTZ(3)", "clock"))
    moments = [datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) for text in texts]
    assert all(abs(moment - now) < datetime.timedelta(seconds=60) for moment in moments)


def test_a_share_of_nulls() -> None:
    values = column("STRING", "choice", values="a", null_rate="0.5")
    assert 0.4 < values.count(None) / ROWS < 0.6


@pytest.mark.parametrize(
    ("type_", "options", "message"),
    [
        ("INT", {"kind": "choice"}, "Could not find required property 'fields.x.values' for choice generator."),
        ("INT", {"kind": "choice", "values": "1;b"}, "'fields.x.values' has a value that is no INT: "),
        ("INT", {"kind": "choice", "values": "1;2", "weights": "1"}, "'fields.x.weights' has 1 weights for 2 values."),
        ("INT", {"kind": "choice", "values": "1;2", "weights": "1;-1"}, "weights are not negative"),
        ("MAP<INT, INT>", {"kind": "choice", "values": "1"}, "has no choice generator: it makes texts, numbers,"),
        ("STRING", {"kind": "zipf"}, "Column 'x' of type STRING has no zipf generator: it makes whole numbers."),
        ("TINYINT", {"kind": "zipf", "max": "200"}, "Keys from 1 to 200 are none of column 'x' (TINYINT)."),
        ("BIGINT", {"kind": "zipf", "max": "20000000"}, "the kind zipf has at most 10,000,000."),
        ("INT", {"kind": "zipf", "exponent": "-1"}, "expected an exponent between 0"),
        ("INT", {"kind": "normal", "stddev": "-1"}, "expected a number that is not negative"),
        ("STRING", {"kind": "faker"}, "Could not find required property 'fields.x.provider' for faker generator."),
        ("STRING", {"kind": "faker", "provider": "nme"}, "'fields.x.provider': Faker has no provider 'nme'."),
        ("STRING", {"kind": "faker", "provider": "name", "locale": "xx"}, "Faker knows no locale 'xx'."),
        ("TIMESTAMP(3)", {"kind": "clock", "start": "soon"}, "Could not parse value 'soon' for key 'fields.x.start'."),
        ("TIMESTAMP(3)", {"kind": "clock", "step": "1 s"}, "'fields.x.step' needs 'fields.x.start'"),
        ("TIMESTAMP(3)", {"kind": "clock", "disorder": "2"}, "expected a share between 0 and 1"),
        ("INT", {"kind": "zipf", "length": "3"}, "Unsupported options found for 'datagen'."),
    ],
)
def test_options_that_do_not_fit(type_: str, options: dict[str, str], message: str) -> None:
    named = {f"fields.x.{key}": value for key, value in options.items()}
    with pytest.raises(BindError) as caught:
        source_of(table_of(f"x {type_}", {"connector": "datagen", **named}))
    assert message in caught.value.message
