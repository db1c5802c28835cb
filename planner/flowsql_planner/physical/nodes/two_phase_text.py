"""Aggregate calls in EXPLAIN, and the lines of aggregates that Flink cuts in phases, with its accumulator names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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


@record
class Phases:
    """An aggregate that Flink cuts: columns of its input, keys, calls, and whether the input retracts."""

    names: Sequence[str]
    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    retracting: bool

    @property
    def keys(self) -> list[str]:
        """Names of the grouping columns."""
        return [self.names[index] for index in self.grouping]

    @property
    def by(self) -> Attributes:
        """The attribute of the grouping columns."""
        return group_by(self.names, self.grouping)


@record
class _Partial:
    """An aggregate call cut in two: ``local`` makes the ``columns``, ``final`` merges them."""

    local: str
    columns: tuple[str, ...]
    final: str


def _partials(phases: Phases) -> tuple[list[_Partial], list[str]]:
    """Partial calls with Flink's accumulator names, and the distinct views that they share."""
    names, retracting = phases.names, phases.retracting
    number = 0
    distinct: list[str] = []
    made = []
    for call in phases.calls:
        text = call_text(call, names, retracting)
        columns: tuple[str, ...]
        if call.function == "AVG":
            columns, number = (f"sum${number}", f"count${number + 1}"), number + 2
        elif call.function == "COUNT" and not call.args:
            columns, number = (f"count1${number}",), number + 1
        elif call.function == "LISTAGG":
            columns, number = (f"accDelimiter${number}", f"concatAcc${number + 1}"), number + 2
        else:
            columns, number = (f"{call.function.lower().strip('$').rstrip('0')}${number}",), number + 1
        merged = columns[0] if len(columns) == 1 else f"({', '.join(columns)})"
        function = f"{call.function}_RETRACT" if retracting else call.function
        if call.distinct:
            argument = ", ".join(names[arg.index] for arg in call.args)
            view = f"DISTINCT({argument})"
            if view not in distinct:
                distinct.append(view)
            mark = f"distinct${distinct.index(view)}"
            text = text.replace("DISTINCT ", f"{mark} ")
            merged_final = f"{function}({mark} {columns[0]})"
        else:
            merged_final = f"{function}({merged})"
        made.append(_Partial(f"{text} AS {merged}", columns, f"{merged_final} AS {call.name}"))
    return made, [f"{view} AS distinct${i}" for i, view in enumerate(distinct)]


def group_lines(phases: Phases, mode: ChangelogMode | None, net_changes: bool) -> Iterator[Line]:
    """Global over local. ``mode``: what leaves the aggregate."""
    partials, views = _partials(phases)
    keys, by = phases.keys, phases.by
    final = ("select", ", ".join(keys + [part.final for part in partials]))
    yield Line("GlobalGroupAggregate", (*by, final), mode, net_changes)
    yield _exchange_line(keys, INSERT_ONLY)
    selected = keys + [part.local for part in partials]
    if phases.retracting and not any(call.function == "COUNT" and not call.args for call in phases.calls):
        selected.append(f"COUNT_RETRACT(*) AS count1${sum(len(part.columns) for part in partials)}")
    yield Line("LocalGroupAggregate", (*by, ("select", ", ".join(selected + views))), INSERT_ONLY)


def split_lines(phases: Phases, mode: ChangelogMode | None, arriving: ChangelogMode | None) -> Iterator[Line]:
    """Global over incremental over local: distinct arguments spread over buckets first."""
    partials, views = _partials(phases)
    names, keys = phases.names, phases.keys
    spread = [call for call in phases.calls if call.distinct or call.function in ("MIN", "MAX")]
    arguments = list(dict.fromkeys(names[arg.index] for call in spread for arg in call.args))
    buckets = [f"$f{len(names) + i}" for i in range(len(arguments))]
    inner = [*keys, *buckets]
    columns = [column for part in partials for column in part.columns]
    final = [
        f"$SUM0({c}) AS $f{len(keys) + i}" if "count" in c else f"{c} AS $f{len(keys) + i}"
        for i, c in enumerate(columns)
    ]
    yield Line(
        "GlobalGroupAggregate",
        (*phases.by, ("partialFinalType", "FINAL"), ("select", ", ".join(keys + final))),
        mode,
    )
    yield _exchange_line(keys, INSERT_ONLY)
    yield Line(
        "IncrementalGroupAggregate",
        (
            ("partialAggGrouping", ", ".join(inner)),
            ("finalAggGrouping", ", ".join(keys)),
            ("select", ", ".join(keys + columns)),
        ),
        INSERT_ONLY,
    )
    yield _exchange_line(inner, INSERT_ONLY)
    yield Line(
        "LocalGroupAggregate",
        (
            ("groupBy", ", ".join(inner)),
            ("partialFinalType", "PARTIAL"),
            ("select", ", ".join(inner + [part.local for part in partials] + views)),
        ),
        INSERT_ONLY,
    )
    if len(arguments) > 1:
        # Each row once per distinct argument (and once for the plain calls), so that each copy has one bucket.
        yield Line("Calc", (("select", ", ".join([*names, *buckets, "$e"])),), arriving)
        yield Line("Expand", (("projects", _bucket_copies(names, buckets)),), arriving)


def _bucket_copies(names: Sequence[str], buckets: Sequence[str]) -> str:
    copies = []
    for number in range(len(buckets) + 1):
        kept = [name if i == number else f"null AS {name}" for i, name in enumerate(buckets)]
        copies.append("{" + ", ".join([*names, *kept, f"{number} AS $e"]) + "}")
    return ", ".join(copies)


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
    final = keys + [part.final for part in partials] + list(properties)
    yield Line(
        "GlobalWindowAggregate",
        (*by, ("window", window_at_text(window, at)), ("select", ", ".join(final))),
        mode,
    )
    yield _exchange_line(keys, arriving)
    local = keys + [part.local for part in partials] + views + [f"slice_end('w$) AS {end}"]
    yield Line(
        "LocalWindowAggregate",
        (*by, ("window", window_text(window, phases.names)), ("select", ", ".join(local))),
        arriving,
    )


def _exchange_line(keys: Sequence[str], mode: ChangelogMode | None) -> Line:
    return Line("Exchange", (("distribution", distribution_text(keys)),), mode)
