"""Expressions as text, with no more brackets than needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from flowsql_grammar import ast
from flowsql_grammar.printing.names import function, name, path, string, words
from flowsql_grammar.printing.type import TypePrinter

_MULTISET, _OR, _AND, _NOT, _COMPARISON, _PREDICATE, _ADD, _MULTIPLY, _SIGN, _POSTFIX, _PRIMARY = range(11)

_LEVELS = {
    "OR": _OR,
    "AND": _AND,
    "+": _ADD,
    "-": _ADD,
    "*": _MULTIPLY,
    "/": _MULTIPLY,
    "%": _MULTIPLY,
    "||": _MULTIPLY,
}


def _level_of_operator(operator: ast.BinaryOperator) -> int:
    if operator.value.startswith("MULTISET"):
        return _MULTISET
    return _LEVELS.get(operator.value, _COMPARISON)


def _level(node: ast.Expression) -> int:
    match node:
        case ast.BinaryOp(operator):
            return _level_of_operator(operator)
        case ast.UnaryOp(operator):
            return _NOT if operator is ast.UnaryOperator.NOT else _SIGN
        case ast.IsPredicate() | ast.IsDistinctFrom() | ast.QuantifiedComparison():
            return _COMPARISON
        case ast.Between() | ast.InList() | ast.InSubquery() | ast.Like():
            return _PREDICATE
        case ast.ItemAccess() | ast.FieldAccess():
            return _POSTFIX
        case ast.NumberLiteral(text) if text.startswith("-"):
            return _SIGN
        case _:
            return _PRIMARY


class ExpressionPrinter(TypePrinter, ABC):
    """Expressions and arguments."""

    def expression(self, node: ast.Argument, least: int = 0) -> str:
        """An expression, in brackets where it binds more loosely than ``least``."""
        text = self._bare(node)
        if isinstance(node, ast.NamedArgument | ast.TableArgument | ast.ModelArgument | ast.Descriptor):
            return text
        return f"({text})" if _level(node) < least else text

    def expressions(self, nodes: Iterable[ast.Argument]) -> str:
        """Expressions with commas between."""
        return ", ".join(self.expression(node) for node in nodes)

    def _bare(self, node: ast.Argument) -> str:
        match node:
            case ast.ColumnRef(identifier):
                return path(identifier)
            case ast.BinaryOp():
                return self._chain(node)
            case ast.FunctionCall():
                return self.call(node)
            case ast.Subquery(query):
                return f"({self.query(query)})"
            case ast.Cast(operand, type_, safe):
                return f"{'TRY_CAST' if safe else 'CAST'}({self.expression(operand)} AS {self.type(type_)})"
            case ast.Case():
                return self._case(node)
            case ast.Star(qualifier):
                return "*" if qualifier is None else path(qualifier) + ".*"
            case ast.DefaultValue():
                return "DEFAULT"
            case ast.Parameter():
                return "?"
            case _:
                return (
                    self._literal(node)
                    or self._predicate(node)
                    or self._constructor(node)
                    or self._argument(node)
                    or self._special(node)
                    or self._json(node)
                )

    def _chain(self, node: ast.BinaryOp) -> str:
        """A run of operators of one level without one call of Python for each."""
        level = _level_of_operator(node.operator)
        parts: list[str] = []
        left: ast.Expression = node
        while isinstance(left, ast.BinaryOp) and _level_of_operator(left.operator) == level:
            parts += [self.expression(left.right, level + 1), left.operator.value]
            left = left.left
        parts.append(self.expression(left, level))
        return " ".join(reversed(parts))

    def _case(self, node: ast.Case) -> str:
        branches = [
            f"WHEN {self.expressions(branch.conditions)} THEN {self.expression(branch.result)}"
            for branch in node.branches
        ]
        return words(
            "CASE",
            self.expression(node.operand) if node.operand else None,
            *branches,
            "ELSE " + self.expression(node.otherwise) if node.otherwise else None,
            "END",
        )

    def _literal(self, node: ast.Argument) -> str:
        match node:
            case ast.NumberLiteral(text):
                return text
            case ast.StringLiteral(value, charset):
                return (f"_{charset}" if charset else "") + string(value)
            case ast.BinaryLiteral(value):
                return f"X'{value.hex()}'"
            case ast.BooleanLiteral(value):
                return {True: "TRUE", False: "FALSE", None: "UNKNOWN"}[value]
            case ast.NullLiteral():
                return "NULL"
            case ast.DateLiteral(text):
                return f"DATE {string(text)}"
            case ast.TimeLiteral(text):
                return f"TIME {string(text)}"
            case ast.TimestampLiteral(text, local):
                return f"TIMESTAMP {'WITH LOCAL TIME ZONE ' if local else ''}{string(text)}"
            case ast.IntervalLiteral(text, qualifier, negative):
                return f"INTERVAL {'-' if negative else ''}{string(text)} {self.qualifier(qualifier)}"
            case ast.IntervalExpression(amount, qualifier, negative):
                shown = self.expression(amount)
                if not isinstance(amount, ast.NumberLiteral | ast.ColumnRef):
                    shown = f"({shown})"
                return f"INTERVAL {'- ' if negative else ''}{shown} {self.qualifier(qualifier)}"
            case _:
                return ""

    def _predicate(self, node: ast.Argument) -> str:
        match node:
            case ast.UnaryOp(operator, operand):
                if operator is ast.UnaryOperator.NOT:
                    return "NOT " + self.expression(operand, _NOT)
                shown = self.expression(operand, _SIGN)
                return operator.value + (" " if shown[0] in "+-" else "") + shown
            case ast.IsPredicate(operand, test, negated):
                return f"{self.expression(operand, _COMPARISON)} IS {_no(negated)}{test.value}"
            case ast.IsDistinctFrom(left, right, negated):
                shown = self.expression(right, _PREDICATE)
                return f"{self.expression(left, _COMPARISON)} IS {_no(negated)}DISTINCT FROM {shown}"
            case ast.Between(operand, low, high, negated, symmetric):
                return (
                    f"{self.expression(operand, _PREDICATE)} {_no(negated)}BETWEEN {'SYMMETRIC ' if symmetric else ''}"
                    f"{self.expression(low, _ADD)} AND {self.expression(high, _ADD)}"
                )
            case ast.InList(operand, values, negated):
                return f"{self.expression(operand, _PREDICATE)} {_no(negated)}IN ({self.expressions(values)})"
            case ast.InSubquery(operand, query, negated):
                return f"{self.expression(operand, _PREDICATE)} {_no(negated)}IN ({self.query(query)})"
            case ast.Like(operand, pattern, kind, escape, negated):
                return words(
                    self.expression(operand, _PREDICATE),
                    _no(negated) + kind.value,
                    self.expression(pattern, _ADD),
                    "ESCAPE " + self.expression(escape, _ADD) if escape else None,
                )
            case ast.QuantifiedComparison(operator, left, quantifier, right):
                shown = self.expressions(right) if isinstance(right, tuple) else self.query(right)
                return f"{self.expression(left, _COMPARISON)} {operator.value} {quantifier.value} ({shown})"
            case ast.Exists(query):
                return f"EXISTS ({self.query(query)})"
            case ast.Unique(query):
                return f"UNIQUE ({self.query(query)})"
            case _:
                return ""

    def _constructor(self, node: ast.Argument) -> str:
        match node:
            case ast.RowConstructor(items, explicit):
                return f"{'ROW' if explicit else ''}({self.expressions(items)})"
            case ast.ArrayConstructor(items):
                return f"ARRAY[{self.expressions(items)}]"
            case ast.MultisetConstructor(items):
                return f"MULTISET[{self.expressions(items)}]"
            case ast.MapConstructor(entries):
                return f"MAP[{self.expressions(item for entry in entries for item in entry)}]"
            case ast.CollectionQuery(kind, query):
                return f"{kind.value}({self.query(query)})"
            case ast.ItemAccess(operand, index):
                return f"{self.expression(operand, _POSTFIX)}[{self.expression(index)}]"
            case ast.FieldAccess(operand, field):
                shown = self.expression(operand, _POSTFIX)
                # Without brackets the field would be one more part of the path.
                return f"({shown}).{name(field)}" if isinstance(operand, ast.ColumnRef) else f"{shown}.{name(field)}"
            case _:
                return ""

    def _argument(self, node: ast.Argument) -> str:
        match node:
            case ast.NamedArgument(key, value):
                return f"{name(key)} => {self.expression(value)}"
            case ast.ModelArgument(model):
                return f"MODEL {path(model)}"
            case ast.Descriptor(columns):
                return f"DESCRIPTOR({', '.join(path(column.name) for column in columns)})"
            case ast.TableArgument(table, partition_by, order_by):
                keys = ", ".join(self.order_item(item) for item in order_by)
                return words(
                    f"({self.query(table)})" if isinstance(table, ast.Query) else f"TABLE {path(table)}",
                    f"PARTITION BY ({self.expressions(partition_by)})" if partition_by else None,
                    (f"ORDER BY ({keys})" if len(order_by) > 1 else f"ORDER BY {keys}") if order_by else None,
                )
            case _:
                return ""

    def call(self, node: ast.FunctionCall) -> str:
        """A call with what follows it."""
        if node.niladic:
            return node.name.last.text
        inner = words(
            node.quantifier.value if node.quantifier else None,
            self.expressions(node.args),
            self.order_by(node.order_by),
        )
        over = None
        if node.over is not None:
            over = "OVER " + (name(node.over) if isinstance(node.over, ast.Name) else self.window_spec(node.over))
        return words(
            node.match_scope.value if node.match_scope else None,
            f"{function(node.name)}({inner})",
            node.null_treatment.value if node.null_treatment else None,
            f"WITHIN DISTINCT ({self.expressions(node.within_distinct)})" if node.within_distinct else None,
            f"WITHIN GROUP ({self.order_by(node.within_group)})" if node.within_group else None,
            f"FILTER (WHERE {self.expression(node.filter)})" if node.filter else None,
            over,
        )

    def window_spec(self, node: ast.WindowSpec) -> str:
        """A window in brackets."""
        partial = {None: None, True: "ALLOW PARTIAL", False: "DISALLOW PARTIAL"}[node.allow_partial]
        inner = words(
            name(node.base) if node.base else None,
            "PARTITION BY " + self.expressions(node.partition_by) if node.partition_by else None,
            self.order_by(node.order_by),
            self._frame(node.frame) if node.frame else None,
            partial,
        )
        return f"({inner})"

    def _frame(self, node: ast.Frame) -> str:
        if node.end is None:
            return f"{node.unit.value} {self._bound(node.start)}"
        return f"{node.unit.value} BETWEEN {self._bound(node.start)} AND {self._bound(node.end)}"

    def _bound(self, node: ast.FrameBound) -> str:
        return words(self.expression(node.offset, _ADD) if node.offset else None, node.kind.value)

    def _special(self, node: ast.Argument) -> str:
        show = self.expression
        match node:
            case ast.Extract(unit, operand):
                return f"EXTRACT({unit.value} FROM {show(operand)})"
            case ast.RoundToUnit(direction, operand, unit, week_start):
                return f"{direction.value}({show(operand)} TO {unit.value}{f'({week_start})' if week_start else ''})"
            case ast.ConvertTo(type_, operand):
                return f"CONVERT({type_}, {show(operand)})"
            case ast.IntervalDifference(operand, qualifier):
                return f"({show(operand)}) {self.qualifier(qualifier)}"
            case ast.SequenceValue(sequence, current):
                return f"{'CURRENT' if current else 'NEXT'} VALUE FOR {path(sequence)}"
            case ast.NewObject(type_, args):
                return f"NEW {path(type_)}({self.expressions(args)})"
            case ast.EscapedFunction(call):
                return f"{{fn {show(call)}}}"
            case ast.Trim(operand, side, characters):
                return f"TRIM({words(side.value, show(characters) if characters else None)} FROM {show(operand)})"
            case ast.Position(needle, haystack, start):
                tail = f" FROM {show(start)}" if start else ""
                return f"POSITION({show(needle, _POSTFIX)} IN {show(haystack)}{tail})"
            case ast.Overlay(operand, replacement, start, length):
                tail = f" FOR {show(length)}" if length else ""
                return f"OVERLAY({show(operand)} PLACING {show(replacement)} FROM {show(start)}{tail})"
            case ast.Substring(operand, start, length):
                tail = f" FOR {show(length)}" if length else ""
                return f"SUBSTRING({show(operand)} FROM {show(start)}{tail})"
            case ast.TranslateUsing(operand, charset, used):
                return f"{used}({show(operand)} USING {path(charset)})"
            case ast.TimestampAdd(unit, amount, moment):
                return f"TIMESTAMPADD({unit.value}, {show(amount)}, {show(moment)})"
            case ast.TimestampDiff(unit, start, end):
                return f"TIMESTAMPDIFF({unit.value}, {show(start)}, {show(end)})"
            case _:
                return ""

    def _json(self, node: ast.Argument) -> str:
        show = self.expression
        match node:
            case ast.JsonExists(operand, where, on_error, passing):
                tail = words(self._passing(passing), f"{on_error.value} ON ERROR" if on_error else None)
                return f"JSON_EXISTS({show(operand)}, {words(show(where), tail)})"
            case ast.JsonValue(operand, where, returning, on_empty, on_error, passing):
                tail = words(self._passing(passing), self._returning(returning), self._behaviors(on_empty, on_error))
                return f"JSON_VALUE({show(operand)}, {words(show(where), tail)})"
            case ast.JsonQuery(operand, where, returning, wrapper, on_empty, on_error, passing):
                kind = wrapper.value if wrapper else None
                tail = words(
                    self._passing(passing), self._returning(returning), kind, self._behaviors(on_empty, on_error)
                )
                return f"JSON_QUERY({show(operand)}, {words(show(where), tail)})"
            case ast.JsonObject(entries, null_clause):
                inner = ", ".join(self._entry(entry) for entry in entries)
                return f"JSON_OBJECT({words(inner, null_clause.value if null_clause else None)})"
            case ast.JsonArray(elements, null_clause):
                inner = ", ".join(self._element(element) for element in elements)
                return f"JSON_ARRAY({words(inner, null_clause.value if null_clause else None)})"
            case ast.JsonObjectAgg(entry, null_clause):
                return f"JSON_OBJECTAGG({words(self._entry(entry), null_clause.value if null_clause else None)})"
            case ast.JsonArrayAgg(element, order_by, null_clause):
                nulls = null_clause.value if null_clause else None
                return f"JSON_ARRAYAGG({words(self._element(element), self.order_by(order_by), nulls)})"
            case _:
                raise AssertionError(f"no text for {type(node).__name__}")

    def _passing(self, passing: tuple[ast.JsonPassing, ...]) -> str:
        shown = ", ".join(f"{self.expression(p.value)} AS {name(p.name)}" for p in passing)
        return "PASSING " + shown if shown else ""

    def _returning(self, node: ast.TypeSpec | None) -> str:
        return f"RETURNING {self.type(node)}" if node else ""

    def _behaviors(self, on_empty: ast.JsonBehavior | None, on_error: ast.JsonBehavior | None) -> str:
        return words(
            *[
                words(b.kind.value, self.expression(b.value) if b.value else None, f"ON {moment}")
                for b, moment in ((on_empty, "EMPTY"), (on_error, "ERROR"))
                if b
            ]
        )

    def _entry(self, node: ast.JsonEntry) -> str:
        tail = " FORMAT JSON" if node.format_json else ""
        return f"KEY {self.expression(node.key, _POSTFIX)} VALUE {self.expression(node.value)}{tail}"

    def _element(self, node: ast.JsonElement) -> str:
        return self.expression(node.value) + (" FORMAT JSON" if node.format_json else "")

    # The query printer, which is one of these, gives the following.

    @abstractmethod
    def query(self, node: ast.Query) -> str:
        """A query."""

    @abstractmethod
    def order_by(self, items: tuple[ast.OrderItem, ...]) -> str:
        """ORDER BY."""

    @abstractmethod
    def order_item(self, node: ast.OrderItem) -> str:
        """A sort key."""


def _no(negated: bool) -> str:
    return "NOT " if negated else ""
