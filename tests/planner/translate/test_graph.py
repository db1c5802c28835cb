"""From SQL to JobGraph: parallelism, exchanges, chains, mini-batches, ids, refusals."""

from __future__ import annotations

import pytest

from flowsql_core.errors import FlowSqlError, PlanError
from flowsql_core.graph import bounded_specs, rank_specs, specs
from flowsql_core.graph.constraints import NotNull
from flowsql_core.graph.job import JobGraph, ShipStrategy
from flowsql_planner.bind import operations as op
from flowsql_planner.planner import Planner
from flowsql_planner.translate.graph import default_max_parallelism
from tests.planner.bind.bind_script import Session

TABLES = """
CREATE TABLE a (id INT, k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH ('connector' = 'filesystem', 'path' = '/nowhere/a.csv', 'format' = 'csv');
CREATE TABLE b (id INT NOT NULL, k STRING, w BIGINT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'filesystem', 'path' = '/nowhere/b.csv', 'format' = 'csv');
CREATE TABLE out2 (id INT, n BIGINT) WITH ('connector' = 'print');
CREATE TABLE hole (id INT, n BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE wide (id INT, n BIGINT) WITH ('connector' = 'print', 'sink.parallelism' = '3');
CREATE TABLE strict (id INT NOT NULL, n BIGINT NOT NULL) WITH ('connector' = 'blackhole');
CREATE TABLE keyed (id INT, n BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'print');
"""
MINI_BATCH = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "500",
}
PARALLEL = {"parallelism.default": "2"}


@pytest.fixture(scope="module")
def tables() -> Session:
    session = Session()
    for _ in session.run(TABLES):
        pass
    return session


class Job:
    """A planned job, its operators by spec type."""

    def __init__(self, graph: JobGraph) -> None:
        self.graph = graph
        self.nodes = [operator for vertex in graph.vertices for operator in vertex.operators]

    def all(self, kind: type[specs.OperatorSpec]) -> list[specs.OperatorSpec]:
        return [node.spec for node in self.nodes if isinstance(node.spec, kind)]

    def one(self, kind: type[specs.OperatorSpec]):  # type: ignore[no-untyped-def]
        (found,) = self.all(kind)
        return found

    def chains(self) -> list[list[str]]:
        return [
            [type(operator.spec).__name__.removesuffix("Spec") for operator in vertex.operators]
            for vertex in self.graph.vertices
        ]

    def ships(self) -> list[str]:
        return [edge.partitioning.strategy.value for edge in self.graph.edges]


def planned(tables: Session, statements: tuple[str, ...], settings: dict[str, str]) -> Job:
    operations = [tables.last(sql) for sql in statements]
    planner = Planner(tables.config.with_layer(settings))
    if isinstance(operations[0], op.Query):
        return Job(planner.plan_query(operations[0], "the collector"))
    return Job(planner.plan_inserts([operation for operation in operations if isinstance(operation, op.Insert)]))


# Chains and exchanges


def test_one_subtask_runs_everything_in_one_task(tables: Session) -> None:
    job = planned(tables, ("SELECT k, COUNT(*) FROM a GROUP BY k",), {})
    assert job.chains() == [["Scan", "WatermarkAssigner", "Calc", "GroupAggregate", "CollectSink"]]
    assert job.graph.edges == ()
    assert job.graph.resources == {"collect": "the collector"}
    assert job.one(specs.CollectSinkSpec).resource == "collect"


def test_an_exchange_of_one_subtask_stays_an_exchange_when_asked(tables: Session) -> None:
    job = planned(tables, ("SELECT k, COUNT(*) FROM a GROUP BY k",), {"flowsql.chain-single-partition": "false"})
    assert job.chains() == [["Scan", "WatermarkAssigner", "Calc"], ["GroupAggregate", "CollectSink"]]
    assert job.ships() == ["HASH"]


def test_chaining_can_be_turned_off(tables: Session) -> None:
    job = planned(tables, ("SELECT k FROM b WHERE w > 1",), {"pipeline.operator-chaining.enabled": "false"})
    assert job.chains() == [["Scan"], ["Calc"], ["CollectSink"]]
    assert job.ships() == ["FORWARD", "FORWARD"]


def test_keys_are_shuffled_between_subtasks(tables: Session) -> None:
    job = planned(tables, ("INSERT INTO out2 SELECT id, COUNT(*) FROM a GROUP BY id",), PARALLEL)
    assert job.chains() == [["Scan", "WatermarkAssigner", "Calc"], ["GroupAggregate", "Sink"]]
    (edge,) = job.graph.edges
    assert edge.partitioning.strategy is ShipStrategy.HASH
    assert edge.partitioning.keys == (0,)
    assert [vertex.parallelism for vertex in job.graph.vertices] == [2, 2]


def test_a_global_aggregate_has_one_subtask(tables: Session) -> None:
    job = planned(tables, ("SELECT COUNT(*) FROM b",), PARALLEL)
    assert [vertex.parallelism for vertex in job.graph.vertices] == [2, 1]
    assert job.ships() == ["GLOBAL"]
    assert job.chains()[1] == ["GroupAggregate", "CollectSink"]


def test_a_join_heads_a_task_of_its_own(tables: Session) -> None:
    job = planned(tables, ("SELECT a.id, b.w FROM a JOIN b ON a.id = b.id",), {})
    assert job.chains() == [["Scan", "WatermarkAssigner", "Calc"], ["Scan"], ["Join", "Calc", "CollectSink"]]
    assert [edge.input_index for edge in job.graph.inputs_of(3)] == [0, 1]
    spec = job.one(specs.JoinSpec)
    assert (spec.left_keys, spec.right_keys, spec.null_safe) == ((0,), (0,), (False,))
    assert spec.left_unique is None
    assert spec.right_unique == (0,)
    assert spec.condition is None


def test_a_union_merges_in_front_of_its_consumer(tables: Session) -> None:
    job = planned(tables, ("SELECT id FROM a UNION ALL SELECT id FROM b",), {})
    assert job.chains()[-1] == ["Union", "CollectSink"]
    assert job.one(specs.UnionSpec).inputs == 2


def test_a_sink_of_another_parallelism_keeps_changes_of_a_key_in_order(tables: Session) -> None:
    rebalanced = planned(tables, ("INSERT INTO wide SELECT id, w FROM b",), {})
    assert rebalanced.ships() == ["REBALANCE"]
    hashed = planned(tables, ("INSERT INTO wide SELECT id, COUNT(*) FROM a GROUP BY id",), {})
    assert hashed.ships() == ["HASH"]
    assert [vertex.parallelism for vertex in hashed.graph.vertices] == [1, 3]


def test_max_parallelism_follows_flinks_rule() -> None:
    assert [default_max_parallelism(p) for p in (1, 2, 85, 86, 200, 100_000)] == [128, 128, 128, 256, 512, 32768]


# Sharing


def test_one_scan_for_two_inserts(tables: Session) -> None:
    inserts = ("INSERT INTO out2 SELECT id, v FROM a WHERE v > 1", "INSERT INTO hole SELECT id, v FROM a WHERE v < 1")
    job = planned(tables, inserts, {})
    assert len(job.all(specs.ScanSpec)) == 1
    assert len(job.all(specs.WatermarkAssignerSpec)) == 1
    apart = planned(tables, inserts, {"table.optimizer.reuse-sub-plan-enabled": "false"})
    assert len(apart.all(specs.ScanSpec)) == 2


def test_scans_of_other_columns_share_their_union(tables: Session) -> None:
    sql = "SELECT x.k, y.v FROM (SELECT id, k FROM a) x JOIN (SELECT id, v FROM a) y ON x.id = y.id"
    scan = planned(tables, (sql,), {}).one(specs.ScanSpec)
    assert scan.projection == (0, 1, 2, 3)
    assert [column.name for column in scan.output] == ["id", "k", "v", "ts"]
    alone = planned(tables, (sql,), {"table.optimizer.reuse-source-enabled": "false"})
    assert [spec.projection for spec in alone.all(specs.ScanSpec)] == [(0, 1, 3), (0, 2, 3)]  # type: ignore[attr-defined]


# State, changes, mini-batches


def test_an_aggregate_says_minus_u_only_to_who_asks(tables: Session) -> None:
    query = "SELECT id, COUNT(*) FROM a GROUP BY id"
    printed = planned(tables, (f"INSERT INTO out2 {query}",), {}).one(specs.GroupAggregateSpec)
    assert (printed.emit_update_before, printed.consolidate) == (True, False)
    swallowed = planned(tables, (f"INSERT INTO hole {query}",), {}).one(specs.GroupAggregateSpec)
    assert (swallowed.emit_update_before, swallowed.consolidate) == (False, True)


def test_an_aggregate_over_updates_retracts(tables: Session) -> None:
    sql = "SELECT n, COUNT(*) FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY k) GROUP BY n"
    outer, inner = sorted(
        planned(tables, (sql,), {}).all(specs.GroupAggregateSpec),
        key=lambda spec: not spec.input_retracts,  # type: ignore[attr-defined]
    )
    assert outer.input_retracts  # type: ignore[attr-defined]
    assert not inner.input_retracts  # type: ignore[attr-defined]
    assert inner.emit_update_before  # type: ignore[attr-defined]


def test_mini_batches_reach_the_aggregate_and_its_marks(tables: Session) -> None:
    job = planned(tables, ("SELECT k, COUNT(*) FROM a GROUP BY k",), MINI_BATCH)
    assert job.one(specs.GroupAggregateSpec).mini_batch == specs.MiniBatch(500, 2000)
    assert job.one(specs.MiniBatchAssignerSpec).interval_ms == 2000
    assert not planned(tables, ("SELECT k FROM a",), MINI_BATCH).all(specs.MiniBatchAssignerSpec)


def test_two_phases_run_as_two_operators_where_partial_results_combine(tables: Session) -> None:
    settings = MINI_BATCH | PARALLEL
    job = planned(tables, ("SELECT k, COUNT(*), SUM(v) FROM a GROUP BY k",), settings)
    local = job.one(specs.LocalGroupAggregateSpec)
    merged = job.one(specs.GlobalGroupAggregateSpec)
    assert merged.local == local
    assert local.output[0].name == "k"
    assert job.chains()[0][-1] == "LocalGroupAggregate"
    assert job.graph.edges[0].partitioning.keys == (0,)
    distinct = planned(tables, ("SELECT k, COUNT(DISTINCT v) FROM a GROUP BY k",), settings)
    assert distinct.one(specs.GroupAggregateSpec).mini_batch is not None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"table.exec.mini-batch.enabled": "true"}, "MiniBatch Latency must be greater than 0 ms."),
        (
            {"table.exec.mini-batch.enabled": "true", "table.exec.mini-batch.allow-latency": "1 s"},
            "Key: 'table.exec.mini-batch.size'",
        ),
    ],
)
def test_half_configured_mini_batches_are_refused(tables: Session, settings: dict[str, str], message: str) -> None:
    with pytest.raises(FlowSqlError, match=message):
        planned(tables, ("SELECT k, COUNT(*) FROM a GROUP BY k",), settings)


def test_state_ttl_of_option_and_hint(tables: Session) -> None:
    plain = planned(tables, ("SELECT k, COUNT(*) FROM a GROUP BY k",), {"table.exec.state.ttl": "1 h"})
    assert plain.one(specs.GroupAggregateSpec).state_ttl_ms == 3_600_000
    hinted = planned(
        tables, ("SELECT /*+ STATE_TTL('x' = '1d', 'b' = '12h') */ x.id, b.w FROM a AS x JOIN b ON x.id = b.id",), {}
    ).one(specs.JoinSpec)
    assert (hinted.left_ttl_ms, hinted.right_ttl_ms) == (86_400_000, 43_200_000)


# Windows


def test_a_window_is_pulled_into_its_aggregate(tables: Session) -> None:
    sql = (
        "SELECT window_start, k, SUM(v) AS s, window_end FROM TABLE(HOP(TABLE a, DESCRIPTOR(ts), "
        "INTERVAL '5' SECOND, INTERVAL '15' SECOND)) GROUP BY k, window_start, window_end"
    )
    job = planned(tables, (sql,), {})
    spec = job.one(specs.WindowAggregateSpec)
    assert spec.window == specs.WindowSpec(specs.WindowKind.HOP, 15_000, 5_000, time_index=2)
    assert spec.input[2].name == "ts"
    assert spec.grouping == (0,)
    assert spec.properties == (specs.WindowProperty.START, specs.WindowProperty.END)
    assert [column.name for column in spec.output] == ["k", "s", "window_start", "window_end"]
    assert [column.name for column in job.nodes[-1].output] == ["window_start", "k", "s", "window_end"]


def test_a_condition_on_the_window_keeps_it_below(tables: Session) -> None:
    sql = (
        "SELECT window_start, window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '5' SECOND)) "
        "WHERE window_start > TIMESTAMP '2020-01-01 00:00:00' GROUP BY window_start, window_end"
    )
    job = planned(tables, (sql,), {})
    spec = job.one(specs.WindowAggregateSpec)
    assert (spec.window.time_index, spec.window.start_index, spec.window.end_index) == (None, 0, 1)
    assert job.one(specs.WindowTableFunctionSpec).window.time_index is not None


def test_a_window_must_be_whole_slices(tables: Session) -> None:
    sql = (
        "SELECT window_start, window_end, COUNT(*) FROM TABLE(HOP(TABLE a, DESCRIPTOR(ts), INTERVAL '4' SECOND, "
        "INTERVAL '10' SECOND)) GROUP BY window_start, window_end"
    )
    with pytest.raises(PlanError, match="HOP table function based aggregate requires size must be an integral"):
        planned(tables, (sql,), {})


WINDOWED = "(SELECT * FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND)))"


def test_equal_windows_join_by_window(tables: Session) -> None:
    sql = (
        f"SELECT l.k, r.v FROM {WINDOWED} l JOIN {WINDOWED} r "
        "ON l.id = r.id AND l.window_start = r.window_start AND l.window_end = r.window_end AND l.v > r.v"
    )
    spec = planned(tables, (sql,), {}).one(specs.WindowJoinSpec)
    assert (spec.left_keys, spec.right_keys) == ((0,), (0,))
    assert spec.left[spec.left_end].name == "window_end"
    assert spec.right[spec.right_end].name == "window_end"
    assert spec.condition is not None


# Sinks


def test_nulls_are_judged_where_the_sink_forbids_them(tables: Session) -> None:
    spec = planned(tables, ("INSERT INTO strict SELECT id, w FROM b",), {}).one(specs.ConstraintEnforcerSpec)
    (demanded,) = spec.constraints
    assert isinstance(demanded, NotNull)
    assert [(place.index, place.name) for place in demanded.places] == [(0, "id"), (1, "n")]
    assert not demanded.drops
    assert [column.name for column in spec.input] == ["id", "n"]
    dropping = planned(
        tables, ("INSERT INTO strict SELECT id, w FROM b",), {"table.exec.sink.not-null-enforcer": "DROP"}
    )
    (demanded,) = dropping.one(specs.ConstraintEnforcerSpec).constraints
    assert isinstance(demanded, NotNull)
    assert demanded.drops


def test_nothing_stands_before_a_sink_that_demands_nothing(tables: Session) -> None:
    loose, strict = (planned(tables, (f"INSERT INTO {t} SELECT id, w FROM b",), {}) for t in ("hole", "strict"))
    assert loose.chains() == [["Scan", "Sink"]]
    assert strict.chains() == [["Scan", "ConstraintEnforcer", "Sink"]]
    assert strict.graph.vertices[0].name.endswith("-> ConstraintEnforcer -> Sink")


def test_what_a_sink_demands_is_said_as_flink_says_it(tables: Session) -> None:
    table = (
        "(c CHAR(3) NOT NULL, r ROW<v VARCHAR(2), n INT NOT NULL>, w VARBINARY(4), "
        "a ARRAY<ROW<n INT NOT NULL>>, m MAP<CHAR(2), INT NOT NULL>) WITH ('connector' = 'blackhole')"
    )
    tables.last(f"CREATE TABLE demanding {table}")
    tables.last(f"CREATE TABLE demanding_too {table.replace('blackhole', 'datagen')}")
    settings = {
        "table.exec.sink.type-length-enforcer": "ERROR",
        "table.exec.sink.nested-constraint-enforcer": "ROWS_AND_COLLECTIONS",
    }
    job = planned(tables, ("INSERT INTO demanding SELECT * FROM demanding_too",), settings)
    (name,) = [node.name for vertex in job.graph.vertices for node in vertex.operators if "Enforcer" in node.name]
    assert name == (
        "ConstraintEnforcer[NotNullEnforcer(fields=[c]), LengthEnforcer(fields=[c]), LengthEnforcer(fields=[w]), "
        "NestedRowEnforcer(constraints=[{r=[NotNullEnforcer(fields=[n]), LengthEnforcer(fields=[v])]}]), "
        "NestedArrayEnforcer(constraints=[{a=[NestedRowEnforcer("
        "constraints=[{element=[NotNullEnforcer(fields=[n])]}])]}]), "
        "NestedMapEnforcer(constraints=[{m==[NotNullEnforcer(fields=[value]), LengthEnforcer(fields=[key])]}])]"
    )


def test_a_keyed_sink_refuses_the_rows_of_another_key(tables: Session) -> None:
    sql = (
        "INSERT INTO keyed SELECT CAST(n AS INT), COUNT(*) FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY k) GROUP BY n"
    )
    with pytest.raises(PlanError, match="upsert key that differs from the primary key of the sink table"):
        planned(tables, (sql,), {})
    spec = planned(tables, ("INSERT INTO keyed SELECT id, COUNT(*) FROM a GROUP BY id",), {}).one(specs.SinkSpec)
    assert spec.upsert_key == (0,)


# Refusals


def test_a_limit_over_updates_keeps_places(tables: Session) -> None:
    (spec,) = planned(tables, ("SELECT k, COUNT(*) FROM a GROUP BY k LIMIT 3 OFFSET 1",), {}).all(rank_specs.RankSpec)
    assert (spec.first, spec.last, spec.order, spec.numbered) == (2, 4, (), False)
    assert spec.strategy is rank_specs.RankStrategy.RETRACT


def test_a_stream_cannot_be_sorted(tables: Session) -> None:
    with pytest.raises(PlanError, match="Sort on a non-time-attribute field is not supported"):
        planned(tables, ("SELECT id FROM a ORDER BY id",), {})


def test_batch_mode_has_operators_of_its_own(tables: Session) -> None:
    batch = {"execution.runtime-mode": "batch"}
    assert planned(tables, ("SELECT id FROM b WHERE w > 1",), batch).all(specs.CalcSpec)
    grouped = planned(tables, ("SELECT k, COUNT(*) FROM b GROUP BY k",), batch)
    assert grouped.all(bounded_specs.BoundedAggregateSpec)
    assert not grouped.all(specs.GroupAggregateSpec)


def test_a_broadcast_input_does_not_gather_the_other_one(tables: Session) -> None:
    batch = {"execution.runtime-mode": "batch", "parallelism.default": "3"}
    job = planned(tables, ("SELECT a.id FROM a JOIN b ON a.v > b.w",), batch)
    (vertex,) = [
        vertex
        for vertex in job.graph.vertices
        if any(isinstance(node.spec, bounded_specs.BoundedJoinSpec) for node in vertex.operators)
    ]
    assert vertex.parallelism == 3
    ways = {edge.partitioning.strategy for edge in job.graph.edges if edge.target_vertex == vertex.id}
    assert ShipStrategy.BROADCAST in ways
    assert ShipStrategy.HASH not in ways


# Ids


def test_ids_survive_edits_that_leave_the_state_alone(tables: Session) -> None:
    def uid(sql: str) -> str:
        job = planned(tables, (sql,), {})
        return next(node.uid for node in job.nodes if isinstance(node.spec, specs.GroupAggregateSpec))

    before = uid("SELECT k, COUNT(*) AS n FROM a GROUP BY k")
    assert uid("SELECT k, COUNT(*) AS n, MAX(v) AS m FROM a WHERE v > 3 GROUP BY k") == before
    assert uid("SELECT id, COUNT(*) AS n FROM a GROUP BY id") != before
    assert uid("SELECT k, COUNT(*) AS n FROM b GROUP BY k") != before
    assert before == "GroupAggregate-191d3e9b24be"


def test_ids_are_unique_in_a_job(tables: Session) -> None:
    job = planned(tables, ("SELECT x.id FROM b x JOIN b y ON x.id = y.id JOIN b z ON x.id = z.id",), {})
    uids = [node.uid for node in job.nodes]
    assert len(set(uids)) == len(uids)
