"""Built-in functions with syntax of their own: EXTRACT, TRIM, ..., JSON."""

from __future__ import annotations

from flowsql_core.errors import ParseError
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_grammar.lexer import Token


class SpecialBuilder:
    """Methods of the rules of special calls."""

    def extract(self, span: Span, unit: ast.TimeUnit, operand: ast.Expression) -> ast.Extract:
        """EXTRACT."""
        return ast.Extract(unit, operand, span=span)

    def round_to_unit(self, span: Span, token: Token, operand: ast.Expression, unit: ast.TimeUnit) -> ast.RoundToUnit:
        """``CEIL(x TO unit)``."""
        direction = ast.RoundDirection.FLOOR if token.text.upper() == "FLOOR" else ast.RoundDirection.CEIL
        return ast.RoundToUnit(direction, operand, unit, span=span)

    def round_to_week(self, span: Span, token: Token, operand: ast.Expression, day: str) -> ast.RoundToUnit:
        """``FLOOR(x TO WEEK(day))``."""
        plain = self.round_to_unit(span, token, operand, ast.TimeUnit.WEEK)
        return ast.RoundToUnit(plain.direction, operand, plain.unit, day, span=span)

    def convert_to(self, span: Span, token: Token, type_: str, operand: ast.Expression) -> ast.ConvertTo:
        """``CONVERT(type, x)``."""
        return ast.ConvertTo(type_, operand, span=span)

    def next_value(self, span: Span, sequence: ast.Identifier) -> ast.SequenceValue:
        """``NEXT VALUE FOR s``."""
        return ast.SequenceValue(sequence, span=span)

    def current_value(self, span: Span, sequence: ast.Identifier) -> ast.SequenceValue:
        """``CURRENT VALUE FOR s``."""
        return ast.SequenceValue(sequence, current=True, span=span)

    def new_object(self, span: Span, type_: ast.Identifier, args: tuple[ast.Argument, ...]) -> ast.NewObject:
        """``NEW type(...)``."""
        return ast.NewObject(type_, args, span=span)

    def escaped_function(self, span: Span, opening: Token, call: ast.Expression) -> ast.EscapedFunction:
        """``{fn f(x)}``."""
        qualified = isinstance(call, ast.FunctionCall) and (
            len(call.name.parts) > 1 or call.quantifier or call.order_by
        )
        if qualified or isinstance(call, ast.Extract | ast.Descriptor):
            raise ParseError("syntax", "SQL parse failed. {fn ...} takes a function of JDBC.", call.span)
        return ast.EscapedFunction(call, span=span)

    def trim(self, span: Span, operand: ast.Expression) -> ast.Trim:
        """``TRIM(x)``."""
        return ast.Trim(operand, span=span)

    def trim_characters(self, span: Span, characters: ast.Expression, operand: ast.Expression) -> ast.Trim:
        """``TRIM(c FROM x)``."""
        return ast.Trim(operand, ast.TrimSide.BOTH, characters, span=span)

    def trim_side(self, span: Span, side: str, operand: ast.Expression) -> ast.Trim:
        """``TRIM(LEADING FROM x)``."""
        return ast.Trim(operand, ast.TrimSide(side), span=span)

    def trim_all(self, span: Span, side: str, characters: ast.Expression, operand: ast.Expression) -> ast.Trim:
        """``TRIM(LEADING c FROM x)``."""
        return ast.Trim(operand, ast.TrimSide(side), characters, span=span)

    def position(
        self, span: Span, needle: ast.Expression, haystack: ast.Expression, start: ast.Expression | None
    ) -> ast.Position:
        """POSITION."""
        return ast.Position(needle, haystack, start, span=span)

    def overlay(
        self,
        span: Span,
        operand: ast.Expression,
        replacement: ast.Expression,
        start: ast.Expression,
        length: ast.Expression | None,
    ) -> ast.Overlay:
        """OVERLAY."""
        return ast.Overlay(operand, replacement, start, length, span=span)

    def substring(
        self, span: Span, operand: ast.Expression, start: ast.Expression, length: ast.Expression | None
    ) -> ast.Substring:
        """SUBSTRING."""
        return ast.Substring(operand, start, length, span=span)

    def translate_using(
        self, span: Span, token: Token, operand: ast.Expression, charset: ast.Identifier
    ) -> ast.TranslateUsing:
        """``CONVERT(x USING c)``."""
        return ast.TranslateUsing(operand, charset, token.text.upper(), span=span)

    def timestamp_add(
        self, span: Span, unit: ast.TimeUnit, amount: ast.Expression, moment: ast.Expression
    ) -> ast.TimestampAdd:
        """TIMESTAMPADD."""
        return ast.TimestampAdd(unit, amount, moment, span=span)

    def timestamp_diff(
        self, span: Span, unit: ast.TimeUnit, start: ast.Expression, end: ast.Expression
    ) -> ast.TimestampDiff:
        """TIMESTAMPDIFF."""
        return ast.TimestampDiff(unit, start, end, span=span)

    # JSON

    def json_input(self, span: Span, operand: ast.Expression, format_json: bool) -> ast.Expression:
        """The document; FORMAT JSON says what it is anyway."""
        return operand

    def json_passing(self, span: Span, value: ast.Expression, name: ast.Name) -> ast.JsonPassing:
        """``value AS name``."""
        return ast.JsonPassing(value, name, span=span)

    def json_exists(
        self,
        span: Span,
        operand: ast.Expression,
        path: ast.Expression,
        passing: tuple[ast.JsonPassing, ...] | None,
        on_error: str | None,
    ) -> ast.JsonExists:
        """JSON_EXISTS."""
        behavior = ast.JsonErrorBehavior(on_error) if on_error else None
        return ast.JsonExists(operand, path, behavior, passing or (), span=span)

    def json_value(
        self,
        span: Span,
        operand: ast.Expression,
        path: ast.Expression,
        passing: tuple[ast.JsonPassing, ...] | None,
        returning: ast.TypeSpec | None,
        behaviors: tuple[tuple[str, ast.JsonBehavior], ...],
    ) -> ast.JsonValue:
        """JSON_VALUE."""
        allowed = {ast.JsonBehaviorKind.ERROR, ast.JsonBehaviorKind.NULL, ast.JsonBehaviorKind.DEFAULT}
        on_empty, on_error = _behaviors(behaviors, allowed, "JSON_VALUE")
        return ast.JsonValue(operand, path, returning, on_empty, on_error, passing or (), span=span)

    def json_query(
        self,
        span: Span,
        operand: ast.Expression,
        path: ast.Expression,
        passing: tuple[ast.JsonPassing, ...] | None,
        returning: ast.TypeSpec | None,
        wrapper: str | None,
        behaviors: tuple[tuple[str, ast.JsonBehavior], ...],
    ) -> ast.JsonQuery:
        """JSON_QUERY."""
        allowed = set(ast.JsonBehaviorKind) - {ast.JsonBehaviorKind.DEFAULT}
        on_empty, on_error = _behaviors(behaviors, allowed, "JSON_QUERY")
        kind = None
        if wrapper is not None:
            kind = ast.JsonWrapper.WITH_UNCONDITIONAL_ARRAY
            if wrapper.startswith("WITHOUT"):
                kind = ast.JsonWrapper.WITHOUT_ARRAY
            elif " CONDITIONAL" in wrapper:
                kind = ast.JsonWrapper.WITH_CONDITIONAL_ARRAY
        return ast.JsonQuery(operand, path, returning, kind, on_empty, on_error, passing or (), span=span)

    def json_behavior(self, span: Span, outcome: ast.JsonBehavior, moment: str) -> tuple[str, ast.JsonBehavior]:
        """``outcome ON EMPTY``."""
        return moment, outcome

    def json_outcome(self, span: Span, words: str) -> ast.JsonBehavior:
        """ERROR, NULL, EMPTY ARRAY, EMPTY OBJECT."""
        return ast.JsonBehavior(ast.JsonBehaviorKind("EMPTY ARRAY" if words == "EMPTY" else words), span=span)

    def json_default(self, span: Span, value: ast.Expression) -> ast.JsonBehavior:
        """``DEFAULT value``."""
        return ast.JsonBehavior(ast.JsonBehaviorKind.DEFAULT, value, span=span)

    def json_entry(self, span: Span, key: ast.Expression, value: ast.Expression, format_json: bool) -> ast.JsonEntry:
        """``KEY k VALUE v``."""
        return ast.JsonEntry(key, value, format_json, span=span)

    def json_element(self, span: Span, value: ast.Expression, format_json: bool) -> ast.JsonElement:
        """An element of an array."""
        return ast.JsonElement(value, format_json, span=span)

    def json_object(self, span: Span, entries: tuple[ast.JsonEntry, ...], null_clause: str | None) -> ast.JsonObject:
        """JSON_OBJECT."""
        return ast.JsonObject(entries, _null_clause(null_clause), span=span)

    def json_object_empty(self, span: Span, null_clause: str | None) -> ast.JsonObject:
        """``JSON_OBJECT()``."""
        return ast.JsonObject((), _null_clause(null_clause), span=span)

    def json_array(self, span: Span, elements: tuple[ast.JsonElement, ...], null_clause: str | None) -> ast.JsonArray:
        """JSON_ARRAY."""
        return ast.JsonArray(elements, _null_clause(null_clause), span=span)

    def json_array_empty(self, span: Span, null_clause: str | None) -> ast.JsonArray:
        """``JSON_ARRAY()``."""
        return ast.JsonArray((), _null_clause(null_clause), span=span)

    def json_object_agg(self, span: Span, entry: ast.JsonEntry, null_clause: str | None) -> ast.JsonObjectAgg:
        """JSON_OBJECTAGG."""
        return ast.JsonObjectAgg(entry, _null_clause(null_clause), span=span)

    def json_array_agg(
        self,
        span: Span,
        element: ast.JsonElement,
        order_by: tuple[ast.OrderItem, ...] | None,
        null_clause: str | None,
        within: tuple[ast.OrderItem, ...] | None,
    ) -> ast.JsonArrayAgg:
        """JSON_ARRAYAGG; WITHIN GROUP orders it as ORDER BY inside does."""
        if within is not None:
            if order_by:
                raise ParseError("syntax", "SQL parse failed. JSON_ARRAYAGG takes one order only.", span)
            order_by = within
        return ast.JsonArrayAgg(element, order_by or (), _null_clause(null_clause), span=span)


def _null_clause(words: str | None) -> ast.JsonNullClause | None:
    return ast.JsonNullClause(words) if words else None


def _behaviors(
    behaviors: tuple[tuple[str, ast.JsonBehavior], ...], allowed: set[ast.JsonBehaviorKind], function: str
) -> tuple[ast.JsonBehavior | None, ast.JsonBehavior | None]:
    found: dict[str, ast.JsonBehavior] = {}
    for moment, behavior in behaviors:
        if behavior.kind not in allowed:
            raise ParseError(
                "syntax", f"SQL parse failed. {function} knows no '{behavior.kind.value} ON {moment}'.", behavior.span
            )
        if moment in found:
            raise ParseError("syntax", f"SQL parse failed. ON {moment} is given twice.", behavior.span)
        found[moment] = behavior
    return found.get("EMPTY"), found.get("ERROR")
