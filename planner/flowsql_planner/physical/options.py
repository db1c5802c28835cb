"""Options that shape the physical plan (Flink's ``table.optimizer.*`` and ``table.exec.*``)."""

from __future__ import annotations

import enum

from flowsql_core.config import option, parse_bool, parse_duration_ms, parse_enum


class AggPhaseStrategy(enum.Enum):
    """``table.optimizer.agg-phase-strategy``."""

    AUTO = "AUTO"
    ONE_PHASE = "ONE_PHASE"
    TWO_PHASE = "TWO_PHASE"


AGG_PHASE_STRATEGY = option(
    "table.optimizer.agg-phase-strategy",
    parse_enum(AggPhaseStrategy),
    AggPhaseStrategy.AUTO,
    "One aggregate or a local and a global one; AUTO is two-phase where mini-batches, windows or batch mode allow it.",
)


COMPACT_DEDUPLICATION = option(
    "table.exec.deduplicate.mini-batch.compact-changes-enabled",
    parse_bool,
    False,
    "The first or last row by row time: one change of a key and mini-batch, instead of all.",
)


class BatchOperator(enum.Enum):
    """Operators of batch mode that ``table.exec.disabled-operators`` names."""

    NESTED_LOOP_JOIN = "NestedLoopJoin"
    SHUFFLE_HASH_JOIN = "ShuffleHashJoin"
    BROADCAST_HASH_JOIN = "BroadcastHashJoin"
    SORT_MERGE_JOIN = "SortMergeJoin"
    HASH_AGG = "HashAgg"
    SORT_AGG = "SortAgg"


def _batch_operators(text: str) -> frozenset[BatchOperator]:
    """Names with commas between them; ``HashJoin`` is both of its kinds.

    Raises:
        ValueError: another name.
    """
    known = {operator.value for operator in BatchOperator}
    found: set[BatchOperator] = set()
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name == "HashJoin":
            found |= {BatchOperator.SHUFFLE_HASH_JOIN, BatchOperator.BROADCAST_HASH_JOIN}
            continue
        if name not in known:
            raise ValueError(f"expected names of {', '.join(sorted(known))}, with commas between them")
        found.add(BatchOperator(name))
    return frozenset(found)


DISABLED_OPERATORS = option(
    "table.exec.disabled-operators",
    _batch_operators,
    frozenset[BatchOperator](),
    "Operators that batch mode does not plan, with commas between them: NestedLoopJoin, ShuffleHashJoin, "
    "BroadcastHashJoin, SortMergeJoin, HashAgg, SortAgg.",
)
DISTINCT_SPLIT = option(
    "table.optimizer.distinct-agg.split.enabled",
    parse_bool,
    False,
    "Split distinct aggregates by buckets of their argument, so that a hot key is counted in many places.",
)
INCREMENTAL_AGG = option(
    "table.optimizer.incremental-agg-enabled",
    parse_bool,
    True,
    "Whether the buckets of a split distinct aggregate hand on what mini-batches change, and not results. Where it is "
    "not set, the aggregate runs as one operator.",
)
DISTINCT_BUCKETS = option(
    "table.optimizer.distinct-agg.split.bucket-num", int, 1024, "Buckets of a split distinct aggregate."
)
REUSE_SUB_PLAN = option("table.optimizer.reuse-sub-plan-enabled", parse_bool, True, "Run equal sub-plans once.")
REUSE_SOURCE = option(
    "table.optimizer.reuse-source-enabled", parse_bool, True, "Read a table once for several projections of it."
)
NON_TEMPORAL_SORT = option(
    "__table.exec.sort.non-temporal.enabled__", parse_bool, False, "Allow a streaming sort by other than time columns."
)
MULTI_JOIN = option(
    "table.optimizer.multi-join.enabled",
    parse_bool,
    False,
    "Run chains of INNER and LEFT joins whose inputs share a key as one operator, which keeps no intermediate rows.",
)


class UpsertMaterialize(enum.Enum):
    """``table.exec.sink.upsert-materialize``."""

    NONE = "NONE"
    AUTO = "AUTO"
    FORCE = "FORCE"


UPSERT_MATERIALIZE = option(
    "table.exec.sink.upsert-materialize",
    parse_enum(UpsertMaterialize),
    UpsertMaterialize.AUTO,
    "Whether the query's rows are kept by the key of a sink, which then gets the last one: AUTO where rows of several "
    "keys of the query may meet in it, FORCE always, NONE never.",
)


class ChangingUpdates(enum.Enum):
    """``table.optimizer.non-deterministic-update.strategy``."""

    IGNORE = "IGNORE"
    TRY_RESOLVE = "TRY_RESOLVE"


CHANGING_UPDATES = option(
    "table.optimizer.non-deterministic-update.strategy",
    parse_enum(ChangingUpdates),
    ChangingUpdates.IGNORE,
    "TRY_RESOLVE keeps what lookups find for whoever takes it back, and refuses plans whose updates depend on other "
    "values that change from call to call (UUID(), the clock).",
)


class DeltaJoins(enum.Enum):
    """``table.optimizer.delta-join.strategy``."""

    AUTO = "AUTO"
    FORCE = "FORCE"
    NONE = "NONE"


DELTA_JOINS = option(
    "table.optimizer.delta-join.strategy",
    parse_enum(DeltaJoins),
    DeltaJoins.AUTO,
    "No connector has the indexes that a delta join asks: FORCE refuses plans with a join, as Flink does there.",
)
REQUIRE_ON_CONFLICT = option(
    "table.exec.sink.require-on-conflict",
    parse_bool,
    True,
    "Whether an INSERT by another key than the sink's is refused unless it says ON CONFLICT.",
)
INTERVAL_JOIN_CLEANUP_MS = option(
    "table.exec.interval-join.min-cleanup-interval",
    parse_duration_ms,
    0,
    "How much longer an interval join keeps rows whose interval is over; then rows without a partner leave as late.",
)
CDC_EVENTS_DUPLICATE = option(
    "table.exec.source.cdc-events-duplicate",
    parse_bool,
    False,
    "Sources of changes may tell a change twice: their rows are kept by the PRIMARY KEY, and each change goes on once.",
)
ASYNC_CAPACITY = option(
    "table.exec.async-lookup.buffer-capacity", int, 100, "Requests of an asynchronous lookup join at once."
)
ASYNC_TIMEOUT_MS = option(
    "table.exec.async-lookup.timeout", parse_duration_ms, 180_000, "How long an asynchronous lookup may take."
)
EARLY_FIRE = option(
    "table.exec.emit.early-fire.enabled",
    parse_bool,
    False,
    "Group windows answer before they end, too (TUMBLE and HOP).",
)
EARLY_FIRE_DELAY_MS = option(
    "table.exec.emit.early-fire.delay",
    parse_duration_ms,
    -1,
    "How long early answers wait, by the clock; 0: each row answers. Must be given.",
)
LATE_FIRE = option(
    "table.exec.emit.late-fire.enabled",
    parse_bool,
    False,
    "Group windows answer again with late rows (TUMBLE and HOP).",
)
LATE_FIRE_DELAY_MS = option(
    "table.exec.emit.late-fire.delay",
    parse_duration_ms,
    -1,
    "How long late answers wait, by the clock; 0: each row answers. Must be given.",
)
ALLOW_LATENESS_MS = option(
    "table.exec.emit.allow-lateness",
    parse_duration_ms,
    -1,
    "How late rows of group windows may be with late answers; by default the time of table.exec.state.ttl.",
)
SOURCE_IDLE_TIMEOUT_MS = option(
    "table.exec.source.idle-timeout", parse_duration_ms, 0, "A source silent for longer does not hold watermarks back."
)
