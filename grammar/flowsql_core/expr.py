"""Typed expression IR: what the binder makes, rules rewrite, ``eval.compile`` turns into kernels and EXPLAIN prints.

Nodes are frozen and compare by structure (the span does not count), so that a rule finds equal expressions by ``==``.
Programs write sums and concatenations of thousands of operands, which nest to the left: whatever visits a tree walks
the first operands in a loop, and hashes are kept, so that depth costs neither Python's stack nor quadratic time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import Any, TypeVar, assert_never

from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types.logical import BooleanType, LogicalType

T = TypeVar("T")


@record
class InputRef:
    """Column ``index`` of the input row."""

    index: int
    type: LogicalType
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class Literal:
    """A constant.

    ``value`` is None for NULL, else: bool, int (integers), ``decimal.Decimal``, float, str, bytes,
    ``int`` days (DATE), ``int`` ms of day (TIME), ``int`` nanoseconds since the epoch (TIMESTAMP, TIMESTAMP_LTZ),
    ``int`` months or ms (INTERVALs).
    """

    value: Any
    type: LogicalType
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class Call:
    """A function of the registry applied to operands.

    ``function`` is the registry name, upper case; operators are functions too: ``+ - * / % = <> < <= > >= AND OR NOT
    IS NULL ...``. ``options`` are the non-expression parts of a special syntax, e.g. ``(("unit", "DAY"),)``.
    """

    function: str
    args: tuple[Expr, ...]
    type: LogicalType
    options: tuple[tuple[str, Any], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    def option(self, name: str, default: Any = None) -> Any:
        """One option by name."""
        return dict(self.options).get(name, default)

    def __hash__(self) -> int:
        kept: int | None = self.__dict__.get(_HASH)
        return _hash_of(self) if kept is None else kept

    def __eq__(self, other: object) -> bool:
        return _equal_calls(self, other) if isinstance(other, Call) else NotImplemented

    def __getstate__(self) -> dict[str, Any]:
        return _without_facts(self)


@record
class Cast:
    """CAST, TRY_CAST (``safe``), or a cast that the binder inserted (``implicit``)."""

    operand: Expr
    type: LogicalType
    safe: bool = False
    implicit: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class Case:
    """Searched CASE: the first true condition wins; ``otherwise`` is always there (a NULL literal if not written).

    ``is_if``: written as the function IF, as which plans show it; branches that are never taken count for its type.
    """

    conditions: tuple[Expr, ...]
    results: tuple[Expr, ...]
    otherwise: Expr
    type: LogicalType
    span: Span | None = field(default=None, compare=False, repr=False)
    is_if: bool = False

    def __hash__(self) -> int:
        kept: int | None = self.__dict__.get(_HASH)
        if kept is None:
            parts = (self.conditions, self.results, self.otherwise, self.type, self.is_if)
            kept = self.__dict__[_HASH] = hash(parts)
        return kept

    def __getstate__(self) -> dict[str, Any]:
        return _without_facts(self)


Expr = InputRef | Literal | Call | Cast | Case


@record
class AggregateCall:
    """An aggregate over columns of the input (arguments are always input refs; a Calc below computes them).

    ``function`` is the registry name (``COUNT``, ``SUM`` ...); COUNT(*) has no argument. ``filter_index`` is a BOOLEAN
    NOT NULL or nullable column. ``name`` is the output column's name. ``order_by``: (index, descending) within the
    group for ordered aggregates.
    """

    function: str
    args: tuple[InputRef, ...]
    type: LogicalType
    name: str
    distinct: bool = False
    filter_index: int | None = None
    options: tuple[tuple[str, Any], ...] = ()
    order_by: tuple[tuple[int, bool], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


def children(expr: Expr) -> tuple[Expr, ...]:
    """Direct operands in order."""
    match expr:
        case InputRef() | Literal():
            return ()
        case Call(args=args):
            return args
        case Cast(operand=operand):
            return (operand,)
        case Case(conditions=conditions, results=results, otherwise=otherwise):
            return (*conditions, *results, otherwise)
        case _:
            assert_never(expr)


#: What names of facts begin with that nodes keep; they are no part of a node's content.
_KEPT = "_kept_"
_HASH = f"{_KEPT}hash"


def _without_facts(node: Expr) -> dict[str, Any]:
    # Hashes of texts differ from process to process.
    return {name: value for name, value in node.__dict__.items() if not name.startswith(_KEPT)}


def _hash_of(call: Call) -> int:
    """The hash, kept in the node and in the calls below its first operands, innermost first."""
    spine: list[Call] = []
    node: Expr | None = call
    while node is not None:
        match node:
            case Cast(operand=operand):
                node = operand
            case Call(args=args) if _HASH not in node.__dict__:
                spine.append(node)
                node = args[0] if args else None
            case _:
                node = None
    for found in reversed(spine):
        found.__dict__[_HASH] = hash((found.function, found.args, found.type, found.options))
    kept: int = call.__dict__[_HASH]
    return kept


def _equal_calls(left: Call, right: Call) -> bool:
    one: Expr = left
    other: Expr = right
    while one is not other:
        match one, other:
            case Call(), Call():
                if hash(one) != hash(other) or one.args[1:] != other.args[1:] or len(one.args) != len(other.args):
                    return False
                if (one.function, one.type, one.options) != (other.function, other.type, other.options):
                    return False
                if not one.args:
                    return True
                one, other = one.args[0], other.args[0]
            case Cast(), Cast():
                if (one.type, one.safe, one.implicit) != (other.type, other.safe, other.implicit):
                    return False
                one, other = one.operand, other.operand
            case _:
                return one == other
    return True


def with_children(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """The same node over other operands (as many, same order as :func:`children`)."""
    match expr:
        case InputRef() | Literal():
            return expr
        case Call():
            return Call(expr.function, new, expr.type, expr.options, expr.span)
        case Cast():
            return Cast(new[0], expr.type, expr.safe, expr.implicit, expr.span)
        case Case():
            n = len(expr.conditions)
            return replace(expr, conditions=new[:n], results=new[n : 2 * n], otherwise=new[2 * n])
        case _:
            assert_never(expr)


def transform(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Rewrite bottom-up: ``change`` sees each node after its operands were rewritten.

    A node that several places share is rewritten once, so that they share the result.
    """
    return _transformed(expr, change, {})


def _transformed(expr: Expr, change: Callable[[Expr], Expr], done: dict[int, Expr]) -> Expr:
    spine: list[tuple[Expr, tuple[Expr, ...]]] = []
    found: Expr | None = None
    while (below := children(expr)) and (found := done.get(id(expr))) is None:
        spine.append((expr, below))
        expr = below[0]
    made = change(expr) if found is None else found
    for node, old in reversed(spine):
        new = (made, *[_transformed(child, change, done) for child in old[1:]])
        same = all(a is b for a, b in zip(old, new, strict=True))
        made = change(node if same else with_children(node, new))
        done[id(node)] = made
    return made


def fact(expr: Expr, name: str, find: Callable[[Expr, list[T]], T]) -> T:
    """Return a fact about a node that follows from the node and the same fact about its operands.

    Each node keeps the fact, so that asking for it again, or for a larger expression, costs what is new.

    Args:
        name: of the fact, the same for the same ``find``.
        find: the fact of a node, given the facts of its operands in order.
    """
    name = _KEPT + name
    waiting = [] if name in expr.__dict__ else [expr]
    while waiting:
        node = waiting[-1]
        below = children(node)
        missing = [child for child in below if name not in child.__dict__] if name not in node.__dict__ else []
        if missing:
            waiting.extend(missing)
            continue
        if name not in node.__dict__:
            node.__dict__[name] = find(node, [child.__dict__[name] for child in below])
        waiting.pop()
    kept: T = expr.__dict__[name]
    return kept


def walk(expr: Expr) -> Iterator[Expr]:
    """The node and all below it, top-down."""
    open_ = [expr]
    while open_:
        node = open_.pop()
        yield node
        open_.extend(reversed(children(node)))


def input_refs(expr: Expr) -> frozenset[int]:
    """Indexes of the input columns that the expression reads."""
    return fact(expr, "refs", _refs_of)


def _refs_of(node: Expr, below: list[frozenset[int]]) -> frozenset[int]:
    if isinstance(node, InputRef):
        return frozenset((node.index,))
    if len(below) == 1:
        return below[0]
    return frozenset().union(*below)


def remap_inputs(expr: Expr, new_index: Callable[[int], int]) -> Expr:
    """The expression over an input whose columns stand elsewhere."""

    def change(node: Expr) -> Expr:
        return InputRef(new_index(node.index), node.type, node.span) if isinstance(node, InputRef) else node

    return transform(expr, change)


def substitute(expr: Expr, replacements: tuple[Expr, ...]) -> Expr:
    """Each input ref replaced by the expression at its index (merging two projections)."""

    def change(node: Expr) -> Expr:
        return replacements[node.index] if isinstance(node, InputRef) else node

    return transform(expr, change)


def conjuncts(expr: Expr | None) -> tuple[Expr, ...]:
    """The operands of nested ANDs, left to right; of None, none."""
    if expr is None:
        return ()
    if isinstance(expr, Call) and expr.function == "AND":
        return tuple(part for arg in expr.args for part in conjuncts(arg))
    return (expr,)


def conjunction(parts: tuple[Expr, ...]) -> Expr | None:
    """AND of all; None for none. A single one comes back as it is."""
    if not parts:
        return None
    if len(parts) == 1:
        return parts[0]
    nullable = any(part.type.nullable for part in parts)
    return Call("AND", parts, BooleanType(nullable=nullable))
