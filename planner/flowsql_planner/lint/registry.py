"""THE list of rules, in the order in which they are documented and their findings are told at one place."""

from __future__ import annotations

from typing import Final

from flowsql_core.errors import BindError, did_you_mean
from flowsql_planner.lint.model import Rule
from flowsql_planner.lint.rules import (
    columns,
    hot_aggregate,
    joins,
    keys,
    nulls,
    order,
    sources,
    state,
    unused,
    watermarks,
)

RULES: Final[tuple[Rule, ...]] = (
    *state.RULES,
    *watermarks.RULES,
    *hot_aggregate.RULES,
    *keys.RULES,
    *columns.RULES,
    *sources.RULES,
    *joins.RULES,
    *nulls.RULES,
    *order.RULES,
    *unused.RULES,
)

BY_NAME: Final = {rule.name: rule for rule in RULES}


def chosen(select: tuple[str, ...] = (), ignore: tuple[str, ...] = ()) -> tuple[Rule, ...]:
    """The rules that are selected (all, where none is) and not ignored.

    Raises:
        BindError: a name is none of a rule.
    """
    for name in (*select, *ignore):
        if name not in BY_NAME:
            hint = did_you_mean(name, BY_NAME) or "'flowsql lint --rules' lists them"
            raise BindError("unknown-rule", f"There is no rule '{name}'.", hint=hint)
    return tuple(rule for rule in RULES if (not select or rule.name in select) and rule.name not in ignore)
