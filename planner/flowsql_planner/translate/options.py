"""Options that shape the job graph."""

from __future__ import annotations

from flowsql_core.config import PARALLELISM, Configuration, option, parse_bool

OPERATOR_CHAINING = option(
    "pipeline.operator-chaining.enabled", parse_bool, True, "Run neighbouring operators in one task."
)
SQL_PARALLELISM = option(
    "table.exec.resource.default-parallelism",
    int,
    -1,
    "Subtasks of the operators of SQL and of the Table API; -1: as parallelism.default says.",
)
MAX_PARALLELISM = option(
    "pipeline.max-parallelism", int, -1, "Key groups of the job; -1 derives them from the parallelism."
)
CHAIN_SINGLE_PARTITION = option(
    "flowsql.chain-single-partition",
    parse_bool,
    True,
    "Chain across a hash or single exchange whose two sides have parallelism 1.",
)
PIPELINE_NAME = option("pipeline.name", str, "", "Name of the job.")


def sql_parallelism(configuration: Configuration) -> int:
    """Subtasks of an operator of a table program that says nothing itself."""
    own = configuration.get(SQL_PARALLELISM)
    return own if own > 0 else configuration.get(PARALLELISM)
