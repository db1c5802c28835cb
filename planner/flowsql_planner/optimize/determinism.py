"""Which expressions may be moved, merged or evaluated twice."""

from __future__ import annotations

from typing import Final

from flowsql_core.expr import Call, Expr, fact, walk
from flowsql_core.python_call import PYTHON, called_function

#: Functions whose value is another one at each call; Flink never moves or merges them into several places.
_NON_DETERMINISTIC: Final = frozenset({"RAND", "RAND_INTEGER", "UUID", "UNIX_TIMESTAMP"})
#: Functions that read the clock once per row in streaming: movable, but never folded to a constant.
_CLOCK: Final = frozenset(
    {
        "PROCTIME", "CURRENT_TIMESTAMP", "NOW", "CURRENT_ROW_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_DATE",
        "CURRENT_TIME", "CURRENT_WATERMARK", "CURRENT_DATABASE",
    }
)  # fmt: skip


def is_deterministic(expr: Expr) -> bool:
    """Whether evaluating the expression again, or elsewhere, gives the same value."""
    return fact(expr, "deterministic", _is_deterministic)


def _is_deterministic(node: Expr, below: list[bool]) -> bool:
    return all(below) and not (isinstance(node, Call) and _draws(node))


def is_foldable(expr: Expr) -> bool:
    """Whether an expression without references has one value for the whole job, which can be had without running it."""
    return is_deterministic(expr) and not any(
        isinstance(node, Call) and (node.function in _CLOCK or node.function == PYTHON or node.function.startswith("$"))
        for node in walk(expr)
    )


def changing_function(expr: Expr) -> str | None:
    """The first function of an expression whose value is another one when it is computed later, by Flink's name."""
    for node in walk(expr):
        if not isinstance(node, Call):
            continue
        function = called_function(node)
        if _draws(node):
            return node.function if function is None else function.name
        if node.function in _CLOCK and node.function != "CURRENT_DATABASE":
            return "PROCTIME_MATERIALIZE" if node.function == "PROCTIME" else node.function
    return None


def _draws(call: Call) -> bool:
    if call.function in _NON_DETERMINISTIC:
        return not (call.function == "UNIX_TIMESTAMP" and call.args)
    function = called_function(call)
    return function is not None and not function.deterministic
