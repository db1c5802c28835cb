"""Join conditions taken apart: equalities of columns, and the rest."""

from __future__ import annotations

from flowsql_core.expr import Call, Expr, InputRef, Literal, conjuncts
from flowsql_core.record import record


@record
class EquiCondition:
    """A join condition taken apart. Keys count within their side; ``rest`` runs over both."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    null_safe: tuple[bool, ...]
    rest: tuple[Expr, ...]

    def without(self, positions: frozenset[int]) -> EquiCondition:
        """The same without the keys at some positions."""
        kept = [i for i in range(len(self.left)) if i not in positions]
        return EquiCondition(
            tuple(self.left[i] for i in kept),
            tuple(self.right[i] for i in kept),
            tuple(self.null_safe[i] for i in kept),
            self.rest,
        )


def split_condition(condition: Expr | None, width: int) -> EquiCondition:
    """Equalities between a column of the left and one of the right side, and what is left over."""
    left: list[int] = []
    right: list[int] = []
    null_safe: list[bool] = []
    rest: list[Expr] = []
    for part in conjuncts(condition):
        match part:
            case Call(function="=" | "IS NOT DISTINCT FROM" as name, args=(InputRef(index=a), InputRef(index=b))) if (
                a < width
            ) != (b < width):
                # Two tests of one pair are two keys, as in Flink: `=` and IS NOT DISTINCT FROM differ over NULL.
                key = (min(a, b), max(a, b) - width, name != "=")
                if key not in zip(left, right, null_safe, strict=True):
                    left.append(key[0])
                    right.append(key[1])
                    null_safe.append(key[2])
            case Literal(value=True):
                pass
            case _:
                rest.append(part)
    return EquiCondition(tuple(left), tuple(right), tuple(null_safe), tuple(rest))
