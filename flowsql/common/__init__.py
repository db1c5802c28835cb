"""PyFlink's ``pyflink.common`` under FlowSQL's name: what both APIs share. Names load when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowsql.lazy import lazy_names

if TYPE_CHECKING:
    from flowsql.common.job_client import JobClient as JobClient
    from flowsql.common.row import Row as Row
    from flowsql_core.row import RowKind as RowKind

__all__ = ["JobClient", "Row", "RowKind"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "JobClient": "flowsql.common.job_client",
        "Row": "flowsql.common.row",
        "RowKind": "flowsql_core.row",
    },
)
