"""The logical plan under Flink's names: what the binder made, before any rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, assert_never

from flowsql_core.expr import AggregateCall, Call, Expr, input_refs
from flowsql_core.graph.specs import JoinKind
from flowsql_core.python_call import aggregate_name, named_function
from flowsql_core.types.logical import Schema
from flowsql_planner.logical.correlation import outer_call
from flowsql_planner.logical.expression_text import (
    ExpressionPrinter,
    calcite_type,
    expectations_text,
    literal_text,
    target_columns,
)
from flowsql_planner.logical.internal_calls import EXISTS, IN_QUERY, SCALAR, SOME_QUERY
from flowsql_planner.logical.nodes import (
    Aggregate,
    Apply,
    ChangelogFunction,
    Correlate,
    Expand,
    Filter,
    Join,
    Match,
    MultiJoin,
    Over,
    OverCall,
    ProcessTableFunction,
    Project,
    Rank,
    Rel,
    Scan,
    SetOperation,
    SetOperator,
    Sink,
    Sort,
    TableAggregate,
    TemporalJoin,
    Union,
    Values,
    WatermarkAssigner,
    WindowTableFunction,
    inputs,
)
from flowsql_planner.logical.rewrite import walk

_PRINTER: Final = ExpressionPrinter(None)
_JOIN: Final = {
    JoinKind.INNER: "inner",
    JoinKind.LEFT: "left",
    JoinKind.RIGHT: "right",
    JoinKind.FULL: "full",
    JoinKind.SEMI: "semi",
    JoinKind.ANTI: "anti",
}


def logical_lines(rel: Rel, outer: tuple[str, ...] = ()) -> Iterator[str]:
    """The tree of a logical plan, line by line. A collected answer shows its query alone.

    ``outer``: names of what the plan reads of the row around it.
    """
    if isinstance(rel, Sink) and rel.table is None:
        yield from logical_lines(rel.input, outer)
        return
    yield _line(rel, _printer(rel, outer))
    children = [logical_lines(child, outer) for child in inputs(rel)]
    if isinstance(rel, Correlate):
        children.append(_elements(rel))
    if isinstance(rel, TemporalJoin):
        children[1] = _snapshot(rel)
    if isinstance(rel, Apply):
        children[1] = logical_lines(rel.right, _row(rel, rel.parameters, outer))
    for index, child_lines in enumerate(children):
        last = index == len(children) - 1
        for position, text in enumerate(child_lines):
            lead = ("+- " if last else ":- ") if position == 0 else ("   " if last else ":  ")
            yield lead + text


def _printer(rel: Rel, outer: tuple[str, ...]) -> ExpressionPrinter:
    """Prints the expressions of a node, queries inside of them as trees of their own."""

    def query(call: Call, args: list[str]) -> str:
        plan: Rel = call.option("plan")
        operands = {EXISTS: 0, SCALAR: 0, SOME_QUERY: 1}.get(call.function, len(plan.schema))
        row = _row(rel, call.args[operands:], outer)
        body = "{\n" + "\n".join(_indented(plan, row, 0)) + "\n}"
        name = {EXISTS: "EXISTS", SCALAR: "$SCALAR_QUERY", IN_QUERY: "IN"}.get(call.function)
        return f"{name or str(call.option('comparison')) + ' SOME'}({', '.join([*args[:operands], body])})"

    return ExpressionPrinter(None, outer=outer, query=query)


def _row(rel: Rel, read: tuple[Expr, ...], outer: tuple[str, ...]) -> tuple[str, ...]:
    """Names of what a query reads of a node's input."""
    names = [column.name for child in inputs(rel) for column in child.schema]
    variable = f"$cor{_number(rel)}."
    printer = ExpressionPrinter(names, outer=outer)
    # What a query reads of a row further outside has that row's name already.
    return tuple(("" if outer_call(expr) else variable) + printer.print(expr) for expr in read)


def _indented(rel: Rel, outer: tuple[str, ...], depth: int) -> Iterator[str]:
    """The plan of a query inside of an expression."""
    yield "  " * depth + _line(rel, _printer(rel, outer))
    for child in inputs(rel):
        yield from _indented(child, outer, depth + 1)


def _line(rel: Rel, printer: ExpressionPrinter) -> str:
    match rel:
        case Scan(table=table):
            return f"LogicalTableScan(table=[[{', '.join(table.shown_path)}]])"
        case Values(rows=rows):
            shown = ", ".join(
                "{ "
                + ", ".join("null" if cell.value is None else literal_text(cell.value, cell.type) for cell in row)
                + " }"
                for row in rows
            )
            return f"LogicalValues(tuples=[[{shown}]])"
        case Project(exprs=exprs, names=names):
            parts = (f"{name}=[{printer.print(expr)}]" for name, expr in zip(names, exprs, strict=True))
            return f"LogicalProject({', '.join(parts)})"
        case Filter(condition=condition):
            return f"LogicalFilter(condition=[{printer.print(condition)}])"
        case WatermarkAssigner():
            name = rel.schema[rel.rowtime_index].name
            return f"LogicalWatermarkAssigner(rowtime=[{name}], watermark=[{printer.print(rel.expression)}])"
        case Aggregate():
            return f"LogicalAggregate({_aggregate(rel)})"
        case TableAggregate(grouping=grouping, call=call):
            keys = ", ".join(map(str, grouping))
            return f"LogicalTableAggregate(group=[{{{keys}}}], tableAggregate=[[{_call(call)}]])"
        case Expand():
            rows_text = ", ".join("{" + ", ".join(printer.print(e) for e in row) + "}" for row in rel.projections)
            return f"LogicalExpand(projects=[{rows_text}])"
        case WindowTableFunction():
            return f"LogicalTableFunctionScan(invocation=[{_window(rel)}], rowType=[{_row_type(rel.schema)}])"
        case ChangelogFunction():
            return f"LogicalTableFunctionScan(invocation=[{rel.invocation}], rowType=[{_row_type(rel.schema)}])"
        case ProcessTableFunction():
            return f"LogicalTableFunctionScan(invocation=[{rel.invocation}], rowType=[{_row_type(rel.schema)}])"
        case Correlate(outer=outer):
            columns = ", ".join(str(index) for index in sorted(input_refs(rel.collection)))
            kind_text = "left" if outer else "inner"
            return (
                f"LogicalCorrelate(correlation=[$cor{_number(rel)}], joinType=[{kind_text}], "
                f"requiredColumns=[{{{columns}}}])"
            )
        case TemporalJoin(left=left, kind=kind):
            width = len(left.schema)
            used = {rel.period} | (set() if rel.condition is None else input_refs(rel.condition))
            columns = ", ".join(str(index) for index in sorted(used) if index < width)
            return (
                f"LogicalCorrelate(correlation=[$cor{_number(rel)}], joinType=[{_JOIN[kind]}], "
                f"requiredColumns=[{{{columns}}}])"
            )
        case Join(condition=on, kind=kind):
            text = "true" if on is None else printer.print(on)
            return f"LogicalJoin(condition=[{text}], joinType=[{_JOIN[kind]}])"
        case MultiJoin(kinds=kinds, conditions=conditions):
            asked = ", ".join("true" if on is None else printer.print(on) for on in conditions)
            kinds_text = ", ".join(_JOIN[kind] for kind in kinds)
            return f"LogicalMultiJoin(joinConditions=[{asked}], joinTypes=[{kinds_text}])"
        case Apply(kind=kind, parameters=parameters):
            columns = ", ".join(str(index) for index in sorted(frozenset().union(*map(input_refs, parameters))))
            return (
                f"LogicalCorrelate(correlation=[$cor{_number(rel)}], joinType=[{_JOIN[kind]}], "
                f"requiredColumns=[{{{columns}}}])"
            )
        case Union():
            return "LogicalUnion(all=[true])"
        case SetOperation(operator=operator, all=all_rows):
            name = "LogicalIntersect" if operator is SetOperator.INTERSECT else "LogicalMinus"
            return f"{name}(all=[{str(all_rows).lower()}])"
        case Over(calls=calls):
            return f"LogicalWindow({', '.join(_over(call) for call in calls)})"
        case Match(partition=partition, variables=variables, skip=skip):
            keys = ", ".join(map(str, partition))
            steps = ", ".join(variable.name for variable in variables)
            fields = ", ".join(column.name for column in rel.schema)
            matched = f"pattern=[({steps})], after=[{skip.value}]"
            return f"LogicalMatch(partition=[{{{keys}}}], outputFields=[[{fields}]], {matched})"
        case Rank(partition=partition, first=first, last=last):
            keys = ", ".join(map(str, partition))
            end = f"${rel.last_index}" if last is None else str(last)
            return f"LogicalRank(partitionBy=[{{{keys}}}], rankStart=[{first}], rankEnd=[{end}])"
        case Sort():
            return f"LogicalSort({_sort(rel)})"
        case Sink(name=name, schema=schema):
            listed = f"targetColumns=[{target_columns(rel.target_columns)}], " if rel.target_columns else ""
            expected = f", expectations=[{expectations_text(rel.expectations)}]" if rel.expectations else ""
            fields = ", ".join(column.name for column in schema)
            return f"LogicalSink(table=[{name}], {listed}fields=[{fields}]{expected})"
        case _:
            assert_never(rel)


def _number(rel: Rel) -> int:
    """Which of the row variables a collection or a query is read from; those of the input come first."""
    return sum(isinstance(below, Correlate | TemporalJoin | Apply) for below in walk(inputs(rel)[0]))


def _snapshot(rel: TemporalJoin) -> Iterator[str]:
    """The side of a temporal join that reads the table as of the time of one row."""
    row = [f"$cor{_number(rel)}.{column.name}" for column in rel.left.schema]
    names = [*row, *(f"${index}" for index in range(len(rel.right.schema)))]
    if rel.condition is not None:
        yield f"LogicalFilter(condition=[{ExpressionPrinter(names).print(rel.condition)}])"
    lead = "" if rel.condition is None else "+- "
    yield f"{lead}LogicalSnapshot(period=[{row[rel.period]}])"
    for position, text in enumerate(logical_lines(rel.right)):
        yield " " * len(lead) + ("+- " if position == 0 else "   ") + text


def _elements(rel: Correlate) -> Iterator[str]:
    """The side of a correlate that takes the collection of one row apart."""
    row = [f"$cor{_number(rel)}.{column.name}" for column in rel.input.schema]
    collection = ExpressionPrinter(row).print(rel.collection)
    yield "Uncollect(withOrdinality=[true])" if rel.ordinality else "Uncollect"
    yield f"+- LogicalProject({rel.added[0].name}=[{collection}])"
    yield "   +- LogicalValues(tuples=[[{ 0 }]])"


def _aggregate(rel: Aggregate) -> str:
    parts = [f"group=[{{{', '.join(map(str, rel.grouping))}}}]"]
    if rel.grouping_sets is not None:
        sets = ", ".join("{" + ", ".join(map(str, set_)) + "}" for set_ in rel.grouping_sets)
        parts.append(f"groups=[[{sets}]]")
    parts += [f"{call.name}=[{_call(call)}]" for call in rel.calls]
    return ", ".join(parts)


def _call(call: AggregateCall) -> str:
    args = ", ".join(f"${arg.index}" for arg in call.args)
    distinct = "DISTINCT " if call.distinct else ""
    where = "" if call.filter_index is None else f" FILTER ${call.filter_index}"
    if call.function == "APPROX_COUNT_DISTINCT":
        # Flink's planner takes the name from COUNT.
        return f"COUNT(APPROXIMATE DISTINCT {args}){where}"
    return f"{aggregate_name(call)}({distinct}{args}){where}"


def _window(rel: WindowTableFunction) -> str:
    name = rel.input.schema[rel.time_index].name
    sizes = (
        [f"{rel.size_ms}:INTERVAL"]
        if rel.step_ms == rel.size_ms
        else [
            f"{rel.step_ms}:INTERVAL",
            f"{rel.size_ms}:INTERVAL",
        ]
    )
    return f"{rel.kind.value}(TABLE(#0), DESCRIPTOR(_UTF-16LE'{name}'), {', '.join(sizes)})"


def _row_type(schema: Schema) -> str:
    return "RecordType(" + ", ".join(f"{calcite_type(c.type)} {c.name}" for c in schema) + ")"


def _sort(rel: Sort) -> str:
    parts = [f"sort{i}=[${key.index}]" for i, key in enumerate(rel.keys)]
    for i, key in enumerate(rel.keys):
        direction = "DESC" if key.descending else "ASC"
        parts.append(f"dir{i}=[{direction}-nulls-{'first' if key.nulls_first else 'last'}]")
    if rel.offset:
        parts.append(f"offset=[{rel.offset}]")
    if rel.fetch is not None:
        parts.append(f"fetch=[{rel.fetch}]")
    return ", ".join(parts)


def _over(call: OverCall) -> str:
    """``rn=[ROW_NUMBER() OVER (PARTITION BY $0 ORDER BY $1 DESC)]``."""
    args = ", ".join(_PRINTER.print(arg) for arg in call.args)
    window = []
    if call.partition:
        window.append("PARTITION BY " + ", ".join(f"${index}" for index in call.partition))
    if call.order:
        keys = (f"${key.index}{' DESC' if key.descending else ''}" for key in call.order)
        window.append("ORDER BY " + ", ".join(keys))
    if call.frame is not None:
        bounds = (
            bound.kind.value if bound.offset is None else f"{_PRINTER.print(bound.offset)} {bound.kind.value}"
            for bound in (call.frame.start, call.frame.end)
        )
        window.append(f"{call.frame.unit.value} BETWEEN {' AND '.join(bounds)}")
    distinct = "DISTINCT " if call.distinct else ""
    python = named_function(call.function, call.options)
    function = call.function if python is None else python.name
    return f"{call.name}=[{function}({distinct}{args}) OVER ({' '.join(window)})]"
