"""Syntax trees as SQL text in the look of Flink's catalog: upper-case words, every name in back-ticks.

Covers what the binder accepts; the text means the same when it is parsed again. Source of the look: Calcite's unparser
as SHOW CREATE VIEW and DESCRIBE print it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from flowsql_core.errors import NotSupportedYetError
from flowsql_core.types.logical import quote_identifier
from flowsql_grammar import ast
from flowsql_planner.bind.data_types import bind_type

# Binding strength, as the grammar has it; higher binds more tightly.
_OVER, _OR, _AND, _NOT, _COMPARE, _ADD, _MULTIPLY, _CONCAT, _SIGN, _PRIMARY = range(1, 11)
_STRENGTH = {
    ast.BinaryOperator.OR: _OR,
    ast.BinaryOperator.AND: _AND,
    ast.BinaryOperator.PLUS: _ADD,
    ast.BinaryOperator.MINUS: _ADD,
    ast.BinaryOperator.TIMES: _MULTIPLY,
    ast.BinaryOperator.DIVIDE: _MULTIPLY,
    ast.BinaryOperator.MODULO: _MULTIPLY,
    ast.BinaryOperator.CONCAT: _CONCAT,
}


def unparse_expression(node: ast.Expression | ast.Argument) -> str:
    """SQL text of an expression.

    Raises:
        NotSupportedYetError: an expression that the binder refuses too.
    """
    return _expr(node, 0)


def unparse_query(query: ast.Query) -> str:
    """SQL text of a query, one clause a line."""
    return _query(query)


def text_literal(value: str) -> str:
    """A string in single quotes."""
    return "'" + value.replace("'", "''") + "'"


def _path(identifier: ast.Identifier) -> str:
    if isinstance(identifier, ast.FileName):
        return text_literal(identifier.last.text)
    return ".".join(quote_identifier(part.text) for part in identifier.parts)


def _list(nodes: Iterable[ast.Expression | ast.Argument]) -> str:
    return ", ".join(_expr(node, 0) for node in nodes)


def _expr(node: ast.Expression | ast.Argument, outer: int) -> str:
    """Text of an operand inside an operator of strength ``outer``; brackets where the operand binds less tightly."""
    text, strength = _with_strength(node)
    return f"({text})" if strength < outer else text


def _with_strength(node: ast.Expression | ast.Argument) -> tuple[str, int]:
    match node:
        case ast.BinaryOp():
            return _binary(node)
        case ast.UnaryOp(ast.UnaryOperator.NOT, operand):
            return f"NOT {_expr(operand, _NOT + 1)}", _NOT
        case ast.UnaryOp(operator, operand):
            # The sign of a number belongs to it.
            blank = "" if isinstance(operand, ast.NumberLiteral) else " "
            return f"{operator.value}{blank}{_expr(operand, _PRIMARY)}", _SIGN
        case ast.IsPredicate(operand, test, negated):
            return f"{_expr(operand, _COMPARE)} IS {'NOT ' * negated}{test.value}", _COMPARE
        case ast.IsDistinctFrom(left, right, negated):
            words = f"IS {'NOT ' * negated}DISTINCT FROM"
            return f"{_expr(left, _COMPARE + 1)} {words} {_expr(right, _COMPARE + 1)}", _COMPARE
        case ast.Between(operand, low, high, negated, symmetric):
            words = f"{'NOT ' * negated}BETWEEN {'SYMMETRIC' if symmetric else 'ASYMMETRIC'}"
            return (
                f"{_expr(operand, _COMPARE + 1)} {words} {_expr(low, _COMPARE + 1)} AND {_expr(high, _COMPARE + 1)}",
                _COMPARE,
            )
        case ast.InList(operand, values, negated):
            return f"{_expr(operand, _COMPARE + 1)} {'NOT ' * negated}IN ({_list(values)})", _COMPARE
        case ast.InSubquery(operand, query, negated):
            return f"{_expr(operand, _COMPARE + 1)} {'NOT ' * negated}IN ({_query(query)})", _COMPARE
        case ast.QuantifiedComparison(operator, left, quantifier, right):
            listed = _query(right) if isinstance(right, ast.Query) else _list(right)
            return f"{_expr(left, _COMPARE + 1)} {operator.value} {quantifier.value} ({listed})", _COMPARE
        case ast.Like(operand, pattern, kind, escape, negated):
            tail = "" if escape is None else f" ESCAPE {_expr(escape, _COMPARE + 1)}"
            words = f"{'NOT ' * negated}{kind.value}"
            return f"{_expr(operand, _COMPARE + 1)} {words} {_expr(pattern, _COMPARE + 1)}{tail}", _COMPARE
        case ast.FunctionCall(over=over) if over is not None:
            window = quote_identifier(over.text) if isinstance(over, ast.Name) else _window(over)
            return f"{_function(node)} OVER {window}", _OVER
    return _primary(node), _PRIMARY


def _binary(node: ast.BinaryOp) -> tuple[str, int]:
    """A chain that leans to the left is written without recursion: it may be long."""
    tail: list[str] = []
    current: ast.Expression = node
    top = strength = _STRENGTH.get(node.operator, _COMPARE)
    while isinstance(current, ast.BinaryOp) and _STRENGTH.get(current.operator, _COMPARE) == strength:
        tail.append(f"{current.operator.value} {_expr(current.right, strength + 1)}")
        current = current.left
        if strength == _COMPARE:
            break
    first = _expr(current, strength + 1)
    return " ".join([first, *reversed(tail)]), top


def _primary(node: ast.Expression | ast.Argument) -> str:
    match node:
        case ast.ColumnRef(path):
            return _path(path)
        case ast.Star(qualifier):
            return "*" if qualifier is None else f"{_path(qualifier)}.*"
        case ast.FunctionCall():
            return _function(node)
        case ast.Cast(operand, type_, safe):
            return f"{'TRY_CAST' if safe else 'CAST'}({_expr(operand, 0)} AS {_type(type_)})"
        case ast.Case():
            return _case(node)
        case ast.ItemAccess(operand, index):
            return f"{_expr(operand, _PRIMARY)}[{_expr(index, 0)}]"
        case ast.FieldAccess(operand, field):
            return f"{_expr(operand, _PRIMARY)}.{quote_identifier(field.text)}"
        case ast.RowConstructor(items):
            return f"ROW({_list(items)})"
        case ast.ArrayConstructor(items):
            return f"ARRAY[{_list(items)}]"
        case ast.MultisetConstructor(items):
            return f"MULTISET[{_list(items)}]"
        case ast.MapConstructor(entries):
            return f"MAP[{_list(item for entry in entries for item in entry)}]"
        case ast.NamedArgument(name, value):
            return f"{quote_identifier(name.text)} => {_expr(value, 0)}"
        case ast.TableArgument():
            return _table_argument(node)
        case ast.Descriptor(columns):
            return f"DESCRIPTOR({', '.join(_path(column.name) for column in columns)})"
        case ast.DefaultValue():
            return "DEFAULT"
        case ast.Subquery(query):
            return f"({_query(query)})"
        case ast.Exists(query):
            return f"EXISTS ({_query(query)})"
    return _literal(node) or _special_call(node) or _json_call(node) or _refuse(node)


def _refuse(node: ast.Node) -> str:
    raise NotSupportedYetError(f"{type(node).__name__} in a stored expression or view", node.span)


def _literal(node: ast.Expression | ast.Argument) -> str | None:
    match node:
        case ast.NumberLiteral(text):
            return _scientific(text) if "e" in text.lower() else text
        case ast.StringLiteral(value, charset) if charset is not None:
            return f"_{charset}{text_literal(value)}"
        case ast.StringLiteral(value):
            return text_literal(value) if value.isascii() else _unicode_literal(value)
        case ast.BinaryLiteral(data):
            return f"X'{data.hex().upper()}'"
        case ast.BooleanLiteral(truth):
            return "UNKNOWN" if truth is None else str(truth).upper()
        case ast.NullLiteral():
            return "NULL"
        case ast.DateLiteral(text):
            return f"DATE '{text}'"
        case ast.TimeLiteral(text):
            return f"TIME '{text}'"
        case ast.TimestampLiteral(text, local):
            return f"TIMESTAMP {'WITH LOCAL TIME ZONE ' * local}'{text}'"
        case ast.IntervalLiteral(text, qualifier, negative):
            return f"INTERVAL {'-' * negative}'{text}' {_qualifier(qualifier)}"
        case ast.IntervalExpression(amount, qualifier, negative):
            return f"INTERVAL {'-' * negative}({_expr(amount, 0)}) {_qualifier(qualifier)}"
    return None


def _scientific(text: str) -> str:
    """``1.50e3`` as ``1.50E3``, ``10e0`` as ``1E1``: one digit before the point, zeros of whole numbers left out."""
    _, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    whole = "".join(str(digit) for digit in digits)
    shown = whole.rstrip("0") or "0" if exponent == 0 else whole
    rest = f".{shown[1:]}" if len(shown) > 1 else ""
    return f"{shown[0]}{rest}E{len(whole) + exponent - 1}"


def _unicode_literal(value: str) -> str:
    """``u&'\\00e4'``: a string with other than ASCII characters, by its UTF-16 units."""
    units = value.encode("utf-16-be", "surrogatepass")
    text = ""
    for at in range(0, len(units), 2):
        unit = int.from_bytes(units[at : at + 2], "big")
        text += chr(unit) if 32 <= unit < 128 and unit != 0x5C else "\\\\" if unit == 0x5C else f"\\{unit:04x}"
    return "u&'" + text.replace("'", "''") + "'"


def _special_call(node: ast.Expression | ast.Argument) -> str | None:
    match node:
        case ast.Extract(unit, operand):
            return f"EXTRACT({unit.value} FROM {_expr(operand, 0)})"
        case ast.RoundToUnit(direction, operand, unit):
            return f"{direction.value}({_expr(operand, 0)} TO {unit.value})"
        case ast.Trim(operand, side, characters):
            what = "' '" if characters is None else _expr(characters, 0)
            return f"TRIM({side.value} {what} FROM {_expr(operand, 0)})"
        case ast.Position(needle, haystack, start):
            tail = "" if start is None else f" FROM {_expr(start, 0)}"
            return f"POSITION({_expr(needle, _COMPARE + 1)} IN {_expr(haystack, 0)}{tail})"
        case ast.Overlay(operand, replacement, start, length):
            tail = "" if length is None else f" FOR {_expr(length, 0)}"
            return f"OVERLAY({_expr(operand, 0)} PLACING {_expr(replacement, 0)} FROM {_expr(start, 0)}{tail})"
        case ast.Substring(operand, start, length):
            tail = "" if length is None else f", {_expr(length, 0)}"
            return f"SUBSTRING({_expr(operand, 0)}, {_expr(start, 0)}{tail})"
        case ast.TimestampAdd(unit, amount, moment):
            return f"TIMESTAMPADD({unit.value}, {_expr(amount, 0)}, {_expr(moment, 0)})"
        case ast.TimestampDiff(unit, start, end):
            return f"TIMESTAMPDIFF({unit.value}, {_expr(start, 0)}, {_expr(end, 0)})"
    return None


def _json_call(node: ast.Expression | ast.Argument) -> str | None:
    match node:
        case ast.JsonExists(operand, path, on_error):
            tail = "" if on_error is None else f" {on_error.value} ON ERROR"
            return f"JSON_EXISTS({_expr(operand, 0)}, {_expr(path, 0)}{tail})"
        case ast.JsonValue(operand, path, returning, on_empty, on_error):
            tail = "" if returning is None else f" RETURNING {_type(returning)}"
            return f"JSON_VALUE({_expr(operand, 0)}, {_expr(path, 0)}{tail}{_behaviors(on_empty, on_error)})"
        case ast.JsonQuery(operand, path, returning, wrapper, on_empty, on_error):
            tail = "" if returning is None else f" RETURNING {_type(returning)}"
            tail += f" {(wrapper or ast.JsonWrapper.WITHOUT_ARRAY).value}"
            null = ast.JsonBehavior(ast.JsonBehaviorKind.NULL, span=node.span)
            behaviors = _behaviors(on_empty or null, on_error or null)
            return f"JSON_QUERY({_expr(operand, 0)}, {_expr(path, 0)}{tail}{behaviors})"
        case ast.JsonObject(entries, null_clause):
            nulls = _nulls(null_clause or ast.JsonNullClause.NULL_ON_NULL)
            return f"JSON_OBJECT({', '.join(_entry(entry) for entry in entries)}{nulls})"
        case ast.JsonArray(elements, null_clause):
            nulls = _nulls(null_clause or ast.JsonNullClause.ABSENT_ON_NULL)
            return f"JSON_ARRAY({', '.join(_element(element) for element in elements)}{nulls})"
        case ast.JsonObjectAgg(entry, null_clause):
            return f"JSON_OBJECTAGG({_entry(entry)}{_nulls(null_clause or ast.JsonNullClause.NULL_ON_NULL)})"
        case ast.JsonArrayAgg(element, order_by, null_clause):
            tail = f" ORDER BY {_order(order_by)}" if order_by else ""
            return f"JSON_ARRAYAGG({_element(element)}{tail}{_nulls(null_clause or ast.JsonNullClause.ABSENT_ON_NULL)})"
    return None


def _entry(entry: ast.JsonEntry) -> str:
    return f"KEY {_expr(entry.key, 0)} VALUE {_expr(entry.value, 0)}{' FORMAT JSON' * entry.format_json}"


def _element(element: ast.JsonElement) -> str:
    return f"{_expr(element.value, 0)}{' FORMAT JSON' * element.format_json}"


def _nulls(clause: ast.JsonNullClause) -> str:
    """What happens to NULLs; said also where it was not written."""
    return f" {clause.value}"


def _behaviors(on_empty: ast.JsonBehavior | None, on_error: ast.JsonBehavior | None) -> str:
    text = ""
    for behavior, event in ((on_empty, "EMPTY"), (on_error, "ERROR")):
        if behavior is not None:
            value = "" if behavior.value is None else f" {_expr(behavior.value, 0)}"
            text += f" {behavior.kind.value}{value} ON {event}"
    return text


def _filter(condition: ast.Expression | None) -> str:
    return "" if condition is None else f" FILTER (WHERE {_expr(condition, 0)})"


def _function(node: ast.FunctionCall) -> str:
    simple = len(node.name.parts) == 1 and not node.name.last.quoted
    name = node.name.last.text.upper() if simple else _path(node.name)
    if node.niladic:
        return name
    if node.null_treatment is not None or node.match_scope is not None:
        return _refuse(node)
    quantifier = "" if node.quantifier is None else f"{node.quantifier.value} "
    order = f" ORDER BY {_order(node.order_by)}" if node.order_by else ""
    text = f"{name}({quantifier}{_list(node.args)}{order})"
    if node.within_group:
        text += f" WITHIN GROUP (ORDER BY {_order(node.within_group)})"
    return text + _filter(node.filter)


def _window(spec: ast.WindowSpec) -> str:
    if spec.allow_partial is not None:
        return _refuse(spec)
    parts = [] if spec.base is None else [quote_identifier(spec.base.text)]
    if spec.partition_by:
        parts.append(f"PARTITION BY {_list(spec.partition_by)}")
    if spec.order_by:
        parts.append(f"ORDER BY {_order(spec.order_by)}")
    if spec.frame is not None:
        start, end = _bound(spec.frame.start), spec.frame.end
        parts.append(f"{spec.frame.unit.value} {start if end is None else f'BETWEEN {start} AND {_bound(end)}'}")
    return f"({' '.join(parts)})"


def _bound(bound: ast.FrameBound) -> str:
    return bound.kind.value if bound.offset is None else f"{_expr(bound.offset, _PRIMARY)} {bound.kind.value}"


def _case(node: ast.Case) -> str:
    parts = ["CASE" if node.operand is None else f"CASE {_expr(node.operand, 0)}"]
    parts += [f"WHEN {_list(branch.conditions)} THEN {_expr(branch.result, 0)}" for branch in node.branches]
    parts.append(f"ELSE {'NULL' if node.otherwise is None else _expr(node.otherwise, 0)} END")
    return " ".join(parts)


def _qualifier(qualifier: ast.IntervalQualifier) -> str:
    start = qualifier.start.value + (f"({qualifier.precision})" if qualifier.precision is not None else "")
    if qualifier.end is None:
        return start
    return f"{start} TO {qualifier.end.value}" + (f"({qualifier.fraction})" if qualifier.fraction is not None else "")


def _type(spec: ast.TypeSpec) -> str:
    """A type as it was written, blanks in its angle brackets."""
    match spec:
        case ast.BasicType(name, parameters):
            numbers = f"({', '.join(str(number) for number in parameters)})" if parameters else ""
            text = f"{'INTEGER' if name == 'INT' else name}{numbers}"
        case ast.IntervalType(qualifier):
            text = f"INTERVAL {_qualifier(qualifier)}"
        case ast.ArrayType(element):
            text = f"ARRAY< {_type(element)} >"
        case ast.MultisetType(element):
            text = f"MULTISET< {_type(element)} >"
        case ast.MapType(key, value):
            text = f"MAP< {_type(key)}, {_type(value)} >"
        case ast.RowType(fields):
            text = f"ROW< {', '.join(_row_field(field) for field in fields)} >"
        case _:
            return str(bind_type(spec))
    return f"{text} NOT NULL" if spec.nullable is False else text


def _row_field(field: ast.RowField) -> str:
    comment = "" if field.comment is None else f" {text_literal(field.comment)}"
    return f"{quote_identifier(field.name.text)} {_type(field.type)}{comment}"


# Queries


def _query(query: ast.Query) -> str:
    head = "WITH " + ", ".join(_common_table(common) for common in query.ctes) + " " if query.ctes else ""
    parts = [head + _body(query.body)]
    if query.order_by:
        parts.append(f"ORDER BY {_order(query.order_by)}")
    if isinstance(query.offset, ast.NumberLiteral):
        parts.append(f"OFFSET {query.offset.text} ROWS")
    if isinstance(query.limit, ast.NumberLiteral):
        parts.append(f"FETCH NEXT {query.limit.text} ROWS ONLY")
    return "\n".join(parts)


def _common_table(common: ast.CommonTable) -> str:
    columns = f" ({', '.join(quote_identifier(name.text) for name in common.columns)})" if common.columns else ""
    return f"{quote_identifier(common.name.text)}{columns} AS ({_query(common.query)})"


def _body(body: ast.QueryBody) -> str:
    match body:
        case ast.Select():
            return _select(body)
        case ast.SetOperation(operator, left, right, all_):
            # The right side of a chain has brackets; the left leans.
            right_text = f"({_body(right)})" if isinstance(right, ast.SetOperation | ast.Query) else _body(right)
            left_text = f"({_body(left)})" if isinstance(left, ast.Query) else _body(left)
            return f"{left_text}\n{operator.value}{' ALL' * all_}\n{right_text}"
        case ast.Values(rows):
            return "VALUES " + ", ".join(f"ROW({_list(row)})" for row in rows)
        case ast.ExplicitTable(name):
            return f"TABLE {_path(name)}"
        case ast.Query():
            return _query(body)


def _select(node: ast.Select) -> str:
    hints = "".join(f" {_hints(node.hints)}" for _ in node.hints[:1])
    quantifier = "" if node.quantifier is None else f" {node.quantifier.value}"
    parts = [f"SELECT{hints}{quantifier} " + ", ".join(_item(item) for item in node.items)]
    if node.from_ is not None:
        parts.append(f"FROM {_relation(node.from_)}")
    if node.where is not None:
        parts.append(f"WHERE {_expr(node.where, 0)}")
    if node.group_by is not None:
        word = "" if node.group_by.quantifier is None else f"{node.group_by.quantifier.value} "
        parts.append(f"GROUP BY {word}" + ", ".join(_grouping(element) for element in node.group_by.elements))
    if node.having is not None:
        parts.append(f"HAVING {_expr(node.having, 0)}")
    if node.windows:
        named = (f"{quote_identifier(window.name.text)} AS {_window(window.spec)}" for window in node.windows)
        parts.append("WINDOW " + ",\n".join(named))
    if node.qualify is not None:
        parts.append(f"QUALIFY {_expr(node.qualify, 0)}")
    return "\n".join(parts)


def _item(item: ast.SelectItem) -> str:
    text = _expr(item.expression, 0)
    return text if item.alias is None else f"{text} AS {quote_identifier(item.alias.text)}"


def _grouping(element: ast.GroupingElement) -> str:
    match element:
        case ast.GroupingSet(items):
            return f"({_list(items)})"
        case ast.GroupingSets(elements):
            return f"GROUPING SETS({', '.join(_grouping(inner) for inner in elements)})"
        case ast.Rollup(elements):
            return f"ROLLUP({', '.join(_grouping(inner) for inner in elements)})"
        case ast.Cube(elements):
            return f"CUBE({', '.join(_grouping(inner) for inner in elements)})"
    return _expr(element, 0)


def _order(items: Iterable[ast.OrderItem]) -> str:
    return ", ".join(
        _expr(item.expression, 0)
        + (" DESC" if item.descending else "")
        + (f" {item.nulls.value}" if item.nulls is not None else "")
        for item in items
    )


def _relation(node: ast.Relation) -> str:
    match node:
        case ast.TableRef(name, hints, period):
            text = _path(name) + (f" {_hints(hints)}" if hints else "")
            text += "" if period is None else f" FOR SYSTEM_TIME AS OF {_expr(period, 0)}"
            return text + _alias(node.alias)
        case ast.TableFunction(call, lateral):
            return f"{'LATERAL ' * lateral}TABLE({_function(call)}){_alias(node.alias)}"
        case ast.DerivedTable(query, lateral):
            return f"{'LATERAL ' * lateral}({_query(query)}){_alias(node.alias)}"
        case ast.Unnest(operands, ordinality):
            return f"UNNEST({_list(operands)}){' WITH ORDINALITY' * ordinality}{_alias(node.alias)}"
        case ast.Join():
            return _join(node)
        case ast.MatchRecognize():
            return _match(node)
    return _refuse(node)


def _match(node: ast.MatchRecognize) -> str:
    source = node.input
    if isinstance(source, ast.TableFunction):
        # It takes no alias in front of MATCH_RECOGNIZE.
        source = replace(source, alias=None)
    subsets = ", ".join(
        f"{quote_identifier(item.name.text)} = ({', '.join(quote_identifier(name.text) for name in item.variables)})"
        for item in node.subsets
    )
    measures = (f"{_expr(item.expression, 0)} AS {quote_identifier(item.name.text)}" for item in node.measures)
    definitions = (f"{quote_identifier(item.name.text)} AS {_expr(item.condition, 0)}" for item in node.definitions)
    clauses = [
        f"PARTITION BY {_list(node.partition_by)}" if node.partition_by else "",
        f"ORDER BY {_order(node.order_by)}" if node.order_by else "",
        f"MEASURES {', '.join(measures)}",
        node.rows_per_match.value if node.rows_per_match is not None else "",
        "" if node.after_match is None else _after_match(node.after_match),
        f"PATTERN ({'^ ' * node.strict_start}{_pattern(node.pattern)}{' $' * node.strict_end})",
        "" if node.within is None else f"WITHIN {_expr(node.within, 0)}",
        f"SUBSET {subsets}" if subsets else "",
        f"DEFINE {', '.join(definitions)}",
    ]
    inner = "\n".join(clause for clause in clauses if clause)
    return f"{_relation(source)} MATCH_RECOGNIZE (\n{inner})" + _alias(node.alias)


def _after_match(node: ast.AfterMatch) -> str:
    variable = "" if node.variable is None else f" {quote_identifier(node.variable.text)}"
    return f"AFTER MATCH {node.kind.value}{variable}"


def _pattern(node: ast.Pattern) -> str:
    match node:
        case ast.PatternVariable(name):
            return quote_identifier(name.text)
        case ast.PatternSequence(parts):
            return " ".join(map(_pattern, parts))
        case ast.PatternRepeat(inner, low, high, reluctant):
            bounds = f"{'' if low is None else low},{'' if high is None else high}"
            times = f"{{{low if low == high and not reluctant else bounds}}}"
            marks: dict[tuple[int | None, int | None], str] = {(0, None): "*", (1, None): "+", (0, 1): "?"}
            return f"{_pattern(inner)}{marks.get((low, high), times)}{'?' * reluctant}"
    # No query with another pattern gets as far.
    return _refuse(node)


def _join(node: ast.Join) -> str:
    right = _relation(node.right)
    right = f"({right})" if isinstance(node.right, ast.Join) else right
    if node.kind is ast.JoinKind.COMMA:
        return f"{_relation(node.left)},\n{right}"
    words = f"{'NATURAL ' * node.natural}{node.kind.value} JOIN"
    text = f"{_relation(node.left)}\n{words} {right}"
    if node.on is not None:
        return f"{text} ON {_expr(node.on, 0)}"
    if node.using:
        return f"{text} USING ({', '.join(quote_identifier(name.text) for name in node.using)})"
    return text


def _alias(alias: ast.TableAlias | None) -> str:
    if alias is None:
        return ""
    columns = f" ({', '.join(quote_identifier(name.text) for name in alias.columns)})" if alias.columns else ""
    return f" AS {quote_identifier(alias.name.text)}{columns}"


def _table_argument(node: ast.TableArgument) -> str:
    table = f"({_query(node.table)})" if isinstance(node.table, ast.Query) else f"TABLE {_path(node.table)}"
    partition = f" PARTITION BY {_list(node.partition_by)}" if node.partition_by else ""
    order = f" ORDER BY {_order(node.order_by)}" if node.order_by else ""
    return table + partition + order


def _hints(hints: Iterable[ast.Hint]) -> str:
    return (
        "/*+ " + ", ".join(f"{hint.name.text}({', '.join(_hint(a) for a in hint.arguments)})" for hint in hints) + " */"
    )


def _hint(argument: ast.HintArgument) -> str:
    return (f"{text_literal(argument.key)} = " if argument.key is not None else "") + text_literal(argument.value)
