"""What a failing cast of a text says: the very words of Flink 2.3.0, which are Java's."""

from __future__ import annotations

import pyarrow as pa
import pytest

from flowsql_compute.eval.cast import cast_array
from flowsql_compute.eval.context import EvalContext
from flowsql_core.errors import ExecutionError
from flowsql_core.types import logical as t

MOMENT = t.TimestampType(precision=3)
LTZ = t.TimestampLtzType(precision=3)
SHORT = t.DecimalType(precision=18, scale=0)
LONG = t.DecimalType(precision=20, scale=0)


@pytest.mark.parametrize(
    ("text", "type_", "message"),
    [
        ("abc", t.DOUBLE, 'For input string: "abc"'),
        (" x y ", t.DOUBLE, 'For input string: "x y"'),
        ("   ", t.DOUBLE, "empty String"),
        ("", t.FLOAT, "empty String"),
        ("1.2.3", t.DOUBLE, "multiple points"),
        ("1..2", t.DOUBLE, "multiple points"),
        ("a.b.c", t.DOUBLE, 'For input string: "a.b.c"'),
        ("1e", t.DOUBLE, 'For input string: "1e"'),
        (".", t.DOUBLE, 'For input string: "."'),
        ("abc", t.INT, "For input string: 'abc'. Invalid character found."),
        ("", t.INT, "For input string: ''. Input is empty."),
        ("abc", SHORT, "For input string: 'abc'. Overflow."),
        ("1234567890123456789", SHORT, "For input string: '1234567890123456789'. Overflow."),
        ("1e18", SHORT, "For input string: '1e18'. Overflow."),
        ("1234567890123456789012", LONG, "For input string: '1234567890123456789012'. Overflow."),
        ("x", LONG, 'Character x is neither a decimal digit number, decimal point, nor "e" notation exponential mark.'),
        ("abc", MOMENT, "Text 'abc' could not be parsed at index 0"),
        ("", MOMENT, "Text '' could not be parsed at index 0"),
        (" 2020-01-01 00:00:00", MOMENT, "Text ' 2020-01-01 00:00:00' could not be parsed at index 0"),
        ("20-01-01 00:00:00", MOMENT, "Text '20-01-01 00:00:00' could not be parsed at index 0"),
        ("12020-01-01 00:00:00", MOMENT, "Text '12020-01-01 00:00:00' could not be parsed at index 0"),
        ("2020/01/01 00:00:00", MOMENT, "Text '2020/01/01 00:00:00' could not be parsed at index 4"),
        ("2020-1x-01 00:00:00", MOMENT, "Text '2020-1x-01 00:00:00' could not be parsed at index 6"),
        ("2020-01", MOMENT, "Text '2020-01' could not be parsed at index 7"),
        ("2020-01-01x", MOMENT, "Text '2020-01-01x' could not be parsed, unparsed text found at index 10"),
        ("2020-01-01 ", MOMENT, "Text '2020-01-01 ' could not be parsed, unparsed text found at index 10"),
        ("2020-01-01 10:00", MOMENT, "Text '2020-01-01 10:00' could not be parsed, unparsed text found at index 10"),
        (
            "2020-01-01 00:00:00x",
            MOMENT,
            "Text '2020-01-01 00:00:00x' could not be parsed, unparsed text found at index 19",
        ),
        (
            "2020-13-41 25:00:00",
            LTZ,
            "Text '2020-13-41 25:00:00' could not be parsed: Invalid value for MonthOfYear (valid values 1 - 12): 13",
        ),
        (
            "2020-01-32 00:00:00",
            MOMENT,
            "Text '2020-01-32 00:00:00' could not be parsed: Invalid value for DayOfMonth (valid values 1 - 28/31): 32",
        ),
        (
            "2020-01-01 25:00:00",
            MOMENT,
            "Text '2020-01-01 25:00:00' could not be parsed: Invalid value for HourOfDay (valid values 0 - 23): 25",
        ),
        (
            "2020-01-01 00:61:00",
            MOMENT,
            "Text '2020-01-01 00:61:00' could not be parsed: Invalid value for MinuteOfHour (valid values 0 - 59): 61",
        ),
        (
            "2020-01-01 00:00:61",
            MOMENT,
            "Text '2020-01-01 00:00:61' could not be parsed: Invalid value for SecondOfMinute (valid values 0 - 59): "
            "61",
        ),
        ("abc", t.DATE, "For input string: 'abc'."),
        (
            "25:00:00",
            t.TimeType(),
            "Invalid time format: '25:00:00'. Expected format: HH:mm:ss[.fff] where HH is 00-23, mm is 00-59, "
            "ss is 00-59",
        ),
        ("abc", t.BOOLEAN, "Cannot parse 'abc' as BOOLEAN."),
    ],
)
def test_casts_fail_in_flinks_words(text: str, type_: t.LogicalType, message: str) -> None:
    with pytest.raises(ExecutionError) as caught:
        cast_array(pa.array([text]), t.STRING, type_, False, EvalContext())
    assert caught.value.message == message
