"""Columns that nobody reads are not computed, not shuffled, not kept, not read."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from flowsql_core.errors import InternalError
from flowsql_core.expr import AggregateCall, Expr, InputRef, Literal, input_refs, remap_inputs, walk
from flowsql_core.graph.specs import JoinKind
from flowsql_core.types.logical import INT
from flowsql_planner.logical.nodes import (
    Aggregate,
    Apply,
    ChangelogFunction,
    Correlate,
    Expand,
    Filter,
    Join,
    Match,
    MultiJoin,
    Over,
    OverCall,
    ProcessTableFunction,
    Project,
    Rank,
    Rel,
    Scan,
    SetOperation,
    Sink,
    Sort,
    TableAggregate,
    TemporalJoin,
    Union,
    Values,
    WatermarkAssigner,
    WindowTableFunction,
)
from flowsql_planner.logical.rewrite import (
    make_aggregate,
    make_correlate,
    make_join,
    make_multi_join,
    make_temporal_join,
    ref,
    select,
)
from flowsql_planner.optimize.abilities import SourceAbilities

#: Old position -> new position of the columns that are still there.
Places = dict[int, int]


def prune_columns(root: Rel, abilities: SourceAbilities) -> Rel:
    """Every node keeps the columns that the nodes above it read.

    Rows, their order and their kinds stay, except that an aggregate without a dropped call changes less often.
    Aggregates, joins and unions get exactly what they read; elsewhere surplus columns may pass through.
    """
    return _Pruner(abilities).exact(root, tuple(range(len(root.schema))))


class _Pruner:
    def __init__(self, abilities: SourceAbilities) -> None:
        self._abilities = abilities
        #: Below a join: there, as in Flink's plans of scalar subqueries, scans give what COUNT(*) counts.
        self._joined = False

    def exact(self, rel: Rel, columns: tuple[int, ...]) -> Rel:
        """The node with exactly these columns in this order."""
        made, places = self.prune(rel, frozenset(columns))
        return select(made, tuple(places[index] for index in columns), _names(rel, columns))

    def narrow(self, rel: Rel, needed: frozenset[int]) -> tuple[Rel, Places]:
        """The node with exactly the needed columns in their order, at least one."""
        columns = tuple(sorted(needed))
        made, places = self.prune(rel, needed)
        if not columns:
            # Rows without columns cannot be counted: one column stays, whichever is there.
            return select(made, (0,)), {}
        kept = select(made, tuple(places[index] for index in columns), _names(rel, columns))
        return kept, {old: i for i, old in enumerate(columns)}

    def prune(self, rel: Rel, needed: frozenset[int]) -> tuple[Rel, Places]:
        """The node with at least the needed columns."""
        match rel:
            case Scan():
                return self._scan(rel, tuple(sorted(needed)))
            case Values():
                return rel, _same(rel)
            case Project():
                return self._project(rel, needed)
            case Filter():
                made, places = self.prune(rel.input, needed | input_refs(rel.condition))
                return replace(rel, input=made, condition=_remap(rel.condition, places)), places
            case WatermarkAssigner():
                return self._watermark(rel, needed)
            case Aggregate():
                return self._aggregate(rel, needed)
            case TableAggregate():
                return self._table_aggregate(rel)
            case Expand():
                return self._expand(rel, needed)
            case WindowTableFunction():
                return self._window(rel, needed)
            case Correlate():
                return self._correlate(rel, needed)
            case Join():
                return self._join(rel, needed)
            case MultiJoin():
                return self._multi_join(rel, needed)
            case TemporalJoin():
                return self._temporal_join(rel, needed)
            case Apply():
                raise InternalError("a query that was not decorrelated")
            case Union():
                return self._union(rel, needed)
            case Sort():
                made, places = self.prune(rel.input, needed | {key.index for key in rel.keys})
                keys = tuple(replace(key, index=places[key.index]) for key in rel.keys)
                return replace(rel, input=made, keys=keys), places
            case SetOperation():
                # Which rows are equal is a matter of all columns.
                every = tuple(range(len(rel.schema)))
                return replace(rel, left=self.exact(rel.left, every), right=self.exact(rel.right, every)), _same(rel)
            case Over():
                return self._over(rel, needed)
            case ChangelogFunction():
                # The function takes whole rows.
                return replace(rel, input=self.exact(rel.input, tuple(range(len(rel.input.schema))))), _same(rel)
            case ProcessTableFunction(inputs=inputs):
                # As does a user's.
                whole = (self.exact(source, tuple(range(len(source.schema)))) for source in inputs)
                return replace(rel, inputs=tuple(whole)), _same(rel)
            case Match():
                # Expressions count columns of whole rows.
                return replace(rel, input=self.exact(rel.input, tuple(range(len(rel.input.schema))))), _same(rel)
            case Rank():
                return self._rank(rel, needed)
            case Sink():
                return replace(rel, input=self.exact(rel.input, tuple(range(len(rel.schema))))), _same(rel)
            case _:
                assert_never(rel)

    def _scan(self, rel: Scan, needed: tuple[int, ...]) -> tuple[Rel, Places]:
        if not self._abilities.supports_projection(rel):
            return rel, _same(rel)
        needed = tuple(dict.fromkeys((*needed, *self._abilities.kept_columns(rel))))
        if len(needed) == len(rel.schema):
            return rel, _same(rel)
        physical = len(rel.projection)
        # Metadata columns stand behind the others.
        kept = tuple(sorted(needed, key=lambda index: index >= physical)) or (_cheapest(rel),)
        made = replace(
            rel,
            projection=tuple(rel.projection[index] for index in kept if index < physical),
            metadata=tuple(rel.metadata[index - physical] for index in kept if index >= physical),
            schema=tuple(rel.schema[index] for index in kept),
        )
        return made, {old: new for new, old in enumerate(kept)}

    def _project(self, rel: Project, needed: frozenset[int]) -> tuple[Rel, Places]:
        kept = tuple(sorted(needed))
        exprs = tuple(rel.exprs[index] for index in kept)
        names = tuple(rel.names[index] for index in kept)
        read = [node.index for expr in exprs for node in walk(expr) if isinstance(node, InputRef)]
        if isinstance(rel.input, Scan):
            # Flink's scans give columns in the order in which they are first read.
            made, places = self._scan(rel.input, tuple(dict.fromkeys(read)))
        else:
            made, places = self.prune(rel.input, frozenset(read))
        if not kept and isinstance(made, Scan) and self._joined:
            return made, {}
        if not kept:
            exprs, names = (Literal(0, INT.as_nullable(False)),), ("$f0",)
        moved = tuple(_remap(expr, places) for expr in exprs)
        return replace(rel, input=made, exprs=moved, names=names), {old: new for new, old in enumerate(kept)}

    def _table_aggregate(self, rel: TableAggregate) -> tuple[Rel, Places]:
        """Rows are made whole: only what the function does not read goes."""
        call = rel.call
        read = {arg.index for arg in call.args} | {*rel.grouping}
        made, places = self.narrow(rel.input, frozenset(read))
        moved = replace(call, args=tuple(replace(arg, index=places[arg.index]) for arg in call.args))
        grouping = tuple(places[index] for index in rel.grouping)
        return replace(rel, input=made, grouping=grouping, call=moved), _same(rel)

    def _watermark(self, rel: WatermarkAssigner, needed: frozenset[int]) -> tuple[Rel, Places]:
        wanted = needed | {rel.rowtime_index} | input_refs(rel.expression)
        made, places = self.narrow(rel.input, wanted)
        schema = tuple(rel.schema[index] for index in sorted(wanted))
        return (
            replace(
                rel,
                input=made,
                rowtime_index=places[rel.rowtime_index],
                expression=_remap(rel.expression, places),
                schema=schema,
            ),
            places,
        )

    def _aggregate(self, rel: Aggregate, needed: frozenset[int]) -> tuple[Rel, Places]:
        keys = len(rel.grouping)
        kept = [index for index in range(len(rel.calls)) if keys + index in needed]
        window = rel.window
        if not kept and not rel.grouping and window is None:
            kept = [0]  # the one row of a global aggregate is still there
        calls = tuple(rel.calls[index] for index in kept)
        wanted = frozenset(rel.grouping).union(*(_reads(call) for call in calls))
        wanted |= frozenset() if window is None else {window.time_index}
        made, places = self.narrow(rel.input, wanted) if wanted else (self._rows(rel.input), {})
        moved = tuple(_moved(call, places, made) for call in calls)
        grouping = tuple(places[index] for index in rel.grouping)
        result = {index: index for index in range(keys)}
        result |= {keys + old: keys + new for new, old in enumerate(kept)}
        sets = rel.grouping_sets
        renamed = None if sets is None else tuple(tuple(places[index] for index in set_) for set_ in sets)
        if window is not None:
            # All properties or none, as in Flink.
            first = keys + len(rel.calls)
            read = any(index >= first for index in needed)
            result |= {first + i: keys + len(kept) + i for i in range(len(window.properties) if read else 0)}
            properties = window.properties if read else ()
            window = replace(window, time_index=places[window.time_index], properties=properties)
        aggregate = make_aggregate(replace(rel, grouping_sets=renamed, window=window), made, grouping, moved)
        schema = tuple(
            replace(column, name=old.name) for column, old in zip(aggregate.schema, rel.schema[:keys], strict=False)
        )
        return replace(aggregate, schema=schema + aggregate.schema[keys:]), result

    def _rows(self, rel: Rel) -> Rel:
        """The node's rows without their columns: a constant is counted, as in Flink, or the only column."""
        if len(rel.schema) == 1:
            return self.exact(rel, (0,))
        made, _ = self.prune(rel, frozenset())
        if isinstance(made, Scan) and (self._joined or self._abilities.updates(made)):
            return select(made, (0,))
        zero = Literal(0, INT.as_nullable(False))
        if isinstance(made, Project) and made.exprs == (zero,):
            return made
        return Project(made, (zero,), ("$f0",), rel.span)

    def _expand(self, rel: Expand, needed: frozenset[int]) -> tuple[Rel, Places]:
        kept = tuple(sorted(needed)) or (0,)
        used: frozenset[int] = frozenset().union(*(input_refs(row[index]) for row in rel.projections for index in kept))
        made, places = self.narrow(rel.input, used)
        rows = tuple(tuple(_remap(row[index], places) for index in kept) for row in rel.projections)
        schema = tuple(rel.schema[index] for index in kept)
        return replace(rel, input=made, projections=rows, schema=schema), {old: new for new, old in enumerate(kept)}

    def _window(self, rel: WindowTableFunction, needed: frozenset[int]) -> tuple[Rel, Places]:
        width = len(rel.input.schema)
        below = frozenset(index for index in needed if index < width) | {rel.time_index} | frozenset(rel.partition)
        made, places = self.prune(rel.input, below)
        added = len(made.schema)
        result = dict(places) | {width + i: added + i for i in range(3)}
        return (
            replace(
                rel,
                input=made,
                time_index=places[rel.time_index],
                partition=tuple(places[index] for index in rel.partition),
                schema=made.schema + rel.schema[width:],
            ),
            result,
        )

    def _join(self, rel: Join, needed: frozenset[int]) -> tuple[Rel, Places]:
        width = len(rel.left.schema)
        used = needed if rel.condition is None else needed | input_refs(rel.condition)
        outside, self._joined = self._joined, True
        left, of_left = self.narrow(rel.left, frozenset(index for index in used if index < width))
        right, of_right = self.narrow(rel.right, frozenset(index - width for index in used if index >= width))
        self._joined = outside
        places = dict(of_left)
        places |= {width + old: len(left.schema) + new for old, new in of_right.items()}
        condition = None if rel.condition is None else _remap(rel.condition, places)
        made = make_join(rel, left, right, condition)
        if rel.kind in (JoinKind.SEMI, JoinKind.ANTI):
            places = dict(of_left)
        return made, places

    def _multi_join(self, rel: MultiJoin, needed: frozenset[int]) -> tuple[Rel, Places]:
        used = needed.union(*(input_refs(condition) for condition in rel.conditions if condition is not None))
        places: Places = {}
        first, moved = 0, 0
        pruned: list[Rel] = []
        for child in rel.inputs:
            width = len(child.schema)
            made, found = self.narrow(child, frozenset(i - first for i in used if first <= i < first + width))
            places |= {first + old: moved + new for old, new in found.items()}
            pruned.append(made)
            first, moved = first + width, moved + len(made.schema)
        conditions = tuple(None if part is None else _remap(part, places) for part in rel.conditions)
        return make_multi_join(rel, tuple(pruned), conditions), places

    def _temporal_join(self, rel: TemporalJoin, needed: frozenset[int]) -> tuple[Rel, Places]:
        width = len(rel.left.schema)
        used = needed if rel.condition is None else needed | input_refs(rel.condition)
        times = {rel.period} if rel.version_time is None else {rel.period, width + rel.version_time}
        used |= times
        left, of_left = self.narrow(rel.left, frozenset(index for index in used if index < width))
        right, of_right = self.narrow(rel.right, frozenset(index - width for index in used if index >= width))
        places = of_left | {width + old: len(left.schema) + new for old, new in of_right.items()}
        condition = None if rel.condition is None else _remap(rel.condition, places)
        version_time = None if rel.version_time is None else of_right[rel.version_time]
        return make_temporal_join(rel, left, right, condition, of_left[rel.period], version_time), places

    def _correlate(self, rel: Correlate, needed: frozenset[int]) -> tuple[Rel, Places]:
        width = len(rel.input.schema)
        below = frozenset(index for index in needed if index < width) | input_refs(rel.collection)
        made, found = self.prune(rel.input, below)
        # A row is taken apart as a whole: all columns of an element are there.
        places = found | {width + i: len(made.schema) + i for i in range(len(rel.added))}
        return make_correlate(rel, made, _remap(rel.collection, places)), places

    def _over(self, rel: Over, needed: frozenset[int]) -> tuple[Rel, Places]:
        width = len(rel.input.schema)
        kept = [index for index in range(len(rel.calls)) if width + index in needed]
        if not kept:
            return self.prune(rel.input, needed)
        below = frozenset(index for index in needed if index < width)
        made, places = self.narrow(rel.input, below.union(*(rel.calls[index].reads() for index in kept)))
        calls = tuple(_moved_over(rel.calls[index], places) for index in kept)
        result = dict(places) | {width + old: len(made.schema) + new for new, old in enumerate(kept)}
        return replace(rel, input=made, calls=calls), result

    def _rank(self, rel: Rank, needed: frozenset[int]) -> tuple[Rel, Places]:
        # As in Flink, columns that nobody reads go right below: what is there keeps those that it has.
        width = len(rel.input.schema)
        source, below = self.prune(rel.input, frozenset(range(width)))
        kept = tuple(sorted(frozenset(index for index in needed if index < width) | rel.reads()))
        made, places = select(source, tuple(below[old] for old in kept)), {old: new for new, old in enumerate(kept)}
        ranked = replace(
            rel,
            input=made,
            partition=tuple(places[index] for index in rel.partition),
            order=tuple(replace(key, index=places[key.index]) for key in rel.order),
            last_index=None if rel.last_index is None else places[rel.last_index],
            number=rel.number if width in needed else None,
        )
        return ranked, dict(places) | {width: len(made.schema)}

    def _union(self, rel: Union, needed: frozenset[int]) -> tuple[Rel, Places]:
        columns = tuple(sorted(needed)) or (0,)
        inputs = tuple(self.exact(child, columns) for child in rel.inputs)
        schema = tuple(rel.schema[index] for index in columns)
        return replace(rel, inputs=inputs, schema=schema), {old: new for new, old in enumerate(columns)}


def _names(rel: Rel, columns: tuple[int, ...]) -> tuple[str, ...]:
    """Names that columns had before others went: a join below may number its columns anew."""
    return tuple(rel.schema[index].name for index in columns)


def _same(rel: Rel) -> Places:
    return {index: index for index in range(len(rel.schema))}


def _remap(expr: Expr, places: Places) -> Expr:
    return remap_inputs(expr, lambda index: places[index])


def _reads(call: AggregateCall) -> frozenset[int]:
    used = {arg.index for arg in call.args} | {index for index, _ in call.order_by}
    return frozenset(used if call.filter_index is None else used | {call.filter_index})


def _moved(call: AggregateCall, places: Places, source: Rel) -> AggregateCall:
    def argument(arg: InputRef) -> InputRef:
        return arg if call.function in ("GROUPING", "GROUPING_ID") else ref(source.schema, places[arg.index])

    return replace(
        call,
        args=tuple(argument(arg) for arg in call.args),
        filter_index=None if call.filter_index is None else places[call.filter_index],
        order_by=tuple((places[index], descending) for index, descending in call.order_by),
    )


def _moved_over(call: OverCall, places: Places) -> OverCall:
    return replace(
        call,
        args=tuple(replace(arg, index=places[arg.index]) if isinstance(arg, InputRef) else arg for arg in call.args),
        partition=tuple(places[index] for index in call.partition),
        order=tuple(replace(key, index=places[key.index]) for key in call.order),
    )


def _cheapest(rel: Scan) -> int:
    """The column to read when only the number of rows counts: a narrow type if there is one."""
    order = {"BOOLEAN": 0, "TINYINT": 0, "SMALLINT": 1, "INTEGER": 1, "BIGINT": 2, "DATE": 2, "DOUBLE": 2}
    return min(range(len(rel.schema)), key=lambda index: (order.get(rel.schema[index].type.root, 9), index))
