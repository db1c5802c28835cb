"""SHOW CREATE TABLE prints expectations in one form, which makes the same table again."""

from __future__ import annotations

import pytest

from flowsql.table.session.environment import TableEnvironment

CASES = {
    "t (a INT, CONSTRAINT c CHECK (a > 0)) WITH ('connector' = 'blackhole')": [
        "  CONSTRAINT `c` CHECK (`a` > 0) ON VIOLATION FAIL",
    ],
    "t (a INT, CONSTRAINT pk PRIMARY KEY (a) NOT ENFORCED, CONSTRAINT c EXPECT (a in (1, 2) or not a = 3), "
    "CONSTRAINT `the d` CHECK (cast(a as string) <> 'it''s') ON VIOLATION DROP) WITH ('connector' = 'blackhole')": [
        "  CONSTRAINT `pk` PRIMARY KEY (`a`) NOT ENFORCED,",
        "  CONSTRAINT `c` CHECK (`a` IN (1, 2) OR NOT `a` = 3) ON VIOLATION WARN,",
        "  CONSTRAINT `the d` CHECK (CAST(`a` AS STRING) <> 'it''s') ON VIOLATION DROP",
    ],
    "t (a INT) WITH ('connector' = 'blackhole', "
    "'flowsql.expectations' = 'constraint c expect (a>0) on violation drop')": [
        "  CONSTRAINT `c` CHECK (`a` > 0) ON VIOLATION DROP",
    ],
    "t (CONSTRAINT own CHECK (id < 9)) LIKE source (EXCLUDING OPTIONS)": [
        "  CONSTRAINT `theirs` CHECK (`id` > 0) ON VIOLATION DROP,",
        "  CONSTRAINT `own` CHECK (`id` < 9) ON VIOLATION FAIL",
    ],
    "t (CONSTRAINT own CHECK (id < 9)) LIKE source (EXCLUDING CONSTRAINTS)": [
        "  CONSTRAINT `own` CHECK (`id` < 9) ON VIOLATION FAIL",
    ],
    "t WITH ('connector' = 'print') LIKE source (EXCLUDING ALL)": [],
}


@pytest.mark.parametrize("ddl", CASES)
def test_one_form_that_makes_the_same_table(ddl: str) -> None:
    session = TableEnvironment.create()
    session.execute_sql(
        "CREATE TABLE source (id INT, CONSTRAINT theirs CHECK (id > 0) ON VIOLATION DROP) "
        "WITH ('connector' = 'blackhole')"
    )
    session.execute_sql(f"CREATE TABLE {ddl}")
    shown = session.execute_sql("SHOW CREATE TABLE t").collect().next()[0]
    assert [line for line in shown.splitlines() if line.startswith("  CONSTRAINT")] == CASES[ddl]
    assert "flowsql.expectations" not in shown
    session.execute_sql("DROP TABLE t")
    session.execute_sql(shown)
    assert session.execute_sql("SHOW CREATE TABLE t").collect().next()[0] == shown
