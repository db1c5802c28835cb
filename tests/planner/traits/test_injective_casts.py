"""Which casts a key survives, beside Flink's answers; and that an INSERT by such a key asks for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import FlowSqlError
from flowsql_core.types.text import parse_type
from flowsql_planner.traits.injective_casts import is_injective


def _answers() -> dict[str, set[str]]:
    text = (Path(__file__).parent / "injective_casts.txt").read_text(encoding="utf-8")
    pairs = (line.split(" -> ") if " -> " in line else (line.removesuffix(" ->"), "") for line in text.splitlines()[1:])
    return {source: set(filter(None, targets.split("; "))) for source, targets in pairs}


def test_casts_that_keep_unequal_values_unequal_are_flinks() -> None:
    answers = _answers()
    types = {text: parse_type(text) for text in answers}
    for source, targets in answers.items():
        found = {text for text, type_ in types.items() if text != source and is_injective(types[source], type_)}
        assert found == targets, source


@pytest.mark.parametrize(
    ("cast", "type_", "fits"),
    [("BIGINT", "BIGINT", True), ("STRING", "STRING", True), ("DOUBLE", "DOUBLE", False), ("INT", "BIGINT", True)],
)
def test_an_insert_by_a_key_that_was_cast_needs_no_on_conflict(cast: str, type_: str, fits: bool) -> None:
    environment = TableEnvironment.create()
    environment.execute_sql("CREATE TABLE s (a INT) WITH ('connector' = 'datagen', 'number-of-rows' = '1')")
    environment.execute_sql(
        f"CREATE TABLE k (a {type_}, c BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'blackhole')"
    )
    insert = f"EXPLAIN INSERT INTO k SELECT CAST(a AS {cast}), COUNT(*) FROM s GROUP BY a"
    if fits:
        environment.execute_sql(insert)
    else:
        with pytest.raises(FlowSqlError, match="upsert key that differs"):
            environment.execute_sql(insert)
