"""What ``str`` makes of an expression: Flink's short form, ``plus(a, 1)``, in the names that Flink's functions have.

Older functions of Flink are named in camel case, later ones as in SQL; a name that stands in no table here is SQL's.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowsql.table.syntax.build import api_nodes, ast, called, shown
from flowsql_compute.eval.text.java_numbers import java_double

#: Functions that Flink names otherwise than SQL does, found by their letters alone: CHAR_LENGTH is ``charLength``.
_NAMES = {
    name.upper(): name
    for name in """
        abs acos ascii asin atan atan2 avg bin cardinality ceil charLength chr collect concat convertTz cos cosh cot
        count currentDatabase currentDate currentTime currentTimestamp dateFormat decode degrees e element encode exp
        flatten floor fromBase64 fromUnixtime hex initCap instr lag lead left listAgg ln localTime localTimestamp locate
        log log10 log2 lower lpad ltrim max md5 min parseUrl pi power radians rand randInteger regexp regexpExtract
        regexpReplace repeat replace reverse right round rpad rtrim sha1 sha2 sha224 sha256 sha384 sha512 sign sin sinh
        splitIndex sqrt stddevPop stddevSamp strToMap substr sum tan tanh toBase64 toDate toTimestamp toTimestampLtz
        truncate unixTimestamp upper uuid varPop varSamp withColumns withoutColumns
    """.split()  # noqa: SIM905 - read as a list of words
}
#: Names that are no other spelling of SQL's.
_OTHER_NAMES = {
    "CONCAT_WS": "concat_ws",
    "FIRST_VALUE": "first_value",
    "LAST_VALUE": "last_value",
    "RANGE_": "rangeTo",
    "TRANSLATE": "TRANSLATE3",
}
_OPERATORS = {
    "+": "plus",
    "-": "minus",
    "*": "times",
    "/": "divide",
    "%": "mod",
    "=": "equals",
    "<>": "notEquals",
    "<": "lessThan",
    "<=": "lessThanOrEqual",
    ">": "greaterThan",
    ">=": "greaterThanOrEqual",
    "AND": "and",
    "OR": "or",
    "OVERLAPS": "temporalOverlaps",
}
_UNARY = {"-": "minusPrefix", "NOT": "not", "+": "plusPrefix"}
_TESTS = {"NULL": "Null", "TRUE": "True", "FALSE": "False"}
_LIKES = {"LIKE": "LIKE", "SIMILAR TO": "similar", "RLIKE": "regexp", "ILIKE": "ILIKE"}
#: Milliseconds of an interval's unit; months of the longer ones.
_MS = {"WEEK": 604_800_000, "DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1000}
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}


def summary(node: ast.Node) -> str:
    """An expression in Flink's short form; in SQL where Flink's Table API has nothing of the kind."""
    found = _simple(node) or _functional(node)
    return shown(node) if found is None else found


def _simple(node: ast.Node) -> str | None:
    """Columns, literals and what gives columns names and places."""
    match node:
        case ast.ColumnRef(name):
            return ".".join(name.texts)
        case ast.Star(None):
            return "*"
        case ast.NumberLiteral():
            return _number(node)
        case ast.BooleanLiteral(value):
            return "true" if value else "false"
        case ast.NullLiteral():
            return "null"
        case ast.UnaryOp(ast.UnaryOperator.MINUS, ast.NumberLiteral() as number):
            return f"-{_number(number)}"
        case ast.IntervalLiteral():
            return _interval(node)
        case ast.SelectItem(expression, alias) if alias is not None:
            further = [name.text for name in node.further] if isinstance(node, api_nodes.Aliased) else []
            names = ", ".join(f"'{name}'" for name in (alias.text, *further))
            return f"as({summary(expression)}, {names})"
        case ast.OrderItem(expression, descending):
            return _call("desc" if descending else "asc", (expression,))
        case ast.NamedArgument(name, value):
            return f"ASSIGNMENT('{name.text}', {summary(value)})"
        case ast.FieldAccess(operand, field) if isinstance(field, api_nodes.WindowProperty):
            return _call(field.text, (operand,))
        case ast.FieldAccess(operand, field):
            text = field.text if isinstance(field, api_nodes.FieldPlace) else f"'{field.text}'"
            return f"get({summary(operand)}, {text})"
    return None


def _functional(node: ast.Node) -> str | None:
    """Operators, predicates and calls."""
    match node:
        case ast.FunctionCall():
            return _function(node)
        case ast.UnaryOp(operator, operand):
            return _call(_UNARY[operator.value], (operand,))
        case ast.BinaryOp(operator, left, right) if operator.value in _OPERATORS:
            return _call(_OPERATORS[operator.value], _operands(operator, left, right))
        case ast.IsPredicate(operand, test, negated) if test.value in _TESTS:
            return _call(f"is{'Not' if negated else ''}{_TESTS[test.value]}", (operand,))
        case ast.IsPredicate(operand, test, False) if test.value.startswith("JSON"):
            return _call("IS_JSON", (operand,))
        case ast.Between(operand, low, high, negated, False):
            return _call("notBetween" if negated else "between", (operand, low, high))
        case ast.InList(operand, values, False):
            return _call("in", (operand, *values))
        case ast.Like(operand, pattern, kind, escape, False):
            return _call(_LIKES[kind.value], (operand, pattern) if escape is None else (operand, pattern, escape))
        case ast.Case(None, (branch,), otherwise) if otherwise is not None:
            return _call("ifThenElse", (branch.conditions[0], branch.result, otherwise))
        case ast.Cast(operand, type_, safe):
            if isinstance(operand, ast.NullLiteral):
                return "null"
            return f"{'TRY_CAST' if safe else 'cast'}({summary(operand)}, {shown(type_)})"
        case ast.RowConstructor(items):
            return _call("row", items)
        case ast.ArrayConstructor(items):
            return _call("array", items)
        case ast.MapConstructor(entries):
            return _call("map", [part for entry in entries for part in entry])
        case ast.ItemAccess(operand, index):
            return _call("at", (operand, index))
    return _spelled(node)


def _spelled(node: ast.Node) -> str | None:
    """Calls that SQL writes with words between their arguments."""
    match node:
        case ast.Substring(operand, start, length):
            return _call("substring", (operand, start) if length is None else (operand, start, length))
        case ast.Overlay(operand, new, start, length):
            return _call("overlay", (operand, new, start) if length is None else (operand, new, start, length))
        case ast.Position(needle, haystack):
            return _call("position", (needle, haystack))
        case ast.Trim(operand, side, character):
            flags = [str(side is not other).lower() for other in (ast.TrimSide.TRAILING, ast.TrimSide.LEADING)]
            what = "' '" if character is None else summary(character)
            return f"trim({', '.join(flags)}, {what}, {summary(operand)})"
        case ast.Extract(unit, operand):
            return f"extract({unit.value}, {summary(operand)})"
        case ast.RoundToUnit(direction, operand, unit):
            return f"{direction.value.lower()}({summary(operand)}, {unit.value})"
        case ast.TimestampDiff(unit, start, end):
            return f"timestampDiff({unit.value}, {summary(start)}, {summary(end)})"
        case ast.JsonObjectAgg(entry, null_clause):
            return _call(f"JSON_OBJECTAGG_{_words(null_clause)}", (entry.key, entry.value))
        case ast.JsonArrayAgg(element, (), null_clause):
            return _call(f"JSON_ARRAYAGG_{_words(null_clause)}", (element.value,))
    return None


def _function(node: ast.FunctionCall) -> str:
    name = node.name.last
    if isinstance(name, api_nodes.InlineFunction):
        text = name.text.rpartition("$")[0]
    else:
        text = _OTHER_NAMES.get(name.text, _NAMES.get(name.text.replace("_", ""), name.text))
        text = ".".join((*node.name.texts[:-1], text))
    if node.name.texts == ("ROW_INTERVAL",):
        return ", ".join(map(summary, node.args))
    if node.niladic and name.quoted:
        return text
    if node.name.texts == ("IFNULL",) and called(node.args[0], "SUM") and isinstance(node.args[1], ast.NumberLiteral):
        # What ``sum0`` stands for.
        return f"sum0{summary(node.args[0]).removeprefix('sum')}"
    made = _call(text, node.args)
    if node.name.texts == ("LISTAGG",) and len(node.args) == 1:
        made = f"{made[:-1]}, ',')"
    if node.quantifier is ast.SetQuantifier.DISTINCT:
        made = f"distinct({made})"
    return f"over({made}, {node.over.text})" if isinstance(node.over, ast.Name) else made


def _words(null_clause: ast.JsonNullClause | None) -> str:
    return "" if null_clause is None else null_clause.value.replace(" ", "_")


def _call(name: str, args: Sequence[ast.Node]) -> str:
    return f"{name}({', '.join(map(summary, args))})"


def _operands(operator: ast.BinaryOperator, left: ast.Node, right: ast.Node) -> list[ast.Node]:
    """Both; of a chain of AND or OR, and of the four moments of OVERLAPS, all."""
    if operator is ast.BinaryOperator.OVERLAPS:
        return [part for side in (left, right) if isinstance(side, ast.RowConstructor) for part in side.items]
    return [left, right]


def _number(node: ast.NumberLiteral) -> str:
    """A number as Java writes it."""
    return java_double(float(node.text)) if node.is_approximate else node.text


def _interval(node: ast.IntervalLiteral) -> str | None:
    unit = node.qualifier.start.value
    if node.qualifier.end is not None or unit not in (_MS | _MONTHS):
        return None
    sign = "-" if node.negative else ""
    if unit in _MONTHS:
        return f"{sign}{int(node.text) * _MONTHS[unit]}"
    whole, _, fraction = node.text.partition(".")
    return f"{sign}{int(whole) * _MS[unit] + int(fraction.ljust(3, '0')[:3])}"
