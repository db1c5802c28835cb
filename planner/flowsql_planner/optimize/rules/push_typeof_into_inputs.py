"""TYPEOF of a column of UNION ALL answers for each input on its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from flowsql_core.expr import Call, Cast, Expr, InputRef, Literal, input_refs, substitute, transform, walk
from flowsql_core.types.logical import LogicalType, is_nested
from flowsql_planner.logical.nodes import Filter, Project, Rel, Union, Values
from flowsql_planner.logical.rewrite import refs, unique_names


def push_typeof_into_inputs(rel: Rel) -> Rel | None:
    """Project(Union(a, b), TYPEOF(x))  =>  Union(Project(a, TYPEOF(x)), Project(b, TYPEOF(x))).

    Flink moves projections below UNION ALL, where a column may be NOT NULL in one input alone. A filter between does
    not matter: the question moves below it. A list of rows is a union there (see ``fold_constants``).
    """
    if not isinstance(rel, Project) or not any(map(_questions, rel.exprs)):
        return None
    match rel.input:
        case Union(inputs=inputs, schema=schema) as union:
            asked = {index for expr in rel.exprs for call in _questions(expr) for index in input_refs(call)}
            types = [{index: _type_in_input(child, index, schema[index].type) for index in asked} for child in inputs]
            if all(one[index] == schema[index].type for one in types for index in asked):
                return None
            parts = tuple(
                replace(rel, input=child, exprs=tuple(_of_input(expr, child, one) for expr in rel.exprs))
                for child, one in zip(inputs, types, strict=True)
            )
            return replace(union, inputs=parts, schema=rel.schema)
        case Project(exprs=names) as below if _leads_to_rows(below):
            return replace(rel, input=below.input, exprs=tuple(substitute(expr, names) for expr in rel.exprs))
        case Filter() as filter_ if _leads_to_rows(filter_.input):
            return _below_filter(rel, filter_)
    return None


def _below_filter(rel: Project, filter_: Filter) -> Rel:
    schema = filter_.schema
    questions = tuple(dict.fromkeys(call for expr in rel.exprs for call in _questions(expr)))
    names = unique_names((*(column.name for column in schema), *("typeof",) * len(questions)))
    asked = Project(filter_.input, (*refs(schema), *questions), names, rel.span)
    answers: dict[Expr, Expr] = {
        question: InputRef(len(schema) + place, question.type, question.span)
        for place, question in enumerate(questions)
    }
    exprs = tuple(transform(expr, lambda node: answers.get(node, node)) for expr in rel.exprs)
    return replace(rel, input=replace(filter_, input=asked), exprs=exprs)


def _leads_to_rows(rel: Rel) -> bool:
    """Whether a relation is UNION ALL or a list of rows, with nothing but names and filters above it."""
    match rel:
        case Union() | Values():
            return True
        case Filter(input=below):
            return _leads_to_rows(below)
        case Project(input=below, exprs=exprs):
            return all(isinstance(expr, InputRef) for expr in exprs) and _leads_to_rows(below)
    return False


def _questions(expr: Expr) -> list[Call]:
    """Return the calls of TYPEOF of a plain column."""
    return [
        node
        for node in walk(expr)
        if isinstance(node, Call) and node.function == "TYPEOF" and isinstance(node.args[0], InputRef)
    ]


def _type_in_input(rel: Rel, index: int, wanted: LogicalType) -> LogicalType:
    """Return the type of a column of one input: what was cast to the type of all inputs may be NULL there.

    Constants are folded, and so NOT NULL; collections are not.
    """
    if not isinstance(rel, Project):
        return rel.schema[index].type
    expr = rel.exprs[index]
    while isinstance(expr, Cast):
        if expr.operand.type.as_nullable() == wanted.as_nullable():
            return expr.operand.type
        if is_nested(expr.type):
            return wanted
        expr = expr.operand
    return wanted.as_nullable(expr.value is None) if isinstance(expr, Literal) else rel.schema[index].type


def _of_input(expr: Expr, rel: Rel, types: Mapping[int, LogicalType]) -> Expr:
    """Return the expression with the types of one input where they are asked for."""

    def change(node: Expr) -> Expr:
        if isinstance(node, Call) and node.function == "TYPEOF" and isinstance(node.args[0], InputRef):
            column = replace(node.args[0], type=types[node.args[0].index])
            if isinstance(rel, Project) and not isinstance(rel.exprs[column.index], InputRef):
                # Merging projections would put what the column is made of in its place, with a type of its own.
                return replace(node, args=(Literal(None, column.type, column.span), *node.args[1:]))
            return replace(node, args=(column, *node.args[1:]))
        return node

    return transform(expr, change)
