"""How large expressions become where those below are written into them."""

from __future__ import annotations

from typing import Final

from flowsql_core.expr import Expr, InputRef, fact, walk

#: Nodes that expressions may have more than they and those below have now. Calcite merges projections with a bound of
#: 100 (``RelOptUtil``, "bloat"), Flink's Calcs without one.
_MOST: Final = 4000


def grows_too_much(above: tuple[Expr, ...], below: tuple[Expr, ...]) -> bool:
    """True if ``above``, written over the inputs of ``below``, would have far more nodes than both together.

    A chain of ``a + a AS a`` doubles with each projection that is merged.
    """
    sizes = [size(expr) for expr in below]
    if sum(fact(expr, "references", _references) for expr in above) * max(sizes, default=0) <= _MOST:
        return False
    more = sum(sizes[node.index] for expr in above for node in walk(expr) if isinstance(node, InputRef))
    return more > sum(sizes) + _MOST


def size(expr: Expr) -> int:
    """The number of nodes of an expression; one that several places share counts for each."""
    return fact(expr, "size", _size)


def _size(node: Expr, below: list[int]) -> int:
    return 1 + sum(below)


def _references(node: Expr, below: list[int]) -> int:
    return 1 if isinstance(node, InputRef) else sum(below)
