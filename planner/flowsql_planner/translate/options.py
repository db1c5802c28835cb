"""Options that shape the job graph."""

from __future__ import annotations

from flowsql_core.config import option, parse_bool

OPERATOR_CHAINING = option(
    "pipeline.operator-chaining.enabled", parse_bool, True, "Run neighbouring operators in one task."
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
