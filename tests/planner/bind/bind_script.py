"""Binds scripts in tests: every statement against one catalog, DDL carried out, plans dumped as compact text."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import dataclass, field

from flowsql_core.config import Configuration
from flowsql_core.expr import AggregateCall, Call, Case, Cast, Expr, InputRef, Literal
from flowsql_core.span import Source
from flowsql_core.types.logical import Schema
from flowsql_grammar import parse_statement, split_statements
from flowsql_planner.bind import operations as op
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.statement import bind_statement
from flowsql_planner.catalog.apply import apply_ddl
from flowsql_planner.catalog.manager import CatalogManager
from flowsql_planner.logical import nodes as n

_DDL = typing.get_args(op.DdlOperation)


@dataclass
class Session:
    """Catalogs and settings over the statements of a script."""

    catalogs: CatalogManager = field(default_factory=CatalogManager)
    config: Configuration = field(default_factory=Configuration)

    def run(self, text: str) -> Iterator[op.Operation]:
        """Bind statement by statement; what changes catalog or settings is carried out before the next one."""
        source = Source(text)
        for span in split_statements(source):
            yield self.bind(source, parse_statement(source, span))

    def bind(self, source: Source, statement: object) -> op.Operation:
        operation = bind_statement(statement, BindContext(self.catalogs, self.config, source))
        match operation:
            case op.SetOption(key, value):
                self.config.set(key, value)
            case op.CreateTableAs(create):
                apply_ddl(create, self.catalogs)
            case _ if isinstance(operation, _DDL):
                apply_ddl(operation, self.catalogs)
        return operation

    def last(self, text: str) -> op.Operation:
        """The operation of the last statement of a script."""
        return list(self.run(text))[-1]


def schema_text(schema: Schema) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in schema)


def dump(rel: n.Rel, indent: int = 0) -> str:
    """One node a line, inputs indented."""
    lines = [" " * indent + _node(rel)]
    lines += [dump(child, indent + 2) for child in n.inputs(rel)]
    return "\n".join(lines)


def _node(rel: n.Rel) -> str:
    match rel:
        case n.Scan():
            metadata = f", metadata={list(rel.metadata)}" if rel.metadata else ""
            return f"Scan({rel.table.path[-1]}: {', '.join(c.name for c in rel.schema)}{metadata})"
        case n.Values(rows, schema):
            shown = ", ".join("(" + ", ".join(expr_text(v) for v in row) + ")" for row in rows)
            return f"Values({shown}: {', '.join(c.name for c in schema)})"
        case n.Project(_, exprs, names):
            return (
                "Project(" + ", ".join(f"{expr_text(e)} AS {name}" for e, name in zip(exprs, names, strict=True)) + ")"
            )
        case n.Filter(_, condition):
            return f"Filter({expr_text(condition)})"
        case n.WatermarkAssigner(_, index, expression):
            return f"Watermark(${index}, {expr_text(expression)})"
        case n.Aggregate():
            sets = "" if rel.grouping_sets is None else f", sets={[list(one) for one in rel.grouping_sets]}"
            hints = f", hints={dict(rel.hints)}" if rel.hints else ""
            return f"Aggregate({list(rel.grouping)}{sets}: {', '.join(_call(c) for c in rel.calls)}{hints})"
        case n.WindowTableFunction():
            partition = f", partition={list(rel.partition)}" if rel.partition else ""
            return f"{rel.kind.value}(${rel.time_index}, {rel.size_ms}, {rel.step_ms}, {rel.offset_ms}{partition})"
        case n.MultiJoin(kinds=kinds, conditions=conditions):
            asked = ("TRUE" if on is None else expr_text(on) for on in conditions)
            return f"MultiJoin({', '.join(f'{kind.value} {on}' for kind, on in zip(kinds, asked, strict=True))})"
        case n.Join():
            condition = "TRUE" if rel.condition is None else expr_text(rel.condition)
            hints = f", hints={dict(rel.hints)}" if rel.hints else ""
            return f"Join({rel.kind.value}, {condition}{hints})"
        case n.Apply():
            read = ", ".join(expr_text(expr) for expr in rel.parameters)
            condition = "TRUE" if rel.condition is None else expr_text(rel.condition)
            return f"Apply({rel.kind.value}, [{read}], {condition})"
        case n.SetOperation():
            return f"{rel.operator.value}({'ALL' * rel.all})"
        case n.Correlate():
            ordinality = " WITH ORDINALITY" if rel.ordinality else ""
            condition = "" if rel.condition is None else f", {expr_text(rel.condition)}"
            added = ", ".join(column.name for column in rel.added)
            return f"{'Left' * rel.outer}Correlate({expr_text(rel.collection)}{ordinality}: {added}{condition})"
        case n.Union():
            return "Union()"
        case n.Sort():
            keys = [f"${k.index}{' DESC' * k.descending}{' NULLS FIRST' * k.nulls_first}" for k in rel.keys]
            return f"Sort({', '.join(keys)}; offset={rel.offset}, fetch={rel.fetch})"
        case n.Over(calls=calls):
            return f"Over({', '.join(f'{call.function}() AS {call.name}' for call in calls)})"
        case n.Rank():
            keys = [f"${k.index}{' DESC' * k.descending}{' NULLS FIRST' * k.nulls_first}" for k in rel.order]
            last = f"${rel.last_index}" if rel.last is None else rel.last
            number = "" if rel.number is None else f" AS {rel.number.name}"
            return f"Rank({list(rel.partition)} BY {', '.join(keys)}: {rel.first} to {last}{number})"
        case n.Sink():
            static = f", partition={dict(rel.static_partition)}" if rel.static_partition else ""
            return f"Sink({rel.name}{static})"
    raise AssertionError(rel)


def _call(call: AggregateCall) -> str:
    args = ", ".join(expr_text(arg) for arg in call.args) or "*"
    text = f"{call.function}({'DISTINCT ' * call.distinct}{args})"
    if call.filter_index is not None:
        text += f" FILTER ${call.filter_index}"
    if call.order_by:
        text += f" ORDER BY {list(call.order_by)}"
    return f"{text} AS {call.name}"


def expr_text(expr: Expr) -> str:
    match expr:
        case InputRef(index):
            return f"${index}"
        case Literal(value, type_):
            return "NULL" if value is None else f"{value!r}" if not isinstance(value, str) else f"'{value}'"
        case Call(function, args, _, options):
            shown = [expr_text(arg) for arg in args]
            shown += [f"{key}={value if key != 'plan' else '{' + dump(value) + '}'}" for key, value in options]
            return f"{function}({', '.join(shown)})"
        case Cast(operand, type_, safe):
            return f"{'TRY_' * safe}CAST({expr_text(operand)} AS {type_})"
        case Case(conditions, results, otherwise):
            branches = "".join(
                f"WHEN {expr_text(c)} THEN {expr_text(r)} " for c, r in zip(conditions, results, strict=True)
            )
            return f"CASE({branches}ELSE {expr_text(otherwise)})"
    raise AssertionError(expr)
