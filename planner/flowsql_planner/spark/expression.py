"""Expressions as Spark SQL, each with exactly the type and value that Flink gives it, or refused.

Spark runs with ANSI off: integers wrap as in Java, DECIMAL overflow is NULL, as in Flink. What still differs is written
out (division, NaN, rounding), and a function that is not in the list of proven ones has no form here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from flowsql_core.errors import NotSupportedYetError
from flowsql_core.expr import Call, Case, Cast, Expr, InputRef, Literal, conjuncts
from flowsql_core.record import record
from flowsql_core.types import logical as t
from flowsql_planner.logical.internal_calls import EXISTS, IN_QUERY, OUTER, QUERY_CALLS, SCALAR, SOME_QUERY
from flowsql_planner.spark import sql
from flowsql_planner.spark.comparison import compared, compared_by_parts, fit_together, may_be_nan, no_form
from flowsql_planner.spark.literals import INT_LIMIT, literal
from flowsql_planner.spark.quantified import MEMBER, SubqueryPrinter, some_query
from flowsql_planner.spark.sql import SqlNode
from flowsql_planner.spark.types import Digits, digits_of, is_opaque, same_on_spark, spark_decimal, spark_type

_COMPARISONS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})
_NULL_SAFE: Final = {"IS NOT DISTINCT FROM": False, "IS DISTINCT FROM": True}
#: Parts of a day whose number Spark finds as Flink does, by the function that finds it.
_DATE_PARTS: Final = {"YEAR": "YEAR", "QUARTER": "QUARTER", "MONTH": "MONTH", "DAY": "DAY", "DOY": "DAYOFYEAR"}


@record
class SparkExpressions:
    """Prints expressions over one row.

    ``column``: the node of an input column. ``outer``: what a correlated query sees of the row around it.
    ``subquery``: prints the plan of a query call over the nodes of its captured expressions.
    """

    column: Callable[[int], SqlNode]
    outer: tuple[SqlNode, ...]
    subquery: SubqueryPrinter

    def make(self, expr: Expr) -> SqlNode:
        """The node; its Spark type is ``spark_type(expr.type)``.

        Raises:
            NotSupportedYetError: an expression without an exact form.
        """
        match expr:
            case InputRef(index=index):
                return self.column(index)
            case Literal():
                return literal(expr)
            case Cast():
                return self._cast(expr)
            case Case(conditions=conditions, results=results, otherwise=otherwise):
                return sql.case(
                    [self.make(test) for test in conditions],
                    [self._as(result, expr.type) for result in results],
                    self._as(otherwise, expr.type),
                )
            case Call():
                return self._call(expr)

    def _as(self, expr: Expr, type_: t.LogicalType) -> SqlNode:
        """An expression that has the type already but for its NULLs and lengths."""
        if isinstance(expr, Literal) and expr.value is None:
            return sql.null(spark_type(type_, expr.span))
        if not same_on_spark(t.without_attribute(expr.type), t.without_attribute(type_)):
            raise NotSupportedYetError(f"{expr.type.as_nullable()} as {type_.as_nullable()} on Spark", expr.span)
        return self.make(expr)

    def _call(self, call: Call) -> SqlNode:
        name, args = call.function, call.args
        if name == OUTER:
            slot = call.option("slot")
            if slot >= len(self.outer):
                raise no_form(call)
            return self.outer[slot].copy()
        opaque = next((arg.type for arg in args if is_opaque(arg.type)), None)
        if opaque is not None and name not in ("IS NULL", "IS NOT NULL"):
            raise NotSupportedYetError(f"{name} of {opaque.as_nullable()} on Spark", call.span)
        if name in QUERY_CALLS:
            return self._query(call)
        if name in ("AND", "OR"):
            made = self.make(args[0])
            for arg in args[1:]:
                made = sql.binary(name, made, self.make(arg))
            return made
        if name in _COMPARISONS and len(args) == 2:
            return self._total_order(call) if call.options else self._comparison(name, args[0], args[1])
        if name in _NULL_SAFE:
            same = self._null_safe(args[0], args[1])
            return sql.negation(same) if _NULL_SAFE[name] else same
        if name in ("+", "-", "*", "/", "%", "MOD"):
            return self._arithmetic(call)
        if name == "IN":
            return self._in(call)
        if name == "EXTRACT":
            return self._extract(call)
        simple = _SIMPLE.get(name)
        if simple is not None:
            made_simple = simple(self, call)
            if made_simple is not None:
                return made_simple
        raise no_form(call)

    # Queries inside of expressions

    def _query(self, call: Call) -> SqlNode:
        plan = call.option("plan")
        e = sql.exp()
        match call.function:
            case "$EXISTS" if call.function == EXISTS:
                query = self.subquery(plan, [self.make(arg) for arg in call.args])
                return e.Exists(this=query)
            case "$IN" if call.function == IN_QUERY:
                # Spark answers FALSE where NULL is due, unless all that counts is whether it is TRUE.
                return self._in_value(call) if call.type.nullable else self._in_query(call)
            case "$SOME" if call.function == SOME_QUERY:
                return some_query(call, self.make, self.subquery)
            case "$SCALAR" if call.function == SCALAR:
                if any(isinstance(arg.type, t.ApproximateType) for arg in call.args):
                    # Flink groups by what the query is correlated by, which tells -0.0 from 0.0, and joins by values.
                    raise no_form(call)
                return e.Subquery(this=self.subquery(plan, [self.make(arg) for arg in call.args]))
        raise no_form(call)

    def _in_query(self, call: Call) -> SqlNode:
        e = sql.exp()
        operands, captured = _operands(call)
        if any(isinstance(operand.type, t.ApproximateType) for operand in operands):
            # For Spark a NaN is in a set that has one.
            return self._in_value(call)
        query = self.subquery(call.option("plan"), [self.make(arg) for arg in captured])
        made = [self.make(operand) for operand in operands]
        this = made[0] if len(made) == 1 else e.Tuple(expressions=made)
        return e.Paren(this=e.In(this=this, query=e.Subquery(this=query)))

    def _in_value(self, call: Call) -> SqlNode:
        """TRUE where a row is equal; else NULL where one might be, for a NULL on either side; else FALSE."""
        e = sql.exp()
        operands, captured = _operands(call)

        def some(conditions: list[SqlNode]) -> SqlNode:
            query = self.subquery(call.option("plan"), [self.make(arg) for arg in captured])
            found = sql.select([sql.number(1)], sql.derived(query, MEMBER))
            for condition in conditions:
                found = found.where(condition, copy=False)
            return e.Exists(this=found)

        equal: list[SqlNode] = []
        possible: list[SqlNode] = []
        for place, arg in enumerate(operands):
            member, operand = sql.column(MEMBER, f"c{place}"), self.make(arg)
            strange = isinstance(arg.type, t.ApproximateType)
            equal.append(compared("=", member, operand, strange, strange))
            unknown = sql.binary("OR", sql.is_null(member.copy()), sql.is_null(operand.copy()))
            if len(operands) > 1:
                unknown = sql.binary("OR", equal[-1].copy(), unknown)
            possible.append(unknown)
        values = [sql.boolean(True), sql.null("BOOLEAN")]
        return sql.case([some(equal), some(possible)], values, sql.boolean(False))

    def condition(self, expr: Expr) -> SqlNode:
        """A WHERE: only what is TRUE counts, so that its parts may say FALSE for NULL."""
        parts = [self._conjunct(part) for part in conjuncts(expr)]
        made = parts[0]
        for part in parts[1:]:
            made = sql.binary("AND", made, part)
        return made

    def _conjunct(self, expr: Expr) -> SqlNode:
        match expr:
            case Call(function="=", args=(left, right)):
                return self._equality(left, right)
            case Call(function="$IN"):
                return self._in_query(expr)
            case Call(function="NOT", args=(Call(function="$IN") as inner,)):
                # Spark knows NOT IN over NULLs, if it stands by itself.
                return sql.negation(self._in_query(inner))
            case Call(function="OR", args=args):
                parts = [
                    self._in_query(arg) if isinstance(arg, Call) and arg.function == IN_QUERY else self.make(arg)
                    for arg in args
                ]
                made = parts[0]
                for part in parts[1:]:
                    made = sql.binary("OR", made, part)
                return made
        return self.make(expr)

    # Comparison

    def _operands(self, left: Expr, right: Expr) -> tuple[SqlNode, SqlNode]:
        """Both in one type in which they compare as in Flink."""
        a, b = t.without_attribute(left.type), t.without_attribute(right.type)
        if t.is_nested(a) or t.is_nested(b):
            raise NotSupportedYetError(f"comparing values of type {a.as_nullable()} on Spark", left.span)
        if same_on_spark(a, b):
            return self.make(left), self.make(right)
        first, second = digits_of(a), digits_of(b)
        if first is not None and second is not None:
            if fit_together(first, second):
                scale, whole = max(first.scale, second.scale), max(first.whole, second.whole)
                type_ = f"DECIMAL({scale + whole}, {scale})"
                return sql.cast(self.make(left), type_), sql.cast(self.make(right), type_)
        elif isinstance(a, t.NumericType) and isinstance(b, t.NumericType):
            return sql.cast(self.make(left), "DOUBLE"), sql.cast(self.make(right), "DOUBLE")
        raise NotSupportedYetError(
            f"comparing {a.as_nullable()} with {b.as_nullable()} on Spark", left.span or right.span
        )

    def _comparison(self, operator: str, left: Expr, right: Expr) -> SqlNode:
        if (long := self._long_digits(operator, left, right)) is not None:
            return long
        a, b = self._operands(left, right)
        return compared(operator, a, b, may_be_nan(left), may_be_nan(right))

    def _long_digits(self, operator: str, left: Expr, right: Expr) -> SqlNode | None:
        """Exact numbers that no DECIMAL of 38 digits holds both of, compared; None for others."""
        first, second = digits_of(left.type), digits_of(right.type)
        if first is None or second is None or fit_together(first, second):
            return None
        return compared_by_parts(operator, self.make(left), first, self.make(right), second)

    def _total_order(self, call: Call) -> SqlNode:
        """FLOAT or DOUBLE beside DECIMAL: NaN is greater than all, as in Spark; only zeros have another order there."""
        constants = [arg.value for arg in call.args if isinstance(arg, Literal)]
        if not constants or not all(constants):
            raise no_form(call)
        a, b = self._operands(*call.args)
        made = sql.binary(call.function, a, b)
        greater = call.args[0 if call.function in (">", ">=") else 1]
        if isinstance(greater, Literal):
            return made
        # Spark asks the least and greatest values of a file, which NaN is not among, unless it has to look at the rows.
        return sql.binary("OR", made, sql.function("ISNAN", (a if greater is call.args[0] else b).copy()))

    def _null_safe(self, left: Expr, right: Expr) -> SqlNode:
        a, b = self._operands(left, right)
        if not may_be_nan(left) and not may_be_nan(right):
            return sql.binary("<=>", a, b)
        nothing = sql.binary("OR", sql.is_null(a.copy()), sql.is_null(b.copy()))
        both = sql.binary("AND", sql.is_null(a.copy()), sql.is_null(b.copy()))
        return sql.case([nothing], [both], compared("=", a, b, may_be_nan(left), may_be_nan(right)))

    def _equality(self, left: Expr, right: Expr) -> SqlNode:
        """An equality of which only TRUE counts: one that Spark can join by."""
        if (long := self._long_digits("=", left, right)) is not None:
            return long
        a, b = self._operands(left, right)
        made = sql.binary("=", a, b)
        if not may_be_nan(left) or not may_be_nan(right):
            return made
        return sql.binary("AND", made, sql.negation(sql.function("ISNAN", a.copy())))

    def _in(self, call: Call) -> SqlNode:
        operand, values = call.args[0], call.args[1:]
        if any(not isinstance(value, Literal) for value in values):
            tests = [self._comparison("=", operand, value) for value in values]
            made = tests[0]
            for test in tests[1:]:
                made = sql.binary("OR", made, test)
            return made
        if isinstance(operand.type, t.ApproximateType):
            raise no_form(call)
        pairs = [self._operands(operand, value) for value in values]
        heads = {sql.text_of(head) for head, _ in pairs}
        if len(heads) > 1:
            raise no_form(call)
        e = sql.exp()
        return e.Paren(this=e.In(this=pairs[0][0], expressions=[value for _, value in pairs]))

    # Arithmetic

    def _arithmetic(self, call: Call) -> SqlNode:
        args, type_ = call.args, call.type
        if len(args) == 1:
            return self._signed(call)
        if not all(isinstance(arg.type, t.NumericType) for arg in args):
            raise no_form(call)
        operator = "%" if call.function == "MOD" else call.function
        if isinstance(type_, t.DecimalType):
            return self._decimal(call, operator)
        if isinstance(type_, t.IntegerType):
            return self._integer(call, operator)
        if isinstance(type_, t.ApproximateType) and operator != "%":
            left, right = (sql.cast(self.make(arg), spark_type(type_)) for arg in args)
            if operator == "/":
                return self._approximate_quotient(left, right, type_)
            return sql.cast(sql.binary(operator, left, right), spark_type(type_))
        raise no_form(call)

    def _signed(self, call: Call) -> SqlNode:
        (arg,) = call.args
        if not isinstance(arg.type, t.NumericType) or call.function not in "+-":
            raise no_form(call)
        made = self.make(arg)
        if call.function == "+":
            return made
        e = sql.exp()
        return sql.cast(e.Paren(this=e.Neg(this=made)), spark_type(call.type))

    def _integer(self, call: Call, operator: str) -> SqlNode:
        """Wraps in the result's type, as Java does; zero divides nothing."""
        wide = _wider(call.args[0].type, call.args[1].type) if operator == "%" else spark_type(call.type)
        left, right = (sql.cast(self.make(arg), wide) for arg in call.args)
        if operator not in ("/", "%"):
            return sql.cast(sql.binary(operator, left, right), spark_type(call.type))
        made = sql.cast(sql.binary("DIV" if operator == "/" else "%", left, right), spark_type(call.type))
        divisor = call.args[1]
        if isinstance(divisor, Literal) and divisor.value:
            return made
        failure = sql.cast(sql.failing("/ by zero"), spark_type(call.type))
        return sql.case([_divides_by_zero(left, right)], [failure], made)

    def _approximate_quotient(self, left: SqlNode, right: SqlNode, type_: t.LogicalType) -> SqlNode:
        """Spark divides by zero to NULL, Java to an infinity or NaN with the signs of both."""
        text = spark_type(type_)

        def constant(value: str) -> SqlNode:
            return sql.cast(sql.exp().Literal.string(value), text)

        zero = sql.binary("=", right.copy(), constant("0.0"))
        # 1 / -0.0 is asked by its text: there is no other way to see the sign of a zero.
        minus = sql.binary("=", sql.cast(right.copy(), "STRING"), sql.string("-0.0"))
        up, down = constant("Infinity"), constant("-Infinity")
        nothing = sql.binary("OR", sql.function("ISNAN", left.copy()), sql.binary("=", left.copy(), constant("0.0")))
        positive = sql.binary(">", left.copy(), constant("0.0"))
        by_zero = sql.case(
            [sql.is_null(left.copy()), nothing, sql.binary("=", positive, sql.negation(minus))],
            [sql.null(text), constant("NaN"), up],
            down,
        )
        return sql.case([zero], [by_zero], sql.cast(sql.binary("/", left, right), text))

    def _decimal(self, call: Call, operator: str) -> SqlNode:
        """Spark's rule for the type of the result must be Flink's: then both round once, to the same digits."""
        type_ = call.type
        assert isinstance(type_, t.DecimalType)
        first, second = digits_of(call.args[0].type), digits_of(call.args[1].type)
        if operator == "%" or first is None or second is None:
            raise no_form(call)
        if spark_decimal(operator, first, second) != Digits(type_.precision, type_.scale):
            raise no_form(call)
        left = sql.cast(self.make(call.args[0]), f"DECIMAL({first.precision}, {first.scale})")
        right = sql.cast(self.make(call.args[1]), f"DECIMAL({second.precision}, {second.scale})")
        made = sql.cast(sql.binary(operator, left, right), spark_type(type_))
        divisor = call.args[1]
        if operator != "/" or (isinstance(divisor, Literal) and divisor.value):
            return made
        failure = sql.cast(sql.failing("Division by zero"), spark_type(type_))
        return sql.case([_divides_by_zero(left, right)], [failure], made)

    # Moments

    def _extract(self, call: Call) -> SqlNode:
        """Parts of a DATE. Of moments before 1970 Flink finds other parts than Spark: FlowSQL knows which."""
        name = _DATE_PARTS.get(call.option("unit"))
        if name is None or not isinstance(call.args[0].type, t.DateType):
            raise no_form(call)
        return sql.cast(sql.function(name, self.make(call.args[0])), "BIGINT")

    # Casts

    def _cast(self, cast: Cast) -> SqlNode:
        source, target = t.without_attribute(cast.operand.type), t.without_attribute(cast.type)
        made = self.make(cast.operand)
        if source.same(target):
            return made
        text = spark_type(target, cast.span)
        match source, target:
            case t.VarCharType() | t.CharType(), t.VarCharType(length=length):
                return made if source.length <= length else sql.function("LEFT", made, sql.number(length))
            case t.IntegerType(), t.IntegerType() | t.DecimalType() | t.ApproximateType():
                return sql.cast(made, text)
            case t.DecimalType(), t.DecimalType() | t.ApproximateType():
                return sql.cast(made, text)
            case t.ApproximateType(), t.ApproximateType():
                return sql.cast(made, text)
            case t.ApproximateType(), t.IntType() | t.BigIntType() if not cast.safe:
                return sql.cast(made, text)
            case t.IntegerType(), t.VarCharType(length=length) if length >= _LONGEST_INTEGER:
                return sql.cast(made, "STRING")
            case t.DateType(), t.TimestampType(precision=digits) if digits <= 6:
                return sql.cast(made, text)
            case (t.TimestampType(precision=low), t.TimestampType(precision=high)) if low <= high <= 6:
                return made
            case (t.TimestampLtzType(precision=low), t.TimestampLtzType(precision=high)) if low <= high <= 6:
                return made
        raise NotSupportedYetError(
            f"{'TRY_CAST' if cast.safe else 'CAST'} of {source.as_nullable()} to {target.as_nullable()} on Spark",
            cast.span or cast.operand.span,
        )


#: Characters of ``-9223372036854775808``.
_LONGEST_INTEGER: Final = 20


def _operands(call: Call) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """The operands of IN, and what its query reads of the row."""
    width = len(call.option("plan").schema)
    return call.args[:width], call.args[width:]


def _divides_by_zero(left: SqlNode, right: SqlNode) -> SqlNode:
    """Whether an exact division fails: NULL by zero is NULL."""
    zero = sql.binary("=", right.copy(), sql.number(0))
    return sql.binary("AND", zero, sql.negation(sql.is_null(left.copy())))


def _wider(a: t.LogicalType, b: t.LogicalType) -> str:
    assert isinstance(a, t.IntegerType)
    assert isinstance(b, t.IntegerType)
    return spark_type(a if a.bits >= b.bits else b)


# Functions with a form of one line


def _not(e: SparkExpressions, call: Call) -> SqlNode:
    return sql.negation(e.make(call.args[0]))


def _is_null(e: SparkExpressions, call: Call) -> SqlNode:
    return sql.is_null(e.make(call.args[0]))


def _is_not_null(e: SparkExpressions, call: Call) -> SqlNode:
    return sql.negation(sql.is_null(e.make(call.args[0])))


def _is_truth(value: bool, negated: bool) -> Callable[[SparkExpressions, Call], SqlNode]:
    """IS [NOT] TRUE and IS [NOT] FALSE, as equality that knows NULL."""

    def make(e: SparkExpressions, call: Call) -> SqlNode:
        made = sql.binary("<=>", e.make(call.args[0]), sql.boolean(value))
        return sql.negation(made) if negated else made

    return make


def _coalesce(e: SparkExpressions, call: Call) -> SqlNode:
    return sql.function("COALESCE", *(e._as(arg, call.type) for arg in call.args))


def _char_length(e: SparkExpressions, call: Call) -> SqlNode | None:
    if not isinstance(call.args[0].type, t.CharacterType):
        return None
    return sql.function("CHAR_LENGTH", e.make(call.args[0]))


def _concat(e: SparkExpressions, call: Call) -> SqlNode | None:
    if not all(isinstance(arg.type, t.CharacterType) for arg in call.args):
        return None
    return sql.function("CONCAT", *(e.make(arg) for arg in call.args))


def _substring(e: SparkExpressions, call: Call) -> SqlNode | None:
    """Both count characters from 1; before the first one, and of negative lengths, they differ."""
    text, *places = call.args
    counted = all(isinstance(place, Literal) and place.value is not None for place in places)
    if not isinstance(text.type, t.CharacterType) or not counted:
        return None
    start, length = places[0].value, places[1].value if len(places) > 1 else 0  # type: ignore[union-attr]
    if not 1 <= start < INT_LIMIT or not 0 <= length < INT_LIMIT:
        return None
    return sql.function("SUBSTRING", e.make(text), *(e.make(place) for place in places))


def _like(e: SparkExpressions, call: Call) -> SqlNode | None:
    """Without an escape character both mean the same; Spark's own, the backslash, must not stand in the pattern."""
    pattern = call.args[1]
    if len(call.args) != 2 or not isinstance(pattern, Literal) or pattern.value is None or "\\" in pattern.value:
        return None
    made = sql.exp().Like(this=e.make(call.args[0]), expression=sql.string(pattern.value))
    return sql.exp().Paren(this=made)


def _absolute(e: SparkExpressions, call: Call) -> SqlNode | None:
    if not isinstance(call.args[0].type, t.ExactNumericType):
        return None
    return sql.cast(sql.function("ABS", e.make(call.args[0])), spark_type(call.type))


_SIMPLE: Final[dict[str, Callable[[SparkExpressions, Call], SqlNode | None]]] = {
    "NOT": _not,
    "IS NULL": _is_null,
    "IS NOT NULL": _is_not_null,
    "IS TRUE": _is_truth(True, False),
    "IS NOT TRUE": _is_truth(True, True),
    "IS FALSE": _is_truth(False, False),
    "IS NOT FALSE": _is_truth(False, True),
    "COALESCE": _coalesce,
    "CHAR_LENGTH": _char_length,
    "||": _concat,
    "CONCAT": _concat,
    "LIKE": _like,
    "SUBSTRING": _substring,
    "ABS": _absolute,
}
