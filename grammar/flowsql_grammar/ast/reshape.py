"""Relations made of others by a clause behind them: PIVOT, UNPIVOT, TABLESAMPLE; columns added by EXTEND."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from flowsql_grammar.ast.node import Identifier, Name, Node

if TYPE_CHECKING:
    from flowsql_grammar.ast.expression import Expression
    from flowsql_grammar.ast.query import Relation, TableAlias
    from flowsql_grammar.ast.type import TypeSpec


class PivotItem(Node):
    """An aggregate of PIVOT, or a value that becomes columns, under its alias."""

    expression: Expression
    alias: Name | None = None


class Pivot(Node):
    """``input PIVOT (aggregates FOR columns IN (values))``."""

    input: Relation
    aggregates: tuple[PivotItem, ...]
    columns: tuple[Name, ...]
    values: tuple[PivotItem, ...]
    alias: TableAlias | None = None


class UnpivotNulls(StrEnum):
    """Whether rows without a value are made."""

    INCLUDE = "INCLUDE NULLS"
    EXCLUDE = "EXCLUDE NULLS"


class UnpivotItem(Node):
    """Columns that become a row, with what names it."""

    columns: tuple[Name, ...]
    label: Expression | None = None


class Unpivot(Node):
    """``input UNPIVOT [INCLUDE NULLS] (measures FOR axes IN (items))``."""

    input: Relation
    measures: tuple[Name, ...]
    axes: tuple[Name, ...]
    items: tuple[UnpivotItem, ...]
    nulls: UnpivotNulls | None = None
    alias: TableAlias | None = None


class SampleMethod(StrEnum):
    """How rows are picked."""

    SYSTEM = "SYSTEM"
    BERNOULLI = "BERNOULLI"
    SUBSTITUTE = "SUBSTITUTE"


class Sample(Node):
    """``input TABLESAMPLE method(percent) [REPEATABLE(seed)]``; ``amount`` is the name of ``SUBSTITUTE('name')``."""

    input: Relation
    method: SampleMethod
    amount: str
    seed: int | None = None


class ExtendedColumn(Node):
    """A column that ``t EXTEND (column type)`` adds."""

    name: Identifier
    type: TypeSpec
    not_null: bool = False
