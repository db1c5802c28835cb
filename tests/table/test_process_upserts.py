"""Changelog modes of process table functions: upserts, and modes that a function chooses. Plans and answers are those
of the same functions in Java on Flink 2.3."""

from __future__ import annotations

import re
from typing import Annotated, Any

import pytest

from flowsql.common import Row, RowKind
from flowsql.datastream import StreamExecutionEnvironment
from flowsql.table import StreamTableEnvironment, TableEnvironment
from flowsql.table.changelog_mode import ChangelogMode
from flowsql.table.process_function import (
    ArgumentHint,
    ArgumentTrait,
    ChangelogContext,
    ChangelogFunction,
    ProcessTableFunction,
    process_table_function,
)
from flowsql_core.errors import BindError, FlowSqlError

SET, ROW = ArgumentTrait.SET_SEMANTIC_TABLE, ArgumentTrait.ROW_SEMANTIC_TABLE
UPDATES = ArgumentTrait.SUPPORT_UPDATES
AnySet = Annotated[Row, ArgumentHint(SET)]
KINDS = {"i": RowKind.INSERT, "b": RowKind.UPDATE_BEFORE, "a": RowKind.UPDATE_AFTER, "d": RowKind.DELETE}
RESULT = "ROW<n BIGINT, t STRING>"


def told(row: Row) -> Row:
    """The first letter of ``v`` is the kind; ``null`` behind it makes a row of NULLs."""
    empty = row.v.endswith("null")
    return Row.of_kind(KINDS[row.v[0]], None if empty else len(row.v), None if empty else row.v)


def of_set(input: AnySet) -> Row:
    return told(input)


def of_rows(input: Annotated[Row, ArgumentHint(ROW)]) -> Row:
    return told(input)


def of_two(input: AnySet, other: AnySet) -> Row:
    return told(input or other)


def of_all(input: Annotated[Row, ArgumentHint(SET, ArgumentTrait.OPTIONAL_PARTITION_BY)]) -> Row:
    return told(input)


def of_changes(input: Annotated[Row, ArgumentHint(SET, UPDATES)]) -> Row:
    return Row.of_kind(input.get_row_kind(), 1, str(input[1]))


def of_full_changes(input: Annotated[Row, ArgumentHint(SET, UPDATES, ArgumentTrait.REQUIRE_FULL_DELETE)]) -> Row:
    return Row.of_kind(input.get_row_kind(), 1, str(input[1]))


def through(input: Annotated[Row, ArgumentHint(SET, ArgumentTrait.PASS_COLUMNS_THROUGH)]) -> Row:
    return told(input)


class Choosing(ProcessTableFunction, ChangelogFunction):
    """Upserts where they suffice, with deletes by the key where those do."""

    def get_result_type(self) -> str:
        return RESULT

    def get_changelog_mode(self, changelog_context: ChangelogContext) -> ChangelogMode:
        required = changelog_context.get_required_changelog_mode()
        assert str(changelog_context.get_table_changelog_mode("input")) == "[I]"
        if required.key_only_deletes:
            return ChangelogMode.upsert()
        return ChangelogMode.all() if required.contains(RowKind.UPDATE_BEFORE) else ChangelogMode.upsert(False)

    def eval(self, input: AnySet) -> Row:
        return told(input)


PARTIAL, FULL, ALL = ChangelogMode.upsert(), ChangelogMode.upsert(False), ChangelogMode.all()
FUNCTIONS: dict[str, Any] = {
    "Ins": (of_set, None),
    "Up": (of_set, PARTIAL),
    "UpFull": (of_set, FULL),
    "Retract": (of_set, ALL),
    "TwoFull": (of_two, FULL),
    "OptUp": (of_all, PARTIAL),
    "OptFull": (of_all, FULL),
    "RowAll": (of_rows, ALL),
    "UpIn": (of_changes, PARTIAL),
    "FullIn": (of_full_changes, FULL),
}
E_ = "(input => TABLE e PARTITION BY k)"
TWO = "TwoFull(input => TABLE e PARTITION BY k, other => TABLE e PARTITION BY k)"


def registered(made: TableEnvironment) -> TableEnvironment:
    made.get_config().set("parallelism.default", "1")
    for name, (function, mode) in FUNCTIONS.items():
        declared = process_table_function(function, result_type=RESULT, name=name, changelog_mode=mode)
        made.create_temporary_system_function(name, declared)
    made.create_temporary_system_function("Dyn", process_table_function(Choosing))
    made.execute_sql(
        "CREATE TEMPORARY VIEW e AS SELECT k, v FROM (VALUES ('a', 'i1'), ('a', 'a22'), ('b', 'i'), ('b', 'd'), "
        "('b', 'i3333')) AS t(k, v)"
    )
    made.execute_sql("CREATE TEMPORARY VIEW u AS SELECT k, COUNT(*) AS c FROM e GROUP BY k")
    for name, key in (("bh", "k"), ("bhn", "n")):
        made.execute_sql(
            f"CREATE TEMPORARY TABLE {name} (k STRING, n BIGINT, t STRING, PRIMARY KEY ({key}) NOT ENFORCED) "
            "WITH ('connector' = 'blackhole')"
        )
    made.execute_sql("CREATE TEMPORARY TABLE bh0 (k STRING, n BIGINT, t STRING) WITH ('connector' = 'blackhole')")
    return made


@pytest.fixture(scope="module")
def environment() -> TableEnvironment:
    return registered(TableEnvironment.create())


#: A query, and the modes of its process table functions and joins, top down.
MODES = {
    f"SELECT * FROM Up{E_}": "[I,UA,PD]",
    f"SELECT * FROM UpFull{E_}": "[I,UA,D]",
    f"SELECT * FROM Retract{E_}": "[I,UB,UA,D]",
    f"SELECT * FROM Dyn{E_}": "[I,UA,D]",
    f"SELECT n FROM UpFull{E_}": "[I,UA,D]",
    f"SELECT n FROM Dyn{E_}": "[I,UA,D]",
    f"SELECT * FROM Dyn{E_} WHERE n > 1": "[I,UB,UA,D]",
    f"SELECT * FROM UpFull{E_} WHERE k = 'b'": "[I,UA,D]",
    f"SELECT k, SUM(n) FROM Dyn{E_} GROUP BY k": "[I,UB,UA,D]",
    f"SELECT k, SUM(n) FROM Retract{E_} GROUP BY k": "[I,UB,UA,D]",
    "SELECT * FROM OptUp(input => TABLE e)": "[I,UA,PD]",
    "SELECT * FROM RowAll(input => TABLE e)": "[I,UB,UA,D]",
    f"SELECT * FROM Up{E_} UNION ALL SELECT * FROM Up{E_}": "[I,UA,PD] [I,UA,PD]",
    # Inputs: deletes by the key where the argument takes them.
    f"SELECT * FROM UpIn(input => (SELECT * FROM Up{E_}) PARTITION BY k)": "[I,UA,PD] [I,UA,PD]",
    f"SELECT * FROM UpIn(input => (SELECT * FROM Dyn{E_}) PARTITION BY k)": "[I,UA,PD] [I,UA,PD]",
    f"SELECT * FROM UpIn(input => (SELECT * FROM Dyn{E_}) PARTITION BY t)": "[I,UA,PD] [I,UB,UA,D]",
    f"SELECT * FROM FullIn(input => (SELECT * FROM UpFull{E_}) PARTITION BY k)": "[I,UA,D] [I,UA,D]",
    f"SELECT * FROM FullIn(input => (SELECT * FROM Dyn{E_}) PARTITION BY k)": "[I,UA,D] [I,UA,D]",
    # Keys: the partition's, of the first table.
    f"SELECT * FROM UpFull{E_} AS a JOIN u ON a.k = u.k": "JoinKeyContainsUniqueKey [I,UA,D] [I,UA,D]",
    f"SELECT * FROM Dyn{E_} AS a JOIN u ON a.k = u.k": "JoinKeyContainsUniqueKey [I,UA,D] [I,UA,D]",
    f"SELECT * FROM Retract{E_} AS a JOIN u ON a.k = u.k": "NoUniqueKey [I,UB,UA,D] [I,UB,UA,D]",
    f"SELECT * FROM Ins{E_} AS a JOIN u ON a.k = u.k": "NoUniqueKey [I,UA] [I]",
    "SELECT * FROM UpFull(input => TABLE e PARTITION BY (k, v)) AS a JOIN u ON a.k = u.k": (
        "HasUniqueKey [I,UA,D] [I,UA,D]"
    ),
    f"SELECT * FROM {TWO} AS a JOIN u ON a.k = u.k": "JoinKeyContainsUniqueKey [I,UA,D] [I,UA,D]",
    # Sinks.
    f"INSERT INTO bh SELECT * FROM UpFull{E_}": "[I,UA,D]",
    f"INSERT INTO bh0 SELECT * FROM UpFull{E_}": "[I,UA,D]",
    f"INSERT INTO bh SELECT * FROM Dyn{E_}": "[I,UA,D]",
    f"INSERT INTO bh SELECT * FROM Retract{E_}": "[I,UB,UA,D]",
}


@pytest.mark.parametrize("query", MODES)
def test_modes(environment: TableEnvironment, query: str) -> None:
    with environment.execute_sql(f"EXPLAIN CHANGELOG_MODE {query}").collect() as rows:
        plan = next(iter(rows))[0]
    plan = plan[plan.index("== Optimized Physical Plan ==") : plan.index("== Optimized Execution Plan ==")]
    nodes = [line for line in plan.splitlines() if "ProcessTableFunction(" in line or " Join(" in f" {line}"]
    said = [
        re.findall(r"leftInputSpec=\[(\w+)\]", node) + re.findall(r"changelogMode=(\[.*\])\)", node) for node in nodes
    ]
    assert " ".join(word for words in said for word in words) == MODES[query]


NEEDS = r"needs the row before each update and whole rows of deletes, \[I,UB,UA,D\], which the node does not emit"
REFUSED = {
    f"SELECT * FROM Up{E_}": NEEDS,
    f"SELECT * FROM UpFull{E_}": NEEDS,
    f"SELECT * FROM UpFull{E_} WHERE n > 1": NEEDS,
    f"SELECT t, SUM(n) FROM UpFull{E_} GROUP BY t": NEEDS,
    f"SELECT * FROM Up{E_} AS a JOIN u ON a.k = u.k": NEEDS,
    f"SELECT * FROM {TWO} AS a JOIN u ON a.k0 = u.k": NEEDS,
    f"INSERT INTO bh SELECT * FROM Up{E_}": NEEDS,
    "INSERT INTO bhn SELECT 'a' AS k, n, t FROM OptFull(input => TABLE e)": NEEDS,
    f"INSERT INTO bhn SELECT * FROM UpFull{E_}": NEEDS,
    f"INSERT INTO bhn SELECT * FROM Dyn{E_}": r"Primary key: \[n\], upsert key: \[k\]",
}


@pytest.mark.parametrize("query", REFUSED)
def test_consumers_that_need_more(environment: TableEnvironment, query: str) -> None:
    with pytest.raises(FlowSqlError, match=f"{REFUSED[query]}"):
        environment.execute_sql(query)


def rows_of(environment: TableEnvironment, query: str) -> list[str]:
    with environment.execute_sql(query).collect() as found:
        return [f"{row.get_row_kind().short_string()} {list(row)}" for row in found]


ANSWERS = {
    "SELECT * FROM Dyn(input => (SELECT * FROM (VALUES ('a', 'i1'), ('a', 'b1'), ('a', 'a33'), ('a', 'dnull')) "
    "AS t(k, v)) PARTITION BY k)": [
        "+I ['a', 2, 'i1']",
        "-U ['a', 2, 'b1']",
        "+U ['a', 3, 'a33']",
        "-D ['a', None, None]",
    ],
    f"SELECT * FROM Retract{E_}": [
        "+I ['a', 2, 'i1']",
        "+U ['a', 3, 'a22']",
        "+I ['b', 1, 'i']",
        "-D ['b', 1, 'd']",
        "+I ['b', 5, 'i3333']",
    ],
    f"SELECT k, SUM(n) FROM Dyn{E_} GROUP BY k": [
        "+I ['a', 2]",
        "-U ['a', 2]",
        "+U ['a', 5]",
        "+I ['b', 1]",
        "-D ['b', 1]",
        "+I ['b', 5]",
    ],
}


@pytest.mark.parametrize("query", ANSWERS)
def test_answers(environment: TableEnvironment, query: str) -> None:
    assert rows_of(environment, query) == ANSWERS[query]


def test_a_stream_takes_upserts_and_deletes_by_the_key() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    tables = StreamTableEnvironment.create(env)
    registered(tables)
    query = (
        "SELECT * FROM Up(input => (SELECT * FROM (VALUES ('a', 'i1'), ('a', 'a22'), ('a', 'dnull')) AS t(k, v)) "
        "PARTITION BY k)"
    )
    stream = tables.to_changelog_stream(tables.sql_query(query), None, ChangelogMode.upsert())
    with stream.execute_and_collect() as found:
        rows = [(row.get_row_kind().short_string(), *row) for row in found]
    assert rows == [("+I", "a", 2, "i1"), ("+U", "a", 3, "a22"), ("-D", "a", None, None)]
    with pytest.raises(FlowSqlError, match="which the node does not emit"):
        tables.to_changelog_stream(tables.sql_query(query), None, ChangelogMode.upsert(False))


@pytest.mark.parametrize(
    ("name", "value", "kind", "hint"),
    [
        ("Ins", "a1", "UPDATE_AFTER; its changelog mode here is [I]", "ChangelogMode.upsert()"),
        ("Ins", "b1", "UPDATE_BEFORE; its changelog mode here is [I]", "ChangelogMode.all()"),
        ("UpFull", "b1", "UPDATE_BEFORE; its changelog mode here is [I,UA,D]", "emit UPDATE_AFTER alone"),
    ],
)
def test_kinds_outside_of_the_mode(environment: TableEnvironment, name: str, value: str, kind: str, hint: str) -> None:
    call = f"{name}(input => (SELECT * FROM (VALUES ('a', '{value}')) AS t(k, v)) PARTITION BY k)"
    query = f"SELECT * FROM {call}" if name == "Ins" else f"INSERT INTO bh SELECT * FROM {call}"
    with pytest.raises(FlowSqlError, match=re.escape(f"made the row (2, '{value}') of the kind {kind}")) as caught:
        rows_of(environment, query)
    assert hint in str(caught.value.hint)


def test_declarations_that_are_refused(environment: TableEnvironment) -> None:
    with pytest.raises(BindError, match=r"emits upserts, \[I,UA,PD\], but its table 'input' has row semantics"):
        process_table_function(of_rows, result_type=RESULT, changelog_mode=PARTIAL)
    with pytest.raises(BindError, match=r"emits \[I,UB,UA,D\] and passes columns through"):
        process_table_function(through, result_type=RESULT, changelog_mode=ALL)
    with pytest.raises(BindError, match="is a ChangelogFunction and has a changelog_mode, too"):
        process_table_function(Choosing, changelog_mode=ALL)
    with pytest.raises(TypeError, match="changelog_mode is a ChangelogMode, or a function of a context"):
        process_table_function(of_set, result_type=RESULT, changelog_mode="upsert")
    for mode, function, message in [
        (lambda context: PARTIAL, of_rows, "emits upserts"),
        (lambda context: "all", of_set, "chose 'all', which is no changelog mode"),
        (lambda context: context.get_table_changelog_mode("x"), of_set, "cannot be asked for: KeyError"),
    ]:
        declared = process_table_function(function, result_type=RESULT, name="chooses", changelog_mode=mode)
        environment.create_temporary_system_function("chooses", declared)
        by = "" if function is of_rows else " PARTITION BY k"
        with pytest.raises(FlowSqlError, match=message):
            environment.explain_sql(f"SELECT * FROM chooses(input => TABLE e{by})")
        environment.drop_temporary_system_function("chooses")
