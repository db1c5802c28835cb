"""A program that ``test_clusters.py`` runs elsewhere: reads, calls Python, writes, and says what it found as JSON.

python cluster_job.py SETTINGS FOLDER, where SETTINGS is a JSON object of ``spark.*`` keys.
"""

from __future__ import annotations

import faulthandler
import json
import sys
from typing import Any

from flowsql.table import DataTypes
from flowsql.table.session.environment import TableEnvironment
from flowsql.table.udf import udf
from flowsql_core.config import Configuration


def environment(settings: dict[str, str], folder: str) -> TableEnvironment:
    values = {
        **settings,
        "execution.runtime-mode": "batch",
        "execution.batch.engine": "spark",
        "table.local-time-zone": "UTC",
        # The driver gathers what is to be broadcast.
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
        "io.tmp.dirs": folder,
    }
    return TableEnvironment.of_configuration(Configuration(values=values))


def rows(session: TableEnvironment, sql: str) -> list[list[str]]:
    with session.execute_sql(sql).collect() as found:
        return [[str(value) for value in row] for row in found]


def result_bytes() -> int | None:
    """What all tasks so far have sent to the driver, as Spark counted it; None where it stands in another process."""
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context
    if context is None:
        return None
    none = context._gateway.new_array(context._jvm.double, 0)
    store = context._jsc.sc().statusStore()
    stages = store.stageList(None, False, False, none, context._jvm.java.util.ArrayList())
    return sum(int(stages.apply(place).resultSize()) for place in range(stages.size()))


def main(settings: str, folder: str) -> None:
    session = environment(json.loads(settings), folder)
    session.execute_sql(
        "CREATE TABLE t (id BIGINT, k STRING, d DECIMAL(9, 2), ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', "
        f"'path' = '{folder}/t', 'format' = 'csv')"
    )
    session.execute_sql(
        "CREATE TABLE p (id BIGINT, n BIGINT) WITH ('connector' = 'filesystem', "
        f"'path' = '{folder}/p.parquet', 'format' = 'parquet')"
    )
    session.execute_sql(
        "CREATE TABLE o (id BIGINT, n BIGINT, d DECIMAL(9, 2), pid INT, k STRING) PARTITIONED BY (k) WITH ("
        f"'connector' = 'filesystem', 'path' = '{folder}/o', 'format' = 'parquet')"
    )

    @udf(result_type=DataTypes.INT())
    def process(number: int) -> int:
        import os

        return os.getpid()

    session.create_temporary_function("process", process)
    written = session.execute_sql(
        "INSERT INTO o SELECT t.id, p.n, t.d, process(1), LOWER(t.k) FROM t JOIN p ON t.id = p.id "
        "JOIN (VALUES (1, 'K0'), (2, 'K1'), (3, 'K2'), (4, 'K3'), (5, 'K4')) AS v(i, k) ON t.k = v.k WHERE t.d > 1"
    )
    written.wait()
    client = written.get_job_client()
    assert client is not None
    sent = result_bytes()
    frame = session.sql_query("SELECT LOWER(k) AS k, d FROM t").to_spark()
    again = session.from_spark(frame.where("d < 1"))
    found: dict[str, Any] = {
        "frame": session.sql_query(f"SELECT COUNT(*), MAX(UPPER(k)) FROM {again}").to_spark().toArrow().to_pylist(),
        "answers": [
            rows(session, "SELECT k, COUNT(*), SUM(n), SUM(d) FROM o GROUP BY k ORDER BY k"),
            rows(session, "SELECT DATE_FORMAT(ts, 'yyyy'), COUNT(DISTINCT UPPER(k)), AVG(d) FROM t GROUP BY 1 = 1, "
                 "DATE_FORMAT(ts, 'yyyy') ORDER BY 1"),
        ],
        "processes": [int(row[0]) for row in rows(session, "SELECT DISTINCT pid FROM o")],
        "sent": sent,
        "volumes": client.get_volumes().as_dict(),
    }  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    # What stands still is to be seen before the test stops this program.
    faulthandler.dump_traceback_later(240)
    main(*sys.argv[1:])
