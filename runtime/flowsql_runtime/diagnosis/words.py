"""How tables, columns, operators and moments are called where a user reads of them."""

from __future__ import annotations

import datetime
from zoneinfo import ZoneInfo

from flowsql_core.graph.job import OperatorNode
from flowsql_core.graph.match_specs import MatchSpec
from flowsql_core.graph.over_specs import OverAggregateSpec
from flowsql_core.graph.rank_specs import DeduplicateSpec, TemporalSortSpec, WindowDeduplicateSpec, WindowRankSpec
from flowsql_core.graph.specs import JoinSpec, OperatorSpec, ScanSpec, WindowAggregateSpec, WindowJoinSpec, WindowSpec
from flowsql_core.graph.time_join_specs import IntervalJoinSpec, TemporalJoinSpec
from flowsql_core.graph.window_specs import SessionTableFunctionSpec
from flowsql_core.types.logical import Schema


def rows_text(count: int) -> str:
    """``1 row``, ``1,234 rows``."""
    return f"{count:,} row{'' if count == 1 else 's'}"


def moment_text(moment_ms: int, zone: str | None = None) -> str:
    """Event time as timestamps are written, as short as it can be; on the clock of ``zone``, if there is one."""
    try:
        moment = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(milliseconds=moment_ms)
        if zone is not None:
            moment = moment.astimezone(ZoneInfo(zone))
    except (OverflowError, ValueError, KeyError):
        return "the end of time" if moment_ms > 0 else "the beginning of time"
    fraction = f".{moment.microsecond // 1000:03}" if moment.microsecond else ""
    return f"{moment:%Y-%m-%d %H:%M:%S}{fraction}"


def span_text(start_ms: int, end_ms: int) -> str:
    """Two moments, the date of the second only where it is another one."""
    start, end = moment_text(start_ms), moment_text(end_ms)
    return f"{start}, {end[11:] if start[:10] == end[:10] else end}"


def split_text(split: str) -> str:
    """A split of files is named after its file: ``clicks.csv``, ``clicks.csv from byte 1,000 on``."""
    path, at, position = split.rpartition("@")
    if not at or not position.isdigit():
        return f"split '{split}'"
    name = path.rpartition("/")[2]
    return f"file {name}" if position == "0" else f"file {name} from byte {int(position):,} on"


def condition_text(node: OperatorNode) -> str:
    """The condition of a filter or a join, as plans show it."""
    _, found, rest = node.name.partition("where=[")
    if not found:
        return "condition"
    depth = 1
    quoted = False
    for at, letter in enumerate(rest):
        quoted ^= letter == "'"
        if not quoted:
            depth += (letter == "[") - (letter == "]")
        if not depth:
            return rest[:at].removeprefix("(").removesuffix(")") if _is_wrapped(rest[:at]) else rest[:at]
    return rest


def _is_wrapped(text: str) -> bool:
    """Whether one pair of parentheses is around all of a text."""
    if not text.startswith("(") or not text.endswith(")"):
        return False
    depth = 0
    quoted = False
    for at, letter in enumerate(text):
        quoted ^= letter == "'"
        if not quoted:
            depth += (letter == "(") - (letter == ")")
        if not depth:
            return at == len(text) - 1
    return False


def table_text(node: OperatorNode) -> str:
    """The table that a source reads, in quotes."""
    return f"'{node.spec.table.path[-1]}'" if isinstance(node.spec, ScanSpec) else f"'{node.name}'"


def tolerance_text(node: OperatorNode) -> str:
    """The option that lets rows of a table be left out."""
    if isinstance(node.spec, ScanSpec) and (action := node.spec.table.option("on-error")) not in (None, "fail"):
        return f"on-error = {action}"
    return "ignore-parse-errors"


def operator_text(node: OperatorNode) -> str:
    """An operator as whoever wrote the query knows it: ``TUMBLE over 'ts'``."""
    found = _text(node.spec)
    return node.name.partition("(")[0].rstrip("[]0123456789: ") if found is None else found


def _text(spec: OperatorSpec) -> str | None:
    match spec:
        case WindowAggregateSpec() | SessionTableFunctionSpec():
            return _window(spec.window, spec.input)
        case OverAggregateSpec():
            return f"OVER (ORDER BY {spec.input[spec.order_index].name})"
        case MatchSpec():
            return f"MATCH_RECOGNIZE (ORDER BY {spec.input[spec.order[0][0]].name})"
        case TemporalSortSpec(time_index=int() as at):
            return f"ORDER BY {spec.input[at].name}"
        case WindowRankSpec() | WindowDeduplicateSpec():
            return "ROW_NUMBER() over a window"
        case DeduplicateSpec(time_index=int() as at):
            return f"ROW_NUMBER() over '{spec.input[at].name}'"
        case WindowJoinSpec():
            return "the join of windows"
        case IntervalJoinSpec():
            return f"the join by '{spec.left[spec.left_time].name}' and '{spec.right[spec.right_time].name}'"
        case TemporalJoinSpec():
            return f"the join FOR SYSTEM_TIME AS OF '{spec.left[spec.left_time].name}'"
        case JoinSpec():
            return "the join"
    return None


def _window(window: WindowSpec, schema: Schema) -> str:
    at = window.time_index
    return window.kind.value if at is None else f"{window.kind.value} over '{schema[at].name}'"
