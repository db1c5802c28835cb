"""Metadata columns of other types than the connector's: what Flink 2.3 casts, and what it refuses."""

from __future__ import annotations

import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_core.errors import BindError

#: Metadata columns, and the sentence of the refusal; None: they are read.
COLUMNS = {
    "castable": ("o STRING METADATA FROM 'offset', h MAP<STRING, STRING> METADATA FROM 'headers'", None),
    "no such cast": ("x BOOLEAN METADATA FROM 'timestamp'", "must be castable from metadata type"),
    "no number of moments": ("x BIGINT METADATA FROM 'timestamp'", "(?i)cast"),
    "twice": ("x INT METADATA FROM 'offset', y BIGINT METADATA FROM 'offset'", "from the same metadata key 'offset'"),
}


@pytest.mark.parametrize(("columns", "message"), COLUMNS.values(), ids=COLUMNS)
def test_types_of_metadata(columns: str, message: str | None) -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.execute_sql(
        f"CREATE TABLE t (id INT, {columns}) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json', "
        "'properties.bootstrap.servers' = '127.0.0.1:1', 'scan.startup.mode' = 'earliest-offset')"
    )
    if message is None:
        assert "CAST" in environment.explain_sql("SELECT * FROM t")
        return
    with pytest.raises(BindError, match=message):
        environment.explain_sql("SELECT * FROM t")
