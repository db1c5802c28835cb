"""Aggregate calls in EXPLAIN, and the lines of aggregates that Flink cuts in phases, with its accumulator names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from flowsql_core.expr import AggregateCall
from flowsql_core.graph.specs import WindowSpec
from flowsql_core.python_call import aggregate_name
from flowsql_core.record import record
from flowsql_core.row import INSERT_ONLY, ChangelogMode
from flowsql_planner.physical.nodes.line import (
    Attributes,
    Line,
    distribution_text,
    group_by,
    window_at_text,
    window_text,
)


def call_text(call: AggregateCall, names: Sequence[str], retracting: bool) -> str:
    """``COUNT(*)``; over an input that retracts ``COUNT_RETRACT(*)``."""
    args = ", ".join(names[arg.index] for arg in call.args) or "*"
    function = aggregate_name(call)
    name = f"{function}_RETRACT" if retracting else function
    distinct = "DISTINCT " if call.distinct else ""
    where = "" if call.filter_index is None else f" FILTER {names[call.filter_index]}"
    return f"{name}({distinct}{args}){where}"


def call_texts(
    calls: Sequence[AggregateCall], names: Sequence[str], retracting: bool, steady_extremes: bool = False
) -> list[str]:
    """``COUNT(*) AS n``; over an input that retracts ``COUNT_RETRACT(*) AS n``, but for MIN and MAX that are steady."""
    return [
        f"{call_text(call, names, retracting and not (steady_extremes and call.function in ('MIN', 'MAX')))}"
        f" AS {call.name}"
        for call in calls
    ]


#: Functions whose accumulator is an object of Flink's: one column, which has the name of the result.
_OBJECTS: Final = frozenset({"COLLECT", "ARRAY_AGG", "JSON_OBJECTAGG", "PERCENTILE", "APPROX_COUNT_DISTINCT"})
#: How Flink's planner has the call of groups, whose name it takes from COUNT.
_APPROXIMATE: Final = "COUNT(APPROXIMATE DISTINCT "


@record
class Phases:
    """An aggregate that Flink cuts: columns of its input, keys, calls, and whether the input retracts.

    ``steady_extremes``: MIN and MAX are of partial results that are never taken back. ``partial_final``: which part of
    a split distinct aggregate it is, or nothing.
    """

    names: Sequence[str]
    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    retracting: bool
    steady_extremes: bool = False
    partial_final: str = ""

    @property
    def keys(self) -> list[str]:
        """Names of the grouping columns."""
        return [self.names[index] for index in self.grouping]

    @property
    def by(self) -> Attributes:
        """The attribute of the grouping columns."""
        return group_by(self.names, self.grouping)

    @property
    def part(self) -> Attributes:
        """The attribute of the part."""
        return [("partialFinalType", self.partial_final)] if self.partial_final else []

    def retracts(self, call: AggregateCall) -> bool:
        """Whether a call takes values back."""
        return self.retracting and not (self.steady_extremes and call.function in ("MIN", "MAX"))

    @property
    def count_star(self) -> int:
        """Which call counts all rows; -1 where none does."""
        counted = (call.function == "COUNT" and not call.args and call.filter_index is None for call in self.calls)
        return next((place for place, counts in enumerate(counted) if counts), -1)


@record
class _Partial:
    """An aggregate call cut in two: ``local`` makes the ``columns``, which are merged as ``function(arguments)``."""

    local: str
    columns: tuple[str, ...]
    function: str
    arguments: str

    @property
    def accumulators(self) -> str:
        """The columns as one."""
        return _together(self.columns)


def _together(columns: Sequence[str]) -> str:
    return columns[0] if len(columns) == 1 else f"({', '.join(columns)})"


def _partials(phases: Phases, numbers_objects: bool = True) -> tuple[list[_Partial], list[str]]:
    """Partial calls with Flink's accumulator names, and the distinct views that they share.

    ``numbers_objects``: accumulators that are objects have a number, too.
    """
    names = phases.names
    number = 0
    distinct: list[str] = []
    made = []
    for call in phases.calls:
        retracting = phases.retracts(call)
        text = call_text(call, names, retracting)
        columns = tuple(f"{name}${number + i}" for i, name in enumerate(_accumulators(call, retracting)))
        number += len(columns) if numbers_objects or call.function not in _OBJECTS else 0
        arguments = _together(columns)
        if call.distinct:
            argument = ", ".join(names[arg.index] for arg in call.args)
            view = f"DISTINCT({argument})"
            if view not in distinct:
                distinct.append(view)
            mark = f"distinct${distinct.index(view)}"
            text = text.replace("DISTINCT ", f"{mark} ")
            arguments = f"{mark} {arguments}"
        function = f"{call.function}_RETRACT" if retracting else call.function
        made.append(_Partial(f"{text} AS {_together(columns)}", columns, function, arguments))
    return made, [f"{view} AS distinct${i}" for i, view in enumerate(distinct)]


def _accumulators(call: AggregateCall, retracting: bool) -> tuple[str, ...]:
    """Names of a call's accumulators, without their numbers."""
    if call.function == "AVG" or (call.function == "SUM" and retracting):
        return "sum", "count"
    if call.function == "COUNT" and not call.args:
        return ("count1",)
    if call.function == "LISTAGG" and not retracting:
        return "accDelimiter", "concatAcc"
    if call.function == "SINGLE_VALUE":
        return "value", "count"
    return (call.function.lower().strip("$").rstrip("0"),)


def group_lines(phases: Phases, mode: ChangelogMode | None, net_changes: bool) -> Iterator[Line]:
    """Global over local. ``mode``: what leaves the aggregate."""
    partials, views = _partials(phases)
    keys, by = phases.keys, [*phases.by, *phases.part]
    merged = [
        f"{part.function}({part.arguments}) AS {call.name}" for part, call in zip(partials, phases.calls, strict=True)
    ]
    yield Line("GlobalGroupAggregate", (*by, ("select", ", ".join(keys + merged))), mode, net_changes)
    yield exchange_line(keys, INSERT_ONLY)
    yield _local_line(phases, by, keys, partials, views)


def batch_lines(phases: Phases, sorts: bool) -> Iterator[Line]:
    """Final over partial in batch mode, by hash or behind sorts of the keys."""
    kind = "Sort" if sorts else "Hash"
    partials, _ = _partials(phases, numbers_objects=False)
    final, local = list(phases.keys), list(phases.keys)
    for part, call in zip(partials, phases.calls, strict=True):
        # What keeps values has one accumulator, which Flink calls as the result.
        columns = part.columns if call.function not in _OBJECTS else (call.name,)
        text = _of_group(call, f"{call.function}({', '.join(columns)})")
        final.append(f"Final_{text} AS {call.name}")
        text = _of_group(call, call_text(call, phases.names, retracting=False))
        local.append(f"Partial_{text} AS {_together(columns)}")
    yield Line(f"{kind}Aggregate", (("isMerge", "true"), *phases.by, ("select", ", ".join(final))), INSERT_ONLY)
    yield from sort_line(phases.keys, sorts)
    yield exchange_line(phases.keys, INSERT_ONLY)
    yield Line(f"Local{kind}Aggregate", (*phases.by, ("select", ", ".join(local))), INSERT_ONLY)
    yield from sort_line(phases.keys, sorts)


def group_call_texts(calls: Sequence[AggregateCall], names: Sequence[str]) -> list[str]:
    """Calls of a batch aggregate in one phase, which Flink marks as none."""
    return [f"{_of_group(call, call_text(call, names, retracting=False))} AS {call.name}" for call in calls]


def _of_group(call: AggregateCall, text: str) -> str:
    return text.replace("APPROX_COUNT_DISTINCT(", _APPROXIMATE, 1) if call.function == "APPROX_COUNT_DISTINCT" else text


def sort_line(keys: Sequence[str], sorts: bool) -> Iterator[Line]:
    """The Sort below an aggregate that sorts."""
    if sorts and keys:
        yield Line("Sort", (("orderBy", ", ".join(f"{key} ASC" for key in keys)),), INSERT_ONLY)


def _rows_counted(phases: Phases, partials: Sequence[_Partial]) -> str:
    """The accumulator that counts rows where they are taken back, and no call does."""
    if not phases.retracting or phases.count_star >= 0:
        return ""
    return f"count1${sum(len(part.columns) for part in partials)}"


def _local_line(
    phases: Phases, by: Attributes, keys: Sequence[str], partials: Sequence[_Partial], views: Sequence[str]
) -> Line:
    selected = [*keys, *(part.local for part in partials)]
    counted = _rows_counted(phases, partials)
    if counted:
        selected.append(f"COUNT_RETRACT(*) AS {counted}")
    return Line("LocalGroupAggregate", (*by, ("select", ", ".join([*selected, *views]))), INSERT_ONLY)


def incremental_lines(
    phases: Phases,
    buckets: Sequence[int],
    finals: Sequence[AggregateCall],
    mode: ChangelogMode | None,
    net_changes: bool,
) -> Iterator[Line]:
    """Global over incremental over local. ``finals``: the calls that merge those of ``phases`` over the buckets."""
    partials, views = _partials(phases)
    keys = phases.keys
    inner = [*keys, *(phases.names[index] for index in buckets)]
    retract = "_RETRACT" if phases.retracting else ""
    merged = [
        f"{final.function}{retract}({part.accumulators}) AS {final.name}"
        for part, final in zip(partials, finals, strict=True)
    ]
    counting = [("indexOfCountStar", str(phases.count_star))] if phases.retracting and phases.count_star >= 0 else []
    yield Line(
        "GlobalGroupAggregate",
        (*phases.by, ("partialFinalType", "FINAL"), ("select", ", ".join(keys + merged)), *counting),
        mode,
        net_changes,
    )
    yield exchange_line(keys, INSERT_ONLY)
    handed = [f"{part.function}({part.arguments}) AS {part.accumulators}" for part in partials]
    counted = _rows_counted(phases, partials)
    if counted:
        handed.append(f"COUNT_RETRACT({counted}) AS {counted}")
    yield Line(
        "IncrementalGroupAggregate",
        (
            ("partialAggGrouping", ", ".join(inner)),
            ("finalAggGrouping", ", ".join(keys)),
            ("select", ", ".join(keys + handed)),
        ),
        INSERT_ONLY,
    )
    yield exchange_line(inner, INSERT_ONLY)
    yield _local_line(phases, [("groupBy", ", ".join(inner)), ("partialFinalType", "PARTIAL")], inner, partials, views)


def window_lines(
    phases: Phases,
    window: WindowSpec,
    properties: Sequence[str],
    mode: ChangelogMode | None,
    arriving: ChangelogMode | None,
) -> Iterator[Line]:
    """Global over local, per slice of a window. ``properties``: texts of the window's columns."""
    partials, views = _partials(phases)
    keys, by = phases.keys, phases.by
    attached = window.end_index is not None
    end = "$window_end" if attached else "$slice_end"
    at = f"win_end=[{end}]" if attached else f"slice_end=[{end}]"
    merged = [
        f"{part.function}({part.arguments}) AS {call.name}" for part, call in zip(partials, phases.calls, strict=True)
    ]
    final = keys + merged + list(properties)
    yield Line(
        "GlobalWindowAggregate",
        (*by, ("window", window_at_text(window, at)), ("select", ", ".join(final))),
        mode,
    )
    yield exchange_line(keys, arriving)
    local = keys + [part.local for part in partials] + views + [f"slice_end('w$) AS {end}"]
    yield Line(
        "LocalWindowAggregate",
        (*by, ("window", window_text(window, phases.names)), ("select", ", ".join(local))),
        arriving,
    )


def exchange_line(keys: Sequence[str], mode: ChangelogMode | None) -> Line:
    """The Exchange by keys; without any to one place."""
    return Line("Exchange", (("distribution", distribution_text(keys)),), mode)
