"""The job behind a program: chains and their reasons, exchanges, ids, settings, plans; what environments refuse."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flowsql.common import Configuration, JobStatus
from flowsql.datastream import RuntimeExecutionMode, SlotSharingGroup, StreamExecutionEnvironment
from flowsql_core.errors import BindError, FlowSqlError, NotSupportedYetError, PlanError
from flowsql_core.graph.job import JobGraph, ShipStrategy

Env = StreamExecutionEnvironment
_FOUND = sorted(
    Path(os.environ.get("FLINK_PYTHON", "/nowhere/bin/python")).parent.parent.glob("lib/python*/site-packages")
)
PYFLINK = (_FOUND[0] if _FOUND else Path("/nowhere")) / "pyflink"


def same(value: Any) -> Any:
    return value


def graph_of(env: Env) -> JobGraph:
    return env.job_graph()


def chains(graph: JobGraph) -> list[list[str]]:
    return [[node.name for node in vertex.operators] for vertex in graph.vertices]


def reasons(env: Env) -> dict[str, str]:
    nodes = json.loads(env.get_execution_plan())["nodes"]
    return {node["type"]: edge["chaining"] for node in nodes for edge in node.get("predecessors", ())}


def test_neighbours_share_a_task(env: Env) -> None:
    env.from_collection([1]).map(same).filter(same).print()
    assert chains(graph_of(env)) == [["Collection Source", "Map", "Filter", "Print to Std. Out"]]


def test_each_refusal_to_chain_has_its_reason(env: Env) -> None:
    stream = env.from_collection([1]).map(same).name("first")
    own = stream.map(same).name("own").disable_chaining()
    new = stream.map(same).name("new").start_new_chain()
    group = stream.map(same).name("group").slot_sharing_group(SlotSharingGroup.builder("g").build())
    groups = stream.map(same).name("keys").set_max_parallelism(7)
    wide = stream.map(same).name("wide").set_parallelism(2)
    turns = stream.rebalance().map(same).name("turns")
    for end in (own, new, group, groups, wide, turns):
        end.map(same).name(f"behind {end.get_name()}").print()
    found = reasons(env)
    assert found["own"] == found["new"] == "not chained (an operator starts a chain of its own)"
    assert found["behind own"].startswith("not chained")
    assert found["behind new"] == "chained (forward)"
    assert found["group"] == "not chained (the operators are of different slot sharing groups)"
    assert found["behind group"] == "chained (forward)"
    assert found["keys"] == "not chained (a maximum parallelism of its own: 7)"
    assert found["wide"] == "not chained (parallelism 1 against 2)"
    assert found["turns"] == "not chained (rebalance exchange)"
    env.disable_operator_chaining()
    assert not env.is_chaining_enabled()
    assert set(reasons(env).values()) == {"not chained (pipeline.operator-chaining.enabled is false)"}


def test_keys_travel_by_hash_and_stay_where_one_subtask_is(env: Env) -> None:
    env.from_collection([1]).key_by(same).sum().print()
    assert len(graph_of(env).vertices) == 1
    env.set_parallelism(2)
    env.from_collection([1]).key_by(same).sum().print()
    graph = graph_of(env)
    assert [vertex.parallelism for vertex in graph.vertices] == [1, 2]
    (edge,) = graph.edges
    assert edge.partitioning.strategy is ShipStrategy.HASH
    assert chains(graph)[0] == ["Collection Source", "KeyBy"]


def test_settings_reach_the_vertices(env: Env) -> None:
    env.set_parallelism(2).set_max_parallelism(40)
    stream = env.from_collection([1]).map(same).set_buffer_timeout(7).uid("mine").set_description("what it does")
    stream.key_by(same).sum().set_max_parallelism(64).set_parallelism(3).print().name("end").set_parallelism(1)
    plan = json.loads(env.get_execution_plan())["nodes"]
    assert next(node for node in plan if node["type"] == "Map")["contents"] == "what it does"
    graph = graph_of(env)
    by_name = {node.name: vertex for vertex in graph.vertices for node in vertex.operators}
    assert by_name["Map"].max_parallelism == 40
    assert by_name["Reduce"].max_parallelism == 64
    assert (by_name["Reduce"].parallelism, by_name["end"].parallelism) == (3, 1)
    ids = {node.name: node.uid for vertex in graph.vertices for node in vertex.operators}
    assert ids["Map"] == "mine"
    timeouts = {edge.buffer_timeout_ms for edge in graph.edges if edge.source_vertex == by_name["Map"].id}
    assert by_name["Map"] is by_name["KeyBy"]
    assert timeouts == {7}


def test_a_union_takes_each_edge_as_its_consumer_asks(env: Env) -> None:
    env.set_parallelism(2)
    one = env.from_collection([1])
    one.union(one.map(same)).map(same).name("behind").print()
    graph = graph_of(env)
    union = next(vertex for vertex in graph.vertices if vertex.head.name == "Union")
    assert [edge.partitioning.strategy for edge in graph.inputs_of(union.id)] == [
        ShipStrategy.REBALANCE,
        ShipStrategy.FORWARD,
    ]
    assert "behind" in [node.name for node in union.operators]


def test_ids_depend_on_what_stands_before(env: Env) -> None:
    def ids(parallelism: int, more: bool) -> dict[str, str]:
        made = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
        stream = made.from_collection([1])
        if more:
            stream.map(same).name("other").print()
        stream.map(same).key_by(same).sum().print("mine")
        graph = made.job_graph()
        return {node.name: node.uid for vertex in graph.vertices for node in vertex.operators}

    assert ids(1, False)["Reduce"] == ids(3, False)["Reduce"] == ids(1, True)["Reduce"]
    assert len(set(ids(1, True).values())) == len(ids(1, True))


def test_ids_are_unique(env: Env) -> None:
    env.from_collection([1]).map(lambda n: "one").uid("u").print()
    env.from_collection([1]).map(lambda n: "two").uid("u").print()
    with pytest.raises(PlanError, match="Hash collision on user-specified ID 'u'"):
        env.execute()


def test_a_client_answers_through_futures(env: Env) -> None:
    env.from_collection(range(3)).print()
    client = env.execute_async()
    assert client.get_job_execution_result().result().get_net_runtime() >= 0
    assert client.get_accumulators().result() == {}
    assert client.cancel().result() is None
    assert client.get_job_status().result() is JobStatus.FINISHED


def test_forward_cannot_change_the_parallelism(env: Env) -> None:
    env.set_parallelism(2)
    env.from_collection([1]).forward().map(same).print()
    with pytest.raises(PlanError, match="Forward partitioning does not allow change of parallelism"):
        env.execute()


def test_parallelism_has_bounds(env: Env) -> None:
    source = env.from_collection([1])
    with pytest.raises(ValueError, match="non parallel"):
        source.set_parallelism(2)
    with pytest.raises(ValueError, match="at least 1"):
        env.set_parallelism(0)
    with pytest.raises(ValueError, match="between 1 and 32768"):
        source.set_max_parallelism(40_000)
    source.map(same).set_max_parallelism(2).set_parallelism(3).print()
    with pytest.raises(PlanError, match="below its parallelism 3"):
        env.execute()
    env.recorder.sinks.clear()
    alone = source.map(same).force_non_parallel()
    with pytest.raises(ValueError, match="non parallel"):
        alone.set_parallelism(2)


def test_execute_begins_anew(env: Env, capsys: pytest.CaptureFixture[str]) -> None:
    stream = env.from_collection([1, 2])
    stream.print()
    result = env.execute("named")
    assert len(result.get_job_id()) == 32
    assert result.get_net_runtime() >= 0
    assert "has finished" in str(result)
    stream.map(lambda n: n + 10).print()
    client = env.execute_async()
    assert client.get_job_execution_result().result().get_all_accumulator_results() == {}
    status = client.get_job_status().result()
    assert status is JobStatus.FINISHED
    assert status.is_terminal_state()
    assert status.is_globally_terminal_state()
    assert capsys.readouterr().out.split() == ["1", "2", "11", "12"]
    with pytest.raises(PlanError, match="No operators defined"):
        env.execute()


def test_a_failure_comes_out_of_execute(env: Env) -> None:
    env.from_collection([0]).map(lambda n: 1 // n).print()
    with pytest.raises(FlowSqlError, match="ZeroDivisionError"):
        env.execute()
    env.set_parallelism(2)
    env.from_collection([0]).map(lambda n: 1 // n).print()
    future = env.execute_async().get_job_execution_result()
    assert "ZeroDivisionError" in str(future.exception())
    assert future.done()


def test_options_of_the_environment(env: Env) -> None:
    env.set_buffer_timeout(-1)
    assert env.get_buffer_timeout() == -1
    env.set_buffer_timeout(5)
    assert env.get_buffer_timeout() == 5
    config = env.get_config().set_auto_watermark_interval(50).enable_object_reuse()
    assert (config.get_auto_watermark_interval(), config.is_object_reuse_enabled()) == (50, True)
    config.set_global_job_parameters({"k": "v"})
    assert config.get_global_job_parameters() == {"k": "v"}
    env.configure(Configuration.from_dict({"parallelism.default": "3"}))
    assert env.get_parallelism() == 3
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    assert env.configuration.text("execution.runtime-mode") == "batch"
    with pytest.raises(BindError, match=r"parallelism\.default"):
        env.configure(Configuration().set_string("parallelism.default", "many"))


def test_job_parameters_reach_functions(env: Env) -> None:
    from flowsql.datastream import MapFunction, RuntimeContext

    class Parameter(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.found = runtime_context.get_job_parameter("k", "none"), runtime_context.get_job_parameter("x", "none")

        def map(self, value: Any) -> Any:
            return self.found

    env.get_config().set_global_job_parameters({"k": "v"})
    assert env.from_collection([1]).map(Parameter()).execute_and_collect(limit=1) == [("v", "none")]
    parameters = {"k": "it's, well: v", "x": "1"}
    env.get_config().set_global_job_parameters(parameters)
    assert env.get_config().get_global_job_parameters() == parameters
    assert env.from_collection([1]).map(Parameter()).execute_and_collect(limit=1) == [("it's, well: v", "1")]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda env: env.set_state_backend(None), NotSupportedYetError),
        (lambda env: env.add_source(None), NotSupportedYetError),
        (lambda env: env.from_collection([1]).sink_to(None), NotSupportedYetError),
        (lambda env: env.from_collection([1]).add_sink(None), NotSupportedYetError),
        (lambda env: env.from_collection([1]).cache(), NotSupportedYetError),
        (lambda env: env.add_jars("file:///x.jar"), BindError),
        (lambda env: env.set_python_requirements("/nosuch.txt"), BindError),
        (lambda env: env.add_python_archive("a.zip"), BindError),
        (lambda env: env.set_python_executable("python3"), BindError),
        (lambda env: env.add_python_file("/nosuch"), BindError),
    ],
)
def test_what_would_have_no_effect_is_refused(env: Env, call: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as refused:
        call(env)
    assert len(str(refused.value).splitlines()) == 1


def test_what_is_missing_says_so() -> None:
    with pytest.raises(ImportError):
        from flowsql.datastream import Nonsense  # type: ignore[attr-defined]  # noqa: F401
    env = StreamExecutionEnvironment.get_execution_environment()
    for owner in (env, env.from_collection([1])):
        with pytest.raises(AttributeError, match="no JVM"):
            owner._j_data_stream  # noqa: B018
        with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
            owner.nosuch  # noqa: B018


@pytest.mark.skipif(not PYFLINK.is_dir(), reason="needs a PyFlink: FLINK_PYTHON")
@pytest.mark.parametrize("package", ["common", "datastream"])
def test_every_name_of_pyflink_is_here(package: str) -> None:
    tree = ast.parse((PYFLINK / package / "__init__.py").read_text())
    (listed,) = (
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    module = importlib.import_module(f"flowsql.{package}")
    missing = []
    for name in ast.literal_eval(listed):
        if not hasattr(module, name):
            missing.append(name)
    assert not missing


def test_python_files_join_the_path(env: Env, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "brought_along.py").write_text("VALUE = 7\n")
    env.add_python_file(str(tmp_path / "brought_along.py"))

    def use(value: int) -> int:
        import brought_along  # type: ignore[import-not-found]

        return value + int(brought_along.VALUE)

    assert env.from_collection([1]).map(use).execute_and_collect(limit=1) == [8]


def test_importing_loads_neither_planner_nor_grammar() -> None:
    program = """
import sys, flowsql.datastream, flowsql.common
from flowsql.datastream import StreamExecutionEnvironment, KeyedProcessFunction
from flowsql.common import Types, WatermarkStrategy
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1], Types.INT()).map(lambda n: n).print()
print([name for name in sys.modules if name.startswith(("flowsql_planner", "flowsql_grammar", "flowsql_runtime",
                                                        "numba", "lark"))])
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_long_chain_is_no_deep_recursion(env: Env) -> None:
    stream = env.from_collection([0])
    for _ in range(600):
        stream = stream.union(env.from_collection([]))
    stream.print()
    assert len(graph_of(env).vertices) > 600
