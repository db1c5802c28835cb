"""``str`` of an expression is PyFlink's: ``summaries.txt`` has an expression and PyFlink's text a line."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import flowsql.table.expression as expression
import flowsql.table.expressions as expressions
from flowsql.table import DataTypes, TableEnvironment
from flowsql.table.expressions import col
from flowsql.table.udf import udf
from flowsql_core.errors import FlowSqlError

LINES = Path(__file__).with_name("summaries.txt").read_text(encoding="utf-8").splitlines()
NAMES: dict[str, Any] = {**vars(expression), **vars(expressions), "DataTypes": DataTypes, "Decimal": Decimal}


@pytest.mark.parametrize("line", LINES)
def test_an_expression_is_shown_as_pyflink_shows_it(line: str) -> None:
    code, _, wanted = line.partition("  =>  ")
    assert str(eval(code, NAMES)) == wanted


def test_functions_bear_their_own_names() -> None:
    shout = udf(lambda text: text, result_type="STRING", name="shout")
    assert str(shout(col("a"))) == "shout(a)"


def test_the_text_of_a_chain_stays_sql() -> None:
    table = TableEnvironment.create().from_elements([(1,)], ["a"])
    with pytest.raises(FlowSqlError) as caught:
        table.select(col("nope").upper_case)
    assert ".select(UPPER(nope))" in caught.value.render()
    assert repr(col("a") + 1) == "Expression(`a` + 1)"
