"""The constant fractions of PERCENTILE."""

from __future__ import annotations

from flowsql_core.errors import BindError
from flowsql_core.expr import Call, Cast, Expr, Literal


def constant_fractions(arg: Expr) -> tuple[float, ...] | None:
    """Return the fractions, of one number or of an array of them; None where they are no constants.

    Raises:
        BindError: a fraction is not from 0 to 1.
    """
    while isinstance(arg, Cast):
        arg = arg.operand
    parts = arg.args if isinstance(arg, Call) and arg.function == "ARRAY" else (arg,)
    made = []
    for part in parts:
        while isinstance(part, Cast):
            part = part.operand
        if not isinstance(part, Literal) or part.value is None:
            return None
        if not 0 <= part.value <= 1:
            raise BindError(
                "percentile-range",
                f"Percentage of PERCENTILE should be between [0.0, 1.0], but was '{part.value}'.",
                part.span,
            )
        made.append(float(part.value))
    return tuple(made)
