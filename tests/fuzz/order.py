"""Which changes of a query have their place, so that any way to run it must tell them in the same order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from flowsql_core.expr import InputRef
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.match_specs import MatchSpec
from flowsql_core.graph.over_specs import OverAggregateSpec, OverOrder
from flowsql_core.graph.rank_specs import WindowDeduplicateSpec, WindowRankSpec
from flowsql_core.graph.specs import CalcSpec, CollectSinkSpec, OperatorSpec, WindowAggregateSpec
from flowsql_runtime.operators.registry import is_source

from .session import Changes, plain
from .variations import Variation


def one_order(graph: JobGraph) -> bool:
    """Whether every change has its place: inputs come in threads of their own, and rows of a window in any order."""
    nodes = [node for vertex in graph.vertices for node in vertex.operators]
    by_window = WindowAggregateSpec | WindowRankSpec | WindowDeduplicateSpec
    return (
        sum(is_source(node.spec) for node in nodes) == 1
        and len({edge.target_vertex for edge in graph.edges}) == len(graph.edges)
        and not any(node.number_of_inputs > 1 or isinstance(node.spec, by_window) for node in nodes)
    )


def changes_differ(graph: JobGraph, variation: Variation, base: Changes, other: Changes) -> str | None:
    """How the changes of two ways differ, of a query whose changes have their places; None: they do not.

    Rows of several keys that wait for one moment come in any order of their keys once a snapshot gave them back:
    what is promised then is the order of each key's own.
    """
    if not _keys_in_any_order(graph, variation):
        return _first_difference(base, other)
    places = _places_of_key(graph)
    if places is None:
        # The key is not told: the tables were compared, and nothing more can be.
        return None
    for key, one, two in _by_key(places, base, other):
        found = _first_difference(one, two)
        if found is not None:
            return f"key {key}: {found}"
    return None


def _partition(spec: OperatorSpec) -> tuple[int, ...]:
    """Where an operator that keeps rows until their moment finds their key; nowhere: it does not, or has one key."""
    match spec:
        case OverAggregateSpec(order=OverOrder.ROW_TIME):
            return spec.partition
        case MatchSpec(row_time=True):
            return spec.partition
    return ()


def _specs(graph: JobGraph) -> list[OperatorSpec]:
    return [node.spec for vertex in graph.vertices for node in vertex.operators]


def _keys_in_any_order(graph: JobGraph, variation: Variation) -> bool:
    given_back = variation.cut is not None
    return given_back and any(map(_partition, _specs(graph)))


def _places_of_key(graph: JobGraph) -> tuple[int, ...] | None:
    """Where the key of the only operator that waits stands in the answer; None where not all of it does."""
    places: tuple[int, ...] | None = None
    for spec in _specs(graph):
        if _partition(spec):
            if places is not None:
                return None
            places = tuple(range(len(spec.partition))) if isinstance(spec, MatchSpec) else _partition(spec)
        elif places is not None:
            match spec:
                case CalcSpec(projections=projections):
                    kept = {expr.index: place for place, expr in enumerate(projections) if isinstance(expr, InputRef)}
                    if not kept.keys() >= set(places):
                        return None
                    places = tuple(kept[place] for place in places)
                case CollectSinkSpec():
                    pass
                case _:
                    return None
    return places


def _by_key(places: tuple[int, ...], base: Changes, other: Changes) -> Iterator[tuple[object, Changes, Changes]]:
    found: dict[object, tuple[Changes, Changes]] = {}
    for side, changes in enumerate((base, other)):
        for change in changes:
            key = plain([change[1 + place] for place in places])
            found.setdefault(key, ([], []))[side].append(change)
    for key, (one, two) in found.items():
        yield key, one, two


def _first_difference(base: Changes, other: Changes) -> str | None:
    for place, (one, two) in enumerate(itertools.zip_longest(base, other)):
        if one is None or two is None or plain(one) != plain(two):
            return f"change {place}: {one} the plain way, {two} the other ({len(base)} and {len(other)} changes)"
    return None
