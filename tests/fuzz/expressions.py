"""Random expressions over the columns of a row: exact in both dialects, numbers never run over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .draws import Draws
from .sql import NUMBERS, Column, Expression, Relation, Sql, Type, apart, both, joined, same

#: Numbers stay below this, so that sums of INT columns do not run over, and casts to DECIMAL(8, 2) hold them.
LARGEST: Final = 900_000

LITERALS: Final = {
    Type.INT: ("0", "1", "-3", "7"),
    Type.BIGINT: ("CAST(2 AS BIGINT)", "CAST(-1 AS BIGINT)", "CAST(0 AS BIGINT)"),
    Type.DECIMAL: ("CAST(1.50 AS DECIMAL(8, 2))", "CAST(-0.25 AS DECIMAL(8, 2))"),
    Type.DOUBLE: ("CAST(0.5 AS DOUBLE)", "CAST(-2 AS DOUBLE)"),
    Type.STRING: ("'a'", "''", "'zz'", "'B'"),
    Type.BOOLEAN: ("TRUE", "FALSE"),
    Type.DATE: ("DATE '2024-01-01'", "DATE '2024-02-29'"),
    Type.TIMESTAMP: ("TIMESTAMP '2024-01-01 10:00:20'", "TIMESTAMP '2024-01-01 10:00:45.500'"),
}


class Expressions:
    """Draws expressions.

    Args:
        draws: the choices.
        scope: what columns may be named, each with the text that names it.
    """

    def __init__(self, draws: Draws, scope: Sequence[Expression]) -> None:
        self._draws = draws
        self._scope = scope

    @staticmethod
    def over(draws: Draws, *relations: tuple[str, Relation]) -> Expressions:
        """Over the columns of relations with their aliases."""
        return Expressions(
            draws, [reference(alias, column) for alias, relation in relations for column in relation.columns]
        )

    def types(self, among: Sequence[Type]) -> list[Type]:
        """Those that some column has; if none has, all that have literals."""
        here = {expression.type for expression in self._scope}
        return [type_ for type_ in among if type_ in here] or [type_ for type_ in among if type_ in LITERALS]

    def any(self, depth: int = 2) -> Expression:
        """A value of any plain type."""
        return self.of(self._draws.pick(self.types([*LITERALS])), depth)

    def number(self, depth: int = 2) -> Expression:
        """A number."""
        return self.of(self._draws.pick(self.types(NUMBERS)), depth)

    def of(self, type_: Type, depth: int = 2) -> Expression:
        """A value of a type."""
        if depth <= 0 or not self._draws.often(45):
            return self._leaf(type_)
        match type_:
            case Type.INT | Type.BIGINT | Type.DECIMAL | Type.DOUBLE:
                made = self._arithmetic(type_, depth - 1)
            case Type.STRING:
                made = self._text(depth - 1)
            case Type.BOOLEAN:
                made = Expression(self.test(depth - 1), type_)
            case Type.DATE | Type.TIMESTAMP:
                made = self._moment(type_, depth - 1)
            case _:
                return self._leaf(type_)
        return made if made.bound <= LARGEST else self._leaf(type_)

    def _leaf(self, type_: Type) -> Expression:
        columns = [expression for expression in self._scope if expression.type is type_]
        if columns and (type_ not in LITERALS or not self._draws.often(10)):
            return self._draws.pick(columns)
        return Expression(same(self._draws.pick(LITERALS[type_])), type_, 10)

    def _case(self, type_: Type, depth: int) -> Expression:
        left, right = self.of(type_, depth), self.of(type_, depth)
        bound = max(left.bound, right.bound)
        end = self._draws.pick(["ELSE {2} END", "END"])
        sql = both("CASE WHEN {0} THEN {1} " + end, self.test(depth), left.sql, right.sql)
        return Expression(sql, type_, bound)

    def _arithmetic(self, type_: Type, depth: int) -> Expression:
        one = self.of(type_, depth)
        kind = self._draws.below(9)
        if kind == 0:
            return Expression(both("COALESCE({0}, {1})", one.sql, self._literal(type_)), type_, max(one.bound, 10))
        if kind == 1:
            return Expression(both("NULLIF({0}, {1})", one.sql, self._literal(type_)), type_, one.bound)
        if kind == 2:
            return Expression(both("ABS({0})", one.sql), type_, one.bound)
        if kind == 3:
            return self._case(type_, depth)
        if type_ is Type.INT and kind == 4:
            text = self.of(Type.STRING, depth)
            return Expression(both("CHAR_LENGTH({0})", text.sql), type_, 200)
        if type_ in (Type.INT, Type.BIGINT) and kind == 5:
            return Expression(apart("MOD({0}, 3)", "({0} % 3)", one.sql), type_, 3)
        if type_ is Type.INT and kind == 6:
            moment = self.of(Type.TIMESTAMP, depth)
            # Seconds with their fraction in DuckDB, whole ones in Flink.
            flink, duck = "EXTRACT(SECOND FROM {0})", "FLOOR(EXTRACT(SECOND FROM {0}))"
            return Expression(apart(f"CAST({flink} AS INT)", f"CAST({duck} AS INT)", moment.sql), type_, 60)
        other = self.of(type_, depth)
        if type_ is Type.DECIMAL:
            sql = both(self._draws.pick(["({0} + {1})", "({0} - {1})"]), one.sql, other.sql)
            return Expression(both("CAST({0} AS DECIMAL(8, 2))", sql), type_, one.bound + other.bound)
        if kind == 7:
            return Expression(both("({0} * 2)", one.sql), type_, 2 * one.bound)
        sql = both(self._draws.pick(["({0} + {1})", "({0} - {1})"]), one.sql, other.sql)
        return Expression(sql, type_, one.bound + other.bound)

    def _literal(self, type_: Type) -> Sql:
        return same(self._draws.pick(LITERALS[type_]))

    def _text(self, depth: int) -> Expression:
        text = self.of(Type.STRING, depth)
        match self._draws.below(7):
            case 0:
                sql = both("UPPER({0})", text.sql)
            case 1:
                sql = both("SUBSTRING({0} FROM 1 FOR 1)", text.sql)
            case 2:
                sql = both("({0} || {1})", text.sql, self.of(Type.STRING, 0).sql)
            case 3:
                sql = both("COALESCE({0}, 'none')", text.sql)
            case 4:
                return self._case(Type.STRING, depth)
            case 5:
                sql = apart("CAST({0} AS STRING)", "CAST({0} AS VARCHAR)", self.of(Type.INT, depth).sql)
            case _:
                sql = both("TRIM({0})", text.sql)
        return Expression(sql, Type.STRING)

    def _moment(self, type_: Type, depth: int) -> Expression:
        one = self.of(type_, depth)
        if type_ is Type.DATE:
            return Expression(both("COALESCE({0}, DATE '2024-01-15')", one.sql), type_)
        sign = self._draws.pick("+-")
        return Expression(both(f"({{0}} {sign} INTERVAL '5' SECOND)", one.sql), type_)

    def tests(self, least: int, most: int, depth: int = 1) -> Sql:
        """Conditions joined by AND."""
        return joined(" AND ", [self.test(depth) for _ in range(least + self._draws.below(most - least + 1))])

    def test(self, depth: int = 1) -> Sql:
        """A condition."""
        if depth > 0 and self._draws.often(35):
            left, right = self.test(depth - 1), self.test(depth - 1)
            template = ["({0} AND {1})", "({0} OR {1})", "NOT ({0} AND {1})", "({0} OR {1}) IS TRUE"]
            return both(self._draws.pick(template), left, right)
        type_ = self._draws.pick(self.types([*LITERALS]))
        one = self.of(type_, depth - 1)
        kind = self._draws.below(8)
        if type_ is Type.BOOLEAN and kind < 4:
            return both(self._draws.pick(["{0}", "NOT {0}", "{0} IS TRUE", "{0} IS NOT FALSE"]), one.sql)
        if kind == 0:
            return both("{0} IS NOT NULL", one.sql)
        if kind == 1:
            return both("{0} IS NULL", one.sql)
        if kind == 2:
            other = self._literal(type_)
            return both(self._draws.pick(["{0} IS DISTINCT FROM {1}", "{0} IS NOT DISTINCT FROM {1}"]), one.sql, other)
        if kind == 3 and type_ is Type.STRING:
            return both(self._draws.pick(["{0} LIKE 'a%'", "{0} NOT LIKE '%b%'"]), one.sql)
        if kind == 3 and type_ is Type.INT:
            return both(self._draws.pick(["{0} IN (0, 1, 2, 5)", "{0} NOT IN (1, 3)"]), one.sql)
        if kind == 4 and type_ in NUMBERS:
            low, high = self._literal(type_), self._literal(type_)
            return both("{0} BETWEEN {1} AND {2}", one.sql, low, high)
        operator = self._draws.pick(["=", "<>", "<", "<=", ">", ">="])
        if type_ is Type.BOOLEAN:
            operator = self._draws.pick(["=", "<>"])
        other = self.of(type_, depth - 1).sql if self._draws.often(50) else self._literal(type_)
        return both("{0} " + operator + " {1}", one.sql, other)


def reference(alias: str, column: Column) -> Expression:
    """A column by its name."""
    return Expression(same(f"{alias}.{column.name}"), column.type, column.bound, column.rowtime)
