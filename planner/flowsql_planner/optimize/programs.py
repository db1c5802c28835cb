"""THE ordered rule lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from flowsql_compute.eval.context import EvalContext
from flowsql_planner.logical.nodes import Rel
from flowsql_planner.optimize.abilities import SourceAbilities
from flowsql_planner.optimize.driver import Rule, Stage, TreeRule
from flowsql_planner.optimize.queries.beside_queries import beside_queries
from flowsql_planner.optimize.queries.decorrelate import decorrelate
from flowsql_planner.optimize.queries.lift_subqueries import lift_subqueries
from flowsql_planner.optimize.queries.push_filter_through_set_operation import push_filter_through_set_operation
from flowsql_planner.optimize.queries.rank_correlated_sort import rank_correlated_sorts
from flowsql_planner.optimize.queries.rewrite_set_operations import rewrite_set_operations
from flowsql_planner.optimize.rules.expand_grouping_sets import expand_grouping_sets
from flowsql_planner.optimize.rules.filters.merge_filters import merge_filters
from flowsql_planner.optimize.rules.filters.pull_common_conjuncts import pull_common_conjuncts
from flowsql_planner.optimize.rules.filters.push_condition_into_join_inputs import push_condition_into_join_inputs
from flowsql_planner.optimize.rules.filters.push_filter_into_join import push_filter_into_join
from flowsql_planner.optimize.rules.filters.push_filter_into_scan import push_filter_into_scan
from flowsql_planner.optimize.rules.filters.push_filter_through_aggregate import push_filter_through_aggregate
from flowsql_planner.optimize.rules.filters.push_filter_through_correlate import push_filter_through_correlate
from flowsql_planner.optimize.rules.filters.push_filter_through_project import push_filter_through_project
from flowsql_planner.optimize.rules.filters.push_filter_through_union import push_filter_through_union
from flowsql_planner.optimize.rules.filters.simplify_filter import simplify_filter
from flowsql_planner.optimize.rules.fold_constants import fold_constants
from flowsql_planner.optimize.rules.group_windows import group_windows
from flowsql_planner.optimize.rules.infer_join_predicates import infer_join_predicates
from flowsql_planner.optimize.rules.join_to_multi_join import join_to_multi_join
from flowsql_planner.optimize.rules.merge_projects import merge_projects
from flowsql_planner.optimize.rules.prune_columns import prune_columns
from flowsql_planner.optimize.rules.prune_empty import prune_empty
from flowsql_planner.optimize.rules.push_join_key_expressions import push_join_key_expressions
from flowsql_planner.optimize.rules.push_limit_into_scan import push_limit_into_scan
from flowsql_planner.optimize.rules.push_sort_through_project import push_sort_through_project
from flowsql_planner.optimize.rules.push_typeof_into_inputs import push_typeof_into_inputs
from flowsql_planner.optimize.rules.rank_filtered_numbers import rank_filtered_numbers
from flowsql_planner.optimize.rules.reduce_averages import reduce_averages
from flowsql_planner.optimize.rules.remove_aggregate_on_unique_key import remove_aggregate_on_unique_key
from flowsql_planner.optimize.rules.remove_trivial_project import remove_trivial_project
from flowsql_planner.optimize.rules.simplify_comparisons import simplify_comparisons
from flowsql_planner.optimize.rules.simplify_outer_join import simplify_outer_join

A = TypeVar("A")

_TIDY: tuple[Rule, ...] = (
    merge_projects,
    remove_trivial_project,
    merge_filters,
    simplify_comparisons,
    simplify_filter,
    prune_empty,
)

#: Filters first move as far down as they may, so that each scan, join and aggregate meets the ones that concern it.
#: simplify_outer_join before push_filter_into_join: the filter must still stand above the join that it simplifies.
_FILTERS: tuple[Rule, ...] = (
    merge_filters,
    pull_common_conjuncts,
    simplify_filter,
    push_filter_through_project,
    push_filter_through_union,
    push_filter_through_set_operation,
    push_filter_through_aggregate,
    push_filter_through_correlate,
    simplify_outer_join,
    push_filter_into_join,
    push_condition_into_join_inputs,
)

#: Below what Spark runs; grouping sets stay, so nothing passes an aggregate.
_BOUNDED_FILTERS: tuple[Rule, ...] = (
    merge_filters,
    beside_queries(push_filter_through_project),
    beside_queries(push_filter_through_union),
    beside_queries(push_filter_into_join),
    beside_queries(push_condition_into_join_inputs),
)


def streaming(
    abilities: SourceAbilities, evaluation: EvalContext, ranks: bool = True, multi_joins: bool = False
) -> tuple[Stage, ...]:
    """The program for unbounded (and, with the same answers, bounded) streaming plans.

    ``ranks``: filters on ROW_NUMBER become rankings, whose answers update. ``multi_joins``: chains of joins become one
    where they can; else only those with a hint.
    """
    return (
        # Queries leave expressions before anything else, so that every rule sees what is in them.
        Stage("subqueries", rules=(lift_subqueries,)),
        Stage("correlations", tree_rules=(*((rank_correlated_sorts,) if ranks else ()), decorrelate)),
        # Folding first: a condition that becomes TRUE or FALSE decides what is worth moving. Comparisons of numbers get
        # their form before, as in Flink: constants that are NaN answer by it, too.
        Stage("compare", rules=(simplify_comparisons, push_typeof_into_inputs)),
        Stage("fold", tree_rules=(_bound_tree_rule(fold_constants, evaluation),)),
        # Grouping sets before filters: a HAVING on a key must not be pushed below the set that NULLs it.
        # Group windows before projects are merged: what is asked of a window becomes a column of the aggregate.
        Stage("rewrite", rules=(group_windows, expand_grouping_sets)),
        Stage("filters", rules=(*_FILTERS, *_TIDY)),
        # INTERSECT and EXCEPT stand as they are written until filters have passed them.
        Stage("set operations", rules=(rewrite_set_operations,)),
        # Transitive predicates once the filters rest, then down with the new ones.
        Stage("predicates", rules=(infer_join_predicates, *_FILTERS)),
        # Filters on ROW_NUMBER stand right above it now; what is asked of the number decides what is kept.
        Stage("ranks", rules=(rank_filtered_numbers, *_TIDY) if ranks else ()),
        Stage("joins", rules=(push_join_key_expressions, *_TIDY, remove_aggregate_on_unique_key)),
        # Once: sums that averages become are not reduced again. Then projections meet.
        Stage("averages", tree_rules=(reduce_averages,)),
        # LIMIT below projections before columns are pruned, so that the cut is as low as it can be.
        Stage("limits", rules=(push_sort_through_project, *_TIDY)),
        # Before pruning, which puts projections between joins.
        Stage("multi joins", tree_rules=(_bound_tree_rule(join_to_multi_join, multi_joins),)),
        # The source is asked before pruning: a filter that it takes over completely needs its columns no longer.
        Stage("scans", rules=(_bound_rule(push_filter_into_scan, abilities),)),
        Stage("columns", tree_rules=(_bound_tree_rule(prune_columns, abilities),)),
        Stage("tidy", rules=_TIDY),
        Stage("limit into scan", rules=(_bound_rule(push_limit_into_scan, abilities),)),
    )


def bounded(abilities: SourceAbilities, evaluation: EvalContext) -> tuple[Stage, ...]:
    """The program for plans that another engine runs: constants, names and unread columns. It has rules of its own.

    Grouping sets stay what they are, and no input is dropped for being empty: in batch mode a global aggregate of
    nothing is a row.
    """
    tidy: tuple[Rule, ...] = (merge_projects, remove_trivial_project, merge_filters, simplify_comparisons)
    return (
        # LATERAL queries alone: those of expressions stay in them.
        Stage("correlations", tree_rules=(decorrelate,)),
        Stage("compare", rules=(simplify_comparisons, push_typeof_into_inputs)),
        Stage("fold", tree_rules=(_bound_tree_rule(fold_constants, evaluation),)),
        # Before projects are merged: what is asked of a window becomes a column of the aggregate.
        Stage("group windows", rules=(group_windows,)),
        Stage("tidy", rules=tidy),
        # Spark moves filters itself; but what only FlowSQL can compute must stand where few rows are.
        Stage("filters", rules=(*_BOUNDED_FILTERS, *tidy)),
        Stage("joins", rules=(beside_queries(push_join_key_expressions), *tidy)),
        Stage("averages", tree_rules=(reduce_averages,)),
        Stage("limits", rules=(push_sort_through_project, *tidy)),
        Stage("columns", tree_rules=(_bound_tree_rule(prune_columns, abilities),)),
        Stage("tidy", rules=tidy),
    )


def _bound_rule(rule: Callable[[Rel, A], Rel | None], argument: A) -> Rule:
    def bound(rel: Rel) -> Rel | None:
        return rule(rel, argument)

    bound.__name__ = rule.__name__
    return bound


def _bound_tree_rule(rule: Callable[[Rel, A], Rel], argument: A) -> TreeRule:
    def bound(rel: Rel) -> Rel:
        return rule(rel, argument)

    bound.__name__ = rule.__name__
    return bound
