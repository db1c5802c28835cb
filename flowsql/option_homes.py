"""Which module defines each option. Written by ``docs/make_options.py``; do not edit."""

from __future__ import annotations

from typing import Final

OPTION_HOMES: Final = {
    "execution.buffer-timeout.enabled": "flowsql_runtime.network.partition",
    "execution.buffer-timeout.interval": "flowsql_runtime.network.partition",
    "execution.runtime-mode": "flowsql_core.config",
    "flowsql.chain-single-partition": "flowsql_planner.translate.options",
    "flowsql.debug": "flowsql_runtime.cluster.deploy",
    "flowsql.memory": "flowsql_runtime.task.memory",
    "flowsql.network.batch-rows": "flowsql_runtime.network.partition",
    "flowsql.network.channel-memory": "flowsql_runtime.network.partition",
    "flowsql.print.format": "flowsql_connectors.print",
    "flowsql.source.batch-rows": "flowsql_runtime.operators.source",
    "io.tmp.dirs": "flowsql_runtime.cluster.deploy",
    "parallelism.default": "flowsql_core.config",
    "pipeline.auto-watermark-interval": "flowsql_core.config",
    "pipeline.max-parallelism": "flowsql_planner.translate.options",
    "pipeline.name": "flowsql_planner.translate.options",
    "pipeline.object-reuse": "flowsql_core.config",
    "pipeline.operator-chaining.enabled": "flowsql_planner.translate.options",
    "sql-client.display.print-time-cost": "flowsql.cli.script",
    "sql-client.verbose": "flowsql.cli.script",
    "table.display.max-column-width": "flowsql.table.tableau",
    "table.dynamic-table-options.enabled": "flowsql_planner.bind.table",
    "table.exec.mini-batch.allow-latency": "flowsql_core.config",
    "table.exec.mini-batch.enabled": "flowsql_core.config",
    "table.exec.mini-batch.size": "flowsql_core.config",
    "table.exec.non-temporal-sort.enabled": "flowsql_planner.physical.options",
    "table.exec.sink.not-null-enforcer": "flowsql_runtime.operators.not_null",
    "table.exec.sink.upsert-materialize": "flowsql_planner.physical.options",
    "table.exec.source.idle-timeout": "flowsql_planner.translate.options",
    "table.exec.state.ttl": "flowsql_core.config",
    "table.local-time-zone": "flowsql_core.config",
    "table.optimizer.agg-phase-strategy": "flowsql_planner.physical.options",
    "table.optimizer.distinct-agg.split.enabled": "flowsql_planner.physical.options",
    "table.optimizer.reuse-source-enabled": "flowsql_planner.physical.options",
    "table.optimizer.reuse-sub-plan-enabled": "flowsql_planner.physical.options",
}
