"""Joins that are not what they seem."""

from __future__ import annotations

from collections.abc import Iterator

from flowsql_core.expr import Call, Expr, conjuncts, input_refs, remap_inputs
from flowsql_core.graph.specs import JoinKind
from flowsql_planner.lint.model import Hit, Rule, Subject
from flowsql_planner.logical.nodes import Filter, Join
from flowsql_planner.optimize.rules.simplify_outer_join import simplify_outer_join
from flowsql_planner.physical.nodes import JoinNode


def outer_join_made_inner(subject: Subject) -> Iterator[Hit]:
    """Outer joins whose rows without a partner a condition of WHERE drops again."""
    for rel in subject.logical():
        if not isinstance(rel, Filter) or not isinstance(rel.input, Join):
            continue
        for part in conjuncts(rel.condition):
            if isinstance(part, Call) and part.function == "IS NOT NULL":
                # Who writes that knows that there are rows without a partner.
                continue
            for kind, left in _simplified(rel.input, part):
                article = "an" if left is JoinKind.INNER else "a"
                message = (
                    f"WHERE drops rows that the {kind.name} JOIN fills up with NULL: it is {article} {left.name} JOIN."
                )
                yield Hit(subject.place(part.span, rel.span), message)


def _simplified(join: Join, part: Expr) -> Iterator[tuple[JoinKind, JoinKind]]:
    """The kinds, as written and as they are, of the joins whose padded rows a condition above them drops."""
    made = simplify_outer_join(Filter(join, part))
    if isinstance(made, Filter) and isinstance(made.input, Join):
        yield join.kind, made.input.kind
        join = made.input
    read, width = input_refs(part), len(join.left.schema)
    if not read:
        return
    # Rows of a side whose columns the join passes on as they are: the condition might as well stand below it.
    if max(read) < width and join.kind in (JoinKind.INNER, JoinKind.LEFT) and isinstance(join.left, Join):
        yield from _simplified(join.left, part)
    elif min(read) >= width and join.kind in (JoinKind.INNER, JoinKind.RIGHT) and isinstance(join.right, Join):
        yield from _simplified(join.right, remap_inputs(part, lambda index: index - width))


def join_without_equality(subject: Subject) -> Iterator[Hit]:
    """Joins of two streams without a key, which one task carries out, each row with every other one."""
    if not subject.streaming:
        return
    for node in subject.physical():
        if isinstance(node, JoinNode) and not node.left_keys and all(map(subject.grows, node.inputs)):
            yield Hit(
                subject.node_place(node), "The join has no equality: one task compares every row with every other."
            )


RULES = (
    Rule(
        "outer-join-made-inner",
        "A condition in WHERE that drops the rows for which an outer join has no partner.",
        "a comparison with the NULLs of a missing partner is not true: the join is no outer one any more",
        "move the condition into ON, or write the JOIN that it is",
        outer_join_made_inner,
    ),
    Rule(
        "join-without-equality",
        "A join of two inputs that never end without an equality in its condition.",
        "without a key rows cannot be dealt out: one task keeps all of both inputs, and each new row meets them all",
        "add an equality to the condition, or bring both sides into the same window",
        join_without_equality,
    ),
)
