"""Programs of the Table API from rows to answers, and what is said where one is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowsql.table import (
    DataTypes,
    EnvironmentSettings,
    ExplainDetail,
    FormatDescriptor,
    PlanReference,
    Schema,
    Table,
    TableDescriptor,
    TableEnvironment,
)
from flowsql.table.catalog import CatalogDescriptor, ObjectIdentifier, ObjectPath
from flowsql.table.expressions import (
    UNBOUNDED_ROW,
    call,
    col,
    if_then_else,
    lit,
    not_,
    rand,
    row_interval,
    with_columns,
)
from flowsql.table.window import Over, Tumble
from flowsql_core.errors import BindError, FlowSqlError, NotSupportedYetError


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableEnvironment:
    monkeypatch.chdir(tmp_path)
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    made.get_config().set_local_timezone("UTC")
    return made


@pytest.fixture
def people(environment: TableEnvironment) -> Table:
    return environment.from_elements([(1, "ann", 30), (2, "bob", None), (3, "cid", 30)], ["id", "name", "age"])


def rows(table: Table) -> list[tuple[Any, ...]]:
    with table.execute().collect() as found:
        return [tuple(row) for row in found]


def test_a_chain_of_methods(people: Table) -> None:
    chain = people.where(people.age.is_not_null).select(col("name").upper_case.alias("n"), col("age") + 1)
    assert chain.get_resolved_schema().get_column_names() == ["n", "_c1"]
    assert rows(chain) == [("ANN", 31), ("CID", 31)]


def test_groups(people: Table) -> None:
    grouped = people.group_by(col("age")).select(col("age"), col("id").count.alias("n"), col("id").sum)
    with grouped.execute().collect() as found:
        changes = [(row.get_row_kind().name, *row) for row in found]
    assert changes == [
        ("INSERT", 30, 1, 1),
        ("INSERT", None, 1, 2),
        ("UPDATE_BEFORE", 30, 1, 1),
        ("UPDATE_AFTER", 30, 2, 4),
    ]


def test_three_values_of_logic(people: Table) -> None:
    young = col("age") < 18
    assert rows(people.select(~young, not_(young), if_then_else(young, 1, 2)))[1] == (True, None, 2)


def test_an_order_outlives_what_follows_it(people: Table) -> None:
    top = people.order_by(col("age").desc).select((col("id") * 10).alias("age")).where(col("age") < 30).fetch(1)
    plan = top.explain()
    assert "LogicalSort(sort0=[$1], dir0=[DESC-nulls-last], fetch=[1])" in plan
    assert "SortLimit(orderBy=[age DESC], offset=[0], fetch=[1]" in plan


def test_joins_and_unions(environment: TableEnvironment, people: Table) -> None:
    cities = environment.from_elements([("ann", "Ulm")], ["who", "city"])
    assert rows(people.join(cities, col("name") == col("who")).select(col("id"), col("city"))) == [(1, "Ulm")]
    names = people.select(col("name")).union_all(cities.select(col("who")))
    assert sorted(rows(names)) == [("ann",), ("ann",), ("bob",), ("cid",)]


def test_windows(environment: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a,1,2020-01-01 00:00:01\nb,2,2020-01-01 00:00:05\na,4,2020-01-01 00:00:12\n")
    environment.execute_sql(f"""CREATE TABLE events (k STRING, n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
        WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/in.csv', 'format' = 'csv')""")
    windowed = (
        environment.from_path("events")
        .window(Tumble.over(lit(10).seconds).on(col("ts")).alias("w"))
        .group_by(col("w"))
        .select(col("w").start.cast(DataTypes.STRING()).alias("start"), col("n").sum.alias("total"))
    )
    assert rows(windowed) == [("2020-01-01 00:00:00.000", 3), ("2020-01-01 00:00:10.000", 4)]


def test_a_table_stands_in_sql(environment: TableEnvironment, people: Table) -> None:
    assert environment.sql_query(f"SELECT name FROM {people} WHERE id = 2").to_arrow().to_pydict() == {"name": ["bob"]}
    environment.create_temporary_view("people", people)
    assert rows(environment.from_path("people").select(col("id").max))[-1] == (3,)
    assert "people" in environment.list_temporary_views()


def test_a_query_means_the_same_after_use(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE VIEW v AS SELECT 1 AS x")
    query, table = environment.sql_query("SELECT x FROM v"), environment.from_path("v")
    environment.execute_sql("CREATE DATABASE other")
    environment.use_database("other")
    assert rows(query) == rows(table.select(col("x"))) == [(1,)]


def test_a_table_of_rows_runs_twice_and_in_statement_sets(
    environment: TableEnvironment, people: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    sink = TableDescriptor.for_connector("print").option("print-identifier", "p").build()
    people.select(col("id")).execute_insert(sink).wait()
    environment.create_temporary_table(
        "sink",
        TableDescriptor.for_connector("print").schema(Schema.new_builder().column("id", "BIGINT").build()).build(),
    )
    together = environment.create_statement_set().add_insert("sink", people.select(col("id")).limit(1))
    together.add_insert_sql(f"INSERT INTO sink SELECT id * 10 FROM {people}")
    together.execute().wait()
    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == ["p> +I[1]", "p> +I[2]", "p> +I[3]"]
    assert sorted(printed[3:]) == ["+I[10]", "+I[1]", "+I[20]", "+I[30]"]


def test_plans(environment: TableEnvironment, people: Table, capsys: pytest.CaptureFixture[str]) -> None:
    plan = people.select(col("id")).explain(ExplainDetail.CHANGELOG_MODE)
    assert "TableSourceScan(table=[[*anonymous_python-input-format$1*]], fields=[id, name, age]" in plan
    assert "changelogMode=[I]" in plan
    people.print_explain()
    assert "== Optimized Physical Plan ==" in capsys.readouterr().out


def test_compiled_plans(environment: TableEnvironment, people: Table, tmp_path: Path) -> None:
    environment.execute_sql("CREATE TABLE b (x INT) WITH ('connector' = 'blackhole')")
    plan = environment.compile_plan_sql("INSERT INTO b SELECT 1")
    plan.write_to_file(tmp_path / "plan.json")
    assert '"flowsqlPlan"' in plan.as_json_string()
    with pytest.raises(BindError, match="Cannot overwrite"):
        plan.write_to_file(tmp_path / "plan.json")
    environment.execute_plan(PlanReference.from_file(tmp_path / "plan.json")).wait()
    loaded = environment.load_plan(PlanReference.from_json_string(plan.as_json_string()))
    assert loaded.explain().startswith("== Compiled Plan ==\n")
    loaded.execute().wait()
    given = people.select(col("id").cast(DataTypes.INT())).insert_into("b").compile_plan()
    with pytest.raises(NotSupportedYetError, match="Python objects"):
        given.as_json_string()


SHOWN = """CREATE TABLE `default_catalog`.`default_database`.`t` (
  `id` BIGINT NOT NULL,
  `at time` TIMESTAMP(3),
  `twice` AS id * 2,
  `thrice` AS `id` * 3,
  WATERMARK FOR `at time` AS `at time` - INTERVAL '5' SECOND,
  CONSTRAINT `PK_id` PRIMARY KEY (`id`) NOT ENFORCED
)
COMMENT 'it''s here'
WITH (
  'connector' = 'filesystem',
  'csv.field-delimiter' = ';',
  'format' = 'csv',
  'path' = '/tmp/nowhere',
  'source.monitor-interval' = '5 s'
)
"""


def test_descriptors(environment: TableEnvironment) -> None:
    descriptor = (
        TableDescriptor.for_connector("filesystem")
        .schema(
            Schema.new_builder()
            .column("id", DataTypes.BIGINT().not_null())
            .column("at time", "TIMESTAMP(3)")
            .column_by_expression("twice", "id * 2")
            .column_by_expression("thrice", col("id") * 3)
            .watermark("at time", col("at time") - lit(5).seconds)
            .primary_key("id")
            .build()
        )
        .option("path", "/tmp/nowhere")
        .option("source.monitor-interval", "5 s")
        .format(FormatDescriptor.for_format("csv").option("field-delimiter", ";").build())
        .comment("it's here")
        .build()
    )
    environment.create_table("t", descriptor)
    with environment.execute_sql("SHOW CREATE TABLE t").collect() as found:
        (row,) = found
    assert row[0] == SHOWN
    assert environment.create_table("t", descriptor, True) is False
    assert environment.drop_table("t") is True
    assert environment.drop_table("t") is False


def test_objects_of_the_catalogs(environment: TableEnvironment, people: Table) -> None:
    environment.create_temporary_view("v", people)
    environment.execute_sql("CREATE VIEW w AS SELECT 1 AS x")
    assert environment.list_tables() == environment.list_views() == ["v", "w"]
    assert environment.list_temporary_tables() == environment.list_temporary_views() == ["v"]
    assert environment.drop_temporary_table("v") is False
    assert environment.drop_temporary_view("v") is True
    assert environment.drop_view("w") is True
    environment.create_catalog("c", CatalogDescriptor.of("c", {"type": "generic_in_memory"}, "mine"))
    assert environment.list_catalogs() == ["c", "default_catalog"]
    environment.use_catalog("c")
    assert (environment.get_current_catalog(), environment.list_databases()) == ("c", ["default"])
    assert [entry.name() for entry in environment.list_full_modules() if entry.used()] == ["core"]
    environment.unload_module("core")
    assert environment.list_modules() == []
    environment.load_module("core")
    environment.use_modules("core")
    assert "UPPER" in {name.upper() for name in environment.list_functions()}


def test_functions_of_python(environment: TableEnvironment, people: Table) -> None:
    def shout(text: str) -> str:
        return text.upper() + "!"

    environment.create_temporary_function("shout", shout)
    environment.create_temporary_system_function("shout_all", shout)
    assert environment.list_user_defined_functions() == ["shout", "shout_all"]
    assert rows(people.select(call("shout", col("name"))).limit(1)) == [("ANN!",)]
    assert environment.drop_temporary_function("shout") is True
    assert environment.drop_temporary_system_function("shout_all") is True
    assert environment.drop_temporary_system_function("shout_all") is False


def test_a_function_object_needs_no_name(environment: TableEnvironment, people: Table) -> None:
    from flowsql.table.udf import udf

    twice = udf(lambda x: x * 2, result_type=DataTypes.BIGINT(), name="twice")
    chosen = people.where(twice(col("id")) > 2).select(twice(col("id")) + 1)
    assert rows(chosen) == [(5,), (7,)]
    assert rows(environment.from_elements([(7,)], ["x"]).select(twice(col("x")))) == [(14,)]


def test_a_function_maps_whole_rows(people: Table) -> None:
    from flowsql.table import Row
    from flowsql.table.udf import udf

    fields = [DataTypes.FIELD("who", DataTypes.STRING()), DataTypes.FIELD("next_age", DataTypes.BIGINT())]

    @udf(result_type=DataTypes.ROW(fields))
    def older(person: Row) -> Row:
        return Row(person.name.upper(), None if person["age"] is None else person.age + 1)

    mapped = people.map(older)
    assert mapped.get_resolved_schema().get_column_names() == ["who", "next_age"]
    assert rows(mapped) == [("ANN", 31), ("BOB", None), ("CID", 31)]
    assert rows(people.map(col("id") + 1)) == [(2,), (3,), (4,)]


def test_settings_of_a_configuration() -> None:
    from flowsql.common import Configuration

    options = Configuration().set_string("parallelism.default", "3")
    settings = EnvironmentSettings.new_instance().in_batch_mode().with_configuration(options).build()
    assert not settings.is_streaming_mode()
    for made in (TableEnvironment.create(settings), TableEnvironment.create(options)):
        assert made.get_config().get("parallelism.default", "1") == "3"


def refusal(program: Callable[[], object]) -> str:
    with pytest.raises(FlowSqlError) as caught:
        program()
    return caught.value.render()


def test_an_unknown_column_is_shown_in_its_method(people: Table) -> None:
    assert refusal(lambda: people.where(col("id") > 1).select(col("nam").upper_case, col("id"))) == (
        "Cannot resolve field [nam], input field list:[id, name, age].\n --> <table>:3:9\n  |\n"
        "3 | .select(UPPER(nam), id)\n"
        "  |         ^^^^^^^^^^ did you mean 'name'?"
    )


def test_a_query_behind_a_sql_text_is_shown_below_it(environment: TableEnvironment) -> None:
    table = environment.sql_query("SELECT 1 AS x")
    shown = refusal(lambda: table.where(col("x")))
    assert shown.startswith("Filter operator requires a boolean expression as input, but x is of type INT")
    assert shown.endswith("2 | .where(x)\n  |        ^")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda t: t.select("id"), "select() takes expressions, got 'id'.\nhint: write col('id')"),
        (lambda t: t.select(col("id"), col("id").alias("id")), "Ambiguous column name: id"),
        (lambda t: t.join(t), "join relations with ambiguous names: [id, name, age]"),
        (lambda t: t.join("t"), "join() takes a Table, got 't'."),
        (lambda t: t.alias("a", "b", "c", "d"), "Aliasing more fields than we actually have."),
        (lambda t: t.drop_columns(col("x")), "Field x does not exist in source table"),
        (lambda t: t.rename_columns(col("x").alias("y")), "Cannot resolve field [x], input field list:[id, name,"),
        (lambda t: t.union_all(t.select(col("id"))), "different column sizes: 3 and 1 is not supported"),
        (lambda t: t.union_all(t.select(col("name"), col("id"), col("age"))),
         "union operation. Could not find a common type at position 0 for 'BIGINT' and 'STRING'."),
        (lambda t: t.select(col("id").get(0)), "get(0) takes a field of a ROW"),
        (lambda t: t.drop_columns(with_columns(col("*"))), "drop_columns() would leave no column."),
        (lambda t: t.rename_columns(col("id")), "Unexpected field expression in renameColumns."),
        (lambda t: t.limit(3).fetch(2), "FETCH is already defined."),
        (lambda t: t.offset(3).offset(2), "OFFSET already defined."),
        (lambda t: t.fetch(-1), "Fetch should be greater or equal 0, got -1."),
        (lambda t: t.select(col("w").start), "Window properties can only be used on windowed tables."),
        (lambda t: t.select(col("id").desc), "'id DESC' stands in order_by() only."),
        (lambda t: t.where(col("id") == None), "NULL equals nothing"),  # noqa: E711 - what it is about
        (lambda t: t.select(lit(object())), "There is no SQL literal"),
        (lambda t: t.select(col("id").distinct), "'distinct' stands behind an aggregate"),
        (lambda t: t.window("w"), "window() takes a window with a name"),
        (lambda t: t.over_window("w"), "over_window() takes windows with names"),
        (lambda t: t.window(Tumble.over(lit(1).days).on(col("id")).alias("w")).group_by(col("id")),
         "GroupBy must contain exactly one window alias."),
        (lambda t: t.window(Tumble.over(row_interval(2)).on(col("id")).alias("w")).group_by(col("w")),
         "A group window expects a time attribute"),
        (lambda t: t.over_window(Over.order_by(col("id")).preceding(UNBOUNDED_ROW).alias("w"))
         .select(col("id").sum.over(col("v"))), "Window 'v' not found"),
        (lambda t: t.over_window(Over.order_by(col("id")).preceding(UNBOUNDED_ROW).alias("w"))
         .select(col("id").sum.over(col("w"))), "Second argument in OVER window must be a TIME ATTRIBUTE, but is: "),
        (
            lambda t: t.order_by(col("id")).select(rand().alias("r")).where(col("r") > 0.5),
            "not supported yet: a column over a random one of a sorted table",
        ),
        (lambda t: t.aggregate(None), "not supported yet: aggregate() of anything but a call or a declared function"),
        (lambda t: t.flat_aggregate(col("id").sum), "flat_aggregate() takes a table aggregate function"),
        (lambda t: t.map(len), "not supported yet: map() of anything but a call or a declared function"),
        (lambda t: t.flat_map(len), "not supported yet: flat_map() of anything but a call or a declared function"),
        (lambda t: t.select(call(5)), "call() takes a function's name or object, got 5."),
        (lambda t: t.select(col("id").extract("DAY")), "DAY is no single unit of time."),
        (lambda t: t.execute_insert("a.b.c.d"), "Invalid path 'a.b.c.d'."),
        (lambda t: t.execute_insert(5), "A sink is the path of a table or a TableDescriptor, got 5."),
        (lambda t: t.alias(col("a")), "alias() takes names of columns"),
        (lambda t: t._environment.execute_sql(None), "execute_sql() takes SQL as a text, got None."),
    ],
)  # fmt: skip
def test_a_wrong_use_is_told(people: Table, program: Callable[[Table], object], message: str) -> None:
    assert message in refusal(lambda: program(people))


def test_tables_of_two_environments_do_not_meet(people: Table) -> None:
    other = TableEnvironment.create().from_elements([(1,)], ["x"])
    for program in (
        lambda: people.join(other, col("id") == col("x")),
        lambda: people.union_all(other),
        lambda: people.where(col("id").in_(other)),
    ):
        assert "different TableEnvironments" in refusal(program)


def test_an_expression_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match="Write & for and"):
        bool(col("a") > 1)
    with pytest.raises(TypeError, match="iterated"):
        list(col("a"))
    with pytest.raises(TypeError, match="in_"):
        1 in col("a")  # noqa: B015
    with pytest.raises(TypeError, match="'uppercase' is no method of expressions: did you mean 'upper_case'"):
        col("a").uppercase()
    with pytest.raises(TypeError, match="stand without brackets"):
        col("a").is_null()


@pytest.mark.parametrize("name", ["_j_table", "get_j_x"])
def test_there_is_no_java(environment: TableEnvironment, people: Table, name: str) -> None:
    for target in (environment, people, col("a")):
        with pytest.raises(AttributeError, match="there is no JVM"):
            getattr(target, name)
    with pytest.raises(AttributeError, match="functions are Python's"):
        environment.create_java_temporary_function("f", "g")


def test_names() -> None:
    assert str(ObjectIdentifier.of("c", "d", "o")) == "`c`.`d`.`o`"
    assert ObjectPath.from_string("d.`o.x`").get_object_name() == "o.x"
    assert str(Schema.new_builder().column("a", DataTypes.INT()).build()) == "(\n  `a` INT\n)"


def test_a_worker_that_meets_expressions_loads_no_grammar() -> None:
    program = (
        "import sys, flowsql.table.expressions, flowsql.table.udf\n"
        "from flowsql.table import DataTypes, Expression, Schema\n"
        "bad = [n for n in sys.modules if n.split('.')[0] in ('flowsql_planner', 'flowsql_grammar')]\n"
        "assert not bad, bad"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
