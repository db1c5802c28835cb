"""PyFlink's place for the two environments."""

from __future__ import annotations

from flowsql.table.environment import TableEnvironment as TableEnvironment
from flowsql.table.stream_environment import StreamTableEnvironment as StreamTableEnvironment
