"""What a session of Spark is set to: what answers depend on, defaults, and the user's own ``spark.*`` keys."""

from __future__ import annotations

import os
import tempfile
from typing import Final

from flowsql_core.config import LOCAL_TIME_ZONE, PARALLELISM, Configuration
from flowsql_core.errors import ConnectorError
from flowsql_core.graph.spark import SPARK_MASTER, SPARK_REMOTE
from flowsql_core.record import record
from flowsql_runtime.task.memory import machine_memory_bytes

#: What answers depend on; nobody may set these otherwise.
PINNED: Final = {
    # Integers wrap and DECIMAL overflow is NULL, as in Flink; what must fail is written out in the query.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.caseSensitive": "false",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
}
JAVA_OPTIONS: Final = "spark.driver.defaultJavaOptions"
#: Java's second compiler takes most of the time of a short statement (36 s of processor time for a cold one against
#: 26 s so, 19 s without it); what is really hot still gets it.
DEFAULT_JAVA_OPTIONS: Final = (
    "-XX:Tier4InvocationThreshold=60000 -XX:Tier4MinInvocationThreshold=60000 "
    "-XX:Tier4CompileThreshold=60000 -XX:Tier4BackEdgeThreshold=600000"
)
#: What the user may set otherwise, in a session that FlowSQL starts.
_DEFAULTS: Final = {
    "spark.app.name": "FlowSQL",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.maxResultSize": "0",
    "spark.sql.adaptive.enabled": "true",
    JAVA_OPTIONS: DEFAULT_JAVA_OPTIONS,
}
ADAPTIVE_BROADCAST: Final = "spark.sql.adaptive.autoBroadcastJoinThreshold"
#: What the user may set otherwise, in a session over Spark Connect. How much FlowSQL's readers will give no optimizer
#: there can be told: small inputs are broadcast when their size is seen, while the query runs.
_REMOTE_DEFAULTS: Final = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    ADAPTIVE_BROADCAST: "10MB",
}
ZONE: Final = "spark.sql.session.timeZone"


@record
class Settings:
    """``options``: all that the session shall have; ``chosen``: those that the user gave; ``remote``: the address of a
    Connect server, or empty."""

    options: dict[str, str]
    chosen: dict[str, str]
    remote: str


def settings_of(configuration: Configuration, *, is_given: bool = False, is_remote: bool = False) -> Settings:
    """The settings for a job.

    Args:
        is_given: the session has its own defaults, and a place where it runs.
        is_remote: a given one speaks to a Connect server.

    Raises:
        ConnectorError: a key that answers depend on is set otherwise; two places where Spark shall run.
    """
    chosen = _chosen(configuration)
    remote = configuration.get(SPARK_REMOTE)
    if is_given:
        made = dict(_REMOTE_DEFAULTS) if is_remote else {}
    elif remote:
        if configuration.get(SPARK_MASTER):
            raise ConnectorError(
                "spark-option",
                f"'{SPARK_MASTER.key}' and '{SPARK_REMOTE.key}' are both set, and Spark runs in one place.",
                hint=f"a Connect server has its own master: leave '{SPARK_MASTER.key}' out",
            )
        chosen.pop(SPARK_REMOTE.key)
        made = dict(_REMOTE_DEFAULTS)
    else:
        made = _defaults(configuration)
    made |= chosen
    made |= PINNED
    made[ZONE] = configuration.get(LOCAL_TIME_ZONE)
    return Settings(made, chosen, "" if is_given else remote)


def is_local_master(master: str) -> bool:
    """Whether all tasks of a master run in one process, on this machine."""
    return master == "local" or master.startswith("local[")


def _defaults(configuration: Configuration) -> dict[str, str]:
    parallelism = configuration.get(PARALLELISM)
    cores = parallelism if parallelism > 1 else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    made = dict(_DEFAULTS)
    made["spark.master"] = configuration.get(SPARK_MASTER) or f"local[{cores}]"
    if is_local_master(made["spark.master"]):
        made["spark.sql.shuffle.partitions"] = str(max(cores, 1))
        # All tasks run in the driver: what Java takes by itself, where Spark says one gigabyte.
        made["spark.driver.memory"] = f"{max(machine_memory_bytes() // 4 >> 20, 1024)}m"
    # Folders of an unused warehouse or metastore must not appear where the user stands.
    made["spark.sql.warehouse.dir"] = os.path.join(tempfile.gettempdir(), "flowsql-spark-warehouse")
    return made


def _chosen(configuration: Configuration) -> dict[str, str]:
    """The user's own ``spark.*`` keys."""
    chosen = {key: text for key, text in configuration.items() if key.startswith("spark.") and text}
    for key, value in chosen.items():
        if key == ZONE:
            raise ConnectorError("spark-option", f"'{key}' is the session's zone.", hint=f"set '{LOCAL_TIME_ZONE.key}'")
        if PINNED.get(key, value) != value:
            raise ConnectorError("spark-option", f"'{key}' must be '{PINNED[key]}': answers depend on it.")
    return chosen
