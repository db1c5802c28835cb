"""``udf``: what may be declared, which types follow, what is refused."""

from __future__ import annotations

import datetime
import decimal
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import pytest

from flowsql.table import DataTypes, TableEnvironment
from flowsql.table.expressions import col
from flowsql.table.udf import (
    AggregateFunction,
    AsyncScalarFunction,
    ScalarFunction,
    TableFunction,
    UserDefinedAsyncScalarFunctionWrapper,
    udaf,
    udf,
    udtaf,
    udtf,
)
from flowsql_core.errors import BindError
from flowsql_core.types.logical import BIGINT
from flowsql_core.udf import FunctionKind
from flowsql_core.udf_types import type_of_hint


def answers(made: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with made.execute_sql(query).collect() as rows:
        return [tuple(row) for row in rows]


@pytest.mark.parametrize(
    ("hint", "type_"),
    [
        (int, "BIGINT"),
        (float, "DOUBLE"),
        (str, "STRING"),
        (bytes, "BYTES"),
        (bool, "BOOLEAN"),
        (decimal.Decimal, "DECIMAL(38, 18)"),
        (datetime.date, "DATE"),
        (datetime.time, "TIME(3)"),
        (datetime.datetime, "TIMESTAMP(6)"),
        (datetime.timedelta, "INTERVAL SECOND(3)"),
        (list[int], "ARRAY<BIGINT>"),
        (Sequence[list[str]], "ARRAY<ARRAY<STRING>>"),
        (dict[str, float], "MAP<STRING, DOUBLE>"),
        (Mapping[str, int], "MAP<STRING, BIGINT>"),
        (Optional[int], "BIGINT"),  # noqa: UP045 - the older form, too
        (int | None, "BIGINT"),
        (list[int | None], "ARRAY<BIGINT>"),
        (Any, "None"),
        (int | str, "None"),
        (None, "None"),
        (object, "None"),
        (list, "None"),
    ],
)
def test_hints_tell_types(hint: Any, type_: str) -> None:
    assert str(type_of_hint(hint)) == type_


class Adder(ScalarFunction):
    """A function with state that open makes."""

    def __init__(self, by: int) -> None:
        self.by = by

    def eval(self, x: int) -> int:
        return x + self.by


class PlusFive:
    def __call__(self, x: int) -> int:
        return x + 5


def add(x: int, y: int) -> int:
    return x + y


FORMS: dict[str, Any] = {
    "function": lambda: udf(functools.partial(add, 5)),
    "lambda": lambda: udf(lambda x: x + 5, result_type=DataTypes.BIGINT()),
    "lambda with types": lambda: udf(lambda x: x + 5, DataTypes.BIGINT(), DataTypes.BIGINT()),
    "text": lambda: udf(lambda x: x + 5, ["BIGINT"], "BIGINT"),
    "row of types": lambda: udf(
        lambda x: x + 5, DataTypes.ROW([DataTypes.FIELD("x", DataTypes.BIGINT())]), result_type="BIGINT"
    ),
    "callable object": lambda: udf(PlusFive()),
    "ScalarFunction": lambda: udf(Adder(5)),
    "ScalarFunction itself": lambda: Adder(5),
    "hinted function itself": lambda: PlusFive().__call__,
    "keyword partial": lambda: udf(functools.partial(add, y=5), result_type="BIGINT"),
    "built-in": lambda: udf((5).__add__, result_type="BIGINT"),
    "decorator": lambda: udf(result_type="BIGINT")(lambda x: x + 5),
    "old name": lambda: udf(lambda x: x + 5, result_type="BIGINT", udf_type="pandas"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_runs(form: str) -> None:
    made = TableEnvironment.create()
    made.create_temporary_function("f", FORMS[form]())
    assert answers(made, "SELECT f(a) FROM (VALUES (1), (2)) AS t(a)") == [(6,), (7,)]


def test_a_decorated_function_keeps_its_name_and_text() -> None:
    @udf
    def shout(text: str) -> str:
        """Louder."""
        return text.upper()

    assert shout.name == "shout"
    assert shout.__doc__ == "Louder."
    assert str(shout.result_type) == "STRING"
    assert udf(add, name="plus").name == "plus"


def test_an_object_is_called_in_the_table_api() -> None:
    @udf(result_type=DataTypes.BIGINT())
    def plus(x, y):  # type: ignore[no-untyped-def]
        return x + y

    made = TableEnvironment.create()
    table = made.from_elements([(1, 2), (3, 4)], ["a", "b"])
    with table.select(plus(col("a"), col("b")), plus(plus(col("a"), 1), 2)).execute().collect() as rows:
        assert [tuple(row) for row in rows] == [(3, 4), (7, 6)]


def test_results_have_the_declared_type() -> None:
    made = TableEnvironment.create()
    made.create_temporary_function("f", udf(lambda: 1, result_type=DataTypes.DECIMAL(10, 2).not_null()))
    made.create_temporary_function("g", udf(add))
    assert answers(made, "SELECT TYPEOF(f()), TYPEOF(g(1, 2)) FROM (VALUES (1)) AS t(a)") == [
        ("DECIMAL(10, 2) NOT NULL", "BIGINT")
    ]


def test_input_types_cast_arguments() -> None:
    seen: list[Any] = []
    made = TableEnvironment.create()
    made.create_temporary_function(
        "f", udf(lambda *values: seen.append(values), ["DOUBLE", "DECIMAL(10, 2)", "BIGINT"], "INT")
    )
    answers(made, "SELECT f(a, a, a) FROM (VALUES (1)) AS t(a)")
    assert repr(seen) == "[(1.0, Decimal('1.00'), 1)]"
    with pytest.raises(BindError, match="at position 2"):
        made.sql_query("SELECT f(a, a, a) FROM (VALUES (CAST(1 AS DOUBLE))) AS t(a)").execute()


def test_hints_cast_arguments_where_nothing_is_lost() -> None:
    seen: list[Any] = []

    def note(a: float, b: int, c: decimal.Decimal, d, e: str | None) -> int:  # type: ignore[no-untyped-def]
        seen.append((a, b, c, d, e))
        return 0

    made = TableEnvironment.create()
    made.create_temporary_function("note", udf(note))
    answers(made, "SELECT note(a, a, a, a, CAST(NULL AS STRING)) FROM (VALUES (1)) AS t(a)")
    assert repr(seen) == f"[(1.0, 1, {decimal.Decimal(1).quantize(decimal.Decimal(1).scaleb(-18))!r}, 1, None)]"
    with pytest.raises(BindError, match=r"Expected signatures are:\nnote\(a: ") as caught:
        made.sql_query("SELECT note(1, 1.5, 1, 1, 'x')").execute()
    assert caught.value.code == "argument-types"


@pytest.mark.parametrize("call", ["f()", "f(1, 2, 3)"])
def test_a_wrong_number_of_arguments_is_told_while_planning(call: str) -> None:
    made = TableEnvironment.create()
    made.create_temporary_function("f", udf(add))
    with pytest.raises(BindError, match="Invalid input arguments"):
        made.sql_query(f"SELECT {call}").execute()


def test_what_cannot_be_declared() -> None:
    with pytest.raises(TypeError, match="not a function or callable"):
        udf(5, result_type="INT")
    with pytest.raises(TypeError, match="not a function or callable"):
        udf(Adder, result_type="INT")
    with pytest.raises(TypeError, match="result_type should be DataType or str"):
        udf(add, result_type=5)
    with pytest.raises(TypeError, match="input_type should be DataType or str"):
        udf(add, input_types=[5], result_type="INT")
    with pytest.raises(ValueError, match="func_type must be one of"):
        udf(add, func_type="numpy")
    with pytest.raises(ValueError, match="Inconsistent deterministic"):
        udf(Adder(1), deterministic=False)
    with pytest.raises(BindError, match="result type of the Python function '<lambda>' is not known"):
        udf(lambda x: x)
    with pytest.raises(BindError, match="result type"):
        udf(add, func_type="pandas")


def test_asynchronous_functions() -> None:
    class Lookup(AsyncScalarFunction):
        async def eval(self, key: str) -> int: ...

    class Rows(TableFunction):
        async def eval(self, key: str) -> Any: ...

    async def look(key: str) -> int: ...

    for function in (Lookup(), look):
        declared = udf(function)
        assert isinstance(declared, UserDefinedAsyncScalarFunctionWrapper)
        assert (declared.kind, declared.result_type) == (FunctionKind.ASYNC, BIGINT)
        assert declared.input_hints == (str,)
        with pytest.raises(ValueError, match="Async scalar functions do not support pandas func_type"):
            udf(function, result_type="INT", func_type="pandas")
        with pytest.raises(TypeError, match="is asynchronous; only scalar functions can be"):
            udtf(function, result_types="INT")
    with pytest.raises(TypeError, match="is asynchronous; only scalar functions can be"):
        udtf(Rows(), result_types="INT")
    with pytest.raises(ValueError, match="one of 'general, pandas, arrow', got async"):
        udf(look, func_type="async")


class Total(AggregateFunction):
    """Says no types."""

    def get_value(self, accumulator: Any) -> Any:
        return accumulator[0]

    def create_accumulator(self) -> Any:
        return [0]

    def accumulate(self, accumulator: Any, *args: Any) -> None:
        accumulator[0] += args[0]


class Typed(Total):
    def get_result_type(self) -> Any:
        return DataTypes.BIGINT()

    def get_accumulator_type(self) -> Any:
        return DataTypes.ROW([DataTypes.FIELD("n", DataTypes.LIST_VIEW(DataTypes.BIGINT()))])


def test_aggregates_are_declared_as_in_pyflink() -> None:
    made = udaf(Typed(), name="total", deterministic=True)
    assert (made.name, str(made.result_type), str(made.accumulator_type)) == (
        "total",
        "BIGINT",
        "ROW<`n` ARRAY<BIGINT>>",
    )
    assert str(udaf(Typed(), result_type="INT").result_type) == "INT"
    mean = udaf(lambda v: v.mean(), result_type=DataTypes.FLOAT(), func_type="pandas")
    assert str(mean.accumulator_type) == "ARRAY<FLOAT>"

    with pytest.raises(RuntimeError, match="Method get_result_type is not implemented"):
        udaf(Total())
    with pytest.raises(RuntimeError, match="Method get_accumulator_type is not implemented"):
        udaf(Total(), result_type="INT")
    with pytest.raises(TypeError, match="Invalid returnType: returnType should be DataType or str but is None"):
        udaf(lambda v: v, func_type="pandas")
    with pytest.raises(TypeError, match="Pandas UDAF doesn't support DataType type"):
        udaf(lambda v: v, func_type="pandas", result_type="MAP<INT, INT>")
    with pytest.raises(ValueError, match="func_type must be one of 'general, pandas', got arrow"):
        udaf(Typed(), func_type="arrow")
    with pytest.raises(ValueError, match="Inconsistent deterministic"):
        udaf(Typed(), deterministic=False)
    for declare in (lambda: udaf(Typed), lambda: udaf(3), lambda: udtaf(Typed())):
        with pytest.raises(TypeError, match="Invalid function"):
            declare()
    with pytest.raises(TypeError, match="is no scalar function"):
        udf(Typed(), result_type="INT")


def test_functions_are_found_as_in_flink() -> None:
    made = TableEnvironment.create()
    made.create_temporary_system_function("Upper", udf(lambda x: "mine", result_type="STRING"))
    made.create_temporary_function("lower", udf(lambda x: "catalog's", result_type="STRING"))
    made.create_temporary_function("default_catalog.default_database.Mine", udf(lambda x: x, result_type="STRING"))
    query = "SELECT UPPER('a'), LOWER('A'), default_database.`lower`('A'), MINE('b') FROM (VALUES (1)) AS t(a)"
    assert answers(made, query) == [("mine", "a", "catalog's", "b")]
    assert {"lower", "mine", "upper"} <= set(made.list_user_defined_functions())
    assert made.drop_temporary_system_function("UPPER")
    assert not made.drop_temporary_system_function("UPPER")
    assert made.drop_temporary_function("lower")
    assert not made.drop_temporary_function("lower")
    assert answers(made, "SELECT UPPER('a') FROM (VALUES (1)) AS t(a)") == [("A",)]
    with pytest.raises(BindError, match="No match found"):
        made.sql_query("SELECT default_database.`lower`('A')").execute()


class OfModule(ScalarFunction):
    def eval(self, x: int) -> int:
        return -x


@udf(result_type="STRING")
def decorated(x: Any) -> Any:
    return f"<{x}>"


def test_permanent_functions_are_kept_by_their_path() -> None:
    made = TableEnvironment.create()
    made.create_function("plus", add)
    made.create_function("negate", OfModule())
    made.create_function("brackets", decorated)
    with pytest.raises(BindError, match="already exists"):
        made.create_function("plus", add)
    made.create_function("plus", add, ignore_if_exists=True)
    kept = made.catalogs.catalog("default_catalog").functions("default_database")
    assert {name: function.class_name for name, function in kept.items()} == {
        "plus": f"{__name__}.add",
        "negate": f"{__name__}.OfModule",
        "brackets": f"{__name__}.decorated",
    }
    assert answers(made, "SELECT plus(a, 1), negate(a), brackets(a) FROM (VALUES (1)) AS t(a)") == [(2, -1, "<1>")]
    for temporary in (udf(lambda x: x, result_type="INT"), Adder(5), PlusFive()):
        with pytest.raises(BindError, match="has no path under which a catalog could keep it"):
            made.create_function("f", temporary)
    assert made.drop_function("plus")
    assert not made.drop_function("plus")
