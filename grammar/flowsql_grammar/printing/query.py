"""Queries, relations and MATCH_RECOGNIZE as text."""

from __future__ import annotations

from typing import assert_never

from flowsql_grammar import ast
from flowsql_grammar.printing.expression import ExpressionPrinter
from flowsql_grammar.printing.names import name, names, path, string, words

_MARKS: dict[tuple[int | None, int | None], str] = {(0, None): "*", (1, None): "+", (0, 1): "?"}


class QueryPrinter(ExpressionPrinter):
    """Queries and relations."""

    def query(self, node: ast.Query) -> str:
        """A query with its tail."""
        ctes = ", ".join(
            f"{name(cte.name)}{' ' + names(cte.columns) if cte.columns else ''} AS ({self.query(cte.query)})"
            for cte in node.ctes
        )
        tail = None
        if node.limit is not None:
            tail = f"LIMIT {self.expression(node.limit)}"
            if node.offset is not None:
                tail += f" OFFSET {self.expression(node.offset)}"
        elif node.offset is not None:
            tail = f"OFFSET {self.expression(node.offset)} ROWS"
        return words(
            f"WITH {'RECURSIVE ' if node.recursive else ''}{ctes}" if ctes else None,
            self._body(node.body, 0),
            self.order_by(node.order_by),
            tail,
        )

    def _body(self, node: ast.QueryBody, least: int) -> str:
        match node:
            case ast.Query():
                return f"({self.query(node)})"
            case ast.Select():
                return self._select(node)
            case ast.Values(rows):
                return "VALUES " + ", ".join(f"({self.expressions(row)})" for row in rows)
            case ast.ExplicitTable(identifier):
                return f"TABLE {path(identifier)}"
            case ast.SetOperation():
                return self._set_operation(node, least)
            case _:
                assert_never(node)

    def _set_operation(self, node: ast.SetOperation, least: int) -> str:
        level = 2 if node.operator is ast.SetOperator.INTERSECT else 1
        parts: list[str] = []
        left: ast.QueryBody = node
        while isinstance(left, ast.SetOperation) and (left.operator is ast.SetOperator.INTERSECT) == (level == 2):
            parts += [self._body(left.right, level + 1), left.operator.value + (" ALL" if left.all else "")]
            left = left.left
        parts.append(self._body(left, level))
        text = " ".join(reversed(parts))
        return f"({text})" if level < least else text

    def _select(self, node: ast.Select) -> str:
        items = ", ".join(
            words(self.expression(item.expression), f"AS {name(item.alias)}" if item.alias else None)
            for item in node.items
        )
        windows = ", ".join(f"{name(w.name)} AS {self.window_spec(w.spec)}" for w in node.windows)
        return words(
            "SELECT",
            self.hints(node.hints),
            node.quantifier.value if node.quantifier else None,
            items,
            "FROM " + self.relation(node.from_) if node.from_ else None,
            "WHERE " + self.expression(node.where) if node.where else None,
            self._group_by(node.group_by) if node.group_by else None,
            "HAVING " + self.expression(node.having) if node.having else None,
            "WINDOW " + windows if windows else None,
            "QUALIFY " + self.expression(node.qualify) if node.qualify else None,
        )

    def _group_by(self, node: ast.GroupBy) -> str:
        elements = ", ".join(self._grouping(element) for element in node.elements)
        return words("GROUP BY", node.quantifier.value if node.quantifier else None, elements)

    def _grouping(self, node: ast.GroupingElement) -> str:
        match node:
            case ast.GroupingSet(items):
                return f"({self.expressions(items)})"
            case ast.GroupingSets(elements):
                return f"GROUPING SETS ({', '.join(self._grouping(element) for element in elements)})"
            case ast.Rollup(elements):
                return f"ROLLUP ({', '.join(self._grouping(element) for element in elements)})"
            case ast.Cube(elements):
                return f"CUBE ({', '.join(self._grouping(element) for element in elements)})"
            case _:
                return self.expression(node)

    def order_by(self, items: tuple[ast.OrderItem, ...]) -> str:
        """``ORDER BY ...`` or nothing."""
        return "ORDER BY " + ", ".join(self.order_item(item) for item in items) if items else ""

    def order_item(self, node: ast.OrderItem) -> str:
        """A sort key."""
        return words(
            self.expression(node.expression),
            "DESC" if node.descending else None,
            node.nulls.value if node.nulls else None,
        )

    def hints(self, hints: tuple[ast.Hint, ...]) -> str:
        """Hints between ``/*+`` and ``*/``, or nothing."""
        return f"/*+ {', '.join(self._hint(hint) for hint in hints)} */" if hints else ""

    def _hint(self, node: ast.Hint) -> str:
        arguments = []
        for argument in node.arguments:
            value = name(ast.Name(argument.value)) if argument.is_name else string(argument.value)
            arguments.append(value if argument.key is None else f"{string(argument.key)} = {value}")
        return name(node.name) + (f"({', '.join(arguments)})" if arguments else "")

    # Relations

    def relation(self, node: ast.Relation) -> str:
        """A relation of FROM."""
        parts: list[str] = []
        while isinstance(node, ast.Join):
            parts.append(self._join_tail(node))
            node = node.left
        parts.append(self._primary(node))
        return "".join(reversed(parts))

    def _join_tail(self, node: ast.Join) -> str:
        right = f"({self.relation(node.right)})" if isinstance(node.right, ast.Join) else self._primary(node.right)
        if node.kind is ast.JoinKind.COMMA:
            return ", " + right
        kind = "JOIN" if node.kind is ast.JoinKind.INNER else node.kind.value + " JOIN"
        return " " + words(
            "NATURAL" if node.natural else None,
            kind,
            right,
            "ON " + self.expression(node.on) if node.on else None,
            "USING " + names(node.using) if node.using else None,
        )

    def _primary(self, node: ast.Relation) -> str:
        match node:
            case ast.TableRef(identifier, hints, period, alias, extended):
                moment = f"FOR SYSTEM_TIME AS OF {self.expression(period)}" if period else None
                added = ", ".join(
                    words(path(c.name), self.type(c.type), "NOT NULL" if c.not_null else None) for c in extended
                )
                extend = f"EXTEND ({added})" if added else None
                return words(path(identifier), self.hints(hints), extend, moment, self._alias(alias))
            case ast.TableFunction(call, lateral, alias):
                return words("LATERAL" if lateral else None, f"TABLE({self.call(call)})", self._alias(alias))
            case ast.DerivedTable(query, lateral, alias):
                return words("LATERAL" if lateral else None, f"({self.query(query)})", self._alias(alias))
            case ast.Unnest(operands, ordinality, lateral, alias):
                return words(
                    "LATERAL" if lateral else None,
                    f"UNNEST({self.expressions(operands)})",
                    "WITH ORDINALITY" if ordinality else None,
                    self._alias(alias),
                )
            case ast.MatchRecognize():
                return self._match(node)
            case ast.Pivot() | ast.Unpivot() | ast.Sample():
                return self._reshaped(node)
            case ast.Join():
                return f"({self.relation(node)})"
            case _:
                assert_never(node)

    def _reshaped(self, node: ast.Pivot | ast.Unpivot | ast.Sample) -> str:
        source = self._primary(node.input)
        match node:
            case ast.Pivot(_, aggregates, columns, values, alias):
                inner = f"{self._pivot_items(aggregates)} FOR {names(columns)} IN ({self._pivot_items(values)})"
                return words(source, f"PIVOT ({inner})", self._alias(alias))
            case ast.Unpivot(_, measures, axes, items, nulls, alias):
                shown = ", ".join(
                    words(names(item.columns), f"AS {self.expression(item.label)}" if item.label else None)
                    for item in items
                )
                inner = f"{names(measures)} FOR {names(axes)} IN ({shown})"
                return words(source, "UNPIVOT", nulls.value if nulls else None, f"({inner})", self._alias(alias))
            case ast.Sample(_, method, amount, seed):
                shown = string(amount) if method is ast.SampleMethod.SUBSTITUTE else amount
                repeatable = None if seed is None else f"REPEATABLE({seed})"
                return words(source, f"TABLESAMPLE {method.value}({shown})", repeatable)
            case _:
                assert_never(node)

    def _pivot_items(self, items: tuple[ast.PivotItem, ...]) -> str:
        return ", ".join(
            words(self.expression(item.expression), f"AS {name(item.alias)}" if item.alias else None) for item in items
        )

    def _alias(self, node: ast.TableAlias | None) -> str:
        if node is None:
            return ""
        return f"AS {name(node.name)}" + (f" {names(node.columns)}" if node.columns else "")

    def _match(self, node: ast.MatchRecognize) -> str:
        measures = ", ".join(f"{self.expression(m.expression)} AS {name(m.name)}" for m in node.measures)
        pattern = words("^" if node.strict_start else None, self._pattern(node.pattern, 0))
        subsets = ", ".join(f"{name(s.name)} = {names(s.variables)}" for s in node.subsets)
        definitions = ", ".join(f"{name(d.name)} AS {self.expression(d.condition)}" for d in node.definitions)
        inner = words(
            "PARTITION BY " + self.expressions(node.partition_by) if node.partition_by else None,
            self.order_by(node.order_by),
            "MEASURES " + measures if measures else None,
            node.rows_per_match.value if node.rows_per_match else None,
            self._after_match(node.after_match) if node.after_match else None,
            f"PATTERN ({pattern}{' $' if node.strict_end else ''})",
            "WITHIN " + self.expression(node.within) if node.within else None,
            "SUBSET " + subsets if subsets else None,
            "DEFINE " + definitions,
        )
        return words(self._primary(node.input), f"MATCH_RECOGNIZE ({inner})", self._alias(node.alias))

    def _after_match(self, node: ast.AfterMatch) -> str:
        return words("AFTER MATCH", node.kind.value, name(node.variable) if node.variable else None)

    def _pattern(self, node: ast.Pattern, least: int) -> str:
        match node:
            case ast.PatternVariable(variable):
                return name(variable)
            case ast.PatternAlternation(choices):
                text, level = " | ".join(self._pattern(choice, 1) for choice in choices), 0
            case ast.PatternSequence(parts):
                text, level = " ".join(self._pattern(part, 2) for part in parts), 1
            case ast.PatternRepeat(inner, low, high, reluctant):
                mark = _MARKS.get((low, high))
                if mark is None:
                    mark = (
                        f"{{{low}}}"
                        if low == high and not reluctant
                        else f"{{{'' if low is None else low},{'' if high is None else high}}}"
                    )
                text, level = self._pattern(inner, 3) + mark + ("?" if reluctant else ""), 2
            case ast.PatternExclusion(inner):
                return f"{{- {self._pattern(inner, 0)} -}}"
            case ast.PatternPermute(parts):
                return f"PERMUTE({', '.join(self._pattern(part, 0) for part in parts)})"
            case _:
                assert_never(node)
        return f"({text})" if level < least else text
