"""Rows of Python, Arrow and pandas as tables."""

from __future__ import annotations

import datetime
from collections import namedtuple
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from flowsql.table import DataTypes, Row, RowKind, TableEnvironment
from flowsql.table.expressions import col, lit, row
from flowsql_core.errors import BindError


@pytest.fixture(scope="module")
def environment() -> TableEnvironment:
    made = TableEnvironment.create()
    made.get_config().set_local_timezone("Europe/Berlin")
    return made


def columns(table: Any) -> dict[str, str]:
    return {column.name: str(column.type) for column in table.get_resolved_schema().columns}


def rows(table: Any) -> list[tuple[Any, ...]]:
    with table.execute().collect() as found:
        return [tuple(row) for row in found]


def test_types_are_inferred_as_pyflink_infers_them(environment: TableEnvironment) -> None:
    values = (
        1, 2.5, "a", True, b"x", Decimal("1.5"), datetime.date(2020, 1, 2), datetime.time(1, 2, 3),
        datetime.datetime(2020, 1, 2, 12), [1, None], {"k": 2}, (1, "x"), datetime.timedelta(seconds=3), None,
    )  # fmt: skip
    other = (None,) * 13 + ("z",)
    table = environment.from_elements([values, other])
    assert list(columns(table).values()) == [
        "BIGINT", "DOUBLE", "STRING", "BOOLEAN", "BYTES", "DECIMAL(38, 18)", "DATE", "TIME(0)", "TIMESTAMP_LTZ(6)",
        "ARRAY<BIGINT>", "MAP<STRING NOT NULL, BIGINT>", "ROW<`_1` BIGINT, `_2` STRING>", "INTERVAL SECOND(3)",
        "STRING",
    ]  # fmt: skip
    assert list(columns(table))[:2] == ["_1", "_2"]
    first, second = rows(table)
    assert first[:8] == (1, 2.5, "a", True, b"x", Decimal("1.5"), values[6], values[7])
    # A datetime without a zone is one of the machine's clock, whatever the session's zone is.
    assert first[8] == datetime.datetime(2020, 1, 2, 12).astimezone()
    assert first[9:13] == ([1, None], {"k": 2}, Row(1, "x"), datetime.timedelta(seconds=3))
    assert second == other


def test_rows_have_many_forms(environment: TableEnvironment) -> None:
    point = namedtuple("point", "x y")
    for given in ([{"x": 1, "y": "a"}], [Row(x=1, y="a")], [point(1, "a")]):
        table = environment.from_elements(given)
        assert columns(table) == {"x": "BIGINT", "y": "STRING"}
        assert rows(table) == [(1, "a")]
    assert rows(environment.from_elements([[1, "a"]], ["p", "q"]).select(col("q"))) == [("a",)]
    assert rows(environment.from_elements([1, 2], DataTypes.INT()).select(col("value") + 1)) == [(2,), (3,)]
    assert rows(environment.from_elements(((i, i * i) for i in range(3)), ["i", "q"])) == [(0, 0), (1, 1), (2, 4)]


def test_a_schema_decides(environment: TableEnvironment) -> None:
    schema = DataTypes.ROW(
        [
            DataTypes.FIELD("i", DataTypes.TINYINT(False)),
            DataTypes.FIELD("ts", DataTypes.TIMESTAMP(3)),
            DataTypes.FIELD("m", DataTypes.MULTISET(DataTypes.STRING())),
            DataTypes.FIELD("r", DataTypes.ROW([DataTypes.FIELD("a", DataTypes.ARRAY(DataTypes.FLOAT()))])),
        ]
    )
    moment = datetime.datetime(2020, 1, 2, 3, 4, 5, 678000)
    table = environment.from_elements([(7, moment, {"x": 2}, {"a": [0.5]})], schema)
    assert rows(table) == [(7, moment, {"x": 2}, Row([0.5]))]
    assert columns(table)["i"] == "TINYINT NOT NULL"
    assert environment.from_elements([], schema).to_arrow().num_rows == 0


def test_expressions_make_values(environment: TableEnvironment) -> None:
    schema = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.BIGINT()), DataTypes.FIELD("b", DataTypes.STRING())])
    table = environment.from_elements([row(1, "x"), row(lit(2) + 1, "yy")], schema)
    assert sorted(rows(table)) == [(1, "x"), (3, "yy")]
    assert list(columns(environment.from_elements([row(1, 2)]))) == ["f0", "f1"]


TWO = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.TINYINT()), DataTypes.FIELD("b", DataTypes.VARCHAR(2, False))])


@pytest.mark.parametrize(
    ("given", "schema", "message"),
    [
        ([], None, "can not infer schema from empty data set"),
        ([(1,), ("a",)], ["x"], "field x: Can not merge type BIGINT and STRING"),
        ([(None,)], None, "Some column types cannot be determined"),
        ([(1, 2), (3,)], None, "Length of object (1) does not match with length of fields (2): row 2 is (3,)"),
        ([5], None, "Row 1 is 5"),
        ([(1, "a"), (300, "b")], TWO, "field a: object of TinyIntType out of range, got: 300\nhint: row 2, "),
        ([(1, "abc")], TWO, "field b: length of object (abc) of VarCharType exceeds: 2\nhint: row 1, "),
        ([(1, None)], TWO, "This field is not nullable"),
        ([("1", "a")], TWO, "can not accept object '1'"),
        ([Row.of_kind(RowKind.DELETE, 1, "a")], TWO, "takes inserted rows only"),
        ([(1,)], 5, "Expected a data type"),
    ],
)
def test_what_does_not_fit_is_told(environment: TableEnvironment, given: Any, schema: Any, message: str) -> None:
    with pytest.raises(BindError, match=message.replace("(", r"\(").replace(")", r"\)")):
        environment.from_elements(given, schema)


def test_arrow(environment: TableEnvironment) -> None:
    data = pa.table(
        {
            "s": pa.array(["a", "b", "a"]).dictionary_encode(),
            "l": pa.array(["x", None, "z"], pa.large_string()),
            "u": pa.array([1, 2, 3], pa.uint8()),
            "t": pa.array([0, 1, 2], pa.timestamp("s")),
        }
    )
    table = environment.from_arrow(data)
    assert columns(table) == {"s": "STRING", "l": "STRING", "u": "SMALLINT", "t": "TIMESTAMP(0)"}
    assert rows(table.where(col("u") > 1).select(col("s"), col("l"))) == [("b", None), ("a", "z")]
    assert columns(environment.from_arrow(data.to_batches()[0].select(["u"]), ["n"])) == {"n": "SMALLINT"}
    typed = environment.from_arrow(data.select(["u"]), DataTypes.ROW([DataTypes.FIELD("n", DataTypes.DOUBLE())]))
    assert rows(typed) == [(1.0,), (2.0,), (3.0,)]
    with pytest.raises(BindError, match="got dict"):
        environment.from_arrow({})


def test_many_batches_are_read_in_order(environment: TableEnvironment) -> None:
    data = pa.concat_tables([pa.table({"n": list(range(i * 1000, (i + 1) * 1000))}) for i in range(5)])
    assert environment.from_arrow(data).to_arrow().column("n").to_pylist() == list(range(5000))


def test_pandas(environment: TableEnvironment) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": [1.5, None, 3.0], 2: ["a", "b", None]}, index=[7, 8, 9])
    table = environment.from_pandas(frame, splits_num=2)
    assert columns(table) == {"x": "DOUBLE", "2": "STRING"}
    assert sorted(rows(table), key=str) == [(1.5, "a"), (3.0, None), (None, "b")]
    named = environment.from_pandas(frame, ["p", "q"])
    assert columns(named) == {"p": "DOUBLE", "q": "STRING"}
    assert columns(environment.from_pandas(frame, [DataTypes.FLOAT(), DataTypes.STRING()]))["x"] == "FLOAT"
    assert named.to_pandas()["q"].fillna("-").tolist() == ["a", "b", "-"]


def test_values_are_no_literals_of_the_plan(environment: TableEnvironment) -> None:
    plan = environment.from_elements([(i,) for i in range(100_000)], ["i"]).explain()
    assert len(plan) < 600


def test_rows_given_by_nobody_are_refused(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE TEMPORARY TABLE ghost (x INT) WITH ('connector' = 'arrow', 'rows' = 'nothing')")
    with pytest.raises(Exception, match="does not hold the rows 'nothing'"):
        rows(environment.from_path("ghost"))


def test_moments_and_amounts_of_time_round_trip() -> None:
    import pyarrow as pa

    environment = TableEnvironment.create()
    given = pa.table(
        {
            "moment": pa.array([1_577_836_800_123_456_789, None], pa.timestamp("ns")),
            "amount": pa.array([datetime.timedelta(days=1, milliseconds=5), None], pa.duration("ms")),
        }
    )
    table = environment.from_arrow(given)
    assert table.to_arrow().equals(given)
    (first, *_), second = rows(table)
    assert (type(first), first) == (datetime.datetime, datetime.datetime(2020, 1, 1, 0, 0, 0, 123456))
    assert second == (None, None)
