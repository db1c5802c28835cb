"""PyFlink's place for the two environments."""

from __future__ import annotations

from flowsql.table.session.environment import TableEnvironment as TableEnvironment
from flowsql.table.session.stream_environment import StreamTableEnvironment as StreamTableEnvironment
