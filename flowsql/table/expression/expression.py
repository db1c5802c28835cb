"""``Expression``: a piece of SQL that Python writes: ``col("a") + 1``, ``col("s").upper_case``, ``~col("b")``.

An expression is a syntax tree, the one that SQL's parser makes of the same text. It is bound when a method of ``Table``
takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

from flowsql.common.public_api import public_api
from flowsql.table.expression.enums import (
    JsonExistsOnError,
    JsonQueryOnEmptyOrError,
    JsonQueryWrapper,
    JsonType,
    JsonValueOnEmptyOrError,
    TimeIntervalUnit,
    TimePointUnit,
)
from flowsql.table.expression.functions import Functions
from flowsql.table.syntax.build import api_nodes, ast, call, called, path, shown
from flowsql.table.syntax.literals import literal, written_type
from flowsql.table.syntax.operands import ExpressionOperand, QueryOperand
from flowsql.table.syntax.summary import summary
from flowsql.table.types import DataType, DataTypes, logical_type
from flowsql_core.errors import BindError, did_you_mean

#: ``x.distinct`` and ``x.over(w)`` change a call that is there.
_NO_CALL = "'{method}' stands behind an aggregate: col('a').sum.{method}; this is {shown}"


@public_api
class Expression(ExpressionOperand, Functions):
    """A column, a literal, a call: made by ``flowsql.table.expressions`` and by the operators and methods here.

    Plain Python values stand for literals. ``&``, ``|``, ``~`` are SQL's AND, OR and IS NOT TRUE.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # == makes an expression

    def _function(self, name: str, args: Sequence[object]) -> Expression:
        return Expression(call(name, [literal(arg) for arg in args]))

    def __str__(self) -> str:
        return summary(self._node)

    def __repr__(self) -> str:
        return f"Expression({shown(self._node)})"

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"The expression {shown(self._node)} has no truth value before it runs. Write & for and, | for or, ~ for "
            "not, with brackets around comparisons: (col('a') > 1) & (col('b') < 5)"
        )

    def __iter__(self) -> NoReturn:
        raise TypeError(f"The expression {shown(self._node)} cannot be iterated over.")

    def __contains__(self, value: object) -> NoReturn:
        raise TypeError(f"'in' asks the expression {shown(self._node)} before it runs. Write col('a').in_(1, 2)")

    def __call__(self, *args: object, **named: object) -> NoReturn:
        """Tell what was meant: a misspelt method, or a property with brackets."""
        node = self._node
        if isinstance(node, ast.FieldAccess) and not isinstance(node.field, api_nodes.WindowProperty):
            # A name that is no method was taken for a field of a ROW.
            hint = did_you_mean(node.field.text, [name for name in dir(Expression) if not name.startswith("_")])
            raise TypeError(f"'{node.field.text}' is no method of expressions" + ("" if hint is None else f": {hint}"))
        raise TypeError(
            f"The expression {shown(self._node)} cannot be called: properties such as .is_null stand without brackets."
        )

    def __getattr__(self, name: str) -> Expression:
        if name.startswith(("_j_", "get_j_")):
            raise AttributeError(f"'{name}' does not exist: there is no JVM behind an Expression; str() shows its SQL")
        if name.startswith("_"):
            raise AttributeError(name)
        return self.get(name)

    def __getitem__(self, index: object) -> Expression:
        return self.at(index)

    # Operators

    def _binary(self, operator: str, other: object, reverse: bool = False) -> Expression:
        left, right = (literal(other), self._value()) if reverse else (self._value(), literal(other))
        return Expression(ast.BinaryOp(ast.BinaryOperator(operator), left, right))

    def __add__(self, other: object) -> Expression:
        return self._binary("+", other)

    def __sub__(self, other: object) -> Expression:
        return self._binary("-", other)

    def __mul__(self, other: object) -> Expression:
        return self._binary("*", other)

    def __truediv__(self, other: object) -> Expression:
        return self._binary("/", other)

    def __mod__(self, other: object) -> Expression:
        return self._binary("%", other)

    def __pow__(self, other: object) -> Expression:
        return self._function("POWER", (self, other))

    def __radd__(self, other: object) -> Expression:
        return self._binary("+", other, reverse=True)

    def __rsub__(self, other: object) -> Expression:
        return self._binary("-", other, reverse=True)

    def __rmul__(self, other: object) -> Expression:
        return self._binary("*", other)

    def __rtruediv__(self, other: object) -> Expression:
        return self._binary("/", other, reverse=True)

    def __rmod__(self, other: object) -> Expression:
        return self._binary("%", other, reverse=True)

    def __rpow__(self, other: object) -> Expression:
        return self._function("POWER", (other, self))

    def __neg__(self) -> Expression:
        return Expression(ast.UnaryOp(ast.UnaryOperator.MINUS, self._value()))

    def __abs__(self) -> Expression:
        return self.abs

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self._compared("=", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self._compared("<>", other)

    def __lt__(self, other: object) -> Expression:
        return self._compared("<", other)

    def __gt__(self, other: object) -> Expression:
        return self._compared(">", other)

    def __le__(self, other: object) -> Expression:
        return self._compared("<=", other)

    def __ge__(self, other: object) -> Expression:
        return self._compared(">=", other)

    def _compared(self, operator: str, other: object) -> Expression:
        if other is None:
            raise BindError(
                "compared-with-none",
                f"{shown(self._node)} {operator} None is never true: NULL equals nothing.",
                hint="write .is_null or .is_not_null",
            )
        return self._binary(operator, other)

    def __and__(self, other: object) -> Expression:
        return self._binary("AND", other)

    def __or__(self, other: object) -> Expression:
        return self._binary("OR", other)

    def __rand__(self, other: object) -> Expression:
        return self._binary("AND", other)

    def __ror__(self, other: object) -> Expression:
        return self._binary("OR", other)

    def __invert__(self) -> Expression:
        return self.is_not_true

    # Tests

    def _is(self, test: str, negated: bool = False) -> Expression:
        return Expression(ast.IsPredicate(self._value(), ast.IsTest(test), negated))

    @property
    def is_null(self) -> Expression:
        """``x IS NULL``."""
        return self._is("NULL")

    @property
    def is_not_null(self) -> Expression:
        """``x IS NOT NULL``."""
        return self._is("NULL", True)

    @property
    def is_true(self) -> Expression:
        """``x IS TRUE``: FALSE for NULL."""
        return self._is("TRUE")

    @property
    def is_false(self) -> Expression:
        """``x IS FALSE``: FALSE for NULL."""
        return self._is("FALSE")

    @property
    def is_not_true(self) -> Expression:
        """``x IS NOT TRUE``: TRUE for NULL. ``not_(x)`` keeps NULL."""
        return self._is("TRUE", True)

    @property
    def is_not_false(self) -> Expression:
        """``x IS NOT FALSE``: TRUE for NULL."""
        return self._is("FALSE", True)

    def between(self, lower_bound: object, upper_bound: object) -> Expression:
        """``x BETWEEN lower AND upper``, both ends included."""
        return Expression(ast.Between(self._value(), literal(lower_bound), literal(upper_bound)))

    def not_between(self, lower_bound: object, upper_bound: object) -> Expression:
        """``x NOT BETWEEN lower AND upper``."""
        return Expression(ast.Between(self._value(), literal(lower_bound), literal(upper_bound), True))

    def in_(self, first_element_or_table: object, *remaining_elements: object) -> Expression:
        """``x IN (a, b)``, or ``x IN (SELECT ...)`` for a table of one column."""
        first = first_element_or_table
        if isinstance(first, QueryOperand):
            return Expression(ast.InSubquery(self._value(), first.as_operand()))
        given = first if isinstance(first, list | tuple | set) and not remaining_elements else (first,)
        return Expression(
            ast.InList(self._value(), tuple(literal(element) for element in (*given, *remaining_elements)))
        )

    def like(self, pattern: object = None, escape: object = None) -> Expression:
        """``x LIKE pattern``: ``%`` any text, ``_`` any character."""
        kind = ast.LikeKind.LIKE
        return Expression(ast.Like(self._value(), literal(pattern), kind, None if escape is None else literal(escape)))

    def similar(self, pattern: object = None) -> Expression:
        """``x SIMILAR TO pattern``."""
        return Expression(ast.Like(self._value(), literal(pattern), ast.LikeKind.SIMILAR_TO))

    def then(self, if_true: object, if_false: object) -> Expression:
        """``CASE WHEN x THEN if_true ELSE if_false END``."""
        return Expression(ast.Case(None, (ast.When((self._value(),), literal(if_true)),), literal(if_false)))

    # Names, types, order

    def alias(self, name: str, *extra_names: str) -> Expression:
        """The column under another name; several names for the columns of a table function."""
        if isinstance(self._node, ast.SelectItem):
            return Expression(self._node.expression).alias(name, *extra_names)
        alias = ast.Name(name, quoted=True)
        if extra_names:
            further = tuple(ast.Name(extra, quoted=True) for extra in extra_names)
            return Expression(api_nodes.Aliased(self._value(), alias, further))
        return Expression(ast.SelectItem(self._value(), alias))

    def as_argument(self, name: str) -> Expression:
        """``name => x``: a named argument of a function."""
        return Expression(ast.NamedArgument(ast.Name(name), self._value()))

    def cast(self, data_type: DataType) -> Expression:
        """``CAST(x AS type)``."""
        return Expression(ast.Cast(self._value(), written_type(logical_type(data_type))))

    def try_cast(self, data_type: DataType) -> Expression:
        """``TRY_CAST(x AS type)``: NULL where the cast fails."""
        return Expression(ast.Cast(self._value(), written_type(logical_type(data_type)), True))

    @property
    def asc(self) -> Expression:
        """Sort upwards."""
        return Expression(ast.OrderItem(self._value()))

    @property
    def desc(self) -> Expression:
        """Sort downwards."""
        return Expression(ast.OrderItem(self._value(), True))

    # Calls that are changed

    def _changed(self, method: str, **changes: Any) -> Expression:
        node = self._node
        if not isinstance(node, ast.FunctionCall):
            raise BindError("not-an-aggregate", _NO_CALL.format(method=method, shown=shown(node)))
        return Expression(replace(node, **changes))

    @property
    def distinct(self) -> Expression:
        """Each value once: ``col("a").count.distinct``."""
        return self._changed("distinct", quantifier=ast.SetQuantifier.DISTINCT)

    def over(self, alias: Expression) -> Expression:
        """The aggregate over the window that ``Table.over_window`` named."""
        node = alias._node if isinstance(alias, Expression) else None
        if not isinstance(node, ast.ColumnRef) or len(node.path.parts) != 1:
            raise BindError("bad-over", "over() takes the window's alias: col('a').sum.over(col('w'))")
        return self._changed("over", over=node.path.last)

    @property
    def sum0(self) -> Expression:
        """The sum; 0 where there is no value: ``IFNULL(SUM(x), 0)``."""
        return self.sum.if_null(0)

    # Properties of windows

    def _window_property(self, name: str) -> Expression:
        return Expression(ast.FieldAccess(self._value(), api_nodes.WindowProperty(name)))

    @property
    def start(self) -> Expression:
        """The window's first moment: ``col("w").start``."""
        return self._window_property("start")

    @property
    def end(self) -> Expression:
        """The first moment behind the window."""
        return self._window_property("end")

    @property
    def rowtime(self) -> Expression:
        """The window's event-time attribute."""
        return self._window_property("rowtime")

    @property
    def proctime(self) -> Expression:
        """The window's processing-time attribute."""
        return self._window_property("proctime")

    # Text with clauses of its own

    def trim_leading(self, character: object = None) -> Expression:
        """``TRIM(LEADING character FROM x)``; blanks unless told."""
        return self._trimmed(ast.TrimSide.LEADING, character)

    def trim_trailing(self, character: object = None) -> Expression:
        """``TRIM(TRAILING character FROM x)``."""
        return self._trimmed(ast.TrimSide.TRAILING, character)

    def trim(self, character: object = None) -> Expression:
        """``TRIM(BOTH character FROM x)``."""
        return self._trimmed(ast.TrimSide.BOTH, character)

    def _trimmed(self, side: ast.TrimSide, character: object) -> Expression:
        return Expression(ast.Trim(self._value(), side, literal(" " if character is None else character)))

    def substring(self, begin_index: object, length: object = None) -> Expression:
        """``SUBSTRING(x FROM begin_index FOR length)``; positions count from 1."""
        count = None if length is None else literal(length)
        return Expression(ast.Substring(self._value(), literal(begin_index), count))

    def position(self, haystack: object = None) -> Expression:
        """Where ``x`` first stands in ``haystack``, from 1; 0 for nowhere."""
        return Expression(ast.Position(self._value(), literal(haystack)))

    def overlay(self, new_string: object, starting: object, length: object = None) -> Expression:
        """``OVERLAY(x PLACING new_string FROM starting FOR length)``."""
        count = None if length is None else literal(length)
        return Expression(ast.Overlay(self._value(), literal(new_string), literal(starting), count))

    # Time

    def extract(self, time_interval_unit: TimeIntervalUnit) -> Expression:
        """``EXTRACT(unit FROM x)``."""
        return Expression(ast.Extract(single_unit(time_interval_unit), self._value()))

    def floor(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression:
        """The greatest whole number, or whole unit of time, that is not above."""
        return self._rounded("FLOOR", time_interval_unit)

    def ceil(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression:
        """The smallest whole number, or whole unit of time, that is not below."""
        return self._rounded("CEIL", time_interval_unit)

    def _rounded(self, direction: str, unit: TimeIntervalUnit | None) -> Expression:
        if unit is None:
            return self._function(direction, (self,))
        return Expression(ast.RoundToUnit(ast.RoundDirection(direction), self._value(), single_unit(unit)))

    @property
    def to_date(self) -> Expression:
        """``CAST(x AS DATE)``."""
        return self.cast(DataTypes.DATE())

    @property
    def to_time(self) -> Expression:
        """``CAST(x AS TIME)``."""
        return self.cast(DataTypes.TIME())

    @property
    def to_timestamp(self) -> Expression:
        """``CAST(x AS TIMESTAMP(3))``."""
        return self.cast(DataTypes.TIMESTAMP(3))

    def _interval(self, unit: str) -> Expression:
        node = self._value()
        qualifier_unit = ast.TimeUnit(unit)
        negative = isinstance(node, ast.UnaryOp) and node.operator is ast.UnaryOperator.MINUS
        amount = node.operand if isinstance(node, ast.UnaryOp) and negative else node
        if isinstance(amount, ast.NumberLiteral) and amount.is_integer:
            digits = len(amount.text.lstrip("0"))
            qualifier = ast.IntervalQualifier(qualifier_unit, precision=digits if digits > 2 else None)
            return Expression(ast.IntervalLiteral(amount.text, qualifier, negative))
        return Expression(ast.IntervalExpression(node, ast.IntervalQualifier(qualifier_unit)))

    year = years = property(lambda self: self._interval("YEAR"), doc="So many years.")
    quarter = quarters = property(lambda self: self._interval("QUARTER"), doc="So many quarters of a year.")
    month = months = property(lambda self: self._interval("MONTH"), doc="So many months.")
    week = weeks = property(lambda self: self._interval("WEEK"), doc="So many weeks.")
    day = days = property(lambda self: self._interval("DAY"), doc="So many days.")
    hour = hours = property(lambda self: self._interval("HOUR"), doc="So many hours.")
    minute = minutes = property(lambda self: self._interval("MINUTE"), doc="So many minutes.")
    second = seconds = property(lambda self: self._interval("SECOND"), doc="So many seconds.")

    @property
    def milli(self) -> Expression:
        """So many milliseconds."""
        one = ast.IntervalLiteral("0.001", ast.IntervalQualifier(ast.TimeUnit.SECOND))
        node = self._value()
        if isinstance(node, ast.NumberLiteral) and node.is_integer:
            seconds, ms = divmod(int(node.text), 1000)
            digits = len(str(seconds))
            qualifier = ast.IntervalQualifier(
                ast.TimeUnit.SECOND, precision=digits if digits > 2 else None, fraction=3 if digits > 2 else None
            )
            return Expression(ast.IntervalLiteral(f"{seconds}.{ms:03d}", qualifier))
        return Expression(ast.BinaryOp(ast.BinaryOperator.TIMES, node, one))

    millis = milli

    @property
    def rows(self) -> Expression:
        """So many rows, for windows that count."""
        return self._function("ROW_INTERVAL", (self,))

    # Collections and rows

    def get(self, name_or_index: str | int) -> Expression:
        """A field of a ROW by name, or by its place from 0."""
        node = self._value()
        if isinstance(name_or_index, int):
            if isinstance(node, ast.RowConstructor) and 0 <= name_or_index < len(node.items):
                return Expression(node.items[name_or_index])
            return Expression(ast.FieldAccess(node, api_nodes.FieldPlace(str(name_or_index), place=name_or_index)))
        if isinstance(node, ast.RowConstructor):
            # row(a, b) calls its fields f0, f1, which is not what SQL calls those of ROW(a, b).
            names = [f"f{i}" for i in range(len(node.items))]
            if name_or_index in names:
                return Expression(node.items[names.index(name_or_index)])
        return Expression(ast.FieldAccess(node, ast.Name(name_or_index, quoted=True)))

    def at(self, index: object) -> Expression:
        """An element of an ARRAY, from 1, or the value of a MAP's key."""
        return Expression(ast.ItemAccess(self._value(), literal(index)))

    @property
    def flatten(self) -> Expression:
        """The fields of a ROW as columns of their own; a whole column of select()."""
        return self._function("FLATTEN", (self,))

    # JSON

    def is_json(self, json_type: JsonType | None = None) -> Expression:
        """``x IS JSON``, or only a scalar, an array, an object."""
        return self._is(f"JSON {(json_type or JsonType.VALUE).name}")

    def json_exists(self, path: str, on_error: JsonExistsOnError | None = None) -> Expression:
        """``JSON_EXISTS(x, path)``."""
        behavior = None if on_error is None else ast.JsonErrorBehavior(on_error.name)
        return Expression(ast.JsonExists(self._value(), literal(path), behavior))

    def json_value(
        self,
        path: str,
        returning_type: DataType | None = None,
        on_empty: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_empty: object = None,
        on_error: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_error: object = None,
    ) -> Expression:
        """``JSON_VALUE(x, path RETURNING type ... ON EMPTY ... ON ERROR)``; STRING unless told."""
        wanted = None if returning_type is None else logical_type(returning_type)
        returning = None if wanted is None or wanted == DataTypes.STRING().logical else written_type(wanted)
        return Expression(
            ast.JsonValue(
                self._value(),
                literal(path),
                returning,
                _behavior(on_empty.name, default_on_empty),
                _behavior(on_error.name, default_on_error),
            )
        )

    def json_query(
        self,
        path: str,
        wrapping_behavior: JsonQueryWrapper = JsonQueryWrapper.WITHOUT_ARRAY,
        on_empty: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
        on_error: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
    ) -> Expression:
        """``JSON_QUERY(x, path ... WRAPPER ... ON EMPTY ... ON ERROR)``."""
        wrapper = {
            JsonQueryWrapper.WITHOUT_ARRAY: ast.JsonWrapper.WITHOUT_ARRAY,
            JsonQueryWrapper.CONDITIONAL_ARRAY: ast.JsonWrapper.WITH_CONDITIONAL_ARRAY,
            JsonQueryWrapper.UNCONDITIONAL_ARRAY: ast.JsonWrapper.WITH_UNCONDITIONAL_ARRAY,
        }[wrapping_behavior]
        empty, error = _behavior(on_empty.name), _behavior(on_error.name)
        return Expression(ast.JsonQuery(self._value(), literal(path), None, wrapper, empty, error))


def single_unit(unit: TimeIntervalUnit | TimePointUnit) -> ast.TimeUnit:
    """The unit of EXTRACT, FLOOR and TIMESTAMPDIFF; BindError for ranges such as DAY_TO_HOUR."""
    if not isinstance(unit, TimeIntervalUnit | TimePointUnit) or "_TO_" in unit.name:
        raise BindError("bad-unit", f"{unit} is no single unit of time.", hint="e.g. TimeIntervalUnit.DAY")
    return ast.TimeUnit(unit.name)


def _behavior(word: str, default: object = None) -> ast.JsonBehavior:
    kind = ast.JsonBehaviorKind(word.replace("_", " "))
    return ast.JsonBehavior(kind, literal(default) if word == "DEFAULT" else None)


class Word(Expression):
    """A constant such as ``UNBOUNDED_ROW``: made without the grammar, a tree when somebody asks."""

    __slots__ = ("_word",)

    def __init__(self, word: str) -> None:
        self._word = word

    @property
    def _node(self) -> ast.Node:  # type: ignore[override]
        return ast.FunctionCall(path(self._word), niladic=True)

    def is_word(self, word: str) -> bool:
        """Whether this is the constant of that name."""
        return self._word == word


def order_item(expression: Expression) -> ast.OrderItem:
    """A sort key: ascending unless the expression says otherwise."""
    node = expression._node
    return node if isinstance(node, ast.OrderItem) else ast.OrderItem(expression._value())


def rows_of_interval(expression: Expression) -> ast.Expression | None:
    """The number of rows of ``row_interval(n)`` or ``lit(n).rows``; None for an amount of time."""
    node = expression._value()
    if called(node, "ROW_INTERVAL") and isinstance(node, ast.FunctionCall):
        count = node.args[0]
        assert not isinstance(count, ast.NamedArgument | ast.TableArgument | ast.ModelArgument | ast.Descriptor)
        return count
    return None
