"""One line a physical node, with Flink's attributes; a two-phase aggregate is several lines.

Source: Flink's ``StreamPhysicalRel.explainTerms`` of each node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flowsql_core.expr import AggregateCall, Call, Expr, InputRef
from flowsql_core.graph.specs import WindowKind, WindowProperty, WindowSpec
from flowsql_core.record import record
from flowsql_core.row import INSERT_ONLY, ChangelogMode
from flowsql_planner.logical.expression_text import (
    ExpressionPrinter,
    duration_text,
    literal_text,
    record_type,
    target_columns,
)
from flowsql_planner.physical.nodes import (
    Calc,
    ChangelogNormalize,
    CorrelateNode,
    DropUpdateBefore,
    Exchange,
    ExpandNode,
    GroupAggregate,
    IntervalJoin,
    JoinNode,
    Limit,
    MiniBatchAssigner,
    Physical,
    PythonCalc,
    SinkNode,
    SortLimit,
    SortNode,
    TableSourceScan,
    TemporalSort,
    UnionNode,
    ValuesNode,
    WatermarkAssignerNode,
    WindowAggregate,
    WindowJoin,
    WindowTableFunctionNode,
    walk,
)

Attributes = list[tuple[str, str]]
#: Mode printed for a sink, which emits nothing.
NO_CHANGES = "NONE"


@record
class Line:
    """A node's line: operator name, attributes, and the changelog mode that it would show.

    ``net_changes``: a stateful node may leave out changes that later ones of the same batch undo.
    """

    name: str
    attributes: tuple[tuple[str, str], ...]
    mode: ChangelogMode | None
    net_changes: bool = False

    def text(self, changelog: bool = False, advice: Sequence[int] = ()) -> str:
        """``Name(key=[value], ...)``; a node without attributes is its bare name."""
        parts = [f"{key}=[{value}]" for key, value in self.attributes]
        if advice:
            parts.insert(0, f"advice=[{', '.join(map(str, advice))}]")
        if changelog:
            shown = NO_CHANGES if self.mode is None else str(self.mode)[1:-1]
            parts.append(f"changelogMode=[{shown}]")
            if self.net_changes:
                parts.append("netChanges=[true]")
        return f"{self.name}({', '.join(parts)})" if parts else self.name


def describe(node: Physical, infix: bool = False) -> str:
    """A node's own line, as messages and operator names show it."""
    return lines(node, infix)[0].text()


def lines(node: Physical, infix: bool = False) -> list[Line]:
    """The lines of a node, outermost first; more than one only where Flink plans several nodes for it."""
    match node:
        case GroupAggregate(two_phase=True):
            return list(_two_phase_group(node))
        case WindowAggregate(two_phase=True):
            return list(_two_phase_window(node))
        case _:
            name, attributes = _attributes(node, infix)
            return [Line(name, tuple(attributes), node.mode, _net_changes(node))]


def _net_changes(node: Physical) -> bool:
    stateful = isinstance(node, GroupAggregate | JoinNode)
    return stateful and not node.every_change and not _insert_only(node)


def covers_exchange(node: Physical) -> bool:
    """Whether the lines of a node already show its Exchange (behind the local half)."""
    return isinstance(node, GroupAggregate | WindowAggregate) and node.two_phase


def _names(node: Physical) -> list[str]:
    return [column.name for column in node.schema]


def _attributes(node: Physical, infix: bool) -> tuple[str, Attributes]:
    match node:
        case TableSourceScan():
            return "TableSourceScan", _scan(node, infix)
        case ValuesNode():
            type_ = [] if infix else [("type", record_type(node.schema))]
            return "Values", [*type_, ("tuples", _tuples(node))]
        case PythonCalc():
            return "PythonCalc", _calc(node, infix)
        case Calc():
            return "Calc", _calc(node, infix)
        case WatermarkAssignerNode():
            printer = ExpressionPrinter(_names(node.inputs[0]), infix)
            name = node.schema[node.rowtime_index].name
            return "WatermarkAssigner", [("rowtime", name), ("watermark", printer.print(node.expression))]
        case MiniBatchAssigner():
            return "MiniBatchAssigner", [("interval", f"{node.interval_ms}ms"), ("mode", node.kind.value)]
        case Exchange():
            return "Exchange", [("distribution", distribution(node))]
        case ExpandNode():
            return "Expand", [("projects", _expand(node, infix))]
        case CorrelateNode():
            return "Correlate", _correlate(node)
        case GroupAggregate():
            return "GroupAggregate", _group(node)
        case WindowTableFunctionNode():
            return "WindowTableFunction", [("window", _window(node.window, _names(node.inputs[0]), node.partition))]
        case WindowAggregate():
            return "WindowAggregate", _window_aggregate(node)
        case JoinNode():
            return "Join", _join(node, infix)
        case WindowJoin():
            return "WindowJoin", _window_join(node, infix)
        case IntervalJoin():
            return "IntervalJoin", _interval_join(node, infix)
        case UnionNode():
            return "Union", [("all", "true"), ("union", ", ".join(_names(node)))]
        case Limit():
            return "Limit", [("offset", str(node.offset)), ("fetch", _fetch(node.fetch))]
        case SortLimit():
            strategy = "AppendFastStrategy" if _insert_only(node.inputs[0]) else "RetractStrategy"
            return "SortLimit", [
                ("orderBy", _order(node)),
                ("offset", str(node.offset)),
                ("fetch", _fetch(node.fetch)),
                ("strategy", strategy),
            ]
        case TemporalSort():
            return "TemporalSort", [("orderBy", _order(node))]
        case SortNode():
            return "Sort", [("orderBy", _order(node))]
        case DropUpdateBefore():
            return "DropUpdateBefore", []
        case ChangelogNormalize():
            return "ChangelogNormalize", [("key", ", ".join(node.schema[key].name for key in node.keys))]
        case SinkNode():
            more = [("upsertMaterialize", "true")] if node.materialize else []
            if node.on_conflict is not None:
                more.append(("conflictStrategy", node.on_conflict))
            listed = [("targetColumns", target_columns(node.target_columns))] if node.target_columns else []
            return "Sink", [("table", node.name), *listed, ("fields", ", ".join(_names(node.inputs[0]))), *more]
        case _:
            raise AssertionError(f"no line for {type(node).__name__}")


def _insert_only(node: Physical) -> bool:
    return node.mode is None or node.mode.insert_only


def _fetch(fetch: int | None) -> str:
    return "unlimited" if fetch is None else str(fetch)


def _order(node: SortLimit | TemporalSort | SortNode) -> str:
    return ", ".join(
        f"{node.schema[index].name} {'DESC' if descending else 'ASC'}" for index, descending, _ in node.keys
    )


def distribution(node: Exchange) -> str:
    """``hash[a, b]`` or ``single``."""
    if not node.keys:
        return "single"
    return f"hash[{', '.join(node.schema[key].name for key in node.keys)}]"


def _scan(node: TableSourceScan, infix: bool) -> Attributes:
    parts = [", ".join(node.table.shown_path)]
    names = [column.name for column in node.table.columns]
    if node.filters:
        printer = ExpressionPrinter(names)
        shown = [printer.print(part) for part in node.filters]
        text = shown[0]
        for other in shown[1:]:
            text = f"and({text}, {other})"
        parts.append(f"filter=[{text}]")
    whole = tuple(range(len(names)))
    if node.projection != whole or node.metadata:
        parts.append(f"project=[{', '.join(names[index] for index in node.projection)}]")
        parts.append(f"metadata=[{', '.join(node.metadata)}]")
    if node.limit is not None:
        parts.append(f"limit=[{node.limit}]")
    del infix
    return [("table", f"[{', '.join(parts)}]"), ("fields", ", ".join(_names(node)))]


def _tuples(node: ValuesNode) -> str:
    rows = []
    for row in node.rows:
        cells = ["null" if cell.value is None else literal_text(cell.value, cell.type) for cell in row]
        rows.append("{ " + ", ".join(cells) + " }")
    return "[" + ", ".join(rows) + "]"


def _selected(exprs: Sequence[Expr], names: Sequence[str], printer: ExpressionPrinter) -> str:
    parts = []
    for expr, name in zip(exprs, names, strict=True):
        text = printer.print(expr)
        parts.append(text if isinstance(expr, InputRef) and text == name else f"{text} AS {name}")
    return ", ".join(parts)


def _calc(node: Calc, infix: bool) -> Attributes:
    printer = ExpressionPrinter(_names(node.inputs[0]), infix)
    attributes = [("select", _selected(node.projections, _names(node), printer))]
    if node.condition is not None:
        attributes.append(("where", printer.print(node.condition)))
    return attributes


def _expand(node: ExpandNode, infix: bool) -> str:
    printer = ExpressionPrinter(_names(node.inputs[0]), infix)
    rows = []
    for row in node.projections:
        cells = []
        for expr, name in zip(row, _names(node), strict=True):
            text = "null" if printer.print(expr).startswith("null:") else printer.print(expr).removesuffix(":BIGINT")
            cells.append(text if text == name else f"{text} AS {name}")
        rows.append("{" + ", ".join(cells) + "}")
    return ", ".join(rows)


def _correlate(node: CorrelateNode) -> Attributes:
    source = node.inputs[0]
    number = sum(isinstance(below, CorrelateNode) for below in walk(source))
    row = ExpressionPrinter([f"$cor{number}.{name}" for name in _names(source)])
    function = "$UNNEST_ROWS_WITH_ORDINALITY$1" if node.ordinality else "$UNNEST_ROWS$1"
    call = f"{function}({row.print(node.collection)})"
    attributes = [
        ("invocation", call),
        ("correlate", f"table({call})"),
        ("select", ",".join(_names(node))),
        ("rowType", record_type(node.schema, expanded=bool(source.schema))),
        ("joinType", "LEFT" if node.outer else "INNER"),
    ]
    if node.condition is not None:
        attributes.append(("condition", ExpressionPrinter(None).print(node.condition)))
    return attributes


def _call_text(call: AggregateCall, names: Sequence[str], retracting: bool) -> str:
    args = ", ".join(names[arg.index] for arg in call.args) or "*"
    name = f"{call.function}_RETRACT" if retracting else call.function
    distinct = "DISTINCT " if call.distinct else ""
    where = "" if call.filter_index is None else f" FILTER {names[call.filter_index]}"
    return f"{name}({distinct}{args}){where}"


def _keys(names: Sequence[str], grouping: Sequence[int]) -> Attributes:
    return [("groupBy", ", ".join(names[index] for index in grouping))] if grouping else []


def _group(node: GroupAggregate) -> Attributes:
    names = _names(node.inputs[0])
    retracting = not _insert_only(node.inputs[0])
    selected = [names[index] for index in node.grouping]
    selected += [f"{_call_text(call, names, retracting)} AS {call.name}" for call in node.calls]
    return [*_keys(names, node.grouping), ("select", ", ".join(selected))]


@record
class _Partial:
    """An aggregate call cut in two: ``local`` makes the ``columns``, ``final`` merges them."""

    local: str
    columns: tuple[str, ...]
    final: str


def _partials(
    calls: Sequence[AggregateCall], names: Sequence[str], retracting: bool
) -> tuple[list[_Partial], list[str]]:
    """Partial calls with Flink's accumulator names, and the distinct views that they share."""
    number = 0
    distinct: list[str] = []
    made = []
    for call in calls:
        text = _call_text(call, names, retracting)
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


def _two_phase_group(node: GroupAggregate) -> Iterator[Line]:
    below = node.inputs[0]
    names = _names(below)
    partials, views = _partials(node.calls, names, not _insert_only(below))
    keys = [names[index] for index in node.grouping]
    by = _keys(names, node.grouping)
    if node.split_distinct:
        yield from _split_group(node, names, partials, views, keys)
        return
    yield Line(
        "GlobalGroupAggregate",
        (*by, ("select", ", ".join(keys + [part.final for part in partials]))),
        node.mode,
        _net_changes(node),
    )
    yield _exchange_line(keys, INSERT_ONLY)
    selected = keys + [part.local for part in partials]
    if not _insert_only(below) and not any(call.function == "COUNT" and not call.args for call in node.calls):
        selected.append(f"COUNT_RETRACT(*) AS count1${sum(len(part.columns) for part in partials)}")
    yield Line("LocalGroupAggregate", (*by, ("select", ", ".join(selected + views))), INSERT_ONLY)


def _split_group(
    node: GroupAggregate, names: list[str], partials: list[_Partial], views: list[str], keys: list[str]
) -> Iterator[Line]:
    """Global over incremental over local: distinct arguments spread over buckets first."""
    spread = [call for call in node.calls if call.distinct or call.function in ("MIN", "MAX")]
    arguments = list(dict.fromkeys(names[arg.index] for call in spread for arg in call.args))
    buckets = [f"$f{len(names) + i}" for i in range(len(arguments))]
    inner = [*keys, *buckets]
    columns = [column for part in partials for column in part.columns]
    by = [("groupBy", ", ".join(keys))] if keys else []
    final = [
        f"$SUM0({c}) AS $f{len(keys) + i}" if "count" in c else f"{c} AS $f{len(keys) + i}"
        for i, c in enumerate(columns)
    ]
    yield Line(
        "GlobalGroupAggregate",
        (*by, ("partialFinalType", "FINAL"), ("select", ", ".join(keys + final))),
        node.mode,
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
        mode = node.inputs[0].mode
        yield Line("Calc", (("select", ", ".join([*names, *buckets, "$e"])),), mode)
        yield Line("Expand", (("projects", _bucket_copies(names, buckets)),), mode)


def _bucket_copies(names: Sequence[str], buckets: Sequence[str]) -> str:
    copies = []
    for number in range(len(buckets) + 1):
        kept = [name if i == number else f"null AS {name}" for i, name in enumerate(buckets)]
        copies.append("{" + ", ".join([*names, *kept, f"{number} AS $e"]) + "}")
    return ", ".join(copies)


def _exchange_line(keys: Sequence[str], mode: ChangelogMode | None) -> Line:
    return Line("Exchange", (("distribution", f"hash[{', '.join(keys)}]" if keys else "single"),), mode)


def _window(window: WindowSpec, names: Sequence[str], partition: Sequence[int] = ()) -> str:
    if window.start_index is not None and window.end_index is not None:
        at = f"win_start=[{names[window.start_index]}], win_end=[{names[window.end_index]}]"
    else:
        assert window.time_index is not None
        at = f"time_col=[{names[window.time_index]}]"
    return _window_text(window, at, [names[index] for index in partition])


def _window_text(window: WindowSpec, at: str, partition: Sequence[str] = ()) -> str:
    size, step = duration_text(window.size_ms), duration_text(window.step_ms)
    match window.kind:
        case WindowKind.TUMBLE:
            inner = f"{at}, size=[{size}]"
        case WindowKind.HOP:
            inner = f"{at}, size=[{size}], slide=[{step}]"
        case WindowKind.CUMULATE:
            inner = f"{at}, max_size=[{size}], step=[{step}]"
        case WindowKind.SESSION:
            keys = f", partition keys=[{', '.join(partition)}]" if partition else ""
            return f"SESSION({at}, gap=[{size}]{keys})"
    if window.offset_ms:
        inner += f", offset=[{duration_text(window.offset_ms)}]"
    return f"{window.kind.value}({inner})"


_PROPERTY = {WindowProperty.START: "start", WindowProperty.END: "end", WindowProperty.TIME: "rowtime"}


def _property_texts(node: WindowAggregate) -> list[str]:
    base = len(node.grouping) + len(node.calls)
    texts = []
    for i, role in enumerate(node.properties):
        kind = "proctime" if role is WindowProperty.TIME and node.window.processing_time else _PROPERTY[role]
        texts.append(f"{kind}('w$) AS {node.schema[base + i].name}")
    return texts


def _window_aggregate(node: WindowAggregate) -> Attributes:
    names = _names(node.inputs[0])
    retracting = not _insert_only(node.inputs[0])
    selected = [names[index] for index in node.grouping]
    selected += [f"{_call_text(call, names, retracting)} AS {call.name}" for call in node.calls]
    return [
        *_keys(names, node.grouping),
        ("window", _window(node.window, names, node.partition)),
        ("select", ", ".join(selected + _property_texts(node))),
    ]


def _two_phase_window(node: WindowAggregate) -> Iterator[Line]:
    below = node.inputs[0]
    names = _names(below)
    partials, views = _partials(node.calls, names, not _insert_only(below))
    keys = [names[index] for index in node.grouping]
    by = _keys(names, node.grouping)
    attached = node.window.end_index is not None
    end = "$window_end" if attached else "$slice_end"
    at = f"win_end=[{end}]" if attached else f"slice_end=[{end}]"
    final = keys + [part.final for part in partials] + _property_texts(node)
    yield Line(
        "GlobalWindowAggregate",
        (*by, ("window", _window_text(node.window, at)), ("select", ", ".join(final))),
        node.mode,
    )
    yield _exchange_line(keys, below.mode)
    local = keys + [part.local for part in partials] + views + [f"slice_end('w$) AS {end}"]
    yield Line(
        "LocalWindowAggregate",
        (*by, ("window", _window(node.window, names)), ("select", ", ".join(local))),
        below.mode,
    )


def _side_names(node: Physical) -> list[str]:
    own = _names(node)
    both = [column.name for child in node.inputs for column in child.schema]
    return own if len(own) == len(both) else both


def _condition(node: Physical, condition: Expr | None, infix: bool) -> str:
    if condition is None:
        return "true"
    names = _side_names(node)
    return ExpressionPrinter(names, infix).print(condition)


def _join(node: JoinNode, infix: bool) -> Attributes:
    attributes = [
        ("joinType", node.kind.value),
        ("where", _condition(node, _shown(node.condition), infix)),
        ("select", ", ".join(_names(node))),
        ("leftInputSpec", node.left_spec.value),
        ("rightInputSpec", node.right_spec.value),
    ]
    if node.mini_batch:
        attributes.append(("miniBatch", "true"))
    return attributes


def _shown(condition: Expr | None) -> Expr | None:
    return condition if not isinstance(condition, Call) or condition.function != "TRUE" else None


def _window_join(node: WindowJoin, infix: bool) -> Attributes:
    left, right = node.inputs
    attributes = [
        ("leftWindow", _window(node.left_window, _names(left))),
        ("rightWindow", _window(node.right_window, _names(right))),
        ("joinType", node.kind.value),
        ("where", _condition(node, node.condition, infix)),
        ("select", ", ".join(_names(node))),
    ]
    return attributes


def _interval_join(node: IntervalJoin, infix: bool) -> Attributes:
    bounds = (
        f"isRowTime={'true' if node.row_time else 'false'}, leftLowerBound={node.lower_ms}, "
        f"leftUpperBound={node.upper_ms}, leftTimeIndex={node.left_time}, rightTimeIndex={node.right_time}"
    )
    return [
        ("joinType", node.kind.value),
        ("windowBounds", bounds),
        ("where", _condition(node, node.condition, infix)),
        ("select", ", ".join(_names(node))),
    ]
