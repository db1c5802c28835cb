"""Group aggregates against a model of Flink's rules that walks rows one by one."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_compute.functions.aggregate import aggregate_names, local_columns, resolve_aggregate
from flowsql_compute.functions.distinct_sets import local_set_columns, merged_columns
from flowsql_core.batch import ChangelogBatch, single_watermark
from flowsql_core.clock import ManualClock
from flowsql_core.errors import BindError, ExecutionError, NotSupportedYetError
from flowsql_core.expr import AggregateCall, InputRef
from flowsql_core.graph.aggregate_specs import IncrementalGroupAggregateSpec, LocalSetAggregateSpec
from flowsql_core.graph.specs import (
    GlobalGroupAggregateSpec,
    GroupAggregateSpec,
    LocalGroupAggregateSpec,
    MiniBatch,
)
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import (
    BIGINT,
    DOUBLE,
    INT,
    STRING,
    ArrayType,
    BooleanType,
    Column,
    DecimalType,
    FloatType,
    TinyIntType,
)
from flowsql_runtime.testing.harness import OperatorHarness

pytestmark = [pytest.mark.usefixtures("each_backend"), pytest.mark.sampled(4)]

KINDS = ("+I", "-U", "+U", "-D")
INPUT = (
    Column("k", STRING),
    Column("v", INT),
    Column("d", DecimalType(precision=8, scale=2)),
    Column("s", STRING),
    Column("f", BooleanType()),
    Column("x", DOUBLE),
    Column("w", DecimalType(precision=30, scale=4)),
)
Row = tuple[Any, ...]
Event = tuple[int, Row]


def call(name: str, *columns: int, distinct: bool = False, where: int | None = None) -> AggregateCall:
    types = tuple(INPUT[column].type for column in columns)
    resolved = resolve_aggregate(name, types, distinct, None, filtered=where is not None)
    args = tuple(InputRef(column, INPUT[column].type) for column in columns)
    return AggregateCall(resolved.name, args, resolved.result_type, name, distinct, where)


def spec(calls: list[AggregateCall], **changes: Any) -> GroupAggregateSpec:
    grouping = changes.pop("grouping", (0,))
    output = tuple(INPUT[i] for i in grouping) + tuple(Column(c.name, c.type) for c in calls)
    fields: dict[str, Any] = {"input_retracts": True, "emit_update_before": True}
    return GroupAggregateSpec(grouping, tuple(calls), INPUT, output, **(fields | changes))


def batch(events: list[Event]) -> ChangelogBatch:
    columns = [pa.array([row[i] for _, row in events], to_arrow(column.type)) for i, column in enumerate(INPUT)]
    kinds = np.array([kind for kind, _ in events], np.uint8)
    return ChangelogBatch.of(columns, kinds if kinds.any() else None)


FIXED = [
    call("COUNT"), call("COUNT", 1), call("SUM", 1), call("AVG", 1), call("SUM", 2), call("AVG", 2), call("SUM", 6),
    call("AVG", 6), call("MIN", 1), call("MAX", 1), call("MIN", 3), call("MAX", 3), call("MAX", 5), call("MIN", 6),
    call("MAX", 2), call("COUNT", 3, distinct=True), call("SUM", 1, distinct=True, where=4),
    call("COUNT", 3, distinct=True, where=4), call("COUNT", where=4), call("MAX", 3, where=4),
]  # fmt: skip
ORDERED = [
    call("FIRST_VALUE", 3), call("LAST_VALUE", 1), call("LISTAGG", 3), call("ARRAY_AGG", 1), call("COLLECT", 1),
    call("LISTAGG", 3, distinct=True),
]  # fmt: skip


def truncated(total: int, count: int) -> int:
    return int(math.copysign(abs(total) // abs(count), total * count)) if total else 0


def answer(c: AggregateCall, rows: list[Row]) -> Any:
    if c.filter_index is not None:
        rows = [row for row in rows if row[c.filter_index]]
    if not c.args:
        return len(rows)
    values = [row[c.args[0].index] for row in rows]
    if c.function == "ARRAY_AGG":
        return values or None
    values = [value for value in values if value is not None]
    if c.distinct:
        values = list(dict.fromkeys(values))
    match c.function:
        case "COUNT":
            return len(values)
        case "COLLECT":
            return frozenset(Counter(values).items())
        case _ if not values:
            return None
        case "SUM":
            return sum(values)
        case "AVG":
            if isinstance(values[0], Decimal):
                exact = (sum(values) * 10**6 / len(values)).quantize(Decimal(1), ROUND_HALF_UP)
                return exact.scaleb(-6)
            return truncated(sum(values), len(values))
        case "MIN" | "MAX":
            order = (lambda text: text.encode()) if isinstance(values[0], str) else (lambda value: value)
            return (min if c.function == "MIN" else max)(values, key=order)
        case "FIRST_VALUE":
            return values[0]
        case "LAST_VALUE":
            return values[-1]
        case _:
            return ",".join(values)


def model(calls: list[AggregateCall], events: list[Event], grouping: tuple[int, ...] = (0,)) -> list[Any]:
    """Flink's GroupAggFunction."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    out: list[Any] = []
    for kind, row in events:
        key = tuple(row[i] for i in grouping)
        rows = groups[key]
        existed = bool(rows)
        before = [answer(c, rows) for c in calls]
        if kind & 1:
            if not existed:
                continue
            rows.remove(row)
        else:
            rows.append(row)
        after = [answer(c, rows) for c in calls]
        if not rows:
            out.append(("-D", *key, *before))
        elif not existed:
            out.append(("+I", *key, *after))
        elif before != after:
            out.append(("-U", *key, *before))
            out.append(("+U", *key, *after))
    return out


def plain(rows: list[Any]) -> list[Any]:
    """Multisets as sorted pairs, so that their order does not count."""

    def value(v: Any) -> Any:
        if isinstance(v, frozenset) or (isinstance(v, list) and v and isinstance(v[0], tuple)):
            return sorted(v)
        return v

    return [tuple(value(v) for v in row) for row in rows]


def table(rows: list[Any]) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row in rows:
        key = repr(row[1:])
        found[key] += -1 if row[0] in ("-U", "-D") else 1
        assert found[key] >= 0, f"takes back what is not there: {row}"
    return +found


def make_events(seed: int, n: int, retracts: bool, keys: int = 4) -> list[Event]:
    rng = random.Random(seed)
    live: list[Row] = []
    found: list[Event] = []
    texts = ["a", "b", "", "ä", "a text of more than fifteen bytes", "a text of more than fifteen bytez", None]
    for _ in range(n):
        if retracts and live and rng.random() < 0.45:
            # Of equal rows the oldest is the one that goes, as in the operator.
            row = rng.choice(live)
            live.remove(row)
            found.append((rng.choice((1, 3)), row))
            continue
        row = (
            rng.choice([None, *(f"key {i}" for i in range(keys))]),
            rng.choice([None, *range(-5, 6)]),
            rng.choice([None, Decimal("1.25"), Decimal("-3.10"), Decimal("999999.99")]),
            rng.choice(texts),
            rng.choice([None, True, False]),
            rng.choice([None, 1.5, -2.0, 0.25]),
            rng.choice([None, Decimal("12345678901234567890.1234"), Decimal("-0.5000"), Decimal("7.0000")]),
        )
        live.append(row)
        found.append((rng.choice((0, 2)) if retracts else 0, row))
    return found


def run(harness: OperatorHarness[Any], events: list[Event], size: int) -> OperatorHarness[Any]:
    for start in range(0, len(events), size):
        harness.batch(batch(events[start : start + size]))
    return harness


@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("size", [1, 7, 300])
def test_every_change_is_flinks(retracts: bool, size: int) -> None:
    events = make_events(size, 300, retracts)
    harness = run(OperatorHarness(spec(FIXED, input_retracts=retracts)), events, size)
    assert plain(harness.rows) == model(FIXED, events)


def ordered_rows(retracts: bool) -> list[Event]:
    """Rows that are equal where their ordered values are, so that which one goes is no question."""
    return make_events(5, 120, retracts)


@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("size", [1, 7, 120])
def test_every_change_of_ordered_values(retracts: bool, size: int) -> None:
    events = ordered_rows(retracts)
    if retracts:
        # The model takes back the very row; the operator the oldest equal value. Distinct values make them one.
        unique = iter(range(10_000))
        renamed: dict[int, Row] = {}
        fresh: list[Event] = []
        pending: dict[Row, list[Row]] = defaultdict(list)
        for kind, row in events:
            if kind & 1:
                fresh.append((kind, pending[row].pop(0)))
            else:
                number = next(unique)
                text = None if row[3] is None else f"{row[3]}{number}"
                renamed[number] = (row[0], None if row[1] is None else number, *row[2:3], text, *row[4:])
                pending[row].append(renamed[number])
                fresh.append((kind, renamed[number]))
        events = fresh
    harness = run(OperatorHarness(spec(ORDERED, input_retracts=retracts)), events, size)
    assert plain(harness.rows) == plain(model(ORDERED, events))


@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("mini_batch", [None, MiniBatch(50, 1000)])
@pytest.mark.parametrize("size", [1, 7, 300])
def test_net_changes_give_the_same_table(retracts: bool, mini_batch: MiniBatch | None, size: int) -> None:
    events = make_events(3, 300, retracts)
    changes = {"input_retracts": retracts, "consolidate": mini_batch is None, "mini_batch": mini_batch}
    harness = run(OperatorHarness(spec(FIXED, **changes)), events, size)
    harness.end()
    assert table(harness.rows) == table(model(FIXED, events))
    if size == 300 and not retracts:
        assert len(harness.rows) == len({row[1] for row in harness.rows})


@pytest.mark.parametrize("first", [1, 2, 3])
@pytest.mark.parametrize("then", [1, 2, 3])
def test_goes_on_at_another_parallelism(first: int, then: int) -> None:
    calls = [*FIXED, *ORDERED[:1]]
    events = make_events(8, 240, True)
    harness: OperatorHarness[Any] = OperatorHarness(spec(FIXED, consolidate=True), parallelism=first, keys=[(0,)])
    run(harness, events[:120], 40)
    harness = harness.restored(then)
    run(harness, events[120:], 40)
    assert table(harness.rows) == table(model(FIXED, events))
    assert len(calls) == len(FIXED) + 1


def test_ordered_values_survive_a_snapshot() -> None:
    events = make_events(4, 80, False)
    harness: OperatorHarness[Any] = OperatorHarness(spec(ORDERED, input_retracts=False), keys=[(0,)])
    run(harness, events[:40], 9)
    run(harness.restored(1), events[40:], 9)
    assert plain(harness.rows) == plain(model(ORDERED, events))


def test_global_group_vanishes_with_its_last_row() -> None:
    calls = [call("COUNT"), call("SUM", 1)]
    row = ("a", 5, None, None, None, None, None)
    harness = OperatorHarness(spec(calls, grouping=()))
    harness.batch(batch([(3, row), (0, row), (0, row), (3, row), (3, row), (0, row)]))
    assert harness.rows == [
        ("+I", 1, 5), ("-U", 1, 5), ("+U", 2, 10), ("-U", 2, 10), ("+U", 1, 5), ("-D", 1, 5), ("+I", 1, 5),
    ]  # fmt: skip


def test_update_before_is_left_out_where_nobody_needs_it() -> None:
    row = ("a", 5, None, None, None, None, None)
    harness = OperatorHarness(spec([call("COUNT")], emit_update_before=False))
    harness.batch(batch([(0, row), (0, row), (3, row), (3, row)]))
    assert harness.rows == [("+I", "a", 1), ("+U", "a", 2), ("+U", "a", 1), ("-D", "a", 1)]


def test_equal_results_go_out_only_when_state_expires() -> None:
    row = ("a", 5, None, None, None, None, None)
    for ttl, rows in ((0, 1), (1000, 3)):
        harness = OperatorHarness(spec([call("MAX", 1)], state_ttl_ms=ttl, input_retracts=False))
        harness.batch(batch([(0, row), (0, row)]))
        assert len(harness.rows) == rows


def test_an_idle_group_starts_over() -> None:
    clock = ManualClock(5_000)
    row = ("a", 5, None, "t", None, None, None)
    calls = [call("COUNT"), call("COUNT", 3, distinct=True)]
    harness = OperatorHarness(spec(calls, state_ttl_ms=100, input_retracts=False), clock=clock, keys=[(0,)])
    harness.batch(batch([(0, row)]))
    clock.advance(99)
    harness.batch(batch([(0, row)]))
    harness = harness.restored(2)
    clock.advance(100)
    harness.batch(batch([(0, row)]))
    assert harness.rows[-1] == ("+I", "a", 1, 1)
    clock.advance(10_000)
    harness.batch(batch([(0, ("b", 1, None, None, None, None, None))]))
    assert sum(len(op.ctx.state.snapshot()["aggregate.accumulators"]) for op in harness.operators) <= 2


def test_watermarks_keep_their_place_among_changes() -> None:
    row = ("a", 5, None, None, None, None, None)
    harness = OperatorHarness(spec([call("COUNT")], input_retracts=False))
    harness.batch(batch([(0, row), (0, row)]).with_track(single_watermark(1, 7)))
    assert harness.batches[0].track is not None
    assert harness.batches[0].track.offsets.tolist() == [1]


@pytest.mark.parametrize("retracts", [False, True])
def test_two_phases_give_the_same_table(retracts: bool) -> None:
    calls = [
        call("COUNT"), call("COUNT", 1), call("SUM", 1), call("AVG", 1), call("SUM", 2), call("AVG", 6),
        call("COUNT", where=4),
    ]  # fmt: skip
    if not retracts:
        calls += [call("MIN", 3), call("MAX", 1), call("MAX", 3, where=4), call("MIN", 6), call("VAR_POP", 1)]
    events = make_events(6, 300, retracts)
    local = LocalGroupAggregateSpec((0,), tuple(calls), INPUT, local_columns((INPUT[0],), calls, retracts), retracts)
    one = OperatorHarness(spec(calls, input_retracts=retracts, consolidate=True))
    first = run(OperatorHarness(local), events, 30)
    run(one, events, 30)
    output = one.spec.output
    second = OperatorHarness(GlobalGroupAggregateSpec(local, output, True))
    for part in first.batches:
        second.batch(part)

    def rounded(rows: list[Any]) -> list[Any]:
        return [tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in rows]

    assert table(rounded(second.rows)) == table(rounded(one.rows))


@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_three_phases_give_the_same_table(retracts: bool, parallelism: int) -> None:
    calls = [
        call("COUNT"), call("COUNT", 1, distinct=True), call("SUM", 1), call("SUM", 1, distinct=True),
        call("COUNT", 1, distinct=True, where=4), call("COUNT", 1, where=4),
    ]  # fmt: skip
    if not retracts:
        calls += [call("MIN", 3), call("MAX", 1, where=4)]
    events = make_events(6, 300, retracts)
    one = OperatorHarness(spec(calls, input_retracts=retracts, consolidate=True))
    run(one, events, 30)
    # Column 1 is a bucket of itself.
    keys, grouping = (INPUT[0],), (INPUT[0], INPUT[1])
    output = local_set_columns(grouping, INPUT, calls, retracts)
    local = LocalSetAggregateSpec((0, 1), tuple(calls), INPUT, output, retracts)
    merged = merged_columns(keys, calls, retracts)
    incremental = OperatorHarness(IncrementalGroupAggregateSpec(local, 1, merged), parallelism, keys=[(0, 1)])
    for number, part in enumerate(run(OperatorHarness(local), events, 30).batches):
        incremental.batch(part)
        if number == 4:
            incremental = incremental.restored(3 - parallelism)
    whole = LocalGroupAggregateSpec((0,), tuple(calls), INPUT, merged, retracts)
    last = OperatorHarness(GlobalGroupAggregateSpec(whole, one.spec.output, True))
    for part in incremental.batches:
        last.batch(part)
    assert table(last.rows) == table(one.rows)


def test_an_idle_bucket_forgets_its_values() -> None:
    clock = ManualClock(5_000)
    calls = (call("COUNT", 3, distinct=True),)
    output = local_set_columns((INPUT[0], INPUT[1]), INPUT, calls, False)
    local = LocalSetAggregateSpec((0, 1), calls, INPUT, output, False)
    merged = merged_columns((INPUT[0],), calls, False)
    first = OperatorHarness(local)
    first.batch(batch([(0, ("a", 5, None, "t", None, None, None))]))
    harness = OperatorHarness(
        IncrementalGroupAggregateSpec(local, 1, merged, state_ttl_ms=100), clock=clock, keys=[(0, 1)]
    )
    for waits in (0, 99, 100):
        clock.advance(waits)
        harness.batch(first.batches[0])
    assert [row[2] for row in harness.rows] == [1, 0, 1]


def test_moments_are_welfords() -> None:
    calls = [call(name, 5) for name in ("VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP")] + [call("VARIANCE", 1)]
    values = [1.5, 2.5, 4.0]
    rows: list[Event] = [(0, ("a", i, None, None, None, x, None)) for i, x in enumerate(values)]
    harness = OperatorHarness(spec(calls))
    harness.batch(batch(rows))
    mean = sum(values) / 3
    squares = sum((x - mean) ** 2 for x in values)
    last = harness.rows[-1]
    assert last[2:6] == pytest.approx(
        (squares / 3, squares / 2, math.sqrt(squares / 3), math.sqrt(squares / 2)), rel=1e-12
    )
    assert last[6] == 1
    assert harness.rows[0][2:] == (0.0, None, 0.0, None, None)
    harness.batch(batch([(3, rows[2][1])]))
    assert harness.rows[-1][2] == pytest.approx(0.25)


def test_integer_sums_wrap() -> None:
    big = 2**31 - 1
    harness = OperatorHarness(spec([call("SUM", 1)], input_retracts=False))
    harness.batch(batch([(0, ("a", big, None, None, None, None, None))] * 2))
    assert harness.rows[-1] == ("+U", "a", -2)


def test_decimal_sum_beyond_38_digits_is_null() -> None:
    calls = [AggregateCall("SUM", (InputRef(0, DecimalType(precision=38)),), DecimalType(precision=38), "s")]
    schema = (Column("d", DecimalType(precision=38)),)
    harness = OperatorHarness(GroupAggregateSpec((), tuple(calls), schema, (Column("s", calls[0].type),), False, True))
    nines = Decimal(10**38 - 1)
    harness.batch(ChangelogBatch.of([pa.array([nines, Decimal(1)], pa.decimal128(38, 0))]))
    assert harness.rows[-1] == ("+U", None)


def test_single_value_refuses_a_second_row() -> None:
    row = ("a", 5, None, None, None, None, None)
    for retracts in (False, True):
        harness = OperatorHarness(spec([call("SINGLE_VALUE", 1)], input_retracts=retracts, grouping=()))
        harness.batch(batch([(0, row)]))
        assert harness.rows == [("+I", 5)]
        with pytest.raises(ExecutionError, match="more than one element"):
            harness.batch(batch([(0, row)]))


def test_result_types_are_flinks() -> None:
    def of(name: str, *types: Any, **more: bool) -> str:
        return str(resolve_aggregate(name, types, False, None, **more).result_type)

    not_null = INT.as_nullable(False)
    assert of("count") == "BIGINT NOT NULL"
    assert of("SUM", INT) == "INT"
    assert of("SUM", not_null) == "INT NOT NULL"
    assert of("SUM", not_null, grouped=False) == "INT"
    assert of("MAX", not_null, filtered=True) == "INT"
    assert of("SUM", DecimalType(precision=8, scale=2)) == "DECIMAL(38, 2)"
    assert of("AVG", DecimalType(precision=8, scale=2)) == "DECIMAL(38, 6)"
    assert of("AVG", DecimalType(precision=30, scale=9)) == "DECIMAL(38, 9)"
    assert of("AVG", TinyIntType()) == "TINYINT"
    assert of("STDDEV", INT) == "INT"
    assert of("SUM", FloatType()) == "FLOAT"
    assert of("LISTAGG", STRING) == "STRING"
    assert of("COLLECT", INT) == "MULTISET<INT> NOT NULL"
    assert of("ARRAY_AGG", INT) == "ARRAY<INT>"


def test_wrong_calls_name_what_is_wrong() -> None:
    with pytest.raises(BindError, match="Cannot apply 'SUM' to arguments of type 'SUM\\(<VARCHAR\\(2147483647\\)>\\)'"):
        resolve_aggregate("SUM", (STRING,), False, None)
    with pytest.raises(BindError, match="Invalid number of arguments to function 'MIN'"):
        resolve_aggregate("MIN", (), False, None)
    with pytest.raises(NotSupportedYetError, match="INTERSECTION"):
        resolve_aggregate("intersection", (STRING,), False, None)
    with pytest.raises(BindError, match="Max aggregate function does not support type: 'ARRAY<INT>'"):
        resolve_aggregate("MAX", (ArrayType(element=INT),), False, None)
    assert {"COUNT", "STDDEV", "PERCENTILE"} <= aggregate_names()


def test_average_of_bigints_truncates() -> None:
    schema = (Column("b", BIGINT),)
    avg = AggregateCall("AVG", (InputRef(0, BIGINT),), BIGINT, "a")
    harness = OperatorHarness(GroupAggregateSpec((), (avg,), schema, (Column("a", BIGINT),), False, True))
    harness.batch(ChangelogBatch.of([pa.array([-7, 2])]))
    assert harness.rows == [("+I", -7), ("-U", -7), ("+U", -2)]
