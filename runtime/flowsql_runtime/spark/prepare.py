"""Keep the classes that Spark starts with in a file of the user's cache (180 MB), so that it starts sooner.

``python -m flowsql_runtime.spark.prepare`` runs some statements in a session of Spark and has Java write the file as it
ends; it takes about twenty seconds, once for each release of Java and Spark.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any, Final

from flowsql_core.config import LOCAL_TIME_ZONE, Configuration
from flowsql_runtime.spark.sessions.class_archive import archive_path
from flowsql_runtime.spark.sessions.current import spark_host
from flowsql_runtime.spark.sessions.java import require_java
from flowsql_runtime.spark.sessions.quiet import quiet
from flowsql_runtime.spark.sessions.settings import DEFAULT_JAVA_OPTIONS, JAVA_OPTIONS

#: What most statements do: files, joins, groups, windows, orders.
_STATEMENTS: Final = (
    "SELECT k, COUNT(*) AS n, SUM(d) AS d FROM t GROUP BY k ORDER BY k LIMIT 3",
    "SELECT a.k, RANK() OVER (PARTITION BY a.k ORDER BY b.id) AS r FROM t AS a JOIN t AS b ON a.id = b.id",
    "SELECT DISTINCT s FROM t UNION ALL SELECT UPPER(s) FROM t WHERE id IN (SELECT k FROM t)",
)
_ENDS_S: Final = 120


def main() -> int:
    """Entry of the command; the exit status is 1 where no file could be made."""
    try:
        import pyspark

        java = require_java()
        path = archive_path(java, pyspark)
        if path.exists():
            print(f"{path} is there")
            return 0
        if len(str(path).split()) > 1:
            print(f"Java takes no file below a folder with blanks in its name: {path}", file=sys.stderr)
            return 1
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(f"{path.stem}.*.part"):
            left.unlink()
        part = path.with_suffix(f".{os.getpid()}.part")
        options = f"{DEFAULT_JAVA_OPTIONS} -XX:ArchiveClassesAtExit={part}"
        with quiet():
            _run(spark_host(Configuration(values={JAVA_OPTIONS: options, LOCAL_TIME_ZONE.key: "UTC"})).session)
        if not part.exists():
            print(f"this Java keeps no classes: {java}", file=sys.stderr)
            return 1
        os.replace(part, path)
    except Exception as error:  # of Spark, of Java, of the file system: it cost nothing but time
        print(f"no classes were kept: {str(error).partition(chr(10))[0]}", file=sys.stderr)
        return 1
    print(f"kept {path.stat().st_size / 1e6:.0f} MB of classes in {path}")
    return 0


def _run(session: Any) -> None:
    """Some statements; then the session and its Java end."""
    from pyspark import SparkContext

    rows = "SELECT id, id % 3 AS k, CAST(id AS DECIMAL(9, 2)) AS d, CAST(id AS STRING) AS s FROM RANGE(100)"
    with tempfile.TemporaryDirectory() as folder:
        session.sql(rows).write.parquet(f"{folder}/t")
        session.read.parquet(f"{folder}/t").createOrReplaceTempView("t")
        for statement in _STATEMENTS:
            session.sql(statement).toArrow()
        session.table("t").mapInArrow(lambda batches: batches, "id LONG, k LONG, d DECIMAL(9, 2), s STRING").toArrow()
    gateway: Any = SparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_ENDS_S)


if __name__ == "__main__":
    sys.exit(main())
