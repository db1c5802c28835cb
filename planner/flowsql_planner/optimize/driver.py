"""Runs ordered rule lists over a plan and records what changed: traversal and fixpoint are here, not in rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from flowsql_core.errors import InternalError
from flowsql_core.record import record
from flowsql_planner.logical.nodes import Rel, inputs
from flowsql_planner.logical.rewrite import walk, with_inputs

#: A local rewrite: the new node, or None when the node stays.
Rule = Callable[[Rel], Rel | None]
#: A rewrite of the whole plan; the same object when nothing changed.
TreeRule = Callable[[Rel], Rel]

#: Rounds of a stage, and rules that fire on a node, before rules are taken to undo each other; more for larger plans.
_MAX_ROUNDS = 100


@record
class Stage:
    """Rules that run together until none of them changes anything, or whole-tree rules that run once each."""

    name: str
    rules: tuple[Rule, ...] = ()
    tree_rules: tuple[TreeRule, ...] = ()


@dataclass(slots=True)
class Trace:
    """Names of the rules that changed something, in order, each with its stage."""

    steps: list[tuple[str, str]] = field(default_factory=list)


def optimize(root: Rel, program: tuple[Stage, ...], trace: Trace | None = None) -> Rel:
    """The plan after all stages.

    Raises:
        InternalError: rules undo each other for ever.
    """
    recorded = Trace() if trace is None else trace
    for stage in program:
        for tree_rule in stage.tree_rules:
            changed = tree_rule(root)
            if changed is not root:
                recorded.steps.append((stage.name, tree_rule.__name__))
                root = changed
        if stage.rules:
            root = _fixpoint(root, stage, recorded)
    return root


def _fixpoint(root: Rel, stage: Stage, trace: Trace) -> Rel:
    most = _MAX_ROUNDS + 2 * sum(1 for _ in walk(root))
    for _ in range(most):
        changed = _rewrite(root, stage, trace, most)
        if changed is root:
            return root
        root = changed
    raise InternalError(f"optimizer stage '{stage.name}' does not come to rest")


def _rewrite(rel: Rel, stage: Stage, trace: Trace, most: int) -> Rel:
    """One pass: each node's rules, then its inputs, then its rules once more over what became of these.

    So what moves down passes a chain of nodes at once, and so does what becomes known from below.
    """
    rel = _applied(rel, stage, trace, most)
    made = with_inputs(rel, tuple(_rewrite(child, stage, trace, most) for child in inputs(rel)))
    return rel if made is rel else _applied(made, stage, trace, most)


def _applied(rel: Rel, stage: Stage, trace: Trace, most: int) -> Rel:
    """A node after the rules that fire on it."""
    for _ in range(most):
        for rule in stage.rules:
            made = rule(rel)
            if made is not None:
                trace.steps.append((stage.name, rule.__name__))
                rel = made
                break
        else:
            return rel
    raise InternalError(f"optimizer stage '{stage.name}' does not come to rest")
