"""The tables of the jobs of the fault harness: what they read, what they write."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from flowsql.table import TableEnvironment

CSV: Final = "'connector' = 'filesystem', 'format' = 'csv'"
ROWS: Final = "id BIGINT, k INT, n INT, txt STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"


def inputs(environment: TableEnvironment, folder: Path) -> None:
    """The inputs; ``versions`` are the rows of ``right_rows``, of which the newest of a key counts."""
    for side in ("left", "right"):
        environment.execute_sql(f"CREATE TABLE {side}_rows ({ROWS}) WITH ({CSV}, 'path' = '{folder}/{side}.csv')")
    environment.execute_sql(
        f"CREATE TABLE versions ({ROWS}, PRIMARY KEY (k) NOT ENFORCED) WITH ({CSV}, 'path' = '{folder}/right.csv')"
    )


def sink(environment: TableEnvironment, folder: Path, name: str, columns: str, connector: str = "filesystem") -> None:
    """A table of files below ``out``; some parts are committed with a checkpoint, others go on behind it."""
    environment.execute_sql(
        f"CREATE TABLE {name} ({columns}) WITH ('connector' = '{connector}', 'format' = 'csv', "
        f"'path' = '{folder}/out/{name}', 'sink.rolling-policy.file-size' = '8kb')"
    )
