"""The few shapes of Spark SQL that FlowSQL prints, built from sqlglot's public classes.

sqlglot prints names, quotes and brackets; which functions and operators stand there is decided here and in the modules
beside, never by its translations.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from flowsql_core.errors import PlanError

#: A node of a sqlglot tree.
SqlNode: TypeAlias = Any
_AGGREGATE: Final = "flowsql_aggregate"


@cache
def exp() -> Any:
    """sqlglot's node classes.

    Raises:
        PlanError: sqlglot is not installed.
    """
    try:
        return importlib.import_module("sqlglot.expressions")
    except ImportError:
        raise PlanError(
            "spark-missing", "Batch mode on Spark needs sqlglot and pyspark.", hint="pip install 'flowsql[spark]'"
        ) from None


def text_of(node: SqlNode) -> str:
    """The Spark SQL of a tree."""
    return str(node.sql(dialect="spark", pretty=True))


def column(table: str, name: str) -> SqlNode:
    """``t0.c1``."""
    return exp().column(name, table=table)


def function(name: str, *args: SqlNode) -> SqlNode:
    """A call, printed as it stands."""
    return exp().Anonymous(this=name, expressions=list(args))


def binary(operator: str, left: SqlNode, right: SqlNode) -> SqlNode:
    """An operator in brackets."""
    e = exp()
    kinds = {
        "+": e.Add, "-": e.Sub, "*": e.Mul, "/": e.Div, "%": e.Mod, "DIV": e.IntDiv, "=": e.EQ, "<>": e.NEQ, "<": e.LT,
        "<=": e.LTE, ">": e.GT, ">=": e.GTE, "<=>": e.NullSafeEQ, "AND": e.And, "OR": e.Or, "||": e.DPipe,
    }  # fmt: skip
    return e.Paren(this=kinds[operator](this=left, expression=right))


def negation(operand: SqlNode) -> SqlNode:
    """``NOT x``."""
    return exp().Paren(this=exp().Not(this=operand))


def is_null(operand: SqlNode) -> SqlNode:
    """``x IS NULL``."""
    e = exp()
    return e.Paren(this=e.Is(this=operand, expression=e.Null()))


def number(value: int) -> SqlNode:
    """A whole number within INT."""
    e = exp()
    literal = e.Literal.number(str(abs(value)))
    return literal if value >= 0 else e.Paren(this=e.Neg(this=literal))


def string(value: str) -> SqlNode:
    """A text; what is not plain ASCII goes through its bytes, so that no escape rule touches it."""
    e = exp()
    if value.isascii() and value.isprintable() and "\\" not in value and "'" not in value:
        return e.Literal.string(value)
    return function("DECODE", binary_value(value.encode("utf-8")), e.Literal.string("UTF-8"))


def binary_value(value: bytes) -> SqlNode:
    """Bytes."""
    return function("UNHEX", exp().Literal.string(value.hex().upper()))


def cast(operand: SqlNode, type_text: str) -> SqlNode:
    """``CAST(x AS type)``."""
    e = exp()
    return e.Cast(this=operand, to=e.DataType.build(type_text, dialect="spark"))


def null(type_text: str) -> SqlNode:
    """A NULL of a type."""
    return cast(exp().Null(), type_text)


def boolean(value: bool) -> SqlNode:
    """TRUE or FALSE."""
    return exp().Boolean(this=value)


def case(conditions: Sequence[SqlNode], results: Sequence[SqlNode], otherwise: SqlNode) -> SqlNode:
    """A searched CASE."""
    e = exp()
    branches = [e.If(this=test, true=result) for test, result in zip(conditions, results, strict=True)]
    return e.Case(ifs=branches, default=otherwise)


def failing(message: str) -> SqlNode:
    """An expression that fails the job with a message of ours."""
    return function("RAISE_ERROR", string(message))


def ordered(node: SqlNode, descending: bool, nulls_first: bool) -> SqlNode:
    """A sort key, the place of NULL said (sqlglot leaves out what is Spark's own rule: NULL is the smallest)."""
    return exp().Ordered(this=node, desc=descending, nulls_first=nulls_first)


def select(items: Sequence[SqlNode], source: SqlNode | None) -> SqlNode:
    """``SELECT items AS c0, c1 ... FROM source``."""
    e = exp()
    named = [e.alias_(item, f"c{index}", copy=False) for index, item in enumerate(items)]
    made = e.select(*named, copy=False)
    return made if source is None else made.from_(source, copy=False)


def in_one_task(query: SqlNode) -> SqlNode:
    """The SELECT with all of its rows in one task: ``SORT BY`` then makes the order of all."""
    e = exp()
    query.set("hint", e.Hint(expressions=[e.Anonymous(this="REPARTITION", expressions=[number(1)])]))
    return query


def mark_aggregate(query: SqlNode) -> None:
    """Remember that a SELECT makes groups: not every one has a GROUP BY."""
    query.meta[_AGGREGATE] = True


def is_aggregate(query: SqlNode) -> bool:
    """Whether :func:`mark_aggregate` was called for a SELECT that nothing was added to but what makes it one."""
    return bool(query.meta.get(_AGGREGATE))


def derived(query: SqlNode, alias: str) -> SqlNode:
    """A query in FROM."""
    return query.subquery(alias, copy=False)


def table(name: str, alias: str) -> SqlNode:
    """A view in FROM."""
    e = exp()
    return e.alias_(e.to_table(name), alias, table=True, copy=False)


def is_negative_zero(number_node: SqlNode) -> SqlNode:
    """Whether a DOUBLE or FLOAT is -0.0, NULL of NULL. Spark takes both zeros for one; only as text they differ."""
    zero = binary("=", number_node, number(0))
    return binary("AND", zero, binary("=", cast(number_node.copy(), "STRING"), string("-0.0")))
