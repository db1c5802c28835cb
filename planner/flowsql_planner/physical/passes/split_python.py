"""Python functions apart from everything else: Calcs that call them become stacks of Calc and PythonCalc.

A PythonCalc hands columns on and calls functions of one kind over columns, constants and each other. What functions
need computed stands in a Calc below, what needs their results in one above. Asynchronous functions stand in a
PythonAsyncCalc each. Runs over the whole plan once it stands, so that no other rule meets a PythonCalc.

Source: the plans of Flink's ``PythonCalcSplitRule``, ``AsyncCalcSplitRule`` and ``SplitPythonConditionFromJoinRule``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from flowsql_core.errors import NotSupportedYetError, PlanError
from flowsql_core.expr import (
    Expr,
    InputRef,
    Literal,
    children,
    conjunction,
    conjuncts,
    substitute,
    walk,
    with_children,
)
from flowsql_core.graph.specs import JoinKind
from flowsql_core.python_call import called_function, calls_python
from flowsql_core.types.logical import Column
from flowsql_core.udf import FunctionKind
from flowsql_planner.logical.rewrite import refs, unique_names
from flowsql_planner.optimize.determinism import is_deterministic
from flowsql_planner.physical.nodes import (
    Calc,
    CorrelateNode,
    JoinNode,
    Physical,
    PythonAsyncCalc,
    PythonCalc,
    WindowJoin,
)
from flowsql_planner.physical.nodes import walk as walk_plan

#: How messages call places that have no operator for a function, where the operator's name says too little.
_WHERE: Final = {"WatermarkAssigner": "in the expression of a WATERMARK"}


def split_python(root: Physical) -> Physical:
    """The plan with every call of a Python function in a PythonCalc.

    Raises:
        PlanError: a function judges pairs of rows of an outer join.
        NotSupportedYetError: a function is called where no operator can.
    """
    #: By identity; the node itself beside, so that no other one takes its place in memory.
    made: dict[int, tuple[Physical, Physical]] = {}

    def rebuilt(node: Physical) -> Physical:
        if id(node) not in made:
            lifted = _lifted(node)
            made[id(node)] = node, _split(_with_inputs(lifted, tuple(rebuilt(child) for child in lifted.inputs)))
        return made[id(node)][1]

    whole = rebuilt(root)
    for node in walk_plan(whole):
        if not isinstance(node, PythonCalc):
            for expr in node.expressions():
                _refuse(expr, _WHERE.get(node.title, f"in {node.title}"))
    return whole


def _with_inputs(node: Physical, inputs: tuple[Physical, ...]) -> Physical:
    return node if all(a is b for a, b in zip(inputs, node.inputs, strict=True)) else replace(node, inputs=inputs)


def _split(node: Physical) -> Physical:
    match node:
        case Calc() if any(calls_python(expr) for expr in node.expressions()):
            return _split_calc(node)
        case Calc(inputs=(Calc(inputs=(CorrelateNode(),)),)):
            return _merged(node)
        case CorrelateNode(collection=collection) if calls_python(collection):
            return _split_correlate(node)
    return node


def _split_correlate(node: CorrelateNode) -> Physical:
    """The collection in a column of its own, made below and dropped above."""
    source = node.inputs[0]
    width = len(source.schema)
    below = (*refs(source.schema), node.collection)
    names = unique_names((*(column.name for column in source.schema), "rows"))
    given = tuple(Column(name, expr.type) for name, expr in zip(names, below, strict=True))
    made = _split_calc(Calc(inputs=(source,), schema=given, projections=below, condition=None, span=node.span))
    added = node.schema[width:]
    whole = unique_names((*names, *(column.name for column in added)))
    types = [column.type for column in (*given, *added)]
    schema = tuple(Column(name, type_) for name, type_ in zip(whole, types, strict=True))
    collection = InputRef(width, node.collection.type)
    correlated = replace(node, inputs=(made,), collection=collection, schema=schema)
    kept = tuple(ref for ref in refs(schema) if ref.index != width)
    return Calc(inputs=(correlated,), schema=node.schema, projections=kept, condition=None, span=node.span)


def _refuse(expr: Expr, where: str) -> None:
    found = next((node for node in walk(expr) if called_function(node) is not None), None)
    function = None if found is None else called_function(found)
    if found is not None and function is not None:
        raise NotSupportedYetError(f"the Python function {function.name} {where}", found.span)


def _lifted(node: Physical) -> Physical:
    """A join whose condition asks functions => the join without them, and a Calc above that asks; the Calc that stands
    there already, if there is one. Rows of an inner join only: no other one may lose rows above."""
    match node:
        case Calc(inputs=(JoinNode() | WindowJoin() as join,)) if join.rest is not None and calls_python(join.rest):
            plain, asked = _without_functions(join)
            return replace(node, inputs=(plain,), condition=conjunction((*asked, *conjuncts(node.condition))))
        case JoinNode() | WindowJoin() if node.rest is not None and calls_python(node.rest):
            plain, asked = _without_functions(node)
            return Calc(
                inputs=(plain,),
                schema=node.schema,
                projections=refs(node.schema),
                condition=conjunction(asked),
                span=node.span,
            )
    return node


def _without_functions(join: JoinNode | WindowJoin) -> tuple[Physical, tuple[Expr, ...]]:
    rest = conjuncts(join.rest)
    asked = tuple(part for part in rest if calls_python(part))
    if join.kind is not JoinKind.INNER:
        raise PlanError(
            "python-join-condition",
            "Only inner join condition with equality predicates supports the Python UDF taking the inputs from the "
            "left table and the right table at the same time, e.g., ON T1.id = T2.id && pythonUdf(T1.a, T2.b)",
            asked[0].span or join.span,
        )
    plain = replace(
        join,
        condition=conjunction(tuple(part for part in conjuncts(join.condition) if part not in asked)),
        rest=conjunction(tuple(part for part in rest if part not in asked)),
    )
    return plain, asked


def _split_calc(calc: Calc) -> Physical:
    """The Calc as a stack. Every step takes something out into a Calc below, until both parts are of one sort."""
    condition = calc.condition
    if not any(calls_python(expr) for expr in calc.expressions()):
        return _merged(calc)
    if condition is not None:
        asked = _outermost_calls((condition,))
        if asked:
            # What the condition asks and the projection shows is called once.
            again = frozenset(expr for expr in asked if is_deterministic(expr))
            return _in_two(calc, condition_takes=_is_python, projection_takes=again.__contains__)
    if any(not isinstance(expr, InputRef | Literal) and not _is_python(expr) for expr in calc.projections):
        return _in_two(calc, projection_takes=_is_python)
    if any(_is_python(expr) and not _is_clean(expr) for expr in calc.projections):
        return _in_two(calc, projection_takes=_never, operand_takes=_not_of_kind)
    kinds = {_kind(expr) for expr in calc.projections if _is_python(expr)}
    if len(kinds) > 1:
        # Row-wise functions stand above the others, as in Flink.
        top = min(kinds, key=_KINDS.index)
        return _in_two(calc, projection_takes=lambda expr: _is_python(expr) and _kind(expr) != top)
    asynchronous = kinds == {FunctionKind.ASYNC.value}
    if asynchronous:
        first, *others = _outermost_calls(calc.projections)
        if others:
            return _in_two(calc, projection_takes=_the_same(first))
    if condition is not None:
        # The condition first: it costs less than any function.
        return _filtered_first(calc)
    if _in_order(calc.projections):
        node = PythonAsyncCalc if asynchronous else PythonCalc
        return node(inputs=calc.inputs, schema=calc.schema, projections=calc.projections, span=calc.span)
    return _in_two(calc, projection_takes=_is_python)


def _merged(calc: Calc) -> Physical:
    """A Calc without functions; one with the Calc below it where that only hands columns on."""
    below = calc.inputs[0]
    if (
        type(below) is Calc
        and below.condition is None
        and all(isinstance(expr, InputRef) for expr in below.projections)
    ):
        projections = tuple(substitute(expr, below.projections) for expr in calc.projections)
        condition = None if calc.condition is None else substitute(calc.condition, below.projections)
        return replace(calc, inputs=below.inputs, projections=projections, condition=condition)
    return calc


_Takes = Callable[[Expr], bool]
_KINDS: Final = tuple(kind.value for kind in FunctionKind)


def _never(expr: Expr) -> bool:
    return False


def _is_python(expr: Expr) -> bool:
    return called_function(expr) is not None


def _kind(expr: Expr) -> str:
    function = called_function(expr)
    assert function is not None
    return function.kind


def _the_same(call: Expr) -> _Takes:
    """A call, and those that give what it gives."""
    if is_deterministic(call):
        return lambda expr: expr == call
    return lambda expr: expr is call


def _is_clean(expr: Expr) -> bool:
    """Whether a call stands over columns, constants and clean calls that its operator makes, too."""
    kind = _kind(expr)
    return not any(_not_of_kind(node, kind) for node in walk(expr) if node is not expr)


def _not_of_kind(expr: Expr, kind: str) -> bool:
    """Whether an operator that calls functions of a kind takes the operand from below."""
    if isinstance(expr, InputRef | Literal):
        return False
    return kind == FunctionKind.ASYNC.value or not (_is_python(expr) and _kind(expr) == kind)


def _outermost_calls(exprs: tuple[Expr, ...]) -> list[Expr]:
    found: list[Expr] = []

    def visit(expr: Expr) -> None:
        if _is_python(expr):
            found.append(expr)
            return
        for child in children(expr):
            visit(child)

    for expr in exprs:
        visit(expr)
    return found


def _in_order(projections: tuple[Expr, ...]) -> bool:
    """Whether columns stand first and calls behind them, and nothing else is there."""
    calls = [_is_python(expr) for expr in projections]
    return all(isinstance(expr, InputRef) or call for expr, call in zip(projections, calls, strict=True)) and (
        calls == sorted(calls)
    )


def _filtered_first(calc: Calc) -> Physical:
    """Calc(e, p)  =>  Calc(e) over Calc(columns of e, p)."""
    source = calc.inputs[0]
    used = _used(calc.projections)
    schema = tuple(source.schema[index] for index in used)
    below = Calc(
        inputs=(source,),
        schema=schema,
        projections=tuple(InputRef(index, source.schema[index].type) for index in used),
        condition=calc.condition,
        span=calc.span,
    )
    places = {index: place for place, index in enumerate(used)}
    projections = tuple(_moved(expr, lambda index: places[index]) for expr in calc.projections)
    return _split_calc(replace(calc, inputs=(below,), projections=projections, condition=None))


def _in_two(
    calc: Calc,
    projection_takes: _Takes,
    condition_takes: _Takes = _never,
    operand_takes: Callable[[Expr, str], bool] | None = None,
) -> Physical:
    """Take parts of a Calc's expressions into a Calc below; both are split on.

    Args:
        calc: what to split.
        projection_takes: which parts of the projections go below, the outermost that fit.
        condition_takes: the same for the condition.
        operand_takes: which operands of Python calls go below, given the kind of the call around them.
    """
    source = calc.inputs[0]
    extractor = _Extractor(operand_takes)
    projections = tuple(extractor.replaced(expr, projection_takes) for expr in calc.projections)
    # A condition that asks no function goes below, before any function is called.
    asks = calc.condition is not None and calls_python(calc.condition)
    condition = extractor.replaced(calc.condition, condition_takes) if calc.condition is not None and asks else None
    used = _used(projections if condition is None else (*projections, condition))
    taken = extractor.taken
    names = unique_names((*(source.schema[index].name for index in used), *(f"f{i}" for i in range(len(taken)))))
    exprs = (*(InputRef(index, source.schema[index].type) for index in used), *taken)
    schema = tuple(Column(name, expr.type) for name, expr in zip(names, exprs, strict=True))
    first = None if asks else calc.condition
    below = _split_calc(Calc(inputs=(source,), schema=schema, projections=exprs, condition=first, span=calc.span))
    places = {index: place for place, index in enumerate(used)}

    def place(index: int) -> int:
        return places[index] if index >= 0 else len(used) - index - 1

    return _split_calc(
        replace(
            calc,
            inputs=(below,),
            projections=tuple(_moved(expr, place) for expr in projections),
            condition=None if condition is None else _moved(condition, place),
        )
    )


class _Extractor:
    """Puts references of negative index in the place of what is taken: -1 is the first one."""

    def __init__(self, operand_takes: Callable[[Expr, str], bool] | None) -> None:
        self.taken: list[Expr] = []
        self._operand_takes = operand_takes

    def replaced(self, expr: Expr, takes: _Takes) -> Expr:
        if takes(expr):
            return self._take(expr)
        kind = _kind(expr) if _is_python(expr) else None
        operands = self._operand_takes
        made: list[Expr] = []
        for child in children(expr):
            if operands is not None and kind is not None and operands(child, kind):
                made.append(self._take(child))
            else:
                made.append(self.replaced(child, takes))
        return with_children(expr, tuple(made)) if made else expr

    def _take(self, expr: Expr) -> InputRef:
        if expr in self.taken and is_deterministic(expr):
            return InputRef(-1 - self.taken.index(expr), expr.type, expr.span)
        self.taken.append(expr)
        return InputRef(-len(self.taken), expr.type, expr.span)


def _used(exprs: tuple[Expr, ...]) -> list[int]:
    """Columns that expressions read, in the order in which they do."""
    return list(dict.fromkeys(index for expr in exprs for index in _reads(expr) if index >= 0))


def _reads(expr: Expr) -> Iterator[int]:
    return (node.index for node in walk(expr) if isinstance(node, InputRef))


def _moved(expr: Expr, place: Callable[[int], int]) -> Expr:
    if isinstance(expr, InputRef):
        return replace(expr, index=place(expr.index))
    below = children(expr)
    return with_children(expr, tuple(_moved(child, place) for child in below)) if below else expr
